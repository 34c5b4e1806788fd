/*
 * progress.h - lanes, their transports, and the threads that drive them.
 *
 * A lane's token is held by one thread at a time. A caller that waits takes it and drives the lane itself, so a blocking call
 * costs no switch of threads; what no caller drives is driven by the lane thread, which also gives the token up when another
 * thread wants it. Other threads act on a lane through commands, which are taken before anything is moved.
 *
 * A thread that finds nothing to do polls, yields and sleeps by the wait policy (wait_policy.h), until a peer leaves
 * something, a command comes or a timeout is over.
 *
 * Knows no rank and no communicator: what becomes of calls is told by struct progress_events, without a lock held. One lock
 * (progress_set.lock) guards tokens and commands; it is a leaf: no function here calls out while it is held, but the done()
 * of progress_wait(), which reads an atomic and nothing else.
 */
#ifndef NODE_PROGRESS_PROGRESS_H
#define NODE_PROGRESS_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/lane.h"
#include "node/progress/wait_hint.h"
#include "node/progress/wait_policy.h"

enum progress_cmd_kind {
	PROGRESS_START, /* channel, call: a call on this lane                    */
	PROGRESS_ADOPT, /* peer, endpoint, replaces: a connection                */
	PROGRESS_DROP,  /* peer, status: is gone, or cannot be reached           */
	PROGRESS_FAIL,  /* channel, peer, status: the stream has failed          */
};

/* Which thread drives a new call. */
enum drive_by {
	BY_LANE_THREAD, /* the lane thread, which is woken                                                    */
	BY_CALLER_SOON, /* a caller that is predicted to wait soon (wait_hint.h), or else the lane thread     */
	BY_CALLER_NOW,  /* the caller, which waits at once                                                    */
};

struct progress_cmd {
	struct progress_cmd *next;
	uint8_t kind;      /* enum progress_cmd_kind */
	bool replaces;
	bool is_embedded;  /* in memory of its poster, which stays until the command has been taken: not to be freed */
	uint16_t channel;
	uint32_t peer;
	enum esp_status status;
	struct endpoint endpoint;
	const struct exec_call *call;
};

struct progress_events {
	/* A call has ended on a lane; done->cookie is the call's. By the thread that drives the lane. */
	void (*done)(void *context, uint32_t lane, const struct exec_done *done);
	/* A stream has failed; its transports have forgotten it. */
	void (*failed)(void *context, uint32_t lane, const struct lane_failure *failure);
	/* There is something for a peer that has no connection: PROGRESS_ADOPT or PROGRESS_DROP is expected. */
	void (*connect)(void *context, uint32_t lane, uint32_t peer);
	/* A thread is about to sleep while calls are unfinished. May be NULL. */
	void (*sleeps)(void *context);
	/* A lane had nothing to do for a while, and waited for that; only where progress_config.tells_waits. May be NULL. */
	void (*waited)(void *context, uint32_t lane, uint64_t from_ns, uint64_t to_ns, const struct exec_wait *wait);
	/*
	 * What lane 0's thread does beside driving. background() is called without a lock whenever that thread has been woken,
	 * and returns when it wants to be called next; pending(), at any time, says whether it wants to be called at once.
	 * May be NULL, both.
	 */
	uint64_t (*background)(void *context);
	bool (*pending)(void *context);
};

#define PROGRESS_PORTS LANE_PORTS_MAX

/* A transport of every lane. */
struct progress_port_config {
	const struct transport_ops *ops;
	bool resumes;
	const void *options; /* transport_config.options, for lane 0                                    */
	size_t option_bytes; /* options is an array with one element of this size per lane; 0: all alike */
};

struct progress_config {
	uint32_t lanes;
	struct exec_config exec;
	uint32_t peers;
	const uint8_t *port_of; /* by peer: its port; copied. NULL: port 0 for all                                   */
	uint32_t port_count;
	struct progress_port_config ports[PROGRESS_PORTS]; /* polled in this order                                   */
	bool is_crowded;        /* more ranks than cores                                                            */
	bool keeps_core;        /* callers choose a core by `place` (core_affinity.h)                               */
	uint32_t place;
	bool has_threads;       /* false: there are no lane threads, and the owner calls progress_turn()             */
	bool tells_waits;
	void (*idle)(void *);   /* the program's: called by a caller that is about to sleep. NULL: none             */
	void *idle_context;
};

struct progress_port {
	const struct transport_ops *ops;
	void *transport;
};

struct progress_set;

/* One lane. Its fields are for those that hold its token, unless they say otherwise. */
struct progress {
	struct progress_set *set;
	uint32_t number;
	struct lane *lane;
	struct progress_port ports[PROGRESS_PORTS];
	pthread_t thread;
	bool has_thread;
	struct wait_policy wait;
	struct exec_wait waits; /* what the lane waits for, where it is to be told; peer PLAN_NONE: no peer in particular */

	/* Guarded by set->lock; the atomics are also read without it. */
	pthread_cond_t duty; /* for the lane thread */
	bool is_held;
	atomic_bool quits;
	atomic_uint wanting; /* threads that wait for the token */
	atomic_bool has_cmds;
	struct progress_cmd *first_cmd, *last_cmd;
	uint32_t unfinished;  /* what the lane owed when the token was given up */
	uint64_t expected_ns; /* since when a caller is predicted that drives all that is left for the lane; 0: none, or there is more */
	uint64_t watched_ns;  /* when one was predicted last */
	bool watches;         /* the lane thread looks now and then whether one came */
	struct transport_stats stats; /* when they were last asked for */

	atomic_bool is_asleep; /* a command must wake the thread that drives */
	/* For people; any thread may read them. */
	_Atomic uint64_t idle_ns;       /* in which the thread that drove found nothing to do */
	_Atomic uint64_t idle_since_ns; /* since when that is so; 0: it is not                */
};

struct progress_set {
	const struct progress_events *events;
	void *context;
	struct progress *lanes;
	uint32_t count;
	uint32_t peers;
	uint8_t *port_of; /* by peer; NULL: port 0 */
	uint32_t port_count;
	bool tells_waits;
	void (*idle)(void *);
	void *idle_context;
	struct wait_hint hint; /* do callers wait at once for what they start? */

	pthread_mutex_t lock;
	pthread_cond_t changed; /* a token is free, or progress_changed() */
	atomic_uint sleepers;   /* threads that wait for that             */
};

/* Borrows events, context and the configuration's options. *out is written also if it fails, and then closed. */
ESP_CHECKED enum esp_status progress_open(struct progress_set *set, const struct progress_config *config,
                                          const struct progress_events *events, void *context, struct error *err);
/* The lane threads end; no event comes any more but from threads that wait. Accepts a zeroed struct, and one that is stopped. */
void progress_stop(struct progress_set *set);
/* The same, and connections are closed. Accepts a zeroed struct. */
void progress_close(struct progress_set *set);

/* ---- commands; any thread ---- */

/* Posts a command that is embedded in memory of the caller's. Commands of one lane are taken in order. */
void progress_post(struct progress *progress, struct progress_cmd *cmd, enum drive_by by);
/* Posts a copy, for the lane thread. Without memory for it the endpoint's descriptor is closed and nothing else happens: its user has a deadline. */
void progress_send(struct progress *progress, const struct progress_cmd *cmd);
/* The lane thread, or the thread that sleeps over the lane, looks again. */
void progress_nudge(struct progress *progress);
/* A caller is predicted to come: the lane thread looks now and then whether it has. True: it was looking already. */
bool progress_watch(struct progress *progress);
/* No caller is predicted any more: lane threads see to what was left for one. */
void progress_expect_no_caller(struct progress_set *set);
/* Some progress_wait() may be over. After the change has been made. */
void progress_changed(struct progress_set *set);

/* ---- the token; any thread ---- */

/* For what cannot be done by a command; waits for the token. All commands that came before have been taken then. */
void progress_acquire(struct progress *progress);
void progress_release(struct progress *progress);
/* The same, but not beyond until_ns: false: the thread that drives does not give it up. */
bool progress_try_acquire(struct progress *progress, uint64_t until_ns);

/* Waits until done(argument) or until_ns, driving any lane that is free. done() is called with or without the lock. False: it was time. */
bool progress_wait(struct progress_set *set, bool (*done)(void *), void *argument, uint64_t until_ns);

/* The program's idle function, if there is one; the longest that the caller may sleep then, of nap_ns. No lock is held. */
#define PROGRESS_IDLE_NAP (50 * NS_PER_US)
static inline uint64_t progress_idle(const struct progress_set *set, uint64_t nap_ns)
{
	if (!set->idle)
		return nap_ns;
	set->idle(set->idle_context);
	return nap_ns < PROGRESS_IDLE_NAP ? nap_ns : PROGRESS_IDLE_NAP;
}

/* ---- for the thread that holds the token ---- */

/* The channel is closed: transports forget it, then its stream goes. */
void progress_close_stream(struct progress *progress, uint16_t channel);
/* A lost peer is back: PROGRESS_ADOPT takes it again (transport_ops.readmit). */
ESP_CHECKED enum esp_status progress_readmit(struct progress *progress, uint32_t peer, struct error *err);
/* Does a transport of the lane know of paths? Any thread. */
bool progress_has_paths(const struct progress *progress);
/* Of the connection to a peer; false: there is none, or nothing is known of it. */
bool progress_path(const struct progress *progress, uint32_t peer, struct path_stats *out);
/* The transport of that name; NULL: the lane has none. */
void *progress_transport(const struct progress *progress, const struct transport_ops *ops);
/* One turn without waiting, for owners without lane threads: takes commands, moves data, tells of ends. Returns how much was moved. */
unsigned progress_turn(struct progress *progress);

/* ---- for people; any thread ---- */

/* How long lanes had nothing to do but wait, all of them together. */
uint64_t progress_idle_ns(const struct progress_set *set);
/* What the lane has moved; as it was when it was last asked for if the token is not to be had until then. */
struct transport_stats progress_stats(struct progress *progress, uint64_t until_ns);

#endif
