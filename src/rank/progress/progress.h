/*
 * progress.h - a lane and whoever moves its data at the moment.
 *
 * A lane is a token. A thread that waits for a call takes it and drives the lane itself, so a
 * blocking call costs no switch of threads; work that nobody waits for is driven by the
 * lane's own thread, which also gives the token up when somebody wants it. What happens to a
 * lane from outside comes as mail, which is taken before anything is moved.
 *
 * Who finds nothing to do spins for a moment if there is a core for everybody, yields for a
 * moment, and then sleeps until a peer leaves something, mail comes or a timeout is over (idle_wait.h).
 */
#ifndef RANK_PROGRESS_PROGRESS_H
#define RANK_PROGRESS_PROGRESS_H

#include "engine/lane.h"
#include "rank/progress/core_affinity.h"
#include "rank/progress/idle_wait.h"
#include "rank/progress/look_limit.h"
#include "rank/rank.h"
#include "transport/shm/shm.h"
#include "transport/tcp/tcp.h"

struct work_part;

enum mail_kind {
	MAIL_START,     /* part: a call on this lane                          */
	MAIL_CONNECTED, /* peer, fd: a socket                                 */
	MAIL_REPLACED,  /* the same, in place of the one that there is        */
	MAIL_NEIGHBOUR, /* peer, fd: its segment is mapped; wakes it          */
	MAIL_DROP,      /* peer, status: is gone, or cannot be reached        */
	MAIL_FAIL,      /* channel, peer, status: the group has failed        */
};

/* Who drives what is left for a lane. */
enum drive_by {
	BY_LANE_THREAD,     /* the lane's own thread, which is woken                                              */
	BY_CALLER_SOON, /* a caller who is expected to wait soon (wait_hint.h), or else the lane's own thread */
	BY_CALLER_NOW,      /* the caller, which waits at once                                                    */
};

struct mail {
	struct mail *next;
	enum mail_kind kind;
	uint32_t peer;
	uint16_t channel;
	int fd;
	enum esp_status status;
	struct work_part *part;
	bool embedded; /* in the part: not to be freed */
};

struct progress {
	struct rank *context;
	uint32_t number;
	struct lane *lane;
	struct tcp *tcp; /* NULL: no peer needs it */
	struct shm *shm; /* NULL: no peer needs it */
	pthread_t thread;
	bool has_thread;
	pthread_cond_t duty; /* for the lane's thread; with context->lock */
	struct idle_wait rest;    /* of whoever drives                         */
	struct core_affinity seat; /* of the callers who drive                */
	struct look_limit looks;  /* of whoever drives                         */
	uint64_t launched_ns; /* the latest call; of whoever drives       */

	/* Guarded by context->lock; the atomics are also looked at without it. */
	bool held;
	atomic_bool quits;
	atomic_uint wanting; /* threads that wait for the token        */
	atomic_bool has_mail;
	struct mail *first_mail, *last_mail;
	uint32_t unfinished; /* what the lane owed when it was given up */
	uint64_t expected_ns; /* since when callers are expected who drive all that is left for the lane (wait_hint.h); 0: none are, or there is more */
	uint64_t watched_ns; /* when one was expected last */
	bool watches;        /* the lane's own thread looks now and then whether one came */

	atomic_bool asleep;  /* in poll(2): whoever leaves mail must wake it */

	struct rank_stats stats; /* when it was last asked; guarded by the token's holder and context->lock */

	/* For people. Written by whoever drives. */
	_Atomic uint64_t idle_ns;       /* in which whoever drove found nothing to do       */
	_Atomic uint64_t idle_since_ns; /* since when that is so; 0: it is not              */
	struct exec_wait waits;         /* for what, if a trace wants to know; peer PLAN_NONE: nobody in particular */
};

ESP_CHECKED enum esp_status progress_open(struct progress *progress, struct rank *context, uint32_t number, struct error *err);
/* Its thread ends. Accepts a zeroed struct. */
void progress_stop(struct progress *progress);
/* Its thread has ended, or ends; connections are closed. Accepts a zeroed struct. */
void progress_close(struct progress *progress);

/* The token, for what cannot be done by mail; waits for it. All mail that came before has been opened then. */
void progress_acquire(struct progress *progress);
void progress_release(struct progress *progress);

/* The same, but not beyond until_ns: false: whoever drives does not give it up. */
bool progress_try_acquire(struct progress *progress, uint64_t until_ns);

/* How long lanes had nothing to do but wait, all of them together. */
uint64_t progress_idle_ns(const struct rank *context);

/* With context->lock held: leaves mail. */
void progress_post(struct progress *progress, struct mail *mail, enum drive_by help);
/* With context->lock held: the lane's own thread, if it sleeps, wakes now and then for a while, as somebody is expected. */
void progress_watch(struct progress *progress);
/* With context->lock held: nobody is any more; the lane's own thread sees to it. */
void progress_expect_nobody(struct progress *progress);
/* With context->lock held: the lane's own thread has something to look at. */
void progress_nudge(struct progress *progress);
/* As progress_post(), without the lock, of a copy. */
void progress_mail(struct progress *progress, const struct mail *mail);

/* Waits until done(argument), which is called with context->lock held or not, or until_ns, driving whatever lane is free. False: it was time. */
bool progress_wait(struct rank *context, bool (*done)(void *), void *argument, uint64_t until_ns);

#endif
