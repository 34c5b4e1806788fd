/*
 * drive.c - a thread drives a lane: it moves data, reports ended calls, and waits by the policy when nothing moves.
 */
#include <assert.h>
#include <poll.h>
#include <stdio.h>

#include "node/progress/progress_state.h"

#define TURNS_PER_LOOK 16 /* between two readings of the clock, while data moves */
#define LAST_TURNS 64     /* before the token is given up */

/* ---- moving ---- */

unsigned progress_ports_move(struct progress *progress, bool looks)
{
	unsigned moved = 0;

	for (uint32_t i = 0; i < progress->set->port_count; i++) {
		const struct transport_ops *ops = progress->ports[i].ops;

		moved += looks ? ops->poll(progress->ports[i].transport) : ops->flush(progress->ports[i].transport);
	}
	return moved;
}

uint32_t progress_lane_owes(const struct progress *progress)
{
	uint32_t owed = lane_unfinished(progress->lane);

	for (uint32_t i = 0; i < progress->set->port_count; i++)
		owed += progress->ports[i].ops->owes(progress->ports[i].transport);
	return owed;
}

static bool has_duty(const struct progress *progress)
{
	return atomic_load_explicit(&progress->has_cmds, memory_order_relaxed) || progress_lane_owes(progress) > 0;
}

/* Another thread waits for the token, or the set is being closed. */
static bool is_wanted(const struct progress *progress)
{
	return atomic_load_explicit(&progress->wanting, memory_order_relaxed) > 0 ||
	       atomic_load_explicit(&progress->quits, memory_order_relaxed);
}

static bool has_background(const struct progress *progress)
{
	const struct progress_set *set = progress->set;

	return progress->number == 0 && set->events->pending && set->events->pending(set->context);
}

/* ---- sleeping ---- */

/*
 * Arms all transports, so that they wake the thread from now on. False: a message came meanwhile, and the thread must
 * not sleep; the transports before *out_armed are armed.
 */
static bool arm(struct progress *progress, struct pollfd *fds, uint32_t *out_armed)
{
	for (uint32_t i = 0; i < progress->set->port_count; i++) {
		const struct progress_port *port = &progress->ports[i];

		*out_armed = i;
		if (!port->ops->arm(port->transport))
			return false;
		fds[i] = (struct pollfd){.fd = port->ops->fd(port->transport), .events = POLLIN};
	}
	*out_armed = progress->set->port_count;
	return true;
}

static void sleep_until_event(struct progress *progress, uint64_t timeout_ns)
{
	const struct progress_set *set = progress->set;
	struct timespec timeout = {(time_t)(timeout_ns / NS_PER_S), (long)(timeout_ns % NS_PER_S)};
	struct pollfd fds[PROGRESS_PORTS];
	uint32_t armed = 0;

	if (set->events->sleeps)
		set->events->sleeps(set->context);
	/* A thread that posts a command sets has_cmds and then reads is_asleep; here it is the other way round. */
	atomic_store(&progress->is_asleep, true);
	if (!atomic_load(&progress->has_cmds) && !is_wanted(progress) && !has_background(progress)) {
		if (arm(progress, fds, &armed))
			(void)ppoll(fds, armed, &timeout, NULL);
		for (uint32_t i = 0; i < armed; i++)
			progress->ports[i].ops->disarm(progress->ports[i].transport);
	}
	atomic_store(&progress->is_asleep, false);
}

/* ---- statistics; the driving thread is the only writer ---- */

static uint64_t get(const _Atomic uint64_t *number)
{
	return atomic_load_explicit(number, memory_order_relaxed);
}

static void set(_Atomic uint64_t *number, uint64_t value)
{
	atomic_store_explicit(number, value, memory_order_relaxed);
}

/* Nothing has come for this lane since the wait began, or since an earlier wait that another thread has interrupted. */
static void note_wait(struct progress *progress)
{
	uint64_t since_ns = progress->wait.idle.since_ns;

	if (since_ns != 0 && get(&progress->idle_since_ns) == 0)
		set(&progress->idle_since_ns, since_ns);
	progress->waits.peer = PLAN_NONE;
	if (progress->set->tells_waits)
		(void)lane_waits_any(progress->lane, &progress->waits);
}

static void note_end_of_wait(struct progress *progress)
{
	const struct progress_set *of = progress->set;
	uint64_t since_ns = progress->wait.idle.since_ns;

	if (since_ns == 0)
		return;
	uint64_t now = clock_now_ns();
	set(&progress->idle_ns, get(&progress->idle_ns) + (now - since_ns));
	if (progress->waits.peer < of->peers)
		of->events->waited(of->context, progress->number, since_ns, now, &progress->waits);
	progress->waits.peer = PLAN_NONE;
}

/* ---- driving ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Nothing has moved: polls, yields or sleeps. False: it is until_ns. */
static bool pass_time(struct progress *progress, uint64_t until_ns, bool is_caller)
{
	uint64_t now = wait_policy_turn(&progress->wait, is_caller);

	if (now >= until_ns)
		return false;
	if (now == 0)
		return true;
	uint64_t left = least(until_ns - now, PROGRESS_SLEEP_MOST);
	note_wait(progress);
	if (is_caller && progress->set->idle) {
		wait_policy_leave(&progress->wait, true);
		left = progress_idle(progress->set, left);
	}
	sleep_until_event(progress, left);
	return true;
}

void progress_drive(struct progress *progress, bool (*done)(void *), void *argument, uint64_t until_ns, bool is_caller)
{
	unsigned turns = 0;

	assert(progress->is_held);
	wait_policy_begin(&progress->wait);
	for (;;) {
		progress_cmds_fetch_and_take(progress);
		unsigned moved = progress_ports_move(progress, true);
		if (moved) { /* before an ended call is reported */
			note_end_of_wait(progress);
			wait_policy_begin(&progress->wait);
			set(&progress->idle_since_ns, 0);
		}
		progress_settle(progress);
		if ((done && done(argument)) || !has_duty(progress) || is_wanted(progress))
			break;
		if (!moved && !pass_time(progress, until_ns, is_caller))
			break;
		if (moved && until_ns != UINT64_MAX && ++turns % TURNS_PER_LOOK == 0 && clock_now_ns() >= until_ns)
			break;
	}
	note_end_of_wait(progress);
	wait_policy_leave(&progress->wait, is_caller);
	/* Credits and acknowledgements, for which peers wait, are sent before the lane rests. */
	for (unsigned i = 0; i < LAST_TURNS && progress_ports_move(progress, false) > 0; i++)
		progress_settle(progress);
}

/* ---- the lane thread; set->lock is held ---- */

/* Time of the next check whether the predicted caller has come; UINT64_MAX: none is predicted. */
static uint64_t next_check(struct progress *progress)
{
	if (!progress->watches)
		return UINT64_MAX;
	uint64_t now = clock_now_ns();
	progress->watches = now < progress->watched_ns + WAIT_HINT_LOOK_FOR;
	return progress->watches ? now + WAIT_HINT_LOOK_EVERY : UINT64_MAX;
}

/* Commands were left for a predicted caller that did not come. */
static void note_miss(struct progress *progress)
{
	if (progress->expected_ns != 0 && progress->cmds.first)
		wait_hint_miss(&progress->set->hint);
	progress->expected_ns = 0;
}

static uint64_t run_background(struct progress *progress)
{
	struct progress_set *of = progress->set;

	if (progress->number != 0 || !of->events->background)
		return UINT64_MAX;
	pthread_mutex_unlock(&of->lock);
	uint64_t next = of->events->background(of->context);
	pthread_mutex_lock(&of->lock);
	return next;
}

static void sleep_on_duty(struct progress *progress, uint64_t until_ns)
{
	struct timespec at = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};

	if (until_ns == UINT64_MAX)
		pthread_cond_wait(&progress->duty, &progress->set->lock);
	else
		pthread_cond_timedwait(&progress->duty, &progress->set->lock, &at);
}

static bool is_pending(void *argument)
{
	return has_background(argument);
}

void *progress_lane_main(void *argument)
{
	struct progress *progress = argument;
	struct progress_set *of = progress->set;
	char name[16];

	snprintf(name, sizeof(name), "esp-lane-%u", progress->number % 1000);
	pthread_setname_np(pthread_self(), name);
	pthread_mutex_lock(&of->lock);
	while (!progress->quits) {
		uint64_t until = run_background(progress);

		until = least(until, next_check(progress)); /* after run_background(), which releases the lock */
		if (is_free(progress) && needs_driving(progress) &&
		    !wait_hint_may_come(progress->expected_ns, clock_now_ns())) {
			note_miss(progress);
			progress->is_held = true;
			pthread_mutex_unlock(&of->lock);
			progress_drive(progress, is_pending, progress, until, false);
			pthread_mutex_lock(&of->lock);
			progress_give_up(progress);
		} else if (!progress->quits && !has_background(progress)) {
			sleep_on_duty(progress, until);
		}
	}
	pthread_mutex_unlock(&of->lock);
	return NULL;
}
