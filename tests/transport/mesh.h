/*
 * mesh.h - a cluster whose lanes are real: a thread each, over a real transport.
 *
 * The calls and their data are those of tests/cluster; what differs is what carries them.
 * A transport joins the suite with a struct mesh_kind. Connections are made when a lane
 * asks for them, so now and then both ends ask at once.
 */
#ifndef TESTS_TRANSPORT_MESH_H
#define TESTS_TRANSPORT_MESH_H

#include <pthread.h>
#include <stdatomic.h>

#include "cluster.h"

struct mesh;
struct mesh_lane;

/* A transport under test. All but wake() are called by the lane's thread; meanings as in transport/tcp/tcp.h. */
struct mesh_kind {
	const char *name;
	bool (*works)(void);
	void *(*open)(struct mesh_lane *lane);
	void (*close)(void *transport);
	unsigned (*poll)(void *transport, int64_t timeout_ns);
	void (*wake)(void *transport);
	void (*drop)(void *transport, uint32_t peer, enum esp_status why);
	void (*forget)(void *transport, uint16_t channel);
	/* A connection that another lane has made. */
	void (*adopt)(struct mesh_lane *lane, uint32_t peer, int fd);
	/* Before every poll, if it is not NULL: cuts connections and replaces them. */
	void (*disturb)(struct mesh_lane *lane);
	/* A connection that another lane has made in place of those that there are. */
	void (*replace)(struct mesh_lane *lane, uint32_t peer, int fd);
	uint8_t open_pages; /* of calls; 0: nobody stores into others' memory */
};

extern const struct mesh_kind mesh_unix, mesh_ipv4, mesh_ipv6, mesh_shm;
extern const struct mesh_kind mesh_moving_unix, mesh_moving_ipv4; /* connections are replaced all the time */

struct mesh_mail {
	uint32_t peer;
	int fd;
	bool replaces;
};

struct mesh_lane {
	struct mesh *mesh;
	uint32_t node, number;
	struct lane *lane;
	void *transport;
	pthread_t thread;
	struct rng rng;
	uint32_t next_call, calls_left;
	uint64_t polls;
	bool told;      /* of the loss */
	struct exec_failure failure; /* the first of a stream */
	bool finished;
	struct mesh_mail *mail; /* guarded by mesh->lock */
	uint32_t mail_count;
	uint64_t moved, idle;   /* polls that moved something, and that did not */
	int *fds;               /* by peer: what its transport was given last; -1: nothing */
	bool *is_dialled;       /* by peer above its own, guarded by mesh->lock: a connection is being made */
	bool *is_cut;           /* by peer: nothing comes on that any more */
	uint64_t replaced;
};

struct mesh {
	struct cluster cluster; /* calls and lanes; it has no network */
	const struct mesh_kind *kind;
	struct mesh_lane *lanes; /* by node, then lane */
	uint32_t lane_count;
	uint32_t socket_buffer;
	bool doubles;            /* connections are made twice now and then */
	uint64_t victim_after;   /* polls after which spec.victim's lanes are gone */
	pthread_mutex_t lock;    /* mail, and the results of calls */
	atomic_uint finished;
	atomic_bool lost;        /* the victim is gone: all are told, as a group would do */
};

/* Draws calls and a mesh for them. */
void mesh_draw(struct mesh *mesh, uint64_t seed, const struct mesh_kind *kind);
/* Runs it; a lane that waits in vain ends the test. */
void mesh_run(struct mesh *mesh);
void mesh_close(struct mesh *mesh);

/* Has nobody asked this before for these two nodes? */
bool mesh_is_first(struct mesh *mesh, uint32_t node, uint32_t lane, uint32_t peer);

/* Hands a connection to the thread of a lane. */
void mesh_post(struct mesh *mesh, uint32_t node, uint32_t lane, uint32_t peer, int fd);
void mesh_post_replacing(struct mesh *mesh, uint32_t node, uint32_t lane, uint32_t peer, int fd);

#endif
