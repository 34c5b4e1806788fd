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
	struct progress *progress = argument;

	failover_dial(progress->context, peer, progress->number);
}

static enum esp_status open_transports(struct progress *progress, struct error *err)
{
	struct rank *context = progress->context;
	uint32_t others = context->size - context->local_count;
	enum esp_status status = ESP_OK;

	if (others > 0) {
		struct tcp_config config = {
			.peers = context->size,
			.resumes = rank_resumes(context),
			.dial = dial,
			.dial_context = progress,
		};

		status = tcp_open(&config, &lane_user, lane_port(progress->lane, PORT_TCP), &progress->tcp, err);
	}
	if (status == ESP_OK && context->local_count > 1) {
		struct shm_config config = {
			.segment = context->segment,
			.lane = progress->number,
			.peers = context->size,
			.peer_of = context->rank_of,
			.is_crowded = context->crowded,
		};

		status = shm_open_lane(&config, &lane_user, lane_port(progress->lane, PORT_SHM), &progress->shm, err);
	}
	return status;
}

static enum esp_status open_lane(struct progress *progress, struct error *err)
{
	struct rank *context = progress->context;
	uint8_t *port_of = calloc(context->size, 1);

	if (!port_of)
		return error_set(err, ESP_ENOMEM, "no memory for a lane");
	for (uint32_t i = 0; i < context->size; i++)
		port_of[i] = context->local_of[i] != NO_RANK ? PORT_SHM : PORT_TCP;
	struct lane_config config = {
		.exec = {
			.credits = context->conf.credits,
			.active_chunks = context->conf.active_chunks < 2 ? 2 : context->conf.active_chunks, /* p2p.h */
			.slot_bytes = context->conf.chunk_bytes ? (uint32_t)context->conf.chunk_bytes : PLAN_CACHE_CHUNK_MOST,
		},
		.peers = context->size,
		.ports = PORTS,
		.port_of = port_of,
	};
	enum esp_status status = lane_open(&config, &progress->lane, err);
	free(port_of);
	return status;
}

static void *lane_main(void *argument);

static enum esp_status start_thread(struct progress *progress, struct error *err)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&progress->thread, NULL, lane_main, progress);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		return error_set(err, ESP_ELIMIT, "no thread for lane %u: %s", progress->number, strerror(error));
	progress->has_thread = true;
	return ESP_OK;
}

/* Among the ranks that share its cores, if some of this machine are reached by sockets: through memory others decide who shares a core (shm_small.c). */
static void take_seat(struct progress *progress)
{
	const struct rank *context = progress->context;
	const struct roster *roster = &context->roster;
	bool has_sockets = context->local_count < roster->host_ranks[roster->host_of[context->rank]];

	/* One seat for a rank, however many lanes it has. */
	core_affinity_init(&progress->seat, context->conf.seats && context->crowded && has_sockets && progress->number == 0, roster->core_place[context->rank]);
}

enum esp_status progress_open(struct progress *progress, struct rank *context, uint32_t number, struct error *err)
{
	progress->context = context;
	progress->number = number;
	progress->waits.peer = PLAN_NONE;
	idle_wait_init(&progress->rest, context->crowded);
	take_seat(progress);
	rank_cond_init(&progress->duty);
	enum esp_status status = open_lane(progress, err);
	if (status == ESP_OK)
		status = open_transports(progress, err);
	if (status == ESP_OK)
		status = start_thread(progress, err);
	return status;
}

static void mail_free(struct mail *mail)
{
	if (mail->fd >= 0)
		close(mail->fd);
	if (!mail->embedded)
		free(mail);
}

void progress_stop(struct progress *progress)
{
	if (!progress->context || !progress->has_thread)
		return;
	pthread_mutex_lock(&progress->context->lock);
	atomic_store(&progress->quits, true);
	progress_nudge(progress);
	pthread_mutex_unlock(&progress->context->lock);
	pthread_join(progress->thread, NULL);
	progress->has_thread = false;
}

void progress_close(struct progress *progress)
{
	if (!progress->context)
		return;
	progress_stop(progress);
	shm_close(progress->shm);
	tcp_close(progress->tcp);
	lane_close(progress->lane);
	while (progress->first_mail) {
		struct mail *next = progress->first_mail->next;

		mail_free(progress->first_mail);
		progress->first_mail = next;
	}
	pthread_cond_destroy(&progress->duty);
	progress->context = NULL;
}

/* ---- mail ---- */

static void wake(struct progress *progress)
{
	if (progress->tcp)
		tcp_wake(progress->tcp);
	else if (progress->shm)
		shm_wake(progress->shm);
}

static bool needs_driving(const struct progress *progress)
{
	return progress->first_mail || progress->unfinished > 0;
}

void progress_post(struct progress *progress, struct mail *mail, enum drive_by help)
{
	bool has_more = needs_driving(progress);

	mail->next = NULL;
	if (progress->first_mail)
		progress->last_mail->next = mail;
	else
		progress->first_mail = mail;
	progress->last_mail = mail;
	atomic_store(&progress->has_mail, true); /* before asleep is looked at: see take_a_nap() */
	if (progress->held) {
		if (atomic_load(&progress->asleep))
			wake(progress);
	} else if (help == BY_CALLER_SOON && (!has_more || progress->expected_ns != 0)) {
		if (!has_more) /* or what was left first counts */
			progress->expected_ns = clock_now_ns();
		progress_watch(progress);
	} else if (help != BY_CALLER_NOW) {
		progress->expected_ns = 0;
		pthread_cond_signal(&progress->duty);
	}
}

void progress_watch(struct progress *progress)
{
	progress->watched_ns = clock_now_ns();
	if (progress->watches)
		return;
	progress->watches = true;
	pthread_cond_signal(&progress->duty);
}

void progress_expect_nobody(struct progress *progress)
{
	progress->expected_ns = 0;
	progress_nudge(progress);
}

void progress_nudge(struct progress *progress)
{
	if (progress->held && atomic_load(&progress->asleep))
		wake(progress);
	pthread_cond_signal(&progress->duty);
}

void progress_mail(struct progress *progress, const struct mail *mail)
{
	struct mail *copy = malloc(sizeof(*copy));

	if (!copy) {
		if (mail->fd >= 0)
			close(mail->fd); /* whoever waits for it has a deadline */
		return;
	}
	*copy = *mail;
	pthread_mutex_lock(&progress->context->lock);
	progress_post(progress, copy, BY_LANE_THREAD);
	pthread_mutex_unlock(&progress->context->lock);
}

static void drop(struct progress *progress, uint32_t peer, enum esp_status status)
{
	if (progress->context->local_of[peer] != NO_RANK)
		shm_drop(progress->shm, peer, status);
	else if (progress->tcp)
		tcp_drop(progress->tcp, peer, status);
}

static void adopt_socket(struct progress *progress, struct mail *mail)
{
	const struct rank *context = progress->context;
	const struct node_info *own = &context->roster.nodes[context->rank], *other = &context->roster.nodes[mail->peer];
	bool crosses_network = memcmp(own->host_id, other->host_id, sizeof(own->host_id)) != 0;
	struct error err;
	int fd = mail->fd;

	mail->fd = -1;
	if (!progress->tcp) { /* nobody here dials within a host */
		close(fd);
		return;
	}
	enum esp_status status = mail->kind == MAIL_REPLACED && rank_resumes(context)
	                                 ? tcp_replace(progress->tcp, mail->peer, fd, crosses_network, &err)
	                                 : tcp_adopt(progress->tcp, mail->peer, fd, crosses_network, &err);
	if (status != ESP_OK && status != ESP_EPEER)
		tcp_drop(progress->tcp, mail->peer, status);
}

static void open_mail(struct progress *progress, struct mail *mail)
{
	struct rank *context = progress->context;
	uint32_t local;
	struct error err;
	enum esp_status status;

	switch (mail->kind) {
	case MAIL_START:
		atomic_store_explicit(&progress->idle_since_ns, 0, memory_order_relaxed);
		poll_order_begin(progress, mail->part->work->launched_ns);
		status = lane_start(progress->lane, mail->channel, &mail->part->call, &err);
		if (status != ESP_OK)
			work_part_done(mail->part, status);
		break;
	case MAIL_CONNECTED:
	case MAIL_REPLACED:
		adopt_socket(progress, mail);
		break;
	case MAIL_NEIGHBOUR:
		local = context->local_of[mail->peer];
		shm_adopt(progress->shm, local, context->views[local], mail->fd);
		mail->fd = -1;
		break;
	case MAIL_DROP:
		drop(progress, mail->peer, mail->status);
		break;
	case MAIL_FAIL:
		lane_fail_stream(progress->lane, mail->channel, mail->peer, mail->status);
		break;
	}
}

/* With the lock held: what there is of it. */
static struct mail *fetch_mail(struct progress *progress)
{
	struct mail *mail = progress->first_mail;

	progress->first_mail = NULL;
	atomic_store_explicit(&progress->has_mail, false, memory_order_relaxed); /* all that look at it have the lock, or look again */
	return mail;
}

static void open_all(struct progress *progress, struct mail *mail)
{
	while (mail) {
		struct mail *next = mail->next;
		bool embedded = mail->embedded; /* its part may be gone once it is opened */

		open_mail(progress, mail);
		if (!embedded)
			mail_free(mail);
		mail = next;
	}
}

static void take_mail(struct progress *progress)
{
	if (!atomic_load_explicit(&progress->has_mail, memory_order_acquire))
		return;
	pthread_mutex_lock(&progress->context->lock);
	struct mail *mail = fetch_mail(progress);
	pthread_mutex_unlock(&progress->context->lock);
	open_all(progress, mail);
}

/* ---- driving ---- */

/* looks: asks the kernel too who is ready. */
static unsigned move(struct progress *progress, bool looks)
{
	unsigned moved = 0;

	if (progress->shm)
		moved += shm_poll(progress->shm);
	if (progress->tcp)
		moved += looks ? tcp_poll(progress->tcp, 0) : tcp_flush(progress->tcp);
	return moved;
}

/* What has failed and what has ended, in this order: see lane.h. */
static void settle(struct progress *progress)
{
	struct lane_failure failure;
	struct exec_done done;

	while (lane_take_failure(progress->lane, &failure)) {
		if (progress->shm)
			shm_forget(progress->shm, failure.channel);
		if (progress->tcp)
			tcp_forget(progress->tcp, failure.channel);
		comm_stream_failed(progress->context, &failure);
	}
	while (lane_take_done(progress->lane, &done)) {
		const struct work_part *part = done.cookie;

		if (tracer_has_detail(progress->context->tracer))
			tracer_add_lane(progress->context->tracer, progress->number, call_operation(&part->work->note), part->work->launched_ns,
			                clock_now_ns(), RECORD_NONE, RECORD_NO_CHUNK);
		work_part_done(done.cookie, done.status);
	}
}

/* Somebody else waits for the token, or the context is being closed. */
static bool is_wanted(const struct progress *progress)
{
	return atomic_load_explicit(&progress->wanting, memory_order_relaxed) > 0 ||
	       atomic_load_explicit(&progress->quits, memory_order_relaxed);
}

static void take_a_nap(struct progress *progress, uint64_t timeout_ns)
{
	struct pollfd fds[2];
	nfds_t count = 0;

	rank_watch(progress->context);
	/* Whoever leaves mail sets has_mail and then looks at asleep; here it is the other way round. */
	atomic_store(&progress->asleep, true);
	bool has_chores = progress->number == 0 && callbacks_interrupt(progress->context);
	if (!atomic_load(&progress->has_mail) && !is_wanted(progress) && !has_chores &&
	    (!progress->shm || shm_doze(progress->shm))) {
		struct timespec timeout = {(time_t)(timeout_ns / NS_PER_S), (long)(timeout_ns % NS_PER_S)};

		if (progress->shm)
			fds[count++] = (struct pollfd){.fd = shm_descriptor(progress->shm), .events = POLLIN};
		if (progress->tcp)
			fds[count++] = (struct pollfd){.fd = tcp_descriptor(progress->tcp), .events = POLLIN};
		(void)ppoll(fds, count, &timeout, NULL);
		if (progress->tcp)
			tcp_has_slept(progress->tcp);
		if (progress->shm)
			shm_rouse(progress->shm);
	}
	atomic_store(&progress->asleep, false);
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
static void note_rest(struct progress *progress, const struct idle_wait *rest)
{
	if (rest->since_ns != 0 && get(&progress->idle_since_ns) == 0)
		set(&progress->idle_since_ns, rest->since_ns);
	progress->waits.peer = PLAN_NONE;
	if (tracer_has_detail(progress->context->tracer))
		(void)lane_waits_any(progress->lane, &progress->waits);
}

static void note_end_of_rest(struct progress *progress, const struct idle_wait *rest)
{
	if (rest->since_ns == 0)
		return;
	uint64_t now = clock_now_ns();
	set(&progress->idle_ns, get(&progress->idle_ns) + (now - rest->since_ns));
	if (progress->waits.peer < progress->context->size)
		tracer_add_lane(progress->context->tracer, progress->number, "waits", rest->since_ns, now, progress->waits.peer, progress->waits.chunk);
	progress->waits.peer = PLAN_NONE;
}

uint64_t progress_idle_ns(const struct rank *context)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < context->lanes; i++)
		sum += get(&context->progress[i].idle_ns);
	return sum;
}

/* What others may wait for: calls, and what a connection has to send again that took another's place. */
static uint32_t owed(const struct progress *progress)
{
	return lane_unfinished(progress->lane) + (progress->tcp && tcp_is_resuming(progress->tcp));
}

static bool has_duty(const struct progress *progress)
{
	return atomic_load_explicit(&progress->has_mail, memory_order_relaxed) || owed(progress) > 0;
}

/* Drives until done(), until somebody wants the token, until there is nothing to do here, or until_ns. */
static void drive(struct progress *progress, bool (*done)(void *), void *argument, uint64_t until_ns, bool is_caller)
{
	struct idle_wait *rest = &progress->rest;
	unsigned turns = 0;
	bool has_rested = false;

	idle_wait_reset(rest);
	look_limit_end(&progress->looks);
	for (;;) {
		take_mail(progress);
		enum course course = has_rested ? POLL_ORDER_MOVE : poll_order_choose(progress);
		unsigned moved = course == POLL_ORDER_REST ? 0 : move(progress, true);
		if (moved) { /* before anybody is told of an end that this brings */
			look_limit_end(&progress->looks);
			note_end_of_rest(progress, rest);
			idle_wait_reset(rest);
			set(&progress->idle_since_ns, 0);
		}
		settle(progress);
		bool is_over = done && done(argument);
		if (is_over || !has_duty(progress) || is_wanted(progress))
			break;
		if (moved || (course == POLL_ORDER_LOOK && look_limit_again(&progress->looks))) {
			if (until_ns != UINT64_MAX && ++turns % TURNS_PER_LOOK == 0 && clock_now_ns() >= until_ns)
				break;
			has_rested = false;
			continue;
		}
		if (is_caller && progress->tcp)
			core_affinity_rest(&progress->seat);
		uint64_t now = idle_wait_turn(rest);
		lane_rested(progress->lane);
		has_rested = true; /* and there is nothing to choose */
		if (now >= until_ns)
			break;
		if (now != 0) {
			uint64_t left = until_ns - now;

			note_rest(progress, rest);
			left = left < SLEEP_MOST ? left : SLEEP_MOST;
			if (is_caller && progress->context->idle) {
				core_affinity_leave(&progress->seat); /* it is the caller's code */
				left = rank_idle(progress->context, left);
			}
			take_a_nap(progress, left);
		}
	}
	note_end_of_rest(progress, rest);
	if (is_caller)
		core_affinity_leave(&progress->seat);
	/* What peers wait for leaves before the lane rests: credits, and word of what was consumed. */
	for (unsigned i = 0; i < LAST_TURNS && move(progress, false) > 0; i++)
		settle(progress);
}

/* ---- the token; context->lock is held ---- */

static void give_up(struct progress *progress)
{
	progress->held = false;
	progress->unfinished = owed(progress);
	rank_changed(progress->context);
}

static bool is_free(const struct progress *progress)
{
	return !progress->held && atomic_load(&progress->wanting) == 0;
}

static struct progress *find_free(struct rank *context)
{
	for (uint32_t i = 0; i < context->lanes; i++) {
		struct progress *progress = &context->progress[i];

		if (is_free(progress) && needs_driving(progress))
			return progress;
	}
	return NULL;
}

/* Lanes that nobody drives and that are not done go to their own threads. */
static void hand_on(struct rank *context)
{
	for (uint32_t i = 0; i < context->lanes; i++) {
		struct progress *progress = &context->progress[i];

		if (is_free(progress) && needs_driving(progress)) {
			progress->expected_ns = 0;
			pthread_cond_signal(&progress->duty);
		}
	}
}

static void sleep_until(struct rank *context, uint64_t until_ns)
{
	uint64_t now = clock_now_ns();
	uint64_t when = until_ns < now + SLEEP_MOST ? until_ns : now + SLEEP_MOST;
	struct timespec at = {(time_t)(when / NS_PER_S), (long)(when % NS_PER_S)};

	context->sleepers++;
	pthread_cond_timedwait(&context->changed, &context->lock, &at);
	context->sleepers--;
}

bool progress_try_acquire(struct progress *progress, uint64_t until_ns)
{
	struct rank *context = progress->context;

	pthread_mutex_lock(&context->lock);
	atomic_fetch_add(&progress->wanting, 1);
	if (progress->held && atomic_load(&progress->asleep))
		wake(progress);
	while (progress->held && (until_ns == UINT64_MAX || clock_now_ns() < until_ns))
		sleep_until(context, until_ns);
	atomic_fetch_sub(&progress->wanting, 1);
	bool is_ours = !progress->held;
	if (is_ours)
		progress->held = true;
	else
		hand_on(context);
	pthread_mutex_unlock(&context->lock);
	if (is_ours)
		take_mail(progress);
	return is_ours;
}

void progress_acquire(struct progress *progress)
{
	(void)progress_try_acquire(progress, UINT64_MAX);
}

void progress_release(struct progress *progress)
{
	struct rank *context = progress->context;

	settle(progress);
	pthread_mutex_lock(&context->lock);
	give_up(progress);
	hand_on(context);
	pthread_mutex_unlock(&context->lock);
}

bool progress_wait(struct rank *context, bool (*done)(void *), void *argument, uint64_t until_ns)
{
	bool is_time = false;

	if (done(argument))
		return true;
	pthread_mutex_lock(&context->lock);
	while (!done(argument) && !is_time) {
		struct progress *progress = find_free(context);

		if (progress) {
			progress->held = true;
			struct mail *mail = fetch_mail(progress);
			pthread_mutex_unlock(&context->lock);
			open_all(progress, mail);
			drive(progress, done, argument, until_ns, true);
			pthread_mutex_lock(&context->lock);
			give_up(progress);
		} else if (context->idle) {
			pthread_mutex_unlock(&context->lock);
			uint64_t wake_ns = clock_now_ns() + rank_idle(context, SLEEP_MOST);
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
static uint64_t watch(struct progress *progress)
{
	if (!progress->watches)
		return UINT64_MAX;
	uint64_t now = clock_now_ns();
	progress->watches = now < progress->watched_ns + WAIT_HINT_LOOK_FOR;
	return progress->watches ? now + WAIT_HINT_LOOK_EVERY : UINT64_MAX;
}

/* What was left for somebody who did not come. */
static void note_miss(struct progress *progress)
{
	if (progress->expected_ns != 0 && progress->first_mail)
		wait_hint_miss(&progress->context->habit);
	progress->expected_ns = 0;
}

static void *lane_main(void *argument)
{
	struct progress *progress = argument;
	struct rank *context = progress->context;
	char name[16];

	snprintf(name, sizeof(name), "esp-lane-%u", progress->number % 1000);
	pthread_setname_np(pthread_self(), name);
	pthread_mutex_lock(&context->lock);
	while (!progress->quits) {
		uint64_t until = progress->number == 0 ? callbacks_look(context) : UINT64_MAX;
		uint64_t look = watch(progress); /* behind that: the lock was given back meanwhile */

		until = until < look ? until : look;
		if (progress->number == 0 && callbacks_wait(context)) {
			pthread_mutex_unlock(&context->lock);
			callbacks_run(context);
			pthread_mutex_lock(&context->lock);
		} else if (is_free(progress) && needs_driving(progress) && !wait_hint_may_come(progress->expected_ns, clock_now_ns())) {
			note_miss(progress);
			progress->held = true;
			pthread_mutex_unlock(&context->lock);
			drive(progress, progress->number == 0 ? callbacks_interrupt : NULL, context, until, false);
			pthread_mutex_lock(&context->lock);
			give_up(progress);
		} else if (!progress->quits) {
			callbacks_sleep(context, progress, until);
		}
	}
	pthread_mutex_unlock(&context->lock);
	return NULL;
}
