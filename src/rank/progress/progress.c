#include "rank/progress/progress.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "rank/comm/comm.h"
#include "rank/comm/work.h"
#include "rank/progress/callbacks.h"
#include "rank/progress/poll_order.h"

#define SLEEP_MOST NS_PER_S
#define TURNS_PER_LOOK 16 /* at the clock, while data moves   */
#define LAST_TURNS 64     /* before a lane is given up        */

enum { PORT_TCP, PORT_SHM, PORTS };

/* ---- open and close ---- */

static void dial(void *argument, uint32_t peer)
{
	struct driver *driver = argument;

	detour_dial(driver->context, peer, driver->number);
}

static enum esp_status open_transports(struct driver *driver, struct error *err)
{
	struct context *context = driver->context;
	uint32_t others = context->size - context->local_count;
	enum esp_status status = ESP_OK;

	if (others > 0) {
		struct tcp_config config = {
			.peers = context->size,
			.resumes = context_resumes(context),
			.dial = dial,
			.dial_context = driver,
		};

		status = tcp_open(&config, &lane_user, lane_port(driver->lane, PORT_TCP), &driver->tcp, err);
	}
	if (status == ESP_OK && context->local_count > 1) {
		struct shm_config config = {
			.segment = context->segment,
			.lane = driver->number,
			.peers = context->size,
			.peer_of = context->rank_of,
			.is_crowded = context->crowded,
		};

		status = shm_open_lane(&config, &lane_user, lane_port(driver->lane, PORT_SHM), &driver->shm, err);
	}
	return status;
}

static enum esp_status open_lane(struct driver *driver, struct error *err)
{
	struct context *context = driver->context;
	uint8_t *port_of = calloc(context->size, 1);

	if (!port_of)
		return error_set(err, ESP_ENOMEM, "no memory for a lane");
	for (uint32_t i = 0; i < context->size; i++)
		port_of[i] = context->local_of[i] != NO_RANK ? PORT_SHM : PORT_TCP;
	struct lane_config config = {
		.exec = {
			.credits = context->conf.credits,
			.active_chunks = context->conf.active_chunks < 2 ? 2 : context->conf.active_chunks, /* p2p.h */
			.slot_bytes = context->conf.chunk_bytes ? (uint32_t)context->conf.chunk_bytes : PLANS_CHUNK_MOST,
		},
		.peers = context->size,
		.ports = PORTS,
		.port_of = port_of,
	};
	enum esp_status status = lane_open(&config, &driver->lane, err);
	free(port_of);
	return status;
}

static void *lane_main(void *argument);

static enum esp_status start_thread(struct driver *driver, struct error *err)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&driver->thread, NULL, lane_main, driver);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		return error_set(err, ESP_ELIMIT, "no thread for lane %u: %s", driver->number, strerror(error));
	driver->has_thread = true;
	return ESP_OK;
}

/* Among the ranks that share its cores, if some of this machine are reached by sockets: through memory others decide who shares a core (shm_small.c). */
static void take_seat(struct driver *driver)
{
	const struct context *context = driver->context;
	const struct roster *roster = &context->roster;
	bool has_sockets = context->local_count < roster->host_ranks[roster->host_of[context->rank]];

	/* One seat for a rank, however many lanes it has. */
	seat_init(&driver->seat, context->conf.seats && context->crowded && has_sockets && driver->number == 0, roster->core_place[context->rank]);
}

enum esp_status driver_open(struct driver *driver, struct context *context, uint32_t number, struct error *err)
{
	driver->context = context;
	driver->number = number;
	driver->waits.peer = PLAN_NONE;
	rest_init(&driver->rest, context->crowded);
	take_seat(driver);
	context_cond_init(&driver->duty);
	enum esp_status status = open_lane(driver, err);
	if (status == ESP_OK)
		status = open_transports(driver, err);
	if (status == ESP_OK)
		status = start_thread(driver, err);
	return status;
}

static void mail_free(struct mail *mail)
{
	if (mail->fd >= 0)
		close(mail->fd);
	if (!mail->embedded)
		free(mail);
}

void driver_stop(struct driver *driver)
{
	if (!driver->context || !driver->has_thread)
		return;
	pthread_mutex_lock(&driver->context->lock);
	atomic_store(&driver->quits, true);
	driver_nudge(driver);
	pthread_mutex_unlock(&driver->context->lock);
	pthread_join(driver->thread, NULL);
	driver->has_thread = false;
}

void driver_close(struct driver *driver)
{
	if (!driver->context)
		return;
	driver_stop(driver);
	shm_close(driver->shm);
	tcp_close(driver->tcp);
	lane_close(driver->lane);
	while (driver->first_mail) {
		struct mail *next = driver->first_mail->next;

		mail_free(driver->first_mail);
		driver->first_mail = next;
	}
	pthread_cond_destroy(&driver->duty);
	driver->context = NULL;
}

/* ---- mail ---- */

static void wake(struct driver *driver)
{
	if (driver->tcp)
		tcp_wake(driver->tcp);
	else if (driver->shm)
		shm_wake(driver->shm);
}

static bool needs_driving(const struct driver *driver)
{
	return driver->first_mail || driver->unfinished > 0;
}

void driver_post(struct driver *driver, struct mail *mail, enum help help)
{
	bool has_more = needs_driving(driver);

	mail->next = NULL;
	if (driver->first_mail)
		driver->last_mail->next = mail;
	else
		driver->first_mail = mail;
	driver->last_mail = mail;
	atomic_store(&driver->has_mail, true); /* before asleep is looked at: see take_a_nap() */
	if (driver->held) {
		if (atomic_load(&driver->asleep))
			wake(driver);
	} else if (help == HELP_EXPECTED && (!has_more || driver->expected_ns != 0)) {
		if (!has_more) /* or what was left first counts */
			driver->expected_ns = clock_now_ns();
		driver_watch(driver);
	} else if (help != HELP_NOW) {
		driver->expected_ns = 0;
		pthread_cond_signal(&driver->duty);
	}
}

void driver_watch(struct driver *driver)
{
	driver->watched_ns = clock_now_ns();
	if (driver->watches)
		return;
	driver->watches = true;
	pthread_cond_signal(&driver->duty);
}

void driver_expect_nobody(struct driver *driver)
{
	driver->expected_ns = 0;
	driver_nudge(driver);
}

void driver_nudge(struct driver *driver)
{
	if (driver->held && atomic_load(&driver->asleep))
		wake(driver);
	pthread_cond_signal(&driver->duty);
}

void driver_mail(struct driver *driver, const struct mail *mail)
{
	struct mail *copy = malloc(sizeof(*copy));

	if (!copy) {
		if (mail->fd >= 0)
			close(mail->fd); /* whoever waits for it has a deadline */
		return;
	}
	*copy = *mail;
	pthread_mutex_lock(&driver->context->lock);
	driver_post(driver, copy, HELP_NONE);
	pthread_mutex_unlock(&driver->context->lock);
}

static void drop(struct driver *driver, uint32_t peer, enum esp_status status)
{
	if (driver->context->local_of[peer] != NO_RANK)
		shm_drop(driver->shm, peer, status);
	else if (driver->tcp)
		tcp_drop(driver->tcp, peer, status);
}

static void adopt_socket(struct driver *driver, struct mail *mail)
{
	const struct context *context = driver->context;
	const struct card *own = &context->roster.cards[context->rank], *other = &context->roster.cards[mail->peer];
	bool crosses_network = memcmp(own->host_id, other->host_id, sizeof(own->host_id)) != 0;
	struct error err;
	int fd = mail->fd;

	mail->fd = -1;
	if (!driver->tcp) { /* nobody here dials within a host */
		close(fd);
		return;
	}
	enum esp_status status = mail->kind == MAIL_REPLACED && context_resumes(context)
	                                 ? tcp_replace(driver->tcp, mail->peer, fd, crosses_network, &err)
	                                 : tcp_adopt(driver->tcp, mail->peer, fd, crosses_network, &err);
	if (status != ESP_OK && status != ESP_EPEER)
		tcp_drop(driver->tcp, mail->peer, status);
}

static void open_mail(struct driver *driver, struct mail *mail)
{
	struct context *context = driver->context;
	uint32_t local;
	struct error err;
	enum esp_status status;

	switch (mail->kind) {
	case MAIL_START:
		atomic_store_explicit(&driver->idle_since_ns, 0, memory_order_relaxed);
		course_begin(driver, mail->part->work->launched_ns);
		status = lane_start(driver->lane, mail->channel, &mail->part->call, &err);
		if (status != ESP_OK)
			work_part_done(mail->part, status);
		break;
	case MAIL_CONNECTED:
	case MAIL_REPLACED:
		adopt_socket(driver, mail);
		break;
	case MAIL_NEIGHBOUR:
		local = context->local_of[mail->peer];
		shm_adopt(driver->shm, local, context->views[local], mail->fd);
		mail->fd = -1;
		break;
	case MAIL_DROP:
		drop(driver, mail->peer, mail->status);
		break;
	case MAIL_FAIL:
		lane_fail_stream(driver->lane, mail->channel, mail->peer, mail->status);
		break;
	}
}

/* With the lock held: what there is of it. */
static struct mail *fetch_mail(struct driver *driver)
{
	struct mail *mail = driver->first_mail;

	driver->first_mail = NULL;
	atomic_store_explicit(&driver->has_mail, false, memory_order_relaxed); /* all that look at it have the lock, or look again */
	return mail;
}

static void open_all(struct driver *driver, struct mail *mail)
{
	while (mail) {
		struct mail *next = mail->next;
		bool embedded = mail->embedded; /* its part may be gone once it is opened */

		open_mail(driver, mail);
		if (!embedded)
			mail_free(mail);
		mail = next;
	}
}

static void take_mail(struct driver *driver)
{
	if (!atomic_load_explicit(&driver->has_mail, memory_order_acquire))
		return;
	pthread_mutex_lock(&driver->context->lock);
	struct mail *mail = fetch_mail(driver);
	pthread_mutex_unlock(&driver->context->lock);
	open_all(driver, mail);
}

/* ---- driving ---- */

/* looks: asks the kernel too who is ready. */
static unsigned move(struct driver *driver, bool looks)
{
	unsigned moved = 0;

	if (driver->shm)
		moved += shm_poll(driver->shm);
	if (driver->tcp)
		moved += looks ? tcp_poll(driver->tcp, 0) : tcp_flush(driver->tcp);
	return moved;
}

/* What has failed and what has ended, in this order: see lane.h. */
static void settle(struct driver *driver)
{
	struct lane_failure failure;
	struct exec_done done;

	while (lane_take_failure(driver->lane, &failure)) {
		if (driver->shm)
			shm_forget(driver->shm, failure.channel);
		if (driver->tcp)
			tcp_forget(driver->tcp, failure.channel);
		group_stream_failed(driver->context, &failure);
	}
	while (lane_take_done(driver->lane, &done)) {
		const struct work_part *part = done.cookie;

		if (tracer_has_detail(driver->context->tracer))
			tracer_add_lane(driver->context->tracer, driver->number, call_operation(&part->work->note), part->work->launched_ns,
			                clock_now_ns(), RECORD_NONE, RECORD_NO_CHUNK);
		work_part_done(done.cookie, done.status);
	}
}

/* Somebody else waits for the token, or the context is being closed. */
static bool is_wanted(const struct driver *driver)
{
	return atomic_load_explicit(&driver->wanting, memory_order_relaxed) > 0 ||
	       atomic_load_explicit(&driver->quits, memory_order_relaxed);
}

static void take_a_nap(struct driver *driver, uint64_t timeout_ns)
{
	struct pollfd fds[2];
	nfds_t count = 0;

	context_watch(driver->context);
	/* Whoever leaves mail sets has_mail and then looks at asleep; here it is the other way round. */
	atomic_store(&driver->asleep, true);
	bool has_chores = driver->number == 0 && chores_interrupt(driver->context);
	if (!atomic_load(&driver->has_mail) && !is_wanted(driver) && !has_chores &&
	    (!driver->shm || shm_doze(driver->shm))) {
		struct timespec timeout = {(time_t)(timeout_ns / NS_PER_S), (long)(timeout_ns % NS_PER_S)};

		if (driver->shm)
			fds[count++] = (struct pollfd){.fd = shm_descriptor(driver->shm), .events = POLLIN};
		if (driver->tcp)
			fds[count++] = (struct pollfd){.fd = tcp_descriptor(driver->tcp), .events = POLLIN};
		(void)ppoll(fds, count, &timeout, NULL);
		if (driver->tcp)
			tcp_has_slept(driver->tcp);
		if (driver->shm)
			shm_rouse(driver->shm);
	}
	atomic_store(&driver->asleep, false);
}

/* One thread at a time drives, so there is one writer. */
static uint64_t get(const _Atomic uint64_t *number)
{
	return atomic_load_explicit(number, memory_order_relaxed);
}

static void set(_Atomic uint64_t *number, uint64_t value)
{
	atomic_store_explicit(number, value, memory_order_relaxed);
}

/* Nobody has left anything for this lane since the rest began, or since an earlier one that somebody has interrupted. */
static void note_rest(struct driver *driver, const struct rest *rest)
{
	if (rest->since_ns != 0 && get(&driver->idle_since_ns) == 0)
		set(&driver->idle_since_ns, rest->since_ns);
	driver->waits.peer = PLAN_NONE;
	if (tracer_has_detail(driver->context->tracer))
		(void)lane_waits_any(driver->lane, &driver->waits);
}

static void note_end_of_rest(struct driver *driver, const struct rest *rest)
{
	if (rest->since_ns == 0)
		return;
	uint64_t now = clock_now_ns();
	set(&driver->idle_ns, get(&driver->idle_ns) + (now - rest->since_ns));
	if (driver->waits.peer < driver->context->size)
		tracer_add_lane(driver->context->tracer, driver->number, "waits", rest->since_ns, now, driver->waits.peer, driver->waits.chunk);
	driver->waits.peer = PLAN_NONE;
}

uint64_t driver_idle_ns(const struct context *context)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < context->lanes; i++)
		sum += get(&context->drivers[i].idle_ns);
	return sum;
}

/* What others may wait for: calls, and what a connection has to send again that took another's place. */
static uint32_t owed(const struct driver *driver)
{
	return lane_unfinished(driver->lane) + (driver->tcp && tcp_is_resuming(driver->tcp));
}

static bool has_duty(const struct driver *driver)
{
	return atomic_load_explicit(&driver->has_mail, memory_order_relaxed) || owed(driver) > 0;
}

/* Drives until done(), until somebody wants the token, until there is nothing to do here, or until_ns. */
static void drive(struct driver *driver, bool (*done)(void *), void *argument, uint64_t until_ns, bool is_caller)
{
	struct rest *rest = &driver->rest;
	unsigned turns = 0;
	bool has_rested = false;

	rest_reset(rest);
	looks_end(&driver->looks);
	for (;;) {
		take_mail(driver);
		enum course course = has_rested ? COURSE_MOVE : course_choose(driver);
		unsigned moved = course == COURSE_REST ? 0 : move(driver, true);
		if (moved) { /* before anybody is told of an end that this brings */
			looks_end(&driver->looks);
			note_end_of_rest(driver, rest);
			rest_reset(rest);
			set(&driver->idle_since_ns, 0);
		}
		settle(driver);
		bool is_over = done && done(argument);
		if (is_over || !has_duty(driver) || is_wanted(driver))
			break;
		if (moved || (course == COURSE_LOOK && looks_again(&driver->looks))) {
			if (until_ns != UINT64_MAX && ++turns % TURNS_PER_LOOK == 0 && clock_now_ns() >= until_ns)
				break;
			has_rested = false;
			continue;
		}
		if (is_caller && driver->tcp)
			seat_rest(&driver->seat);
		uint64_t now = rest_turn(rest);
		lane_rested(driver->lane);
		has_rested = true; /* and there is nothing to choose */
		if (now >= until_ns)
			break;
		if (now != 0) {
			uint64_t left = until_ns - now;

			note_rest(driver, rest);
			left = left < SLEEP_MOST ? left : SLEEP_MOST;
			if (is_caller && driver->context->idle) {
				seat_leave(&driver->seat); /* it is the caller's code */
				left = context_idle(driver->context, left);
			}
			take_a_nap(driver, left);
		}
	}
	note_end_of_rest(driver, rest);
	if (is_caller)
		seat_leave(&driver->seat);
	/* What peers wait for leaves before the lane rests: credits, and word of what was consumed. */
	for (unsigned i = 0; i < LAST_TURNS && move(driver, false) > 0; i++)
		settle(driver);
}

/* ---- the token; context->lock is held ---- */

static void give_up(struct driver *driver)
{
	driver->held = false;
	driver->unfinished = owed(driver);
	context_changed(driver->context);
}

static bool is_free(const struct driver *driver)
{
	return !driver->held && atomic_load(&driver->wanting) == 0;
}

static struct driver *find_free(struct context *context)
{
	for (uint32_t i = 0; i < context->lanes; i++) {
		struct driver *driver = &context->drivers[i];

		if (is_free(driver) && needs_driving(driver))
			return driver;
	}
	return NULL;
}

/* Lanes that nobody drives and that are not done go to their own threads. */
static void hand_on(struct context *context)
{
	for (uint32_t i = 0; i < context->lanes; i++) {
		struct driver *driver = &context->drivers[i];

		if (is_free(driver) && needs_driving(driver)) {
			driver->expected_ns = 0;
			pthread_cond_signal(&driver->duty);
		}
	}
}

static void sleep_until(struct context *context, uint64_t until_ns)
{
	uint64_t now = clock_now_ns();
	uint64_t when = until_ns < now + SLEEP_MOST ? until_ns : now + SLEEP_MOST;
	struct timespec at = {(time_t)(when / NS_PER_S), (long)(when % NS_PER_S)};

	context->sleepers++;
	pthread_cond_timedwait(&context->changed, &context->lock, &at);
	context->sleepers--;
}

bool driver_try_acquire(struct driver *driver, uint64_t until_ns)
{
	struct context *context = driver->context;

	pthread_mutex_lock(&context->lock);
	atomic_fetch_add(&driver->wanting, 1);
	if (driver->held && atomic_load(&driver->asleep))
		wake(driver);
	while (driver->held && (until_ns == UINT64_MAX || clock_now_ns() < until_ns))
		sleep_until(context, until_ns);
	atomic_fetch_sub(&driver->wanting, 1);
	bool is_ours = !driver->held;
	if (is_ours)
		driver->held = true;
	else
		hand_on(context);
	pthread_mutex_unlock(&context->lock);
	if (is_ours)
		take_mail(driver);
	return is_ours;
}

void driver_acquire(struct driver *driver)
{
	(void)driver_try_acquire(driver, UINT64_MAX);
}

void driver_release(struct driver *driver)
{
	struct context *context = driver->context;

	settle(driver);
	pthread_mutex_lock(&context->lock);
	give_up(driver);
	hand_on(context);
	pthread_mutex_unlock(&context->lock);
}

bool driver_wait(struct context *context, bool (*done)(void *), void *argument, uint64_t until_ns)
{
	bool is_time = false;

	if (done(argument))
		return true;
	pthread_mutex_lock(&context->lock);
	while (!done(argument) && !is_time) {
		struct driver *driver = find_free(context);

		if (driver) {
			driver->held = true;
			struct mail *mail = fetch_mail(driver);
			pthread_mutex_unlock(&context->lock);
			open_all(driver, mail);
			drive(driver, done, argument, until_ns, true);
			pthread_mutex_lock(&context->lock);
			give_up(driver);
		} else if (context->idle) {
			pthread_mutex_unlock(&context->lock);
			uint64_t wake_ns = clock_now_ns() + context_idle(context, SLEEP_MOST);
			pthread_mutex_lock(&context->lock);
			if (!done(argument))
				sleep_until(context, wake_ns < until_ns ? wake_ns : until_ns);
		} else {
			sleep_until(context, until_ns);
		}
		is_time = until_ns != UINT64_MAX && clock_now_ns() >= until_ns;
	}
	hand_on(context);
	pthread_mutex_unlock(&context->lock);
	return done(argument);
}

/* ---- the lane's own thread ---- */

/* When it looks again whether those came who were expected. */
static uint64_t watch(struct driver *driver)
{
	if (!driver->watches)
		return UINT64_MAX;
	uint64_t now = clock_now_ns();
	driver->watches = now < driver->watched_ns + HABIT_LOOK_FOR;
	return driver->watches ? now + HABIT_LOOK_EVERY : UINT64_MAX;
}

/* What was left for somebody who did not come. */
static void note_miss(struct driver *driver)
{
	if (driver->expected_ns != 0 && driver->first_mail)
		habit_miss(&driver->context->habit);
	driver->expected_ns = 0;
}

static void *lane_main(void *argument)
{
	struct driver *driver = argument;
	struct context *context = driver->context;
	char name[16];

	snprintf(name, sizeof(name), "esp-lane-%u", driver->number % 1000);
	pthread_setname_np(pthread_self(), name);
	pthread_mutex_lock(&context->lock);
	while (!driver->quits) {
		uint64_t until = driver->number == 0 ? chores_look(context) : UINT64_MAX;
		uint64_t look = watch(driver); /* behind that: the lock was given back meanwhile */

		until = until < look ? until : look;
		if (driver->number == 0 && chores_wait(context)) {
			pthread_mutex_unlock(&context->lock);
			chores_run(context);
			pthread_mutex_lock(&context->lock);
		} else if (is_free(driver) && needs_driving(driver) && !habit_may_come(driver->expected_ns, clock_now_ns())) {
			note_miss(driver);
			driver->held = true;
			pthread_mutex_unlock(&context->lock);
			drive(driver, driver->number == 0 ? chores_interrupt : NULL, context, until, false);
			pthread_mutex_lock(&context->lock);
			give_up(driver);
		} else if (!driver->quits) {
			chores_sleep(context, driver, until);
		}
	}
	pthread_mutex_unlock(&context->lock);
	return NULL;
}
