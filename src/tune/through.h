/*
 * through.h - does a sum through a switch on a host pay? By the bytes that each link carries. Pure.
 *
 * A switch in the path of the packets, a rack's own, carries nothing that it would not carry anyway. A switch that is a
 * process on a host carries each member's data in and the sum to each member out, N times the data each way over its
 * own link; a ring carries 2 (N - 1) / N of the data over each member's. So such a switch pays only where its link is
 * more than N^2 / (2 (N - 1)) times as fast as a member's: 2.0, 2.7, 4.6, 8.5 for 2, 4, 8, 16 members.
 */
#ifndef TUNE_THROUGH_H
#define TUNE_THROUGH_H

#include <stdbool.h>
#include <stdint.h>

/* Data in a full Ethernet frame of MTU 1500: 1424 of 1514 bytes through the switch, 1448 by TCP. */
#define TUNE_THROUGH_GOODPUT (1424.0 / 1514.0)
#define TUNE_RING_GOODPUT (1448.0 / 1514.0)

/* Seconds for so many bytes, summed by that many members; rate: of a member's link, in bytes per second each way. */
double tune_through_ring(uint64_t bytes, uint32_t members, double rate);
/* The same through a switch whose link has so many times that rate. */
double tune_through_switch(uint64_t bytes, uint32_t members, double rate, double links);
/* How many times a member's rate the switch's link needs at least, to beat a ring. */
double tune_through_needs(uint32_t members);

/*
 * Do members pay for a switch whose link has so many times the rate of a host's, if they are spread evenly on so many
 * hosts? The ring goes between hosts, whose members share memory; the switch carries each member's data.
 */
bool tune_through_pays(uint32_t members, uint32_t hosts, double links);

#endif
