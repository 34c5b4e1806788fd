/*
 * comm_state.h - the state of a communicator, and of its calls under way: what the modules of this folder share.
 *
 * Functions on it are declared by the module that has them: comm.h (queues and calls), work.h (one call), keyed.h,
 * p2p.h, retune.h, callbacks.h.
 */
#ifndef RANK_COMM_COMM_STATE_H
#define RANK_COMM_COMM_STATE_H

#include "base/clock.h"
#include "base/list.h"
#include "node/observe/record.h"
#include "rank/comm/call.h"
#include "rank/comm/plan_cache.h"
#include "rank/comm/shm_small.h"
#include "rank/comm/tag_queue.h"
#include "rank/failure.h"
#include "rank/observe/recorder_queue.h"
#include "rank/state.h"
#include "wire/control_msg.h"

struct comm;
struct numerics;
struct span;
struct switched;
struct switched_call;
struct work;

/* ---- calls with a key (keyed.h); guarded by the rank's lock ---- */

/* On the first rank: the ranks that have made the call with this key. */
struct roll_call {
	struct roll_call *next;
	uint64_t key;
	uint32_t count;       /* ranks that have                        */
	uint32_t first_rank;  /* the one whose note is kept             */
	struct call_note note;
	bool has_come[];      /* by place in the group                  */
};

struct keyed {
	struct work *waiting;   /* calls made here that have not been started */
	struct roll_call *rolls;
	uint64_t started;       /* keyed calls that were started              */
	uint32_t missing;       /* the rank that has not made the call `missing_key`, as was last heard ... */
	uint64_t missing_key;
	uint64_t missing_ns;    /* ... at that time; 0: never                 */
};

/* ---- point-to-point messages (p2p.h); guarded by the rank's lock ---- */

#define P2P_MOST 65536u /* without a receive yet, in one group */

struct p2p_msg {
	struct list_node link;
	struct tag_queue_node by_sender, by_tag;
	struct call_note note; /* root: the sender's place; key: the tag; count: bytes; sequence: its number */
};

/* Work that waits in line: part of the work. */
struct p2p_line {
	struct list_node link;
	bool is_in;
};

struct p2p {
	struct list msgs;              /* announced to us, in no order */
	struct tag_queue by_sender;    /* the same, by tag and sender */
	struct tag_queue by_tag;       /* the same, by tag and UINT32_MAX */
	struct tag_queue receives;     /* that wait, by tag and sender (UINT32_MAX: any) */
	uint64_t ages;                 /* of receives */
	struct tag_queue sends;        /* that have not ended, by number */
	uint64_t numbers;              /* of messages sent from here */
	struct list ready;             /* receives with a message, whose next piece is to be asked for */
	struct list asked;             /* sends whose next piece was asked for, in order */
	uint32_t receiving;            /* pieces that were asked for and have not come */
};

/* ---- a call under way (work.h) ---- */

struct work_part {
	struct progress_cmd cmd;
	struct work *work;
	uint32_t lane;
	struct exec_call call;
};

#define WORK_TEXT 224u

typedef void work_done_fn(void *context, struct work *work, enum esp_status status);

struct work_options {
	int64_t deadline_ns; /* from the start; 0: the setting */
	const _Atomic uint64_t *gate;
	uint64_t gate_value;
	_Atomic uint64_t *signal;
	uint64_t signal_value;
	work_done_fn *done;
	void *done_context;
};

enum work_kind {
	WORK_CALL,    /* a collective           */
	WORK_SEND,
	WORK_RECEIVE,
	WORK_TUNE,    /* a sum of what was measured: the library's own (retune.h) */
};

/* The functions that differ between kinds of work. NULL: the function is not needed. */
struct work_ops {
	/* In place of queueing it as the next call of its communicator. Without a lock. */
	enum esp_status (*start)(struct work *work, struct failure *failure);
	/* All parts have ended; true: this has taken care of it. Without a lock. */
	bool (*parts_done)(struct work *work, enum esp_status status);
	/* With the rank's lock: it ends, and is to be in no list any more. */
	void (*forget)(struct work *work);
	void (*explain)(struct work *work, enum esp_status status);
	const char *(*describe)(const struct work *work, char text[WORK_TEXT]);
};

/* Point-to-point: of WORK_SEND and WORK_RECEIVE. */
struct work_msg {
	uint32_t peer;              /* its place in the communicator; UINT32_MAX: any   */
	uint64_t tag, room_bytes;
	uint8_t *data;              /* the message's memory                             */
	uint64_t moved_bytes, piece_bytes; /* bytes moved, and bytes under way */
	struct tag_queue_node place; /* among the sends or receives of its communicator */
	struct p2p_line line;       /* a piece of it is to be asked for, or was         */
	uint64_t age;               /* of a receive                                     */
};

struct work_time {
	uint64_t started_ns;
	uint64_t launched_ns; /* when it was first given to the lanes; 0: not yet          */
	uint64_t idle_ns;     /* progress_idle_ns() when it was started                    */
	uint64_t deadline_ns; /* absolute                                                  */
	uint64_t looked_ns;   /* when it was last checked whether it waits for a rank that has left */
	uint64_t asked_ns;    /* when members were last asked about this call              */
	uint32_t asks;        /* how often                                                 */
};

/* Guarded by the rank's lock, but queue_next, which the communicator's guards. */
struct work_link {
	struct work *live_next, *live_before; /* work under way                            */
	struct work *queue_next;              /* in a queue of its communicator            */
	struct work *wait_next;               /* in a list of calls that wait for other ranks */
	struct work *callback_next;
	struct work *all_next, *all_before;   /* of the rank: it frees what its user does not */
};

/* Guarded by the rank's lock. */
struct work_end {
	enum esp_status status; /* of the latest end                                       */
	bool awaits_verdict;    /* ended, but for the reason                               */
	bool forgoes_callback;  /* of this start                                           */
	bool is_waiting;        /* in a list of its communicator, until other ranks are ready */
	uint32_t callbacks_due; /* ends that its callback was not told of; each holds a reference */
};

struct work {
	const struct work_ops *ops; /* NULL: a collective in the order of its communicator */
	struct rank *context;
	struct comm *group;         /* may be gone once the work has ended, unless its caller is in the middle of a call */
	enum work_kind kind;
	struct work_msg msg;
	struct work_options options;
	struct call call;           /* counts and parts are copies that the work owns   */
	struct call on_small_as;    /* the same in staging memory, for the small path   */
	struct call_note note;
	uint32_t digest;
	struct span *spans;
	uint32_t span_count;
	struct work_part *parts;
	uint32_t part_count;
	unsigned shm_small_rounds;  /* 0: on lanes                                      */
	struct switched_call *switched; /* it may go through a switch (switched.h); NULL: not */
	struct numerics *numerics;  /* of an allreduce in fixed point: its stages, which it owns; NULL: it is none */
	bool persistent;
	bool is_counted;            /* by retune.h, until it ends; guarded by the rank's lock */
	struct work_time time;

	atomic_uint references;
	atomic_uint parts_left;
	atomic_int worst;           /* status of the first part that failed              */
	atomic_int status;          /* ESP_PENDING while it runs; ESP_ESTATE: not started */
	struct failure failure;     /* once ended                                        */
	int event_fd;               /* -1: no descriptor was asked for                   */
	enum drive_by help;         /* guarded by the lock of its communicator           */
	atomic_bool is_expected;    /* a caller is predicted to wait for it (wait_hint.h), and has not */
	struct work_link link;
	struct work_end end;
};

/* ---- a communicator (comm.h) ---- */

#define NOTES_KEPT 64u       /* calls that other ranks may ask about                */
#define COMM_LEFT 4u        /* kinds of calls that a program makes in turn         */

/* The streams of a group, by channel behind its first one: calls of one kind are in order with each other only. */
enum comm_stream {
	STREAM_CALLS,   /* collectives in the order of calls            */
	STREAM_KEYED,   /* calls with a key, in the order that the first rank gives (keyed.h) */
	STREAM_MESSAGES, /* messages between two ranks (p2p.h)       */
	STREAM_TUNE,    /* sums of what was measured (retune.h)         */
	STREAMS,
};
#define COMM_CHANNELS 4u /* channels that a group takes up */
#define CHANNELS (UINT16_MAX + 1u)
#define COMM_NO_CHANNEL CHANNELS /* the highest proposal: a rank has none left */
#define COMMS_MOST (CHANNELS / COMM_CHANNELS)

struct work_queue {
	struct work *first, *last;
};

/* A member that has not made a call which others wait in. Zeroed: none. */
struct absence {
	uint32_t rank;
	uint64_t sequence, heard_ns;
};

struct retune;
struct shrink;

/* How calls of a communicator are retuned (retune.h); NULL in struct comm: they are not, and nothing asks. */
struct comm_tuner {
	/* May the call be launched next, as far as masters are concerned? Under the communicator's lock. */
	bool (*admits)(struct comm *comm, const struct work *work);
	/* It is launched now. ESP_ENOMEM: the communicator has failed, and the work is to be ended. */
	enum esp_status (*before)(struct comm *comm, struct work *work);
	/* With the rank's lock: a call has ended. */
	void (*landed)(struct work *work);
};

/* A call on the small path that a caller sleeps over: for people. */
struct shm_small_vigil {
	uint64_t began_ns; /* since when a caller sleeps; 0: none does */
	struct record record;
};

/* Where the members are. */
struct comm_net {
	struct layout layout;
	uint32_t *host_of;
	uint32_t *core_order;      /* of the layout; or NULL                                    */
	uint32_t *place;           /* see layout; NULL: not known                               */
	const uint8_t *lane_order; /* the lane that has the n-th share of a call; borrowed      */
};

/* The small path: calls through shared memory of the host, one at a time. */
struct comm_small {
	struct shm_small *shm;       /* NULL: the members do not all share this host                       */
	uint32_t bytes;              /* most data of a call on it, alike on all members; without it: the setting */
	uint64_t memory;             /* that it takes here; guarded by the rank's lock                     */
	struct recorder_queue *records; /* NULL: there is no small path                                    */
	struct work_queue queue;
	struct shm_small_call call;  /* of the first in the queue                                          */
	bool has_begun;
	atomic_bool is_held;         /* a thread has the path: shm, call and has_begun are its own         */
	atomic_uint waiters;         /* threads in comm_small_wait()                                       */
	/* Guarded by the rank's lock. */
	uint64_t expected_ns;        /* since when a caller is predicted to wait for the call (wait_hint.h); 0: none is */
	struct shm_small_vigil vigil;
};

/* Guarded by the rank's lock. */
struct comm_fail {
	atomic_int status;                  /* ESP_OK: it works. Also read without the lock          */
	struct control_msg reason;          /* how it has failed, as it was told                     */
	uint64_t at_ns;
	bool is_told;                       /* a caller has been told                                */
	bool waited;                        /* `wait` is known: what was waited for when it failed   */
	struct exec_wait wait;
	uint64_t verdict_ns;                /* a lane has failed: the cause is looked for until then; 0: it is not */
	struct exec_failure suspicion;      /* all that the lane knows                               */
	struct progress_cmd *cmds;          /* one per lane and stream, made beforehand              */
	uint64_t first_call;                /* the lowest number of a call that has failed; 0: none  */
	uint64_t calls;                     /* it and the 63 that follow: a bit for each that has failed */
	struct absence absent;
	struct call_note notes[NOTES_KEPT]; /* calls that other ranks may ask about, by sequence modulo */
};

/* Shrinking and growing; guarded by the rank's lock. */
struct comm_change {
	struct shrink *shrink;        /* NULL: no member has begun to agree on the surviving ranks       */
	bool shrink_failed;           /* there was no memory for it                                      */
	bool keeps_channel;           /* see comm_keep_channel()                                         */
	bool has_grown;               /* its members go on in another job; see grow_vote.h               */
	struct control_msg off;       /* CONTROL_OFF: why it has not grown, the last time                */
	uint32_t lost;                /* joiners that it has admitted and that went away before they had joined */
	char lost_text[CONTROL_TEXT]; /* the last of them, and how                                       */
};

struct comm {
	struct rank *context;
	struct comm *next;       /* among the rank's, guarded by its lock             */
	uint16_t channel;
	uint32_t rank, size;
	uint32_t *ranks;         /* by place: the rank in the job                     */
	uint32_t mark;           /* of them: communicators with other members are others, whatever their channel */
	struct comm_net net;

	pthread_mutex_t lock;    /* order of calls, plans, queues                     */
	_Atomic uint64_t calls;  /* that were started; written under the lock         */
	bool is_internal;        /* of rank_make_internal_comm(): its plans are not worth a line of the log */
	bool is_aside;           /* calls have number 0: see comm_begin_aside(). Under the lock */
	struct plan_cache plans;
	const struct comm_tuner *tuner;
	const struct work_ops *keyed_ops; /* of calls with a key                      */
	struct switched *switched; /* sums may go through a switch (switched.h); NULL: never */
	struct retune *retune;   /* NULL: no call has had masters that could be moved */
	/* work that calls have left for others like them (work_leave()); NULL: none. Under the lock */
	struct work *left[COMM_LEFT];
	uint32_t left_next;
	struct work_queue lane_queue;
	atomic_uint queued;      /* in both queues: for threads without the lock      */
	struct comm_small small;

	/* Guarded by the rank's lock. */
	uint32_t unfinished;     /* work under way                                    */
	uint32_t visitors;       /* threads that look at its queues or wait on the small path */
	struct comm_fail fail;
	struct keyed keyed;
	struct p2p p2p;
	struct comm_change change;
};

#endif
