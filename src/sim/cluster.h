/*
 * cluster.h - many nodes in virtual time: Espalier's executors on a modelled network.
 *
 * A node is a worker, a server or a switch of a plan; it is placed on a vertex of the topology. A *stream* is one
 * executor (engine/exec.h, dry) on each of its members, as in a job: calls are started in the same order on all
 * members, each member at a time of its own. Computed values, waits and the order of messages come from the plan and
 * the executor alone; this file moves messages and calls back.
 *
 *     struct agenda agenda = {0};
 *     struct cluster_config config = {.agenda = &agenda, .topology = topology, .place = place, .nodes = n};
 *     sim_cluster_open(&config, &cluster, err);
 *     stream = sim_cluster_stream(cluster, NULL, n, err);
 *     sim_cluster_start_all(cluster, stream, plan, cookie, err);
 *     sim_agenda_run(&agenda, INFINITY, err);     done() is called for each member
 *
 * Acknowledgements (credits) take the delay of the path and no bandwidth: in a job they ride on messages or are frames
 * of 32 bytes, one for half a window of messages.
 *
 * A node on a switch is the plan's virtual node. It works at line rate: its messages are not ordered by a NIC but queue
 * at the links that they take. By default it passes on data that it only copies (recv=, multicast) as it comes in, and
 * sums (recv+) when all of it is there: store and forward per message. With cut_through_sums it also adds as data
 * streams in: a sum begins to leave when the first bytes of all its terms are there, and its last byte is not there
 * before the last of theirs.
 */
#ifndef SIM_CLUSTER_H
#define SIM_CLUSTER_H

#include "plan/plan.h"
#include "sim/network.h"

/* In which order the messages of a host leave. */
enum cluster_order {
	/*
	 * each pair of nodes has a connection that sends one message after the other, oldest chunk first; the connections
	 * share the link (FLUID only)
	 */
	CLUSTER_SHARED,
	/*
	 * the same, but a connection sends in the order in which messages became ready: what several streams have for it
	 * (FLUID only)
	 */
	CLUSTER_SHARED_READY,
	/*
	 * one message at a time per NIC, in the order in which they became ready, on whichever stream; with a star that is
	 * round-robin over the peers
	 */
	CLUSTER_READY,
	CLUSTER_BLOCK,  /* one at a time, all that is ready for the node of the lowest number first */
};

/* One message between two nodes, as it is told when it has arrived. */
struct cluster_message {
	uint32_t stream;
	uint32_t from, to; /* nodes */
	uint32_t nic;      /* of the sender */
	uint64_t bytes;
	uint64_t call;  /* of the stream, counted from 0, as the sender counts */
	uint64_t chunk;
	double ready;   /* the executor gave it                          */
	double begun;   /* its first byte left                           */
	double left;    /* its last byte left                            */
	double arrived;
};

struct cluster_config {
	struct agenda *agenda;           /* borrowed */
	const struct topology *topology; /* borrowed */
	const uint32_t *place;           /* vertex of each node; copied */
	uint32_t nodes;
	enum network_model model;
	bool cut_through;       /* FIFO: see network.h                                      */
	bool cut_through_sums;  /* nodes on switches: see above                             */
	double grain;           /* see network.h                                            */
	uint32_t mtu;           /* see network.h                                            */
	enum cluster_order order; /* of every host; FIFO takes READY for those that share    */
	uint32_t credits;       /* of the executors; 0: as many as they can have            */
	uint32_t active_chunks; /* chunks in flight per executor; 0: 64. Nodes on switches have 1,024 at least */
	void *user;
	/* A member has finished a call; may start others, here or elsewhere. */
	void (*done)(void *user, uint32_t stream, uint32_t member, void *cookie);
	/* A message has arrived; for traces and counting. May be NULL. */
	void (*message)(void *user, const struct cluster_message *message);
};

struct cluster;

ESP_CHECKED enum esp_status sim_cluster_open(const struct cluster_config *config, struct cluster **out,
                                             struct error *err);
void sim_cluster_close(struct cluster *cluster); /* NULL is fine */

/* The order of one host's NICs, before it sends anything. */
void sim_cluster_set_order(struct cluster *cluster, uint32_t vertex, enum cluster_order order);

/*
 * A new stream; its plans' node i is node members[i] (copied; NULL: node i). Returns its number, counted from 0, or
 * UINT32_MAX with err set.
 */
uint32_t sim_cluster_stream(struct cluster *cluster, const uint32_t *members, uint32_t count, struct error *err);

/*
 * Starts a call on one member, now. The plan is borrowed until all members are done. A member that never starts it
 * leaves the others waiting: the agenda then runs dry without done() for them, and sim_cluster_quiet() says which node
 * waits for which.
 */
ESP_CHECKED enum esp_status sim_cluster_start(struct cluster *cluster, uint32_t stream, uint32_t member,
                                              const struct plan *plan, void *cookie, struct error *err);
/* On every member, the plan's extra nodes included. */
ESP_CHECKED enum esp_status sim_cluster_start_all(struct cluster *cluster, uint32_t stream, const struct plan *plan,
                                                  void *cookie, struct error *err);

/*
 * ESP_OK: every call that was started is done. Otherwise what the first unfinished one waits for, in err (ESP_ESTATE,
 * or the executor's failure).
 */
ESP_CHECKED enum esp_status sim_cluster_quiet(const struct cluster *cluster, struct error *err);

struct network *sim_cluster_network(struct cluster *cluster);

struct cluster_stats {
	uint64_t messages, credits;
	uint64_t bytes; /* of messages, however many links they took */
};
struct cluster_stats sim_cluster_stats(const struct cluster *cluster);

#endif
