/*
 * progress.h - lanes, their transports, and the threads that drive them. Any thread, except where the token is named.
 *
 * A lane's token is held by one thread at a time. A waiting caller takes it and drives the lane itself, so a blocking
 * call costs no thread switch; a lane that no caller drives is driven by its lane thread, which also gives the token up
 * when another thread wants it. Other threads act on a lane through commands, which the holder of the token takes
 * before it moves anything.
 *
 * A thread that finds nothing to do polls, yields and sleeps by the wait policy (wait_policy.h), until a message of a
 * peer arrives, a command comes or a timeout is over.
 *
 * Knows no rank and no communicator: struct progress_events reports the outcome of calls, without a lock held. One lock
 * (progress_set.lock) guards tokens and commands; it is a leaf: no function here calls out while it is held, except for
 * the done() of progress_wait(), which only reads an atomic.
 */
#ifndef NODE_PROGRESS_PROGRESS_H
#define NODE_PROGRESS_PROGRESS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "engine/lane.h"
#include "node/progress/wait_hint.h"
#include "node/progress/wait_policy.h"

enum progress_cmd_kind {
	PROGRESS_START, /* channel, call: a call on this lane */
	PROGRESS_ADOPT, /* peer, endpoint, replaces: a connection */
	PROGRESS_DROP,  /* peer, status: the peer is gone, or cannot be reached */
	PROGRESS_FAIL,  /* channel, peer, status: the stream has failed */
};

/* Which thread drives a new call. */
enum drive_by {
	BY_LANE_THREAD, /* the lane thread, which is woken */
	BY_CALLER_SOON, /* a caller that is predicted to wait soon (wait_hint.h), or else the lane thread */
	BY_CALLER_NOW,  /* the caller, which waits at once */
};

struct progress_cmd {
	struct list_node link;
	uint8_t kind;      /* enum progress_cmd_kind */
	bool replaces;
	bool is_embedded;  /* in its poster's memory, which is valid until the command was taken: not to be freed */
	uint16_t channel;
	uint32_t peer;
	enum esp_status status;
	struct endpoint endpoint;
	const struct exec_call *call;
};

struct progress_events {
	/* A call has ended on a lane; done->cookie is the call's. Called by the thread that drives the lane. */
	void (*done)(void *context, uint32_t lane, const struct exec_done *done);
	/* A stream has failed; its transports have forgotten it. Called by the thread that drives the lane. */
	void (*failed)(void *context, uint32_t lane, const struct lane_failure *failure);
	/* A peer without a connection is needed: expects PROGRESS_ADOPT or PROGRESS_DROP. */
	void (*connect)(void *context, uint32_t lane, uint32_t peer);
	/* A thread is about to sleep while calls are unfinished. May be NULL. */
	void (*sleeps)(void *context);
	/* A lane has waited for this, with nothing to do; only where progress_config.tells_waits. May be NULL. */
	void (*waited)(void *context, uint32_t lane, uint64_t from_ns, uint64_t to_ns, const struct exec_wait *wait);
	/*
	 * Other work of lane 0's thread. It calls background() without a lock whenever it was woken; the result is the time
	 * of the next call at the latest. pending(), which is called at any time, returns true if background() is to be
	 * called at once. May be NULL, both.
	 */
	uint64_t (*background)(void *context);
	bool (*pending)(void *context);
};

#define PROGRESS_PORTS LANE_PORTS_MAX

/* A transport of every lane. */
struct progress_port_config {
	const struct transport_ops *ops;
	bool resumes;
	const void *options; /* transport_config.options, for lane 0 */
	size_t option_bytes; /* options is an array with one element of this size per lane; 0: the same for all lanes */
};

struct progress_config {
	uint32_t lanes;
	struct exec_config exec;
	uint32_t peers;
	const uint8_t *port_of; /* by peer: its port; copied. NULL: port 0 for all */
	uint32_t port_count;
	struct progress_port_config ports[PROGRESS_PORTS]; /* polled in this order */
	bool is_crowded;        /* more ranks than cores */
	bool keeps_core;        /* callers choose a core by `place` (core_affinity.h) */
	uint32_t place;
	bool has_threads;       /* false: there are no lane threads, and the owner calls progress_turn() */
	bool tells_waits;
	void (*idle)(void *);   /* of the program: a caller that is about to sleep calls it. NULL: none */
	void *idle_context;
};

struct progress_port {
	const struct transport_ops *ops;
	void *transport;
};

struct progress_set;

/* One lane. Its fields belong to the thread that holds the token, unless they say otherwise. */
struct progress {
	struct progress_set *set;
	uint32_t number;
	struct lane *lane;
	struct progress_port ports[PROGRESS_PORTS];
	pthread_t thread;
	bool has_thread;
	struct wait_policy wait;
	struct exec_wait waits; /* the lane's present wait, with tells_waits; peer PLAN_NONE: no peer in particular */

	/* Guarded by set->lock; the atomics are also read without it. */
	pthread_cond_t duty; /* for the lane thread */
	bool is_held;
	atomic_bool quits;
	atomic_uint wanting; /* threads that wait for the token */
	atomic_bool has_cmds;
	struct list cmds;
	uint32_t unfinished;  /* progress_lane_owes() when the token was given up */
	uint64_t expected_ns; /* since when a caller is predicted that drives all that is left for the lane; 0: none */
	uint64_t watched_ns;  /* when one was predicted last */
	bool watches;         /* the lane thread checks now and then whether that caller has come */
	struct transport_stats stats; /* as of the last progress_stats() */

	atomic_bool is_asleep; /* a command must wake the thread that drives */
	/* Statistics; any thread may read them. */
	_Atomic uint64_t idle_ns;       /* time in which the driving thread found nothing to do */
	_Atomic uint64_t idle_since_ns; /* start of the present idle time; 0: not idle */
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
	struct wait_hint hint; /* do callers wait at once for the calls that they start? */

	pthread_mutex_t lock;
	pthread_cond_t changed; /* a token is free, or progress_changed() was called */
	atomic_uint sleepers;   /* threads that wait for `changed` */
};

/* Borrows events, context and the configuration's options. If it fails, *set is closed. */
ESP_CHECKED enum esp_status progress_open(struct progress_set *set, const struct progress_config *config,
                                          const struct progress_events *events, void *context, struct error *err);
/* Ends the lane threads; later events come only from waiting threads. Accepts a zeroed struct, and a stopped one. */
void progress_stop(struct progress_set *set);
/* The same, and closes lanes and transports. Accepts a zeroed struct. */
void progress_close(struct progress_set *set);

/* ---- commands; any thread ---- */

/* Posts a command that is embedded in the caller's memory. Commands of one lane are taken in order. */
void progress_post(struct progress *progress, struct progress_cmd *cmd, enum drive_by by);
/*
 * Posts a copy, for the lane thread. Without memory the endpoint's descriptor is closed and the command is lost:
 * callers that wait for its effect have a deadline.
 */
void progress_send(struct progress *progress, const struct progress_cmd *cmd);
/* Wakes the lane thread, or the thread that sleeps while it drives the lane. */
void progress_nudge(struct progress *progress);
/* A caller is predicted: the lane thread checks now and then whether it has come. True: it was checking already. */
bool progress_watch(struct progress *progress);
/* No caller is predicted any more: lane threads drive the lanes that were left for one. */
void progress_expect_no_caller(struct progress_set *set);
/* After a change that may end some progress_wait(). */
void progress_changed(struct progress_set *set);

/* ---- the token; any thread ---- */

/* For work that no command does: waits for the token. All earlier commands have been taken then. */
void progress_acquire(struct progress *progress);
void progress_release(struct progress *progress);
/* The same, until until_ns at the latest; false: the driving thread has not given the token up. */
bool progress_try_acquire(struct progress *progress, uint64_t until_ns);

/*
 * Waits until done(argument) or until_ns, driving any lane that is free. done() is called with or without the lock.
 * False: the time is over.
 */
bool progress_wait(struct progress_set *set, bool (*done)(void *), void *argument, uint64_t until_ns);

/* Calls the program's idle function, if there is one. Returns for how long the caller may sleep, of nap_ns. No lock. */
#define PROGRESS_IDLE_NAP (50 * NS_PER_US)
static inline uint64_t progress_idle(const struct progress_set *set, uint64_t nap_ns)
{
	if (!set->idle)
		return nap_ns;
	set->idle(set->idle_context);
	return nap_ns < PROGRESS_IDLE_NAP ? nap_ns : PROGRESS_IDLE_NAP;
}

/* ---- for the thread that holds the token ---- */

/* The channel is closed: transports forget it, then its stream is closed. */
void progress_close_stream(struct progress *progress, uint16_t channel);
/* A lost peer is back: PROGRESS_ADOPT accepts it again (transport_ops.readmit). */
ESP_CHECKED enum esp_status progress_readmit(struct progress *progress, uint32_t peer, struct error *err);
/* True if a transport of the lane has path statistics. Any thread. */
bool progress_has_paths(const struct progress *progress);
/* Of the connection to a peer; false: there is none, or it has no statistics. */
bool progress_path(const struct progress *progress, uint32_t peer, struct path_stats *out);
/* The lane's transport of this kind; NULL: the lane has none. */
void *progress_transport(const struct progress *progress, const struct transport_ops *ops);
/*
 * One turn without waiting, for owners without lane threads: takes commands, moves data, reports ended calls. Returns
 * how much was moved.
 */
unsigned progress_turn(struct progress *progress);

/* ---- statistics; any thread ---- */

/* The idle time of all lanes together. */
uint64_t progress_idle_ns(const struct progress_set *set);
/* The lane's transport statistics; those of the last call if the token is not free until until_ns. */
struct transport_stats progress_stats(struct progress *progress, uint64_t until_ns);

#endif
