/*
 * progress.c - opening and closing of lanes, commands, the token, statistics.
 */
#include "node/progress/progress.h"

#include <assert.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fence.h"
#include "node/progress/progress_state.h"
#include "transport/path.h"

/* ---- open and close ---- */

static void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attributes);
	pthread_condattr_destroy(&attributes);
}

static void dial(void *argument, uint32_t peer)
{
	struct progress *progress = argument;

	progress->set->events->connect(progress->set->context, progress->number, peer);
}

static enum esp_status open_port(struct progress *progress, const struct progress_config *config, uint32_t port,
                                 struct error *err)
{
	const struct progress_port_config *at = &config->ports[port];
	struct transport_config own = {
		.peers = config->peers,
		.resumes = at->resumes,
		.is_crowded = config->is_crowded,
		.dial = dial,
		.dial_context = progress,
		.options = at->options ? (const char *)at->options + at->option_bytes * progress->number : NULL,
	};

	progress->ports[port].ops = at->ops;
	return at->ops->open(&own, &lane_user, lane_port(progress->lane, port), &progress->ports[port].transport, err);
}

static enum esp_status start_thread(struct progress *progress, struct error *err)
{
	sigset_t all, before;

	sigfillset(&all); /* signals are the program's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&progress->thread, NULL, progress_lane_main, progress);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error)
		return error_set(err, ESP_ELIMIT, "no thread for lane %u: %s", progress->number, strerror(error));
	progress->has_thread = true;
	return ESP_OK;
}

static enum esp_status open_one(struct progress *progress, const struct progress_config *config, struct error *err)
{
	struct lane_config lane = {.exec = config->exec,
	                           .peers = config->peers,
	                           .ports = config->port_count ? config->port_count : 1,
	                           .port_of = config->port_of};

	progress->waits.peer = PLAN_NONE;
	idle_wait_init(&progress->wait.idle, config->is_crowded);
	/* A rank has one core, however many lanes it has. */
	core_affinity_init(&progress->wait.affinity, config->keeps_core && progress->number == 0, config->place);
	enum esp_status status = lane_open(&lane, &progress->lane, err);
	for (uint32_t i = 0; i < config->port_count && status == ESP_OK; i++)
		status = open_port(progress, config, i, err);
	if (status == ESP_OK && config->has_threads)
		status = start_thread(progress, err);
	return status;
}

enum esp_status progress_open(struct progress_set *set, const struct progress_config *config,
                              const struct progress_events *events, void *context, struct error *err)
{
	assert(config->lanes > 0 && config->port_count <= PROGRESS_PORTS && events->done && events->failed &&
	       events->connect);
	assert(!events->background == !events->pending);
	*set = (struct progress_set){
		.events = events,
		.context = context,
		.peers = config->peers,
		.port_count = config->port_count,
		.tells_waits = config->tells_waits && events->waited,
		.idle = config->idle,
		.idle_context = config->idle_context,
	};
	pthread_mutex_init(&set->lock, NULL);
	cond_init(&set->changed);
	set->lanes = calloc(config->lanes, sizeof(*set->lanes));
	set->port_of = config->port_of ? malloc(config->peers) : NULL;
	if (!set->lanes || (config->port_of && !set->port_of)) {
		progress_close(set);
		return error_set(err, ESP_ENOMEM, "no memory for %u lanes", config->lanes);
	}
	if (config->port_of)
		memcpy(set->port_of, config->port_of, config->peers);
	for (uint32_t i = 0; i < config->lanes; i++) {
		set->lanes[i].set = set;
		set->lanes[i].number = i;
		cond_init(&set->lanes[i].duty);
	}
	set->count = config->lanes; /* before a thread runs that reads it */
	for (uint32_t i = 0; i < config->lanes; i++) {
		enum esp_status status = open_one(&set->lanes[i], config, err);

		if (status != ESP_OK) {
			progress_close(set);
			return status;
		}
	}
	return ESP_OK;
}

static void stop_one(struct progress *progress)
{
	if (!progress->has_thread)
		return;
	atomic_store(&progress->quits, true);
	progress_nudge(progress);
	pthread_join(progress->thread, NULL);
	progress->has_thread = false;
}

void progress_stop(struct progress_set *set)
{
	for (uint32_t i = 0; i < set->count; i++)
		stop_one(&set->lanes[i]);
}

static struct progress_cmd *cmd_of(struct list_node *link)
{
	return list_item(link, struct progress_cmd, link);
}

static void cmd_free(struct progress_cmd *cmd)
{
	if (cmd->kind == PROGRESS_ADOPT && cmd->endpoint.fd >= 0)
		close(cmd->endpoint.fd);
	if (!cmd->is_embedded)
		free(cmd);
}

static void close_one(struct progress *progress)
{
	for (uint32_t i = 0; i < PROGRESS_PORTS; i++) {
		if (progress->ports[i].transport)
			progress->ports[i].ops->close(progress->ports[i].transport);
	}
	lane_close(progress->lane);
	for (struct list_node *link; (link = list_take(&progress->cmds));)
		cmd_free(cmd_of(link));
	pthread_cond_destroy(&progress->duty);
}

void progress_close(struct progress_set *set)
{
	if (!set->events)
		return;
	progress_stop(set);
	for (uint32_t i = 0; i < set->count; i++)
		close_one(&set->lanes[i]);
	free(set->lanes);
	free(set->port_of);
	pthread_cond_destroy(&set->changed);
	pthread_mutex_destroy(&set->lock);
	*set = (struct progress_set){.events = NULL};
}

/* ---- commands ---- */

/* A thread that sleeps in a lane waits for all of its transports, so waking any of them will do. */
static void wake(struct progress *progress)
{
	for (uint32_t i = progress->set->port_count; i-- > 0;) {
		if (progress->ports[i].transport) {
			progress->ports[i].ops->wake(progress->ports[i].transport);
			return;
		}
	}
}

static void nudge_locked(struct progress *progress)
{
	if (progress->is_held && atomic_load(&progress->is_asleep))
		wake(progress);
	pthread_cond_signal(&progress->duty);
}

static bool watch_locked(struct progress *progress)
{
	bool was_watched = progress->watches;

	progress->watched_ns = clock_now_ns();
	progress->watches = true;
	if (!was_watched)
		pthread_cond_signal(&progress->duty);
	return was_watched;
}

void progress_post(struct progress *progress, struct progress_cmd *cmd, enum drive_by by)
{
	pthread_mutex_lock(&progress->set->lock);
	bool has_more = needs_driving(progress);
	list_append(&progress->cmds, &cmd->link);
	atomic_store(&progress->has_cmds, true); /* before is_asleep is read: see drive.c */
	if (progress->is_held) {
		if (atomic_load(&progress->is_asleep))
			wake(progress);
	} else if (by == BY_CALLER_SOON && (!has_more || progress->expected_ns != 0)) {
		if (!has_more) /* otherwise the time of the first command that was left counts */
			progress->expected_ns = clock_now_ns();
		watch_locked(progress);
	} else if (by != BY_CALLER_NOW) {
		progress->expected_ns = 0;
		pthread_cond_signal(&progress->duty);
	}
	pthread_mutex_unlock(&progress->set->lock);
}

void progress_send(struct progress *progress, const struct progress_cmd *cmd)
{
	struct progress_cmd *copy = malloc(sizeof(*copy));

	assert(!cmd->is_embedded);
	if (!copy) {
		if (cmd->kind == PROGRESS_ADOPT)
			close(cmd->endpoint.fd);
		return;
	}
	*copy = *cmd;
	progress_post(progress, copy, BY_LANE_THREAD);
}

bool progress_watch(struct progress *progress)
{
	pthread_mutex_lock(&progress->set->lock);
	bool was_watched = watch_locked(progress);
	pthread_mutex_unlock(&progress->set->lock);
	return was_watched;
}

void progress_nudge(struct progress *progress)
{
	pthread_mutex_lock(&progress->set->lock);
	nudge_locked(progress);
	pthread_mutex_unlock(&progress->set->lock);
}

void progress_expect_no_caller(struct progress_set *set)
{
	pthread_mutex_lock(&set->lock);
	for (uint32_t i = 0; i < set->count; i++) {
		if (set->lanes[i].expected_ns == 0)
			continue;
		set->lanes[i].expected_ns = 0;
		nudge_locked(&set->lanes[i]);
	}
	pthread_mutex_unlock(&set->lock);
}

void progress_changed(struct progress_set *set)
{
	/* A waiter counts itself in sleepers and then reads its condition; here the condition was changed first. */
	full_fence();
	if (atomic_load_explicit(&set->sleepers, memory_order_relaxed) == 0)
		return;
	pthread_mutex_lock(&set->lock);
	pthread_cond_broadcast(&set->changed);
	pthread_mutex_unlock(&set->lock);
}

static struct progress_port *port_of(struct progress *progress, uint32_t peer)
{
	const struct progress_set *set = progress->set;

	assert(peer < set->peers);
	return &progress->ports[set->port_of ? set->port_of[peer] : 0];
}

static void adopt(struct progress *progress, struct progress_cmd *cmd)
{
	struct progress_port *port = port_of(progress, cmd->peer);
	struct endpoint endpoint = cmd->endpoint;
	struct error err;

	cmd->endpoint.fd = -1;
	enum esp_status status = port->ops->adopt(port->transport, cmd->peer, &endpoint, cmd->replaces, &err);
	if (status != ESP_OK && status != ESP_EPEER)
		port->ops->drop(port->transport, cmd->peer, status);
}

static void start(struct progress *progress, const struct progress_cmd *cmd)
{
	const struct progress_set *set = progress->set;
	struct exec_done refused = {.cookie = cmd->call->cookie};
	struct error err;

	atomic_store_explicit(&progress->idle_since_ns, 0, memory_order_relaxed);
	refused.status = lane_start(progress->lane, cmd->channel, cmd->call, &err);
	if (refused.status != ESP_OK)
		set->events->done(set->context, progress->number, &refused);
}

static void cmd_take(struct progress *progress, struct progress_cmd *cmd)
{
	switch ((enum progress_cmd_kind)cmd->kind) {
	case PROGRESS_START:
		start(progress, cmd);
		break;
	case PROGRESS_ADOPT:
		adopt(progress, cmd);
		break;
	case PROGRESS_DROP:
		port_of(progress, cmd->peer)->ops->drop(port_of(progress, cmd->peer)->transport, cmd->peer, cmd->status);
		break;
	case PROGRESS_FAIL:
		lane_fail_stream(progress->lane, cmd->channel, cmd->peer, cmd->status);
		break;
	}
}

struct list progress_cmds_fetch(struct progress *progress)
{
	struct list cmds = progress->cmds;

	progress->cmds = (struct list){0};
	/* Relaxed: readers have the lock, or read again. */
	atomic_store_explicit(&progress->has_cmds, false, memory_order_relaxed);
	return cmds;
}

void progress_cmds_take(struct progress *progress, struct list cmds)
{
	for (struct list_node *link; (link = list_take(&cmds));) {
		struct progress_cmd *cmd = cmd_of(link);
		bool is_embedded = cmd->is_embedded; /* its memory may be gone once it is taken */

		cmd_take(progress, cmd);
		if (!is_embedded)
			cmd_free(cmd);
	}
}

void progress_cmds_fetch_and_take(struct progress *progress)
{
	if (!atomic_load_explicit(&progress->has_cmds, memory_order_acquire))
		return;
	pthread_mutex_lock(&progress->set->lock);
	struct list cmds = progress_cmds_fetch(progress);
	pthread_mutex_unlock(&progress->set->lock);
	progress_cmds_take(progress, cmds);
}

/* ---- outcome of calls ---- */

void progress_settle(struct progress *progress)
{
	const struct progress_set *set = progress->set;
	struct lane_failure failure;
	struct exec_done done;

	/* In this order: see lane.h. */
	while (lane_take_failure(progress->lane, &failure)) {
		for (uint32_t i = 0; i < set->port_count; i++)
			progress->ports[i].ops->forget(progress->ports[i].transport, failure.channel);
		set->events->failed(set->context, progress->number, &failure);
	}
	while (lane_take_done(progress->lane, &done))
		set->events->done(set->context, progress->number, &done);
}

/* ---- the token; set->lock is held ---- */

void progress_give_up(struct progress *progress)
{
	assert(progress->is_held);
	progress->is_held = false;
	progress->unfinished = progress_lane_owes(progress);
	if (atomic_load_explicit(&progress->set->sleepers, memory_order_relaxed) > 0)
		pthread_cond_broadcast(&progress->set->changed);
}

static struct progress *find_free(struct progress_set *set)
{
	for (uint32_t i = 0; i < set->count; i++) {
		if (is_free(&set->lanes[i]) && needs_driving(&set->lanes[i]))
			return &set->lanes[i];
	}
	return NULL;
}

/* Wakes the lane threads of lanes that no thread drives and that are not done. */
static void wake_lane_threads(struct progress_set *set)
{
	for (uint32_t i = 0; i < set->count; i++) {
		struct progress *progress = &set->lanes[i];

		if (is_free(progress) && needs_driving(progress)) {
			progress->expected_ns = 0;
			pthread_cond_signal(&progress->duty);
		}
	}
}

static bool never(void *unused)
{
	(void)unused;
	return false;
}

/* Sleeps until `changed` is signalled, or until that time, unless done(). */
static void sleep_until(struct progress_set *set, uint64_t until_ns, bool (*done)(void *), void *argument)
{
	uint64_t now = clock_now_ns();
	uint64_t when = until_ns < now + PROGRESS_SLEEP_MOST ? until_ns : now + PROGRESS_SLEEP_MOST;
	struct timespec at = {(time_t)(when / NS_PER_S), (long)(when % NS_PER_S)};

	atomic_fetch_add(&set->sleepers, 1);
	full_fence(); /* see progress_changed() */
	if (!done(argument))
		pthread_cond_timedwait(&set->changed, &set->lock, &at);
	atomic_fetch_sub(&set->sleepers, 1);
}

bool progress_try_acquire(struct progress *progress, uint64_t until_ns)
{
	struct progress_set *set = progress->set;

	pthread_mutex_lock(&set->lock);
	atomic_fetch_add(&progress->wanting, 1);
	if (progress->is_held && atomic_load(&progress->is_asleep))
		wake(progress);
	while (progress->is_held && (until_ns == UINT64_MAX || clock_now_ns() < until_ns))
		sleep_until(set, until_ns, never, NULL);
	atomic_fetch_sub(&progress->wanting, 1);
	bool is_ours = !progress->is_held;
	if (is_ours)
		progress->is_held = true;
	else
		wake_lane_threads(set);
	pthread_mutex_unlock(&set->lock);
	if (is_ours)
		progress_cmds_fetch_and_take(progress);
	return is_ours;
}

void progress_acquire(struct progress *progress)
{
	(void)progress_try_acquire(progress, UINT64_MAX);
}

void progress_release(struct progress *progress)
{
	struct progress_set *set = progress->set;

	progress_settle(progress);
	pthread_mutex_lock(&set->lock);
	progress_give_up(progress);
	wake_lane_threads(set);
	pthread_mutex_unlock(&set->lock);
}

/* No lane is free: sleeps until one is, or until done(). Called with the lock, which is released meanwhile. */
static void wait_for_change(struct progress_set *set, bool (*done)(void *), void *argument, uint64_t until_ns)
{
	if (!set->idle) {
		sleep_until(set, until_ns, done, argument);
		return;
	}
	pthread_mutex_unlock(&set->lock);
	uint64_t wake_ns = clock_now_ns() + progress_idle(set, PROGRESS_SLEEP_MOST);
	pthread_mutex_lock(&set->lock);
	sleep_until(set, wake_ns < until_ns ? wake_ns : until_ns, done, argument);
}

bool progress_wait(struct progress_set *set, bool (*done)(void *), void *argument, uint64_t until_ns)
{
	bool is_time = false;

	if (done(argument))
		return true;
	pthread_mutex_lock(&set->lock);
	while (!done(argument) && !is_time) {
		struct progress *progress = find_free(set);

		if (progress) {
			progress->is_held = true;
			struct list cmds = progress_cmds_fetch(progress);
			pthread_mutex_unlock(&set->lock);
			progress_cmds_take(progress, cmds);
			progress_drive(progress, done, argument, until_ns, true);
			pthread_mutex_lock(&set->lock);
			progress_give_up(progress);
		} else {
			wait_for_change(set, done, argument, until_ns);
		}
		is_time = until_ns != UINT64_MAX && clock_now_ns() >= until_ns;
	}
	wake_lane_threads(set);
	pthread_mutex_unlock(&set->lock);
	return done(argument);
}

/* ---- for the thread that holds the token ---- */

void progress_close_stream(struct progress *progress, uint16_t channel)
{
	assert(progress->is_held);
	for (uint32_t i = 0; i < progress->set->port_count; i++)
		progress->ports[i].ops->forget(progress->ports[i].transport, channel);
	lane_stream_close(progress->lane, channel);
}

enum esp_status progress_readmit(struct progress *progress, uint32_t peer, struct error *err)
{
	struct progress_port *port = port_of(progress, peer);

	assert(progress->is_held);
	enum esp_status status = port->ops->readmit(port->transport, peer, err);
	if (status == ESP_OK)
		lane_readmit(progress->lane, peer);
	return status;
}

bool progress_path(const struct progress *progress, uint32_t peer, struct path_stats *out)
{
	const struct progress_set *set = progress->set;
	const struct progress_port *port = &progress->ports[set->port_of ? set->port_of[peer] : 0];

	assert(peer < set->peers);
	return port->ops->path(port->transport, peer, out);
}

bool progress_has_paths(const struct progress *progress)
{
	bool found = false;

	for (uint32_t i = 0; i < progress->set->port_count; i++)
		found = found || (progress->ports[i].ops->caps & TRANSPORT_PATHS);
	return found;
}

void *progress_transport(const struct progress *progress, const struct transport_ops *ops)
{
	for (uint32_t i = 0; i < progress->set->port_count; i++) {
		if (progress->ports[i].ops == ops)
			return progress->ports[i].transport;
	}
	return NULL;
}

unsigned progress_turn(struct progress *progress)
{
	assert(!progress->has_thread);
	if (!progress_try_acquire(progress, 0))
		return 0;
	unsigned moved = progress_ports_move(progress, true);
	progress_release(progress);
	return moved;
}

/* ---- statistics ---- */

uint64_t progress_idle_ns(const struct progress_set *set)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < set->count; i++)
		sum += atomic_load_explicit(&set->lanes[i].idle_ns, memory_order_relaxed);
	return sum;
}

static struct transport_stats sum_stats(const struct progress *progress)
{
	struct transport_stats sum = {0}, one;

	for (uint32_t i = 0; i < progress->set->port_count; i++) {
		progress->ports[i].ops->stats(progress->ports[i].transport, &one);
		sum.messages_sent += one.messages_sent;
		sum.sent_bytes += one.sent_bytes;
		sum.received_bytes += one.received_bytes;
		sum.shared_bytes += one.shared_bytes;
		sum.network_bytes += one.network_bytes;
	}
	return sum;
}

struct transport_stats progress_stats(struct progress *progress, uint64_t until_ns)
{
	struct transport_stats stats = {0};
	bool is_ours = progress_try_acquire(progress, until_ns);

	if (is_ours)
		stats = sum_stats(progress);
	pthread_mutex_lock(&progress->set->lock);
	if (is_ours)
		progress->stats = stats;
	else
		stats = progress->stats;
	pthread_mutex_unlock(&progress->set->lock);
	if (is_ours)
		progress_release(progress);
	return stats;
}
