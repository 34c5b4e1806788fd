/*
 * roster.h - the node infos of all nodes of a job, by rank, and which ranks share a host or cores. Pure; read
 * by any thread once it is made.
 */
#ifndef NODE_NET_ROSTER_H
#define NODE_NET_ROSTER_H

#include <stdint.h>

#include "base/error.h"
#include "wire/rendezvous_msg.h"

struct roster {
	uint32_t size;
	struct node_info *nodes;
	uint32_t hosts;
	uint32_t *host_of;    /* by rank: number of its host; hosts are numbered in the order of their lowest ranks */
	uint32_t *host_ranks; /* by host: number of its ranks */
	uint32_t *core_ranks; /* by rank: ranks of its host that may use exactly the same cores, itself included */
	uint32_t *core_place; /* by rank: its index among them */
};

/* Takes the node infos of `size` ranks (from malloc(); freed on failure) and numbers hosts and cores. ESP_ENOMEM. */
ESP_CHECKED enum esp_status roster_init(struct roster *roster, struct node_info *nodes, uint32_t size,
                                        struct error *err);
void roster_fini(struct roster *roster);

/*
 * Checks that every rank can be reached from other hosts. ESP_EINVAL: there is more than one host and
 * *out_culprit, the lowest such rank, has loopback addresses only. All ranks get the same result. Do not call
 * it if the leader is on loopback: such a job is on one machine, however many hosts its containers report.
 */
ESP_CHECKED enum esp_status roster_check_reach(const struct roster *roster, int32_t *out_culprit, struct error *err);

#endif
