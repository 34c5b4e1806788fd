/*
 * state.h - the state of a rank, by part: what the modules below rank.h share.
 *
 *     rank -+- control    the thread that makes connections and carries messages (node/control)
 *           +- progress   lanes and the threads that drive them (node/progress), with a lock of its own
 *           +- near       ranks of this host and their shared memory
 *           +- comms      communicators and work under way
 *           +- fates      peers that have left, died or fallen silent
 *           +- member     presence and messages that are forwarded: for the control thread alone
 *           +- opening    connecting to the other ranks, until rank_open() is over
 *           +- recorder, dump, tracer, bandwidth, failover, blackhole, placement: modules of their own, by pointer
 *
 * rank->lock guards comms, fates and opening. It is held for some dozen instructions at a time, never while data moves;
 * under it only locks that are leaves are taken: progress, the recorder, the tracer. Fields above `lock` do not change
 * once the rank is open, unless they say otherwise.
 */
#ifndef RANK_STATE_H
#define RANK_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/log_file.h"
#include "base/log_limit.h"
#include "node/control/control.h"
#include "node/control/flood_filter.h"
#include "node/control/unreachable.h"
#include "node/progress/progress.h"
#include "rank/failure.h"
#include "rank/join/joiner.h"
#include "rank/member/presence.h"
#include "transport/shm/segment.h"

#define NO_RANK UINT32_MAX

struct bandwidth;
struct blackhole;
struct comm;
struct dump;
struct failover;
struct grow_parent;
struct join_status;
struct past_verdict;
struct placement;
struct recorder;
struct switch_link;
struct http_server;
struct tracer;
struct work;

/* Ranks of this host that are reached through memory, this one included; local numbers follow ranks. */
struct rank_near {
	bool *is_local;          /* by rank                          */
	uint32_t *local_of;      /* by rank: local number, or NO_RANK */
	uint32_t *rank_of;       /* by local number                  */
	uint32_t local_count, local_self;
	struct segment *segment;
	struct segment_view **views;        /* by local number       */
	int own_fds[FD_EXCHANGE_EACH_MOST]; /* that they are given   */
};

/* Communicators and their work; guarded by the rank's lock but for the atomics. */
struct rank_comms {
	struct comm *list;
	uint32_t most;            /* COMMS_MOST, or fewer for a test                   */
	uint32_t next_channel;
	struct work *live;        /* work under way                                    */
	struct work *works;       /* all that there is                                 */
	uint64_t ended_calls;
	struct work *to_call_back_first, *to_call_back_last;
	uint64_t queued_ns;       /* when a communicator got work that is not under way */
	atomic_bool has_queues;   /* one may have such work                            */
	atomic_bool has_callbacks, has_news; /* for lane 0's thread: see callbacks.h   */
	struct past_verdict *past; /* of communicators that were freed, the last first */
	atomic_uint shrinking;    /* communicators whose members are agreeing          */
	_Atomic uint64_t shm_small_calls;
	_Atomic uint64_t retunes, moved_masters; /* see retune.h */
};

/* Guarded by the rank's lock. */
struct rank_fates {
	uint8_t *of;         /* by rank: enum fate                                    */
	uint64_t *of_ns;     /* by rank: when that became known                       */
	uint32_t gone;       /* ranks that have left or died                          */
	uint64_t gone_ns;    /* when the last of them did                             */
	bool *is_clueless;   /* by rank: it left as its time to join was over, and did not know the rank it waited for */
	uint32_t clueless;   /* of those that are gone                                */
	bool has_left;       /* this rank has told the others that it leaves          */
};

/* For the control thread alone, but for the atomics. */
struct rank_member {
	struct presence presence;
	bool shrink_has_news;      /* see shrink_hear()                                */
	uint64_t *connect_heard;   /* by rank: its latest CONTROL_DIALS, by its own clock */
	struct flood_filter flood_filter;
	atomic_bool has_said_exit;
	_Atomic uint32_t blamed;   /* 1 + the rank that the launcher was told of; 0: none yet */
	atomic_bool ticking;
};

/* Guarded by the rank's lock. */
struct rank_opening {
	uint64_t began_ns;      /* 0: it is over                                                      */
	uint64_t word_most_ns;  /* as in struct rank_options                                          */
	uint32_t neighbours_missing, controls_missing;
	bool *has_met;          /* by rank: a control connection with it stands                       */
	bool *has_reached;      /* by rank: this rank has dialled it, and it answered                  */
	bool *has_exchanged;      /* by rank: its descriptors are here, if this is the first rank of the host */
	struct unreachable_list unreached;
	bool have_all_met;
	bool found_ended;       /* the rank of `failure`: nothing listens where it should              */
	struct failure failure;
	const struct grow_parent *grow_parent; /* the lock of its rank comes after this one's          */
};

struct rank_logs {
	char settings[CONF_COUNT][CONF_VALUE_TEXT]; /* as text */
	struct log_limit limit;
	struct log_file file;
};

struct rank_host {
	uint8_t page_shift;            /* a page has so many bits                          */
	bool crowded;                  /* more ranks than cores on this host: yield early  */
	const _Atomic uint32_t *alive; /* 1; reads as 0 in a child after fork              */
	void (*idle)(void *);          /* of the program; NULL: none                       */
	void *idle_context;
};

struct rank_joining {
	uint16_t port;        /* where joiners know this rank: that of the first of its kin */
	bool is_joiner;       /* was admitted to a running job                              */
	struct joiner joiner; /* the connection by which, until it has joined               */
};

/* Each has its own header, and its own lock where other threads use it. */
struct rank_modules {
	struct bandwidth *bandwidth; /* of rails                                                   */
	struct failover *failover;   /* for the control thread                                     */
	struct blackhole *blackhole; /* likewise                                                   */
	struct placement *placement; /* where the ranks' hosts are in the network                  */
	struct recorder *recorder;
	struct dump *dump;
	struct tracer *tracer;               /* NULL: no trace is wanted                           */
	struct http_server *status_server;   /* NULL: no request is answered                       */
	struct join_status *join_status;     /* the same, while the rank joins; NULL afterwards    */
};

struct rank {
	struct rank *next_open; /* of the process: see api/exit.h */
	struct conf conf;
	struct log log;
	struct rank_logs logs;
	struct join_config join;
	struct roster roster;
	struct listener listener; /* its sockets become the control's */
	struct rails rails;       /* interfaces of every host that are used together */
	uint32_t rank, size;
	uint32_t lanes;
	uint64_t instance;        /* see rank_account.h                               */
	struct rank_host host;
	struct rank_near near;
	struct control *control;
	struct switch_link *switch_link; /* NULL: no switch is used, see comm/switched.h */
	struct control_subscribers subscribers; /* to its messages */
	struct progress_set progress;
	struct rank_joining joining;
	struct comm *world;
	struct comm *entry;       /* all ranks once more; NULL: the job has not grown. See grow_vote.h */
	struct rank_modules mod;

	pthread_mutex_t lock;     /* guards comms, fates, opening                     */
	pthread_cond_t changed;   /* work has ended, a rank is gone                   */
	uint32_t sleepers;        /* threads that wait for that                       */
	struct rank_comms comms;
	struct rank_fates fates;
	struct rank_opening opening;
	struct rank_member member;
};

/* The usual size of chunks, and the largest through shared memory: as set, or as plan_cache.h has them. */
uint64_t rank_chunk_bytes(const struct rank *rank);
uint32_t rank_slot_bytes(const struct rank *rank);

static inline bool rank_is_forked(const struct rank *context)
{
	return atomic_load_explicit(context->host.alive, memory_order_relaxed) == 0;
}

/*
 * The liveness interval: the longest silence of a living rank. Every wait without a setting of its own is a part of it.
 */
static inline uint64_t rank_interval_ns(const struct rank *context)
{
	return context->conf.liveness_ms * NS_PER_MS;
}
/* A message that was sent must have arrived within this time, unless something is broken: a tenth of the interval. */
static inline uint64_t rank_patience_ns(const struct rank *context)
{
	return rank_interval_ns(context) / 10;
}

/*
 * While opening, or with the lock held: how long the others take to name a missing rank once they are asked. A part of
 * patience.
 */
uint64_t rank_word_ns(const struct rank *context);

/*
 * Can data connections be replaced? Then the lower one of two ranks makes them, and sent bytes are kept until they have
 * arrived.
 */
static inline bool rank_resumes(const struct rank *context)
{
	return context->rails.count > 1 || context->conf.resume;
}

/* With the lock held: wakes the threads in rank_wait(). */
static inline void rank_changed(struct rank *context)
{
	if (context->sleepers > 0)
		pthread_cond_broadcast(&context->changed);
}

/* With the lock held: until something has changed, or that time. */
void rank_wait(struct rank *context, uint64_t until_ns);

/* A condition whose timeouts are in clock_now_ns()'s time. */
void rank_cond_init(pthread_cond_t *cond);

/* "rank 3 on node7" */
#define RANK_TEXT 96u
const char *rank_text(const struct rank *context, uint32_t rank, char text[RANK_TEXT]);

/* With the lock held: as unreachable_text(). */
const char *rank_unreached_text(const struct rank *context, const struct unreachable *unreached,
                                char text[CONTROL_TEXT]);

/* True, once: this message has not been forwarded yet. For the control thread. */
bool rank_is_news(struct rank *context, const struct control_msg *msg);

/* Calls are unfinished: the control thread looks after deadlines and mismatches from now on. */
void rank_watch(struct rank *context);

/*
 * With the lock held: has it left so long ago that what it sent before must have arrived? Counted from waits_since_ns
 * at the earliest.
 */
bool rank_has_left(const struct rank *context, uint32_t rank, uint64_t waits_since_ns, uint64_t now);
/* The same of all ranks that have left. */
bool rank_is_leave_over(const struct rank *context, uint64_t now);

#endif
