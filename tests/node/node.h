/*
 * node.h - nodes of a cluster that are no ranks, in one process: control connections, lanes and transports, and nothing else.
 *
 * A fleet is some nodes of roles other than worker, which share a roster as a daemon would have it. Each has a control thread
 * and one lane; lanes of nodes with an odd number are driven by progress_turn(), the others by their lane threads.
 */
#ifndef TESTS_NODE_NODE_H
#define TESTS_NODE_NODE_H

#include "node/control/control.h"
#include "node/progress/progress.h"
#include "transport/shm/segment.h"

#define FLEET_MOST 4u

enum fleet_kind {
	FLEET_TCP,
	FLEET_SHM,
};

struct fleet;

/* A call on the lane of a node. */
struct node_call {
	struct exec_call exec;
	struct progress_cmd cmd;
	enum esp_status status;
	atomic_bool is_done;
};

struct node {
	struct fleet *fleet;
	uint32_t index;
	struct node_info info;
	struct listener listener;
	struct control *control;
	struct control_subscribers subscribers;
	struct progress_set progress;
	struct segment *segment;
	int own_fds[2];
	pthread_t driver; /* of an odd node */
	atomic_bool quits;

	/* Guarded by fleet->lock. By peer. */
	bool is_open[FLEET_MOST];       /* a control connection stands                     */
	uint32_t closed[FLEET_MOST];    /* times that one has ended                        */
	uint32_t heard[FLEET_MOST];     /* messages                                        */
	uint8_t last[FLEET_MOST];       /* the first byte of the latest                    */
	const struct segment_view *views[FLEET_MOST];
	int wake_fds[FLEET_MOST];       /* a copy, to be adopted again with; -1: none      */
	uint32_t failed;                /* streams that have failed                        */
	uint16_t failed_channel;
};

struct fleet {
	enum fleet_kind kind;
	uint32_t count;
	struct roster roster;
	struct rails rails;
	bool is_local[FLEET_MOST];
	uint32_t local_of[FLEET_MOST], rank_of[FLEET_MOST];
	uint8_t key[HANDSHAKE_KEY_BYTES];
	struct node nodes[FLEET_MOST];
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

/* Opens all nodes; over shared memory they have each other's descriptors and lanes are adopted. */
void fleet_open(struct fleet *fleet, enum fleet_kind kind, const uint8_t *roles, uint32_t count);
void fleet_close(struct fleet *fleet);

/* Waits until is_so(fleet, argument), which is called with the lock held; a minute without it ends the test. */
void fleet_await(struct fleet *fleet, bool (*is_so)(const struct fleet *fleet, const void *argument), const void *argument, const char *what);

/* A byte to a peer over the control connection. */
void node_say(struct node *node, uint32_t peer, uint8_t byte);
/* Opens a stream of all nodes on the lane of this one, by its number in the fleet. */
enum esp_status node_open_stream(struct node *node, uint16_t channel, struct error *err);
void node_close_stream(struct node *node, uint16_t channel);
/* Starts a call; waits for it. */
void node_start(struct node *node, uint16_t channel, struct node_call *call);
void node_wait(struct node *node, struct node_call *call);
/* The lane takes the peer back, and is given its endpoint again where memory is shared. */
void node_readmit(struct node *node, uint32_t peer);
void node_adopt_memory(struct node *node, uint32_t peer);

#endif
