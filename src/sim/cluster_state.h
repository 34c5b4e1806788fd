/*
 * cluster_state.h - the parts of a cluster in virtual time. Private to src/sim.
 *
 *     cluster ─┬─ streams ── each member's executor
 *              ├─ outboxes: messages that wait for a NIC, or for a connection
 *              └─ joints: chunks that a switch passes on while they come in
 */
#ifndef SIM_CLUSTER_STATE_H
#define SIM_CLUSTER_STATE_H

#include "engine/exec.h"
#include "sim/cluster.h"

/* One member of a stream. */
struct seat {
	struct exec *exec; /* NULL until it is needed */
	uint32_t stream, member;
	uint32_t node;
	uint32_t vertex; /* where the node is placed */
	bool is_switch;
	bool stirred;
	struct outbox *recent; /* that a message of it left through; NULL: none has */
	struct seat *next_stirred;
};

struct stream {
	struct seat *seats;
	uint32_t count;
};

/*
 * A message, from when the executor gave it until it has been delivered. Fields that are needed once it leaves are in
 * the first cache line.
 */
struct message {
	_Alignas(64) struct cluster *cluster;
	struct seat *from, *to;
	struct outbox *outbox;  /* that it leaves through; NULL: straight                         */
	void *cookie;           /* of the executor                                                */
	struct message *sibling; /* in the outbox's line or heap, free, or held by a joint        */
	uint32_t index, bytes;
	uint16_t nic;
	bool has_chunk;         /* chunk_id is meaningful                                         */
	bool is_shown;          /* shown_id is meaningful                                         */
	bool is_held;           /* its last byte waits for those of what it is made from          */
	uint8_t holders;        /* its users: the network, a late delivery */

	uint64_t major, minor;  /* its turn in the outbox */
	struct message *child;  /* in the outbox's heap   */
	const void *chunk_id;   /* from a switch: the chunk whose joint it may have to wait for    */
	const void *shown_id;   /* to a switch: the chunk that was shown it when its first byte came */
	uint64_t call, chunk;         /* from a switch, or for a watcher */
	double ready, begun, left;    /* for a watcher */
};

/* Messages that leave one at a time. */
struct outbox {
	struct message *first, *last; /* messages that came in their turn, in a line by sibling */
	struct message *heap;         /* the others, by turn */
	bool is_busy;
	uint32_t from, to, nic; /* of a connection */
};

/* A chunk at a switch that is shown to the executor before all of it is there. */
struct joint {
	const void *chunk_id;
	uint32_t open; /* messages of it that are still coming in */
	struct message *held; /* messages made from it whose last byte cannot leave before */
	struct joint *next;
};
#define JOINT_BUCKETS 4096u

#define SLAB_MESSAGES 256u
struct message_slab {
	struct message_slab *next;
	struct message messages[SLAB_MESSAGES];
};

struct cluster {
	struct cluster_config config;
	uint32_t *place;
	struct network *network;
	struct cluster_stats stats;
	struct error failure;
	bool has_failed;

	struct stream *streams;
	uint32_t stream_count;
	size_t stream_room;
	struct seat *stirred_first, *stirred_last;
	bool is_settling;
	uint32_t *peers; /* while a member is asked for its messages */
	size_t peer_room;

	uint8_t *order;           /* of each vertex; enum cluster_order */
	struct outbox **nics;     /* of each vertex: its NICs' outboxes; NULL: none yet */
	struct outbox **pairs;    /* connections: open addressing       */
	uint32_t pair_count, pair_room;
	uint64_t turns;

	struct message *free;
	struct message_slab *slabs;
	struct joint **joints; /* by chunk; NULL: none was needed yet */
	struct joint *joint_free;
};

/* The executor of a member, opened if it is not; NULL: it failed. cluster.c */
struct exec *sim_seat_exec(struct cluster *cluster, struct seat *seat);
void sim_cluster_fail(struct cluster *cluster, enum esp_status status, const char *what, const struct seat *seat);

/* Something has happened to the executor: it is asked for messages and results. cluster.c */
void sim_cluster_stir(struct cluster *cluster, struct seat *seat);

/* Takes all messages that the executor has. cluster_post.c */
void sim_post_collect(struct cluster *cluster, struct seat *seat);
/* Events of the network; the cookie is the message. */
void sim_post_headed(void *user, void *cookie);
void sim_post_left(void *user, void *cookie);
void sim_post_arrived(void *user, void *cookie);
void sim_post_deliver(struct message *message);
void sim_post_sent(struct message *message);
void sim_post_release(struct message *message);
void sim_post_close(struct cluster *cluster);

/* The outbox through which a message from one node to another leaves. cluster_outbox.c; NULL: no memory. */
struct outbox *sim_outbox_of_nic(struct cluster *cluster, uint32_t vertex, uint32_t nic);
struct outbox *sim_outbox_of_pair(struct cluster *cluster, struct seat *from, uint32_t to, uint32_t nic);
void sim_outbox_push(struct outbox *outbox, struct message *message);
struct message *sim_outbox_pop(struct outbox *outbox);
void sim_outboxes_close(struct cluster *cluster);

/* cluster_joint.c: a message to a switch begins, and ends; may one from it end? */
bool sim_joint_show(struct message *message);
void sim_joint_complete(struct message *message);
bool sim_joint_hold(struct message *message);
void sim_joints_close(struct cluster *cluster);

#endif
