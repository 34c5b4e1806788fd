/*
 * loop.h - an event loop: descriptors, timers, functions that other threads post, one clock.
 *
 * One thread runs a loop and calls everything here but loop_post(), loop_call() and loop_stop(), which any thread may
 * call. The storage of descriptors, timers and tasks is the caller's, embedded where it belongs; the loop allocates
 * nothing. No lock is held while a function of the caller's runs. A function may remove any descriptor or timer, its
 * own included, and free it.
 */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/error.h"
#include "base/list.h"

struct loop;

struct loop_fd {
	void (*ready)(struct loop_fd *fd, uint32_t events); /* EPOLLIN ...; level-triggered */
	int fd;          /* -1: is in no loop */
	uint32_t events; /* that it waits for */
};

struct loop_timer {
	void (*due)(struct loop_timer *timer, uint64_t now_ns);
	uint64_t when_ns;
	struct loop_timer *next; /* of the loop's, the earliest first */
	bool is_set;
};

struct loop_task {
	void (*run)(struct loop_task *task); /* the task may be posted again, or be freed */
	struct list_node link;
	atomic_bool is_posted;
};

/*
 * Called after everything that has happened; returns when it wants to be called at the latest. UINT64_MAX: at no time.
 */
typedef uint64_t loop_hook_fn(void *context, uint64_t now_ns);

/*
 * Where the time comes from; NULL: CLOCK_MONOTONIC. With a clock of its own a loop never sleeps: its owner moves the
 * time.
 */
struct loop_clock {
	uint64_t (*now_ns)(void *context);
	void *context;
};

#define LOOP_EVENTS 16u /* taken from the kernel at a time */

struct loop {
	const struct loop_clock *clock;
	int epoll_fd;
	struct loop_fd wake; /* an eventfd */
	struct loop_timer *timers;
	loop_hook_fn *hook;
	void *hook_context;
	bool wants_turn; /* loop_again() */
	struct epoll_event batch[LOOP_EVENTS];
	int batch_at, batch_count; /* events that have not been told yet */
	atomic_bool runs, stops;

	pthread_mutex_t lock; /* of the tasks */
	struct list tasks;
};

/* clock is borrowed. ESP_ELIMIT: no descriptors. fini is due only if it succeeds. */
ESP_CHECKED enum esp_status loop_init(struct loop *loop, const struct loop_clock *clock, struct error *err);
/* Descriptors and timers may still be in it; tasks that were posted are not run. */
void loop_fini(struct loop *loop);
uint64_t loop_now(const struct loop *loop);
/* One hook, of the owner. */
void loop_set_hook(struct loop *loop, loop_hook_fn *hook, void *context);

/* ESP_ELIMIT, ESP_ENOMEM. The descriptor stays the caller's. */
ESP_CHECKED enum esp_status loop_add(struct loop *loop, struct loop_fd *fd, int descriptor, uint32_t events,
                                     struct error *err);
/* Waits for other events from now on; 0: for none. */
void loop_change(struct loop *loop, struct loop_fd *fd, uint32_t events);
/* Before the descriptor is closed. Nothing if it is in no loop. */
void loop_remove(struct loop *loop, struct loop_fd *fd);

/* Once, at that time or soon after; a timer that is set is moved. */
void loop_at(struct loop *loop, struct loop_timer *timer, uint64_t when_ns);
void loop_cancel(struct loop *loop, struct loop_timer *timer);

/* Any thread: runs it in the loop's thread, in the order of posting. Nothing if it is posted already. */
void loop_post(struct loop *loop, struct loop_task *task);
/* Any thread: the same, and waits until it has run; at once if this is the loop's thread, or if no thread runs it. */
void loop_call(struct loop *loop, void (*function)(void *), void *argument);
/* The next turn does not sleep. */
static inline void loop_again(struct loop *loop)
{
	loop->wants_turn = true;
}

/*
 * One turn: the hook, then at most one sleep until a descriptor, a timer, the hook's time or until_ns, then all that is
 * due.
 */
void loop_turn(struct loop *loop, uint64_t until_ns);
/*
 * A thread is about to call loop_run(), or is not (the thread could not be created): before it is created, so that
 * loop_call() of other threads waits for the loop's thread from then on.
 */
void loop_expect(struct loop *loop, bool runs);
/* Turns until loop_stop(). */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

#endif
