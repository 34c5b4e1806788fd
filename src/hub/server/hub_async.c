#include "hub/server/hub_async.h"

#include <assert.h>
#include <stdlib.h>

static void pump(struct hub_async *async);

/* ---- life ---- */

static void on_due(struct loop_timer *timer, uint64_t now_ns)
{
	(void)now_ns;
	pump((struct hub_async *)(void *)timer);
}

enum esp_status hub_async_open(struct hub_session *session, struct error *err)
{
	struct hub_async *async = calloc(1, sizeof(*async));

	assert(session->job->delay_bound > 0 && !session->async);
	if (!async)
		return error_set(err, ESP_ENOMEM, "the hub has no memory for the gate of job %s", session->job->name);
	async->timer.due = on_due;
	async->session = session;
	gate_init(&async->gate, session->worker_count, session->job->delay_bound);
	if (optimizer_is_linear(&session->job->optimizer) && !session->layout.has_halves)
		gate_take_sums(&async->gate);
	for (uint32_t i = 0; i < session->layout.lanes; i++) {
		if (session->layout.lane_first[i + 1] > session->layout.lane_first[i])
			async->lanes |= UINT64_C(1) << i;
	}
	session->async = async;
	return ESP_OK;
}

void hub_async_stop(struct hub_session *session)
{
	if (session->async)
		loop_cancel(&session->hub->loop, &session->async->timer);
}

/* ---- results ---- */

/* Has the worker's update, or the sum that it sends, come here? */
static bool was_sent(const struct gate_result *result)
{
	return result->count > 0 && (result->why == GATE_APPLIED || result->why == GATE_LATE);
}

static void tell(struct hub_async *async, const struct gate_result *result)
{
	struct hub_conn *conn = async->session->workers[result->worker].conn;
	struct hub_msg msg = {.type = HUB_MSG_RESULT,
	                      .result = {.number = result->number, .version = result->version, .delay = result->delay,
	                                 .took_ns = was_sent(result) ? async->took_ns[result->worker] : 0,
	                                 .why = result->why}};

	if (conn)
		hub_conn_send(conn, &msg);
}

static void settle(struct hub_async *async, const struct gate_result *result)
{
	const struct hub_lane_msg msg = {.kind = result->why == GATE_APPLIED ? HUB_LANE_APPLY : HUB_LANE_DROP,
	                                 .worker = result->worker,
	                                 .count = result->count,
	                                 .fd = -1};

	async->delay_sum += result->why == GATE_APPLIED ? result->delay : 0;
	if (result->count == 0) { /* another worker's sum had it */
		tell(async, result);
		return;
	}
	async->whole[result->worker] = 0;
	if (hub_session_tell_lanes(async->session, &msg))
		tell(async, result);
}

/* A connection that takes no message may end the session in between. */
static void pump(struct hub_async *async)
{
	struct hub_session *session = async->session;
	struct loop *loop = &session->hub->loop;
	struct gate_result result;

	while (session->state == HUB_SESSION_RUNNING && gate_next(&async->gate, loop_now(loop), &result))
		settle(async, &result);
	uint64_t due = session->state == HUB_SESSION_RUNNING ? gate_due(&async->gate) : UINT64_MAX;
	if (due != UINT64_MAX)
		loop_at(loop, &async->timer, due);
	else
		loop_cancel(loop, &async->timer);
}

/* ---- what workers and lanes say ---- */

static void look_whole(struct hub_async *async, uint32_t worker)
{
	uint64_t now = loop_now(&async->session->hub->loop);

	if ((async->whole[worker] & async->lanes) == async->lanes && gate_whole(&async->gate, worker, now))
		async->took_ns[worker] = now > async->granted_ns[worker] ? now - async->granted_ns[worker] : 1;
}

void hub_async_on_offer(struct hub_conn *conn, const struct hub_msg_offer *offer)
{
	struct hub_async *async = conn->session->async;
	const struct gate_offer wants = {.worker = conn->worker,
	                                 .number = offer->number,
	                                 .computed_from = offer->computed_from,
	                                 .epoch = offer->epoch,
	                                 .position = offer->position,
	                                 .patience_ns = offer->patience_ns,
	                                 .bundle = offer->bundle,
	                                 .aggregator = offer->aggregator,
	                                 .members = offer->members,
	                                 .at_ns = loop_now(&conn->hub->loop)};
	const struct hub_msg grant = {.type = HUB_MSG_GRANT, .grant = offer->number};
	struct gate_result result;

	enum esp_status status = gate_offer(&async->gate, &wants, &result);
	if (status == ESP_ECORRUPT) {
		hub_session_lose(
			conn, "offered an update out of order, of a version that there is not yet, or in a sum that may not be");
		return;
	}
	if (status == ESP_OK) {
		async->granted_ns[wants.worker] = loop_now(&conn->hub->loop);
		hub_conn_send(conn, &grant);
		look_whole(async, wants.worker); /* a model without elements */
	} else {
		tell(async, &result);
	}
	pump(async);
}

void hub_async_on_spoil(struct hub_conn *conn, uint64_t number)
{
	struct hub_async *async = conn->session->async;
	const struct hub_msg answer = {.type = HUB_MSG_SPOIL, .spoil = number};

	if (number != async->gate.last[conn->worker] || !gate_spoil(&async->gate, conn->worker)) {
		hub_session_lose(conn, "took an update back that it was not sending");
		return;
	}
	hub_conn_send(conn, &answer);
	pump(async);
}

/* Workers that a lane has lost, and that did not leave, are lost to the job. */
static void lose_workers(struct hub_session *session, uint64_t lost)
{
	for (; lost; lost &= lost - 1) {
		struct hub_worker *worker = &session->workers[__builtin_ctzll(lost)];

		if (worker->conn && !worker->has_left)
			hub_session_lose(worker->conn, "has lost a data connection: its process has ended, or was killed");
	}
}

void hub_async_on_news(struct hub_session *session, struct hub_part *part)
{
	uint64_t whole = atomic_exchange(&part->whole, 0), lost = atomic_exchange(&part->lost, 0);
	uint64_t lane = UINT64_C(1) << hub_lane_number(part->lane);
	struct hub_async *async = session->async;

	if (session->state != HUB_SESSION_RUNNING)
		return;
	for (uint64_t rest = whole; rest; rest &= rest - 1) {
		uint32_t worker = (uint32_t)__builtin_ctzll(rest);

		async->whole[worker] |= lane;
		look_whole(async, worker);
	}
	pump(async);
	lose_workers(session, lost);
}

void hub_async_on_lost(struct hub_session *session, uint32_t worker)
{
	const struct hub_lane_msg lost = {.kind = HUB_LANE_LOST, .worker = worker, .fd = -1};
	struct hub_async *async = session->async;
	struct gate_result result;

	if (!hub_session_tell_lanes(session, &lost))
		return;
	if (gate_gone(&async->gate, worker, &result))
		settle(async, &result);
	pump(async);
}
