/*
 * rank.h - a rank of a job at run time: what its parts share. Private to src/rank.
 *
 *     context ─┬─ control: the thread that opens connections and carries word (control.h)
 *              ├─ drivers: one per lane, whoever moves its data at the moment (progress.h)
 *              ├─ segment: memory that the ranks of this host read (transport/shm)
 *              └─ groups: streams on all lanes, a board for small calls (comm.h)
 *                   └─ work: calls under way (work.h)
 *
 * One lock (context->lock) guards what the threads of a rank share: who drives a lane, mail for
 * progress, the list of groups and of work, and who is gone. It is held for some dozen
 * instructions at a time, never while data moves, and no other lock is taken under it but the recorder's.
 */
#ifndef RANK_RANK_H
#define RANK_RANK_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/log_file.h"
#include "base/log_limit.h"
#include "node/progress/progress.h"
#include "node/control/control.h"
#include "node/control/flood_filter.h"
#include "node/control/unreachable.h"
#include "rank/failure.h"
#include "rank/join/joiner.h"
#include "rank/member/presence.h"
#include "rank/observe/dump.h"
#include "rank/observe/recorder.h"
#include "rank/observe/tracer.h"
#include "rank/rail/bandwidth.h"
#include "rank/rail/blackhole.h"
#include "rank/rail/failover.h"
#include "rank/placement.h"
#include "transport/shm/segment.h"

#define NO_RANK UINT32_MAX

struct status_server;
struct join_status;
struct comm;
struct work;
struct past_verdict;

struct grow_parent; /* grow_parent.h */

struct rank {
	struct rank *next_open; /* of the process: see api/exit.h */
	struct conf conf;
	char settings[CONF_COUNT][CONF_VALUE_TEXT]; /* as text */
	struct log log;
	struct log_limit log_limit;
	struct log_file log_file;
	struct join_config join;
	struct roster roster;
	struct listener listener; /* its sockets become the control's */
	struct rails rails;       /* interfaces of every host that are used together (node/net/route.h) */
	struct bandwidth bandwidth;       /* and how fast they are */
	struct blackhole blackhole;       /* the control's alone   */
	struct failover failover;     /* likewise              */
	struct placement placement;         /* where the ranks' hosts are in the network */
	uint32_t rank, size;
	uint8_t page_shift;      /* a page has so many bits                          */
	bool crowded;            /* more ranks than cores on this host: yield early  */
	void (*idle)(void *);    /* of the host: see rank_idle(); NULL: none      */
	void *idle_context;

	/* Ranks of this host that are reached through memory, ourselves included; local numbers follow ranks. */
	bool *is_local;          /* by rank; ourselves too                */
	uint32_t *local_of;      /* by rank: local number, or NO_RANK     */
	uint32_t *rank_of;       /* by local number                       */
	uint32_t local_count, local_self;
	struct segment *segment;
	struct segment_view **views; /* by local number                   */

	int own_fds[FD_EXCHANGE_EACH_MOST]; /* what neighbours are given     */

	struct control *control;
	struct control_subscribers subscribers; /* to its messages */
	uint16_t joiner_port;       /* where newcomers know this rank: that of the first context of its kin */
	struct progress_set progress;
	uint32_t lanes;
	struct comm *world;
	struct comm *entry;      /* all ranks once more; NULL: this is no job that has grown. See grow_vote.h */
	bool is_joiner;         /* was let in at a door                               */
	struct joiner door;         /* the connection there, until it has joined          */
	struct recorder recorder;
	struct dump dump;
	struct tracer *tracer;       /* NULL: nobody wants one   */
	struct status_server *status_server;           /* NULL: nobody is answered */
	struct join_status *join_status;         /* the same, while it joins */
	uint64_t opened_ns;          /* when it began to, until rank_open() is over; 0: it is. Guarded by the lock */
	uint64_t word_most_ns;       /* as in struct rank_options */
	uint64_t instance;           /* see rank_account.h */
	const _Atomic uint32_t *alive; /* 1; reads as 0 in a child after fork */

	pthread_mutex_t lock;     /* guards what follows                               */
	pthread_cond_t changed;   /* a driver is free, work has ended, a rank is gone   */
	uint32_t sleepers;        /* threads that wait for that                         */
	struct comm *groups;
	uint32_t groups_most;     /* COMMS_MOST, or fewer for a test                   */
	struct work *live;        /* work under way                                     */
	struct work *works;       /* all that there is                                  */
	uint8_t *fates;           /* by rank: enum fate                                 */
	uint64_t *fates_ns;       /* by rank: when we heard of it                       */
	uint32_t gone;            /* ranks that have left or died                       */
	bool has_left;            /* those who are here were told that we leave           */
	bool *is_clueless;        /* by rank: it has left, as its time to join was over, and did not know whom it waited for */
	uint32_t clueless;        /* of those that are gone                             */
	uint64_t gone_ns;         /* when the last of them did                          */
	uint32_t next_channel;
	uint32_t neighbours_missing, peer_connection_missing; /* while opening                 */
	bool *has_met;            /* by rank: it has connected to us, or we to it       */
	bool *has_reached;        /* by rank: we have, where we dial it while opening   */
	bool *has_shelved;        /* by rank: it has left its descriptors, if we are the first rank of the host */
	struct unreachable_list unreached;
	bool have_all_met;        /* this context's beginning is over, well */
	struct failure open_failure;
	bool found_ended;         /* its rank: nobody listens where it should */
	const struct grow_parent *grow_parent; /* while we are opened; the lock of its context comes after ours */
	uint64_t ended_calls;
	struct work *to_call_back_first, *to_call_back_last;
	atomic_uint shrinking;    /* groups whose members are agreeing on who goes on   */
	struct past_verdict *past; /* of groups that were freed, the last first         */
	atomic_bool has_queues;   /* a group may have work that is not under way        */
	uint64_t queued_ns;       /* since when there is such work: the latest          */

	/* The control's alone. */
	struct presence presence;
	bool shrink_has_news;     /* see shrink_hear()                                  */
	uint64_t *connect_heard;    /* by rank: the last word of it that it dials somebody, by its own clock. The control's alone */
	struct flood_filter flood_filter;         /* what was passed on to all                          */

	atomic_bool has_said_exit;
	_Atomic uint32_t blamed;  /* 1 + the rank that the launcher was told of; 0: none yet */
	atomic_bool ticking;
	atomic_bool has_callbacks, has_news; /* for lane 0's thread: see callbacks.h */
	_Atomic uint64_t shm_small_calls;
	_Atomic uint64_t retunes, moved_masters; /* see retune.h */
};

struct rank_options {
	int64_t rank, size;        /* below 0: from the environment */
	const char *leader, *job;  /* NULL: from the environment    */
	join_gather_fn *gather;    /* NULL: through the leader      */
	void *gather_context;
	const char *const *settings;
	log_sink_fn *log;
	void *log_context;
	void (*idle)(void *); /* what to do while waiting: see rank_idle(). NULL: sleep */
	void *idle_context;
	const struct rank *heir_of; /* whose key, settings, log and idle work it has, in the next start of its job; NULL: nobody's */
	const struct grow_parent *grow_parent;     /* until rank_forget_elder(), or until opening fails; NULL: it does not grow out of a group */
	uint64_t patience_ns;          /* to join; 0: the setting join_seconds */
	uint64_t word_most_ns;         /* the most that rank_word_ns() is; 0: as ever. For tests that must hold on a slow machine, too */
	int *listening;                /* as in struct join_config; NULL: none */
};

ESP_CHECKED enum esp_status rank_open(const struct rank_options *options, struct rank **out,
                                         struct failure *failure);
/* A last meeting of all who join a job that grows: ESP_OK: all of them know that they are in. See grow_vote.h. */
ESP_CHECKED enum esp_status rank_enter(struct rank *context, uint64_t patience_ns, struct failure *failure);
/* Leaves in good order, if it can. ESP_EMISMATCH: all is as ever, but another rank that leaves has made another last call of the world than this one. */
enum esp_status rank_close(struct rank *context, struct failure *failure);

/* A setting's value as text, until the context is closed; NULL: there is none of that name. */
const char *rank_setting(struct rank *context, const char *name);

/* The usual size of chunks, and the largest of those through memory, for which its slots have room: as set, or as plan_cache.h has them. */
uint64_t rank_chunk_bytes(const struct rank *context);
uint32_t rank_slot_bytes(const struct rank *context);

struct rank_stats {
	uint64_t calls, small_calls;
	uint64_t sent_messages;
	uint64_t sent_bytes, received_bytes;
	uint64_t shared_bytes, network_bytes; /* of those sent: read where they lay, through sockets */
	uint64_t retunes, moved_masters;
};
void rank_stats(struct rank *context, struct rank_stats *out);
/* The same, but lanes that do not answer until then count as they did the last time. */
void rank_stats_until(struct rank *context, uint64_t until_ns, struct rank_stats *out);

/* A gate may have opened. */
void rank_poke(struct rank *context);

static inline bool rank_is_forked(const struct rank *context)
{
	return atomic_load_explicit(context->alive, memory_order_relaxed) == 0;
}

/* The liveness interval: how long a living rank is silent at the most. All other waiting that nobody sets is a part of it. */
static inline uint64_t rank_interval_ns(const struct rank *context)
{
	return context->conf.liveness_ms * NS_PER_MS;
}
/* Until what was sent must have arrived, unless something is broken: a second of ten. */
static inline uint64_t rank_patience_ns(const struct rank *context)
{
	return rank_interval_ns(context) / 10;
}

/* While opening, or with the lock held: how long word of who is missing takes, when somebody asks for it as its time is over. A part of patience. */
uint64_t rank_word_ns(const struct rank *context);

/* Can connections for data be replaced? Then one rank of two makes them, the lower one, and what is sent is kept until it has arrived. */
static inline bool rank_resumes(const struct rank *context)
{
	return context->rails.count > 1 || context->conf.resume;
}

/* For whoever holds the lock: wakes those who wait for `changed`. */
static inline void rank_changed(struct rank *context)
{
	if (context->sleepers > 0)
		pthread_cond_broadcast(&context->changed);
}

/* With the lock held: until something has changed, or that time. */
void rank_wait(struct rank *context, uint64_t until_ns);

/* One whose timeouts are clock_now_ns()'s. */
void rank_cond_init(pthread_cond_t *cond);

/* "rank 3 on node7" */
#define RANK_TEXT 96u
const char *rank_text(const struct rank *context, uint32_t rank, char text[RANK_TEXT]);

/* With the lock held: as unreachable_text(). */
const char *rank_unreached_text(const struct rank *context, const struct unreachable *unreached, char text[CONTROL_TEXT]);

/* Was this word of a group not passed on yet? It counts as passed on from now on. The control's thread alone. */
bool rank_is_news(struct rank *context, const struct control_msg *msg);

/* There is work that sleeps: the control looks after deadlines and calls that do not fit from now on. */
void rank_watch(struct rank *context);

#endif
