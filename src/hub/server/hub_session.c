#include "hub/server/hub_session.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "base/status.h"
#include "hub/server/hub_async.h"
#include "hub/server/hub_model.h"
#include "hub/server/hub_sets.h"
#include "hub/server/model_memory.h"

#define BUILD_MOST (600 * NS_PER_S) /* of a worker's silence while it starts */
#define WORKER_TEXT (HUB_HOST_NAME + 48u)

static const char *worker_text(const struct hub_session *session, uint32_t worker, char text[WORKER_TEXT])
{
	const struct hub_worker *of = &session->workers[worker];

	if (of->host[0])
		snprintf(text, WORKER_TEXT, "worker %u on %s (process %u)", worker, of->host, of->pid);
	else
		snprintf(text, WORKER_TEXT, "worker %u", worker);
	return text;
}

/* ---- the end ---- */

static void bury(struct hub_session *session)
{
	struct hub *hub = session->hub;
	struct hub_job *job = session->job;

	assert(session->state == HUB_SESSION_ENDING && session->part_count == 0);
	if (job) {
		job->session = NULL;
		job->used_ns = loop_now(&hub->loop);
		job->rounds += session->rounds;
		job->bytes += session->bytes;
	} else {
		assert(hub->orphans > 0);
		hub->orphans--;
	}
	hub->memory_taken -= session->taken_bytes;
	session->next_dead = hub->dead_sessions;
	hub->dead_sessions = session;
}

static void free_session(struct hub_session *session)
{
	model_memory_free(session->memory, session->memory_bytes);
	for (uint32_t i = 0; i < STORE_WORKERS_MOST; i++)
		host_memory_fini(&session->shared[i]);
	hub_layout_fini(&session->layout);
	free(session->tensors);
	free(session->declared_by);
	free(session->workers);
	free(session->async);
	free(session);
}

void hub_session_free_dead(struct hub *hub)
{
	while (hub->dead_sessions) {
		struct hub_session *session = hub->dead_sessions;

		hub->dead_sessions = session->next_dead;
		free_session(session);
	}
}

static void close_parts(struct hub_session *session)
{
	session->state = HUB_SESSION_ENDING;
	hub_async_stop(session);
	for (uint32_t i = 0; i < session->hub->config.lanes; i++) {
		if (session->parts[i])
			hub_part_close(session->parts[i]);
	}
	if (session->part_count == 0)
		bury(session);
}

void hub_session_end(struct hub_session *session, enum esp_status status, uint32_t worker, const char *text)
{
	if (session->state == HUB_SESSION_ENDING)
		return;
	hub_log(session->hub, "job %s: the session ends: %s", session->job->name, text);
	session->hub->sessions_failed++;
	/* First, so that connections that close from here on find no session. */
	session->state = HUB_SESSION_ENDING;
	for (uint32_t i = 0; i < session->worker_count; i++) {
		struct hub_conn *conn = session->workers[i].conn;

		if (!conn)
			continue;
		session->workers[i].conn = NULL;
		conn->session = NULL;
		hub_conn_refuse(conn, status, worker, text);
	}
	close_parts(session);
}

static void fail(struct hub_session *session, enum esp_status status, uint32_t worker, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
static void fail(struct hub_session *session, enum esp_status status, uint32_t worker, const char *format, ...)
{
	char text[HUB_WHY_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	hub_session_end(session, status, worker, text);
}

static void end_well(struct hub_session *session)
{
	hub_log(session->hub, "job %s: all workers have left", session->job->name);
	close_parts(session);
}

/* ---- joining ---- */

static struct hub_session *make_session(struct hub_job *job)
{
	struct hub_session *session = calloc(1, sizeof(*session));

	if (session)
		session->workers = calloc(job->workers, sizeof(*session->workers));
	if (!session || !session->workers) {
		free(session);
		return NULL;
	}
	session->hub = job->hub;
	session->job = job;
	session->worker_count = job->workers;
	session->number = ++job->hub->sessions_begun;
	session->began_ns = loop_now(&job->hub->loop);
	job->session = session;
	return session;
}

static void refuse(struct hub_conn *conn, enum esp_status status, uint32_t worker, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
static void refuse(struct hub_conn *conn, enum esp_status status, uint32_t worker, const char *format, ...)
{
	char text[HUB_WHY_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	hub_conn_refuse(conn, status, worker, text);
}

static void welcome(struct hub_conn *conn, const struct hub_session *session)
{
	struct hub_msg msg = {.type = HUB_MSG_WELCOME,
	                      .welcome = {.session = session->number,
	                                  .lanes = session->hub->config.lanes,
	                                  .chunk_bytes = session->job->chunk_bytes,
	                                  .delay_bound = session->job->delay_bound,
	                                  .hubs = (uint16_t)session->job->hubs,
	                                  .own = (uint16_t)session->job->own}};

	optimizer_encode(&session->job->optimizer, msg.welcome.optimizer);
	hub_conn_send(conn, &msg);
}

/* The session for a worker that joins; NULL: the connection has been told why not. */
static struct hub_session *session_for(struct hub_conn *conn, struct hub_job *job, uint32_t worker)
{
	struct hub_session *session = job->session ? job->session : make_session(job);
	char text[WORKER_TEXT];

	if (!session)
		refuse(conn, ESP_ENOMEM, UINT32_MAX, "the hub has no memory for another session of job %s", job->name);
	else if (session->state == HUB_SESSION_ENDING)
		refuse(conn, ESP_ESTATE, UINT32_MAX, "the former run of job %s is ending: try again", job->name);
	else if (session->workers[worker].has_joined)
		refuse(conn, ESP_ESTATE, worker,
		       "job %s has %s already: its workers have different numbers, and a job runs once at a time", job->name,
		       worker_text(session, worker, text));
	else
		return session;
	return NULL;
}

void hub_session_on_join(struct hub_conn *conn, const struct hub_msg_join *join)
{
	struct hub_job *job = hub_job_find(conn->hub, conn->job);

	if (!job) {
		hub_conn_end(conn);
		return;
	}
	if (join->workers != job->workers || join->worker != conn->worker) {
		refuse(conn, ESP_EMISMATCH, conn->worker, "job %s was created for %u workers, and worker %u was started for %u",
		       job->name, job->workers, conn->worker, join->workers);
		return;
	}
	struct hub_session *session = session_for(conn, job, join->worker);
	if (!session)
		return;
	struct hub_worker *worker = &session->workers[join->worker];
	*worker = (struct hub_worker){.conn = conn, .has_joined = true, .pid = join->pid,
	                              .memory = join->memory, .meeting = join->meeting};
	memcpy(worker->host, join->host, sizeof(worker->host));
	conn->session = session;
	session->joined++;
	welcome(conn, session);
}

/* ---- the model ---- */

static void tell_ready(struct hub_session *session)
{
	struct hub_msg msg = {.type = HUB_MSG_READY,
	                      .ready.digest = hub_layout_digest(&session->layout, session->job->own)};
	char text[UNITS_TEXT];

	session->state = HUB_SESSION_RUNNING;
	hub_log(session->hub, "job %s runs: %u tensors, %s of weights, %u chunks", session->job->name,
	        session->tensor_count, units_format_bytes(session->layout.elements * sizeof(float), text),
	        session->layout.lane_first[session->layout.lanes]);
	for (uint32_t i = 0; i < session->worker_count && session->state == HUB_SESSION_RUNNING; i++) {
		uint32_t pusher = hub_sets_pusher(session, i);

		msg.ready.set = session->sets[pusher];
		msg.ready.meeting = session->workers[pusher].meeting;
		msg.ready.reads = hub_sets_can_read(session, pusher);
		if (session->workers[i].conn)
			hub_conn_send(session->workers[i].conn, &msg);
	}
}

static void run(struct hub_session *session)
{
	enum esp_status status = ESP_OK;
	struct error err = {0};

	if (session->job->delay_bound > 0)
		status = hub_async_open(session, &err);
	if (status == ESP_OK)
		status = hub_model_open(session, &err);
	if (status == ESP_OK)
		tell_ready(session);
	else
		fail(session, status, UINT32_MAX, "%s", err.text);
}

static void begin_if_complete(struct hub_session *session)
{
	struct error err = {0};

	if (session->complete < session->worker_count)
		return;
	enum esp_status status = hub_model_begin(session, &err);
	if (status != ESP_OK)
		fail(session, status, UINT32_MAX, "%s", err.text);
	else
		session->state = HUB_SESSION_FILLING;
}

static void fill(struct hub_session *session)
{
	if (session->filled < session->memory_bytes)
		session->filled = model_memory_fill(session->memory, session->memory_bytes, session->filled);
	if (session->filled == session->memory_bytes)
		run(session);
}

void hub_session_fill_all(struct hub *hub)
{
	for (struct hub_job *job = hub->jobs; job; job = job->next) {
		if (!job->session || job->session->state != HUB_SESSION_FILLING)
			continue;
		fill(job->session);
		loop_again(&hub->loop);
	}
}

/* ---- tensors ---- */

static bool has_room_for(struct hub_session *session, uint32_t total)
{
	if (session->has_count)
		return true;
	session->tensors = calloc(total + 1u, sizeof(*session->tensors));
	session->declared_by = calloc(total + 1u, sizeof(*session->declared_by));
	session->tensor_count = total;
	session->has_count = session->tensors && session->declared_by;
	return session->has_count;
}

static bool tensor_equal(const struct layout_tensor *a, const struct layout_tensor *b)
{
	return a->name == b->name && a->elements == b->elements && a->type == b->type && a->group == b->group;
}

/* A row as the worker declares it: the first that is known, or equal to what is. False: the session has failed. */
static bool take_row(struct hub_session *session, uint32_t worker, uint32_t index, const struct hub_msg_tensor *row)
{
	const struct layout_tensor tensor = {
		.name = row->name, .elements = row->elements, .type = row->type, .group = row->group};
	struct layout_tensor *known = &session->tensors[index];

	if (index == session->known) {
		*known = tensor;
		session->declared_by[index] = (uint16_t)worker;
		session->known++;
		return true;
	}
	assert(index < session->known);
	if (tensor_equal(known, &tensor))
		return true;
	uint32_t other = session->declared_by[index];
	if (known->elements != tensor.elements)
		fail(session, ESP_EMISMATCH, worker, "worker %u has %" PRIu64 " elements in tensor %u, worker %u has %" PRIu64,
		     worker, tensor.elements, index, other, known->elements);
	else
		fail(session, ESP_EMISMATCH, worker, "worker %u has another %s for tensor %u than worker %u", worker,
		     known->name != tensor.name    ? "name"
		     : known->type != tensor.type ? "type"
		                                   : "parameter group",
		     index, other);
	return false;
}

static bool fits(struct hub_session *session, const struct hub_worker *worker, uint32_t number,
                 const struct hub_msg_tensors *tensors)
{
	if (session->state != HUB_SESSION_GATHERING || tensors->first != worker->declared ||
	    worker->declared == session->tensor_count + 1u)
		fail(session, ESP_ECORRUPT, number, "worker %u declared tensors out of order", number);
	else if (tensors->total > LAYOUT_TENSORS_MOST)
		fail(session, ESP_ELIMIT, number, "worker %u has %u tensors, and a job has %u at most", number, tensors->total,
		     LAYOUT_TENSORS_MOST);
	else if (!has_room_for(session, tensors->total))
		fail(session, ESP_ENOMEM, UINT32_MAX, "the hub has no memory for %u tensors", tensors->total);
	else if (tensors->total != session->tensor_count)
		fail(session, ESP_EMISMATCH, number, "worker %u has %u tensors, and other workers of the job have %u", number,
		     tensors->total, session->tensor_count);
	else
		return true;
	return false;
}

void hub_session_on_tensors(struct hub_conn *conn, const struct hub_msg_tensors *tensors)
{
	struct hub_session *session = conn->session;
	struct hub_worker *worker = &session->workers[conn->worker];

	if (!fits(session, worker, conn->worker, tensors))
		return;
	for (uint32_t i = 0; i < tensors->count; i++) {
		struct hub_msg_tensor row = hub_msg_tensor_at(tensors, i);

		if (!take_row(session, conn->worker, tensors->first + i, &row))
			return;
	}
	worker->declared += tensors->count;
	if (worker->declared < tensors->total)
		return;
	worker->declared = session->tensor_count + 1u; /* no further message fits */
	worker->has_declared = true;
	session->complete++;
	begin_if_complete(session);
}

/* ---- silence ---- */

static bool has_all_lanes(const struct hub_session *session, uint32_t worker)
{
	return session->workers[worker].lanes == UINT64_MAX >> (LAYOUT_LANES_MOST - session->hub->config.lanes);
}

/*
 * Until it has declared its tensors the worker's program builds its model, and until its data connections stand it
 * takes the memory that the workers of its host share: no thread of it answers meanwhile.
 */
uint64_t hub_session_patience(const struct hub_session *session, uint32_t worker)
{
	const struct hub_config *config = &session->hub->config;
	const struct hub_worker *of = &session->workers[worker];
	bool builds = session->state == HUB_SESSION_GATHERING && !of->has_declared;
	bool opens = session->state == HUB_SESSION_RUNNING && !of->has_left && !has_all_lanes(session, worker);

	if (!builds && !opens)
		return config->silence_ns;
	uint64_t most = config->idle_ns > 0 && config->idle_ns < BUILD_MOST ? config->idle_ns : BUILD_MOST;
	return most > config->silence_ns ? most : config->silence_ns;
}

/* ---- running ---- */

bool hub_session_on_lane(struct hub_job *job, uint64_t number, uint32_t worker, uint32_t lane, int fd, bool checked)
{
	struct hub_session *session = job->session;
	bool is_fit = session && session->number == number && session->state == HUB_SESSION_RUNNING &&
	              session->workers[worker].conn && !session->workers[worker].has_left && session->parts[lane] &&
	              !(session->workers[worker].lanes & UINT64_C(1) << lane);
	const struct hub_lane_msg msg = {.kind = HUB_LANE_ADOPT,
	                                 .part = is_fit ? session->parts[lane] : NULL,
	                                 .worker = worker,
	                                 .fd = fd,
	                                 .is_checked = checked};

	if (!is_fit || hub_lane_send(&msg) != ESP_OK) {
		close(fd);
		return false;
	}
	session->workers[worker].lanes |= UINT64_C(1) << lane;
	hub_conn_heard(session->workers[worker].conn); /* from its last lane on it has less patience */
	return true;
}

bool hub_session_tell_lanes(struct hub_session *session, const struct hub_lane_msg *msg)
{
	struct hub_lane_msg copy = *msg;

	assert(session->state == HUB_SESSION_RUNNING);
	for (uint32_t i = 0; i < session->hub->config.lanes; i++) {
		copy.part = session->parts[i];
		if (hub_lane_send(&copy) != ESP_OK) {
			fail(session, ESP_ENOMEM, UINT32_MAX, "the hub has no memory for messages to its lanes");
			return false;
		}
	}
	return true;
}

void hub_session_on_ask(struct hub_conn *conn, uint32_t tensor)
{
	struct hub_session *session = conn->session;
	struct hub_worker *worker = &session->workers[conn->worker];

	if (session->state != HUB_SESSION_RUNNING || tensor >= session->layout.tensors || worker->answers_left > 0) {
		fail(session, ESP_ECORRUPT, conn->worker, "worker %u asked for a tensor that there is not, or twice at a time",
		     conn->worker);
		return;
	}
	worker->asked_tensor = tensor;
	worker->missing = 0;
	worker->answers_left = session->hub->config.lanes;
	const struct hub_lane_msg ask = {.kind = HUB_LANE_ASK, .worker = conn->worker, .fd = -1, .tensor = tensor};
	(void)hub_session_tell_lanes(session, &ask);
}

void hub_session_on_leave(struct hub_conn *conn)
{
	struct hub_session *session = conn->session;
	struct hub_worker *worker = &session->workers[conn->worker];

	if (session->state != HUB_SESSION_RUNNING) {
		fail(session, ESP_EPEER, conn->worker, "worker %u left before the job ran", conn->worker);
		return;
	}
	if (worker->has_left)
		return;
	worker->has_left = true;
	worker->leaves_left = session->hub->config.lanes;
	const struct hub_lane_msg leave = {.kind = HUB_LANE_LEAVE, .worker = conn->worker, .fd = -1};
	(void)hub_session_tell_lanes(session, &leave);
}

/* A worker of an asynchronous job is gone: the others go on. */
static void go_on_without(struct hub_session *session, uint32_t number, const char *why)
{
	struct hub_worker *worker = &session->workers[number];
	char text[WORKER_TEXT];

	hub_log(session->hub, "job %s goes on without %s, which %s", session->job->name, worker_text(session, number, text),
	        why);
	worker->has_left = true;
	hub_async_on_lost(session, number);
	if (session->state == HUB_SESSION_RUNNING && ++session->left == session->worker_count)
		end_well(session);
}

void hub_session_lose(struct hub_conn *conn, const char *why)
{
	struct hub_session *session = conn->session;
	uint32_t number = conn->worker;

	assert(session && session->async && !session->workers[number].has_left);
	conn->session = NULL;
	session->workers[number].conn = NULL;
	refuse(conn, ESP_EPEER, number, "worker %u %s", number, why);
	go_on_without(session, number, why);
}

void hub_session_on_lost(struct hub_conn *conn, const char *why)
{
	struct hub_session *session = conn->session;
	struct hub_worker *worker = &session->workers[conn->worker];
	char text[WORKER_TEXT];

	conn->session = NULL;
	worker->conn = NULL;
	if (session->state == HUB_SESSION_ENDING)
		return;
	if (!worker->has_left && session->async)
		go_on_without(session, conn->worker, why);
	else if (!worker->has_left)
		fail(session, ESP_EPEER, conn->worker, "%s %s", worker_text(session, conn->worker, text), why);
	else if (++session->left == session->worker_count)
		end_well(session);
}

/* ---- what lanes say ---- */

/* "worker 1 on vm (process 12), worker 3 on vm (process 14)" as far as there is room. */
static void list_workers(const struct hub_session *session, uint64_t workers, char *text, size_t room)
{
	size_t at = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < session->worker_count && at < room; i++) {
		char one[WORKER_TEXT];

		if (workers >> i & 1)
			at += (size_t)snprintf(text + at, room - at, "%s%s", at > 0 ? ", " : "", worker_text(session, i, one));
	}
}

static void on_asked(struct hub_session *session, const struct hub_lane_msg *msg)
{
	struct hub_worker *worker = &session->workers[msg->worker];
	struct hub_msg answer = {.type = HUB_MSG_MISSING};

	worker->missing |= msg->workers;
	if (worker->answers_left == 0 || --worker->answers_left > 0 || !worker->conn)
		return;
	answer.missing.tensor = worker->asked_tensor;
	answer.missing.workers = worker->missing;
	list_workers(session, worker->missing, answer.missing.text, sizeof(answer.missing.text));
	hub_conn_send(worker->conn, &answer);
}

static void on_left(struct hub_session *session, const struct hub_lane_msg *msg)
{
	const struct hub_msg ok = {.type = HUB_MSG_OK};
	struct hub_worker *worker = &session->workers[msg->worker];

	if (worker->leaves_left > 0 && --worker->leaves_left == 0 && worker->conn)
		hub_conn_send(worker->conn, &ok);
}

static void on_trouble(struct hub_session *session, const struct store_trouble *trouble)
{
	char text[WORKER_TEXT];

	if (trouble->why.text[0])
		fail(session, trouble->status, trouble->worker, "%s", trouble->why.text);
	else if (trouble->worker < session->worker_count)
		fail(session, trouble->status, trouble->worker, "%s: %s",
		     worker_text(session, trouble->worker, text),
		     trouble->status == ESP_EPEER ? "its process has ended, or was killed" : status_text(trouble->status));
	else
		fail(session, trouble->status, UINT32_MAX, "%s", status_text(trouble->status));
}

static void on_closed(struct hub_session *session, struct hub_part *part)
{
	uint32_t lane = hub_lane_number(part->lane);

	assert(session->parts[lane] == part);
	session->rounds += atomic_load_explicit(&part->counts.rounds, memory_order_relaxed);
	session->bytes += atomic_load_explicit(&part->counts.pushed_bytes, memory_order_relaxed);
	session->parts[lane] = NULL;
	hub_part_free(part);
	if (--session->part_count == 0)
		bury(session);
}

void hub_session_on_lane_msg(const struct hub_lane_msg *msg)
{
	struct hub_session *session = msg->part->session;

	switch ((enum hub_lane_kind)msg->kind) {
	case HUB_LANE_CLOSE:
		on_closed(session, msg->part);
		return;
	case HUB_LANE_ASK:
		on_asked(session, msg);
		return;
	case HUB_LANE_LEAVE:
		on_left(session, msg);
		return;
	case HUB_LANE_TROUBLE:
		on_trouble(session, &msg->trouble);
		return;
	case HUB_LANE_NEWS:
		hub_async_on_news(session, msg->part);
		return;
	case HUB_LANE_SHARE:
	case HUB_LANE_APPLY:
	case HUB_LANE_DROP:
	case HUB_LANE_LOST:
	case HUB_LANE_OPEN:
	case HUB_LANE_ADOPT:
		break;
	}
	assert(false && "a lane does not return this message");
}
