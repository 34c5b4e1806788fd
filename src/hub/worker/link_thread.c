/*
 * link_thread.c - the thread of a worker's link: takes calls to the lanes, moves data, and ends calls.
 */
#include <assert.h>
#include <signal.h>

#include "base/clock.h"
#include "hub/worker/link_state.h"
#include "wire/hub_frame.h"

#define TURNS_PER_LOOK 4 /* for events, while something moves */

/* ---- the end of calls ---- */

/* The thread has taken it from every list. */
void link_thread_end_op(struct hub_link *link, struct hub_op *op, enum esp_status status)
{
	if (link->control.late == op)
		link->control.late = NULL;
	link_host_ended(link, op);
	pthread_mutex_lock(&link->lock);
	op_end_locked(link, op, status);
	pthread_cond_broadcast(&link->changed);
	pthread_mutex_unlock(&link->lock);
	hub_op_put(op);
}

/* Of the call's data, in each direction that has data. */
static uint64_t tensor_bytes(const struct hub_link *link, const struct hub_op *op)
{
	const struct layout_tensor *tensor = &link->layout.tensor[op->call.tensor];
	bool is_array = hub_kind_is_read(op->call.kind) || hub_kind_is_write(op->call.kind);

	return tensor->elements * (is_array ? sizeof(float) : math_type_bytes((enum esp_type)tensor->type));
}

void link_thread_count(struct hub_link *link, const struct hub_op *op)
{
	uint64_t bytes = tensor_bytes(link, op), sent = 0, received = 0;

	for (uint32_t i = 0; i < link->lane_count; i++) {
		struct transport_stats lane;

		tcp_totals(link->lanes[i].tcp, &lane);
		sent += lane.sent_bytes;
		received += lane.received_bytes;
	}
	pthread_mutex_lock(&link->lock);
	link->stats.sent_bytes = sent;
	link->stats.received_bytes = received;
	bool only_pulls = op->call.kind == HUB_PULL || hub_kind_is_read(op->call.kind);
	link->stats.pushed_bytes += only_pulls ? 0 : bytes;
	link->stats.pulled_bytes += only_pulls || op->call.kind == HUB_PUSHPULL ? bytes : 0;
	pthread_mutex_unlock(&link->lock);
}

/* The status of the call, once all of its parts have ended. */
static enum esp_status status_of(struct hub_link *link, const struct hub_op *op)
{
	for (uint32_t i = 0; i < link->lane_count; i++) {
		if (op->parts[i].status != ESP_OK)
			return link->failure.status != ESP_OK ? link->failure.status : op->parts[i].status;
	}
	return ESP_OK;
}

/* The least of what the lanes have read. */
static uint64_t version_of(const struct hub_link *link, const struct hub_op *op)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < link->lane_count; i++)
		least = op->parts[i].version < least ? op->parts[i].version : least;
	return least;
}

static void end_part(struct hub_link *link, struct client_part *part)
{
	struct hub_op *op = part->cookie;

	assert(op->left > 0);
	if (--op->left > 0)
		return;
	enum esp_status status = status_of(link, op);
	op_list_remove(&link->under_way, op);
	if (status == ESP_OK)
		link_host_answered(link, op);
	if (status == ESP_OK)
		link_thread_count(link, op);
	if (op->call.kind == HUB_PULL)
		op->version = version_of(link, op);
	link_thread_end_op(link, op, status);
}

/* While the reason of a lane's failure is awaited no call ends: each ends with the reason. */
static void take_done(struct hub_link *link)
{
	if (link->control.reason_by_ns != 0 && link->failure.status == ESP_OK)
		return;
	for (uint32_t i = 0; i < link->lane_count; i++) {
		struct client_part *part;

		while ((part = client_lane_take_done(link->lanes[i].client)) != NULL)
			end_part(link, part);
	}
}

/* Calls that no lane has: with a status, as the link has failed. */
static void end_queue(struct hub_link *link)
{
	for (;;) {
		pthread_mutex_lock(&link->lock);
		struct hub_op *op = link->queue.first;
		if (op)
			op_list_remove(&link->queue, op);
		pthread_mutex_unlock(&link->lock);
		if (!op)
			return;
		link_thread_end_op(link, op, link->failure.status);
	}
}

void link_fail(struct hub_link *link, const struct error *why)
{
	assert(why->status < 0);
	pthread_mutex_lock(&link->lock);
	bool is_first = link->failure.status == ESP_OK;
	if (is_first)
		link->failure = *why;
	pthread_cond_broadcast(&link->changed); /* an update may wait for the hub's answer */
	pthread_mutex_unlock(&link->lock);
	if (!is_first)
		return;
	for (uint32_t i = 0; i < link->lane_count; i++) {
		client_lane_fail(link->lanes[i].client, why->status);
		link->lanes[i].is_active = true; /* its transport takes its hands off the callers' memory */
	}
	link_host_fail(link);
	end_queue(link);
	if (link->hub_count > 1)
		link_control_tell(link, why, UINT32_MAX);
}

/* ---- the beginning of calls ---- */

static void fail_change(struct hub_link *link, enum esp_status status)
{
	struct error why;

	if (link->failure.status != ESP_OK)
		return;
	error_set(&why, status, "too many changes of optimizers are on their way to the hub");
	link_fail(link, &why);
}

enum esp_status link_thread_change(struct hub_link *link, uint16_t group, uint64_t from,
                                   const struct optimizer *optimizer)
{
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; status == ESP_OK && i < link->lane_count; i++) {
		status = client_lane_hyper(link->lanes[i].client, group, from, optimizer);
		link->lanes[i].is_active = true;
	}
	if (status != ESP_OK)
		fail_change(link, status);
	return status;
}

static void change_optimizer(struct hub_link *link, struct hub_op *op)
{
	uint16_t group = (uint16_t)op->call.tensor;
	enum esp_status status;

	if (link->host) {
		status = link_host_change(link, group, op->version, &op->optimizer);
		if (status != ESP_OK)
			fail_change(link, status);
	} else {
		status = link_thread_change(link, group, op->version, &op->optimizer);
	}
	link_thread_end_op(link, op, status);
}

void link_thread_hand(struct hub_link *link, struct hub_op *op, uint8_t kind, const void *gradient, void *weights)
{
	op->state = HUB_OP_HANDED;
	op->left = link->lane_count;
	for (uint32_t i = 0; i < link->lane_count; i++) {
		op->parts[i] = (struct client_part){
			.kind = kind,
			.tensor = op->call.tensor,
			.before = op->call.before,
			.gradient = gradient,
			.weights = weights,
			.cookie = op,
			.arrived = op->call.arrived,
			.context = op->call.context,
		};
		client_lane_start(link->lanes[i].client, &op->parts[i]);
		link->lanes[i].is_active = true;
	}
}

static void begin_op(struct hub_link *link, struct hub_op *op)
{
	op_list_insert(&link->under_way, op);
	if (link->delay_bound > 0 && op->call.kind == HUB_PUSH)
		pace_set(&link->push_pace, op->call.rate, clock_now_ns());
	if (link->delay_bound > 0 && op->call.kind == HUB_PULL)
		pace_set(&link->pull_pace, op->call.rate, clock_now_ns());
	if (link->host && link->failure.status == ESP_OK)
		link_host_begin(link, op);
	else
		link_thread_hand(link, op, op->call.kind, op->call.gradient, op->call.weights);
}

/* False: the thread is to end. */
static bool take_queue(struct hub_link *link, bool *out_leaves)
{
	for (;;) {
		pthread_mutex_lock(&link->lock);
		struct hub_op *op = link->queue.first;
		bool stops = link->stops;
		*out_leaves = link->leaves;
		if (op)
			op_list_remove(&link->queue, op);
		pthread_mutex_unlock(&link->lock);
		if (!op)
			return !stops;
		if (op->call.kind == HUB_HYPER)
			change_optimizer(link, op);
		else
			begin_op(link, op);
	}
}

/* ---- turns ---- */

static bool move(struct hub_link *link, uint64_t now_ns)
{
	bool moved = false;

	for (uint32_t i = 0; i < link->lane_count; i++) {
		struct link_lane *lane = &link->lanes[i];

		if (!lane->is_active && !tcp_has_work(lane->tcp))
			continue;
		lane->is_active = tcp_flush(lane->tcp) > 0;
		moved |= lane->is_active;
		enum esp_status status = client_lane_failure(lane->client);
		if (status != ESP_OK && link->failure.status == ESP_OK)
			link_control_suspect(link, status, i, now_ns);
	}
	return moved;
}

static bool has_work(const struct hub_link *link)
{
	for (uint32_t i = 0; i < link->lane_count; i++) {
		if (link->lanes[i].is_active || tcp_has_work(link->lanes[i].tcp))
			return true;
	}
	return link_control_has_work(link) || link_host_has_work(link);
}

/* One turn of everything; sleeps if there is nothing to do. */
static void turn(struct hub_link *link, unsigned *turns)
{
	uint64_t now = clock_now_ns();
	bool moved = link_host_turn(link);

	moved |= move(link, now);
	uint64_t when = link_control_turn(link, now), pace = link_pace_turn(link, now);
	when = pace < when ? pace : when;
	take_done(link);
	if (moved || has_work(link)) {
		if (++*turns % TURNS_PER_LOOK == 0)
			poller_look(&link->poller, 0);
		return;
	}
	uint64_t later = clock_now_ns();
	poller_look(&link->poller, when == UINT64_MAX ? -1 : when > later ? (int64_t)(when - later) : 0);
}

/* The hub's OK is awaited: the others' data connections must know that this worker has left, and was not lost. */
static void leave(struct hub_link *link)
{
	uint64_t until = clock_now_ns() + 5 * NS_PER_S;

	link_control_leave(link);
	while (link_control_is_leaving(link) && clock_now_ns() < until) {
		uint64_t now = clock_now_ns(), when = link_control_turn(link, now);

		if (!link_control_is_leaving(link))
			return;
		(void)move(link, now);
		poller_look(&link->poller, (int64_t)((when < until ? when : until) - now));
	}
}

static void *thread_main(void *argument)
{
	struct hub_link *link = argument;
	unsigned turns = 0;
	bool leaves = false;

	pthread_setname_np(pthread_self(), "esp-hub-link");
	while (take_queue(link, &leaves))
		turn(link, &turns);
	if (leaves && link->failure.status == ESP_OK)
		leave(link);
	return NULL;
}

enum esp_status link_thread_start(struct hub_link *link, struct error *err)
{
	sigset_t all, before;

	sigfillset(&all); /* signals are the program's other threads' */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	link->runs = pthread_create(&link->thread, NULL, thread_main, link) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return link->runs ? ESP_OK : error_set(err, ESP_ELIMIT, "no thread for the connections to the hub");
}

void link_thread_stop(struct hub_link *link, bool leaves)
{
	if (!link->runs)
		return;
	pthread_mutex_lock(&link->lock);
	link->stops = true;
	link->leaves = leaves;
	pthread_mutex_unlock(&link->lock);
	poller_wake(&link->poller);
	pthread_join(link->thread, NULL);
	link->runs = false;
}
