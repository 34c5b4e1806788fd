/*
 * roster.h - the table of the nodes of a job: who they are, where they listen, which of them share a host. Pure.
 */
#ifndef NODE_NET_ROSTER_H
#define NODE_NET_ROSTER_H

#include <stdint.h>

#include "base/error.h"
#include "wire/rendezvous_msg.h"

/* The cards of all ranks, by rank, and who shares a host with whom. */
struct roster {
	uint32_t size;
	struct node_info *nodes;
	uint32_t hosts;
	uint32_t *host_of;    /* by rank: number of its host, in the order in which ranks name them first */
	uint32_t *host_ranks; /* by host: how many ranks it has */
	uint32_t *core_ranks; /* by rank: how many of its host may use just the same cores, itself too */
	uint32_t *core_place; /* by rank: its number among them */
};

/* Takes the cards of `size` ranks (from malloc(); freed if it fails), and finds the ranks that share a host, or cores. ESP_ENOMEM. */
ESP_CHECKED enum esp_status roster_init(struct roster *roster, struct node_info *cards, uint32_t size, struct error *err);
void roster_fini(struct roster *roster);

/*
 * Can all of them be reached from other hosts? ESP_EINVAL: one listens on loopback alone, and there is another host;
 * *out_culprit is the first such rank. All ranks come to the same. Not for jobs whose leader is on loopback, which are on one machine however
 * many hosts its containers say that they are.
 */
ESP_CHECKED enum esp_status roster_check_reach(const struct roster *roster, int32_t *out_culprit, struct error *err);

#endif
