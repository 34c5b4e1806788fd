/*
 * hub_bound.h - the least time of an iteration of training, by the bytes that each link has to carry. Pure.
 *
 * Seconds are those of one model pushed and pulled by every worker; goodput is a worker's link's, in bytes a second
 * each way with both ways busy.
 */
#ifndef TOOLS_BENCH_HUB_BOUND_H
#define TOOLS_BENCH_HUB_BOUND_H

#include <stdint.h>

/* TCP payload in a full Ethernet frame of MTU 1500: 1448 of 1514 bytes (IPv4, timestamps). */
double bench_hub_bound_goodput(uint64_t rate_bits);

/*
 * A hub on a host of its own, whose link has hub_links times a worker's rate: each worker's link carries the model once
 * each way, the hub's link carries it workers times.
 */
double bench_hub_bound_hub(uint64_t bytes, uint32_t workers, double hub_links, double goodput);

/*
 * No host but the workers': a ring, or shards that live on the workers. Each link carries 2 (N - 1) / N of the model
 * each way. 0 for a worker alone.
 */
double bench_hub_bound_colocated(uint64_t bytes, uint32_t workers, double goodput);

#endif
