#include "hub/server/hub_dispatch.h"

#include <string.h>
#include <unistd.h>

#include "hub/server/hub_async.h"
#include "hub/server/hub_jobs.h"
#include "hub/server/hub_session.h"
#include "hub/server/hub_sets.h"

static bool find_job(struct hub *hub, uint64_t number, uint8_t out_key[HUB_KEY_BYTES], uint32_t *out_workers)
{
	const struct hub_job *job = hub_job_find(hub, number);

	if (!job)
		return false;
	memcpy(out_key, job->key, HUB_KEY_BYTES);
	*out_workers = job->workers;
	return true;
}

/* ---- messages ---- */

static void take_operator_msg(struct hub_conn *conn, const struct hub_msg *msg)
{
	if (msg->type == HUB_MSG_CREATE)
		hub_jobs_on_create(conn, &msg->create);
	else if (msg->type == HUB_MSG_REMOVE)
		hub_jobs_on_remove(conn, &msg->remove);
	else
		hub_conn_lose(conn, "is an operator and sent a message of a worker");
}

/* False: the worker does not send this message at this time. */
static bool take_member_msg(struct hub_conn *conn, const struct hub_msg *msg)
{
	const struct hub_session *session = conn->session;

	if (msg->type == HUB_MSG_TENSORS)
		hub_session_on_tensors(conn, &msg->tensors);
	else if (msg->type == HUB_MSG_ASK)
		hub_session_on_ask(conn, msg->ask);
	else if (msg->type == HUB_MSG_LEAVE)
		hub_session_on_leave(conn);
	else if (msg->type == HUB_MSG_SHARE && !session->async)
		hub_sets_on_share(conn, msg->share);
	else if (msg->type == HUB_MSG_WHY && !session->async)
		hub_sets_on_why(conn, &msg->why);
	else if (msg->type == HUB_MSG_OFFER && session->async && !session->workers[conn->worker].has_left)
		hub_async_on_offer(conn, &msg->offer);
	else if (msg->type == HUB_MSG_SPOIL && session->async && !session->workers[conn->worker].has_left)
		hub_async_on_spoil(conn, msg->spoil);
	else
		return false;
	return true;
}

static void take_worker_msg(struct hub_conn *conn, const struct hub_msg *msg)
{
	const struct hub_msg pong = {.type = HUB_MSG_PONG};

	if (msg->type == HUB_MSG_PONG)
		return;
	if (msg->type == HUB_MSG_PING)
		hub_conn_send(conn, &pong);
	else if (msg->type == HUB_MSG_JOIN && !conn->session)
		hub_session_on_join(conn, &msg->join);
	else if (!conn->session || !take_member_msg(conn, msg))
		hub_conn_lose(conn, "sent a message that a worker does not send at this time");
}

static void take_msg(struct hub_conn *conn, const struct hub_msg *msg)
{
	if (conn->state == HUB_CONN_OPERATOR)
		take_operator_msg(conn, msg);
	else
		take_worker_msg(conn, msg);
}

/* ---- connections ---- */

static bool take_lane(struct hub_conn *conn, uint64_t session, uint32_t lane, int fd)
{
	struct hub_job *job = hub_job_find(conn->hub, conn->job);

	if (job)
		return hub_session_on_lane(job, session, conn->worker, lane, fd, !conn->is_local);
	close(fd);
	return false;
}

static uint64_t patience(const struct hub_conn *conn)
{
	const struct hub *hub = conn->hub;

	return conn->session ? hub_session_patience(conn->session, conn->worker) : hub->config.silence_ns;
}

const struct hub_conn_events hub_dispatch = {
	.job = find_job,
	.message = take_msg,
	.lane = take_lane,
	.lost = hub_session_on_lost,
	.patience = patience,
};
