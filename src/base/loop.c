#include "base/loop.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"

#define SLEEP_MOST_MS 60000

static _Thread_local const struct loop *own_loop; /* that this thread runs now */

/* ---- life ---- */

static void on_wake(struct loop_fd *fd, uint32_t events)
{
	uint64_t drained;
	ssize_t got = read(fd->fd, &drained, sizeof(drained));

	(void)got;
	(void)events;
}

enum esp_status loop_init(struct loop *loop, const struct loop_clock *clock, struct error *err)
{
	*loop = (struct loop){.clock = clock, .wake = {.ready = on_wake, .fd = -1}};
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	int wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (loop->epoll_fd < 0 || wake_fd < 0 || loop_add(loop, &loop->wake, wake_fd, EPOLLIN, err) != ESP_OK) {
		int cause = errno;

		if (loop->epoll_fd >= 0)
			close(loop->epoll_fd);
		if (wake_fd >= 0)
			close(wake_fd);
		return error_set(err, ESP_ELIMIT, "no descriptors for an event loop: %s", strerror(cause));
	}
	pthread_mutex_init(&loop->lock, NULL);
	return ESP_OK;
}

void loop_fini(struct loop *loop)
{
	assert(!atomic_load(&loop->runs));
	close(loop->wake.fd);
	close(loop->epoll_fd);
	pthread_mutex_destroy(&loop->lock);
}

uint64_t loop_now(const struct loop *loop)
{
	return loop->clock ? loop->clock->now_ns(loop->clock->context) : clock_now_ns();
}

void loop_set_hook(struct loop *loop, loop_hook_fn *hook, void *context)
{
	assert(!loop->hook || !hook);
	loop->hook = hook;
	loop->hook_context = context;
}

/* ---- descriptors ---- */

enum esp_status loop_add(struct loop *loop, struct loop_fd *fd, int descriptor, uint32_t events, struct error *err)
{
	struct epoll_event event = {.events = events, .data.ptr = fd};

	assert(descriptor >= 0 && fd->ready);
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, descriptor, &event) != 0)
		return error_set(err, errno == ENOMEM ? ESP_ENOMEM : ESP_ELIMIT, "cannot watch a descriptor: %s",
		                 strerror(errno));
	fd->fd = descriptor;
	fd->events = events;
	return ESP_OK;
}

void loop_change(struct loop *loop, struct loop_fd *fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = fd};

	assert(fd->fd >= 0);
	if (fd->events == events)
		return;
	fd->events = events;
	(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, fd->fd, &event);
}

void loop_remove(struct loop *loop, struct loop_fd *fd)
{
	if (fd->fd < 0)
		return;
	(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd->fd, NULL);
	fd->fd = -1;
	/* An event of it may be in the batch that is being told. */
	for (int i = loop->batch_at; i < loop->batch_count; i++) {
		if (loop->batch[i].data.ptr == fd)
			loop->batch[i].data.ptr = NULL;
	}
}

/* ---- timers ---- */

void loop_cancel(struct loop *loop, struct loop_timer *timer)
{
	struct loop_timer **at = &loop->timers;

	if (!timer->is_set)
		return;
	while (*at != timer)
		at = &(*at)->next;
	*at = timer->next;
	timer->is_set = false;
}

void loop_at(struct loop *loop, struct loop_timer *timer, uint64_t when_ns)
{
	struct loop_timer **at = &loop->timers;

	assert(timer->due);
	loop_cancel(loop, timer);
	timer->when_ns = when_ns;
	while (*at && (*at)->when_ns <= when_ns)
		at = &(*at)->next;
	timer->next = *at;
	timer->is_set = true;
	*at = timer;
}

/* A timer that is set anew for a time that has passed has its turn in the next one. */
static void run_timers(struct loop *loop, uint64_t now)
{
	while (loop->timers && loop->timers->when_ns <= now) {
		struct loop_timer *timer = loop->timers;

		loop_cancel(loop, timer);
		timer->due(timer, now);
	}
}

/* ---- tasks ---- */

static void wake(struct loop *loop)
{
	uint64_t one = 1;
	ssize_t done = write(loop->wake.fd, &one, sizeof(one)); /* full is as good as written */

	(void)done;
}

static bool is_own_thread(const struct loop *loop)
{
	return own_loop == loop;
}

void loop_post(struct loop *loop, struct loop_task *task)
{
	assert(task->run);
	pthread_mutex_lock(&loop->lock);
	bool is_new = !atomic_exchange(&task->is_posted, true);
	if (is_new)
		list_append(&loop->tasks, &task->link);
	pthread_mutex_unlock(&loop->lock);
	if (is_new && is_own_thread(loop))
		loop_again(loop);
	else if (is_new)
		wake(loop);
}

static struct loop_task *take_task(struct loop *loop)
{
	pthread_mutex_lock(&loop->lock);
	struct loop_task *task = list_item(list_take(&loop->tasks), struct loop_task, link);
	assert(task);
	atomic_store(&task->is_posted, false);
	pthread_mutex_unlock(&loop->lock);
	return task;
}

/* Runs the tasks that are there now: one that posts itself again has its next turn in the next turn of the loop. */
static void run_tasks(struct loop *loop)
{
	pthread_mutex_lock(&loop->lock);
	struct loop_task *last = list_item(loop->tasks.last, struct loop_task, link), *task;
	pthread_mutex_unlock(&loop->lock);

	if (!last)
		return;
	do {
		task = take_task(loop);
		task->run(task); /* it may be gone afterwards */
	} while (task != last);
}

struct waited_call {
	struct loop_task task;
	void (*function)(void *);
	void *argument;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_done;
};

static void run_call(struct loop_task *task)
{
	struct waited_call *call = (struct waited_call *)(void *)task; /* its first member */

	call->function(call->argument);
	pthread_mutex_lock(&call->lock);
	call->is_done = true;
	pthread_cond_signal(&call->changed);
	pthread_mutex_unlock(&call->lock);
}

void loop_call(struct loop *loop, void (*function)(void *), void *argument)
{
	struct waited_call call = {.task.run = run_call, .function = function, .argument = argument};

	if (!atomic_load(&loop->runs) || is_own_thread(loop)) {
		function(argument);
		return;
	}
	pthread_mutex_init(&call.lock, NULL);
	pthread_cond_init(&call.changed, NULL);
	loop_post(loop, &call.task);
	pthread_mutex_lock(&call.lock);
	while (!call.is_done)
		pthread_cond_wait(&call.changed, &call.lock);
	pthread_mutex_unlock(&call.lock);
	pthread_cond_destroy(&call.changed);
	pthread_mutex_destroy(&call.lock);
}

/* ---- turns ---- */

static int timeout_ms(const struct loop *loop, uint64_t until_ns)
{
	uint64_t now = loop_now(loop);

	if (loop->clock || loop->wants_turn || until_ns <= now)
		return 0;
	uint64_t ms = (until_ns - now - 1) / NS_PER_MS + 1; /* rounded up, so that a short sleep does not become a spin */
	return ms > SLEEP_MOST_MS ? SLEEP_MOST_MS : (int)ms;
}

static void tell_batch(struct loop *loop)
{
	while (loop->batch_at < loop->batch_count) {
		const struct epoll_event *event = &loop->batch[loop->batch_at++];
		struct loop_fd *fd = event->data.ptr;

		if (fd)
			fd->ready(fd, event->events);
	}
}

void loop_turn(struct loop *loop, uint64_t until_ns)
{
	uint64_t next = loop->hook ? loop->hook(loop->hook_context, loop_now(loop)) : UINT64_MAX;

	if (loop->timers && loop->timers->when_ns < next)
		next = loop->timers->when_ns;
	int timeout = timeout_ms(loop, next < until_ns ? next : until_ns);
	loop->wants_turn = false;
	loop->batch_at = 0;
	int count = epoll_wait(loop->epoll_fd, loop->batch, LOOP_EVENTS, timeout);
	loop->batch_count = count > 0 ? count : 0; /* below 0: interrupted */
	tell_batch(loop);
	run_tasks(loop);
	run_timers(loop, loop_now(loop));
}

void loop_expect(struct loop *loop, bool runs)
{
	atomic_store(&loop->runs, runs);
}

void loop_run(struct loop *loop)
{
	const struct loop *outer = own_loop;

	own_loop = loop;
	atomic_store(&loop->runs, true);
	while (!atomic_load(&loop->stops))
		loop_turn(loop, UINT64_MAX);
	atomic_store(&loop->runs, false);
	own_loop = outer;
}

void loop_stop(struct loop *loop)
{
	atomic_store(&loop->stops, true);
	wake(loop);
}
