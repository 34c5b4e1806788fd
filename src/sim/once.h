/*
 * once.h - one collective, once: a plan run from start to end on a modelled network, all nodes starting together.
 */
#ifndef SIM_ONCE_H
#define SIM_ONCE_H

#include "sim/cluster.h"

/* An allreduce that is measured. */
struct once_load {
	uint64_t bytes, chunk_bytes; /* chunk_bytes: the most that travels in one piece; 0: all */
	double grain; /* see network.h; 0: exact */
};

struct once_config {
	const struct topology *topology;
	const uint32_t *place; /* vertex of each node of the plan */
	enum network_model model;
	bool store_and_forward; /* FIFO: switches wait for all of a message; otherwise they cut through */
	bool cut_through_sums;  /* see cluster.h */
	double grain;           /* see network.h */
	uint32_t mtu;           /* 0: no headers */
	enum cluster_order order;
	uint32_t credits;       /* 0: as many as there can be */
	uint32_t active_chunks; /* 0: as cluster.h has it     */
	void *user;
	void (*message)(void *user, const struct cluster_message *message); /* may be NULL */
};

struct once_result {
	double seconds; /* until the last worker was done */
	double first;   /* when the first worker was */
	uint64_t messages, bytes, credits;
	uint64_t class_bytes[TOPOLOGY_CLASSES]; /* over links of that class */
	uint64_t events;
};

/*
 * ESP_EPLAN: it does not end; err says which node waits for which. ESP_EINVAL, ESP_ENOMEM, and errors of an executor.
 */
ESP_CHECKED enum esp_status sim_once_run(const struct plan *plan, const struct once_config *config,
                                         struct once_result *out, struct error *err);

#endif
