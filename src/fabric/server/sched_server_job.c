/*
 * sched_server_job.c - the jobs of a scheduler: each has a machine (fabric/sched.h), which gets the messages of its
 * workers and the time, and whose decisions are sent.
 */
#include <assert.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "fabric/sched_log.h"
#include "fabric/server/sched_server_conn.h"
#include "wire/hub_msg.h"

#define KEPT_NS (60 * NS_PER_S) /* a job without workers, for its status */

/* ---- time and decisions ---- */

static void send_decision(struct sched_server_job *job, const struct sched_decision *decision)
{
	struct fabric_msg msg = {.type = FABRIC_DECIDE,
	                               .decide = {.number = decision->number,
	                                          .end = decision->end,
	                                          .position = decision->position,
	                                          .start_ns = decision->start_ns,
	                                          .rate = decision->rate,
	                                          .patience_ns = decision->patience_ns,
	                                          .delay = decision->delay,
	                                          .bundle = decision->bundle,
	                                          .members = decision->members,
	                                          .wait_ns = decision->wait_ns,
	                                          .aggregator = decision->aggregator,
	                                          .is_chain = decision->is_chain,
	                                          .inputs = (uint8_t)decision->inputs,
	                                          .next_hop = decision->is_chain ? decision->next_hop : 0}};
	uint32_t next = decision->is_chain ? decision->next_hop : decision->aggregator;
	const struct sched_server_conn *to = next == SCHED_HUB ? NULL : job->conns[next]; /* SCHED_ALONE is the same */

	if (to) {
		memcpy(msg.decide.host, to->host, sizeof(msg.decide.host));
		msg.decide.port = to->port;
	}
	if (job->conns[decision->worker])
		sched_server_conn_send(job->conns[decision->worker], &msg);
}

static void send_model(struct sched_server_job *job, const struct sched_model *model)
{
	struct fabric_msg msg = {.type = FABRIC_MODEL,
	                         .model = {.tree = model->tree,
	                                   .start_ns = model->start_ns,
	                                   .rate = model->rate,
	                                   .source = model->source == SCHED_HUB ? FABRIC_FROM_HUB : model->source,
	                                   .outputs = model->outputs}};
	const struct sched_server_conn *source = model->source == SCHED_HUB ? NULL : job->conns[model->source];

	if (source) { /* if it has gone the model has no address, and is read from the hub */
		memcpy(msg.model.host, source->host, sizeof(msg.model.host));
		msg.model.port = source->port;
	}
	if (job->conns[model->worker])
		sched_server_conn_send(job->conns[model->worker], &msg);
}

static void run(struct sched_server_job *job)
{
	struct loop *loop = &job->server->loop;
	struct sched_decision decision;
	struct sched_model model;

	sched_tick(job->sched, loop_now(loop));
	for (; sched_next(job->sched, &decision); send_decision(job, &decision)) {
		sched_log_decision(job->server->config.decisions, loop_now(loop), &decision);
		sched_picture_add(&job->picture, sched_batches(job->sched), &decision,
		                  sched_ledger(job->sched)->updates[decision.worker].bytes);
	}
	for (; sched_next_model(job->sched, &model); send_model(job, &model))
		sched_log_model(job->server->config.decisions, loop_now(loop), &model);
	uint64_t due = sched_due(job->sched);
	if (due == UINT64_MAX)
		loop_cancel(loop, &job->timer);
	else
		loop_at(loop, &job->timer, due);
}

static void on_due(struct loop_timer *timer, uint64_t now_ns)
{
	(void)now_ns;
	run((struct sched_server_job *)(void *)timer);
}

/* Of the worker's update that is announced or decided. */
static void log_end(const struct sched_server_job *job, uint32_t worker, uint8_t end, uint64_t version, uint64_t delay)
{
	const struct ledger_update *update = &sched_ledger(job->sched)->updates[worker];
	const struct sched_log_end line = {worker, update->number, update->computed_from, delay, version, end};

	if (update->state != LEDGER_NONE)
		sched_log_end(job->server->config.decisions, loop_now(&job->server->loop), &line);
}

/* ---- jobs ---- */

struct sched_server_job *sched_server_job_find(const struct sched_server *server, uint64_t number)
{
	struct sched_server_job *job = server->jobs;

	while (job && job->number != number)
		job = job->next;
	return job;
}

static void free_job(struct sched_server_job *job)
{
	loop_cancel(&job->server->loop, &job->timer);
	sched_close(job->sched);
	free(job);
}

static enum esp_status make_job(struct sched_server *server, uint64_t number, const struct fabric_msg_register *reg,
                                struct sched_server_job **out, struct error *err)
{
	const struct sched_config config = {.workers = reg->workers,
	                                    .bound = reg->delay_bound,
	                                    .batch_ns = server->config.batch_ns,
	                                    .hub_rate = server->config.hub_rate,
	                                    .worker_rate = server->config.worker_rate,
	                                    .aggregates = server->config.aggregates,
	                                    .chains = server->config.chains,
	                                    .has_slack = server->config.has_slack,
	                                    .slack = server->config.slack,
	                                    .slack_wait_ns = server->config.slack_wait_ns};

	if (server->job_count >= SCHED_SERVER_JOBS)
		return error_set(err, ESP_ELIMIT, "the scheduler has %u jobs, and takes no more", server->job_count);
	struct sched_server_job *job = calloc(1, sizeof(*job));
	if (!job)
		return error_set(err, ESP_ENOMEM, "the scheduler has no memory for a job");
	enum esp_status status = sched_open(&config, &job->sched, err);
	if (status != ESP_OK) {
		free(job);
		return status;
	}
	job->timer.due = on_due;
	job->server = server;
	job->number = number;
	job->session = reg->session;
	job->epoch = ++server->epoch;
	memcpy(job->name, reg->name, sizeof(job->name));
	job->workers = reg->workers;
	job->bound = reg->delay_bound;
	job->next = server->jobs;
	server->jobs = job;
	server->job_count++;
	sched_server_log(server, "job %s: %u workers, delay bound %u", job->name, job->workers, job->bound);
	const struct sched_log_begin begin = {job->epoch, job->session, job->workers, job->bound};
	sched_log_begin(server->config.decisions, loop_now(&server->loop), &begin);
	*out = job;
	return ESP_OK;
}

static void say_wait(struct sched_server_job *job)
{
	const struct fabric_msg wait = {.type = FABRIC_WAIT};

	for (uint32_t i = 0; i < job->workers; i++) {
		if (job->conns[i] && (sched_ledger(job->sched)->updates[i].state == LEDGER_READY ||
		                      sched_worker(job->sched, i)->wants > 0))
			sched_server_conn_send(job->conns[i], &wait);
	}
}

void sched_server_job_look_after_all(struct sched_server *server, uint64_t now_ns)
{
	struct sched_server_job **at = &server->jobs;

	for (struct sched_server_job *job = server->jobs; job; job = job->next)
		say_wait(job);

	while (*at) {
		struct sched_server_job *job = *at;

		if (job->connected > 0 || now_ns - job->empty_ns < KEPT_NS) {
			at = &job->next;
			continue;
		}
		*at = job->next;
		server->job_count--;
		free_job(job);
	}
}

void sched_server_job_close_all(struct sched_server *server)
{
	while (server->jobs) {
		struct sched_server_job *job = server->jobs;

		server->jobs = job->next;
		free_job(job);
	}
	server->job_count = 0;
}

/* ---- workers ---- */

/* IPv4 addresses as IPv6 addresses that stand for them. False: the connection has neither. */
static bool find_host(int fd, uint8_t out[FABRIC_HOST])
{
	struct sockaddr_storage name;
	socklen_t length = sizeof(name);
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (getpeername(fd, (struct sockaddr *)&name, &length) != 0)
		return false;
	if (name.ss_family == AF_INET6) {
		memcpy(out, &((const struct sockaddr_in6 *)(const void *)&name)->sin6_addr, FABRIC_HOST);
		return true;
	}
	memcpy(out, mapped, sizeof(mapped));
	memcpy(out + sizeof(mapped), &((const struct sockaddr_in *)(const void *)&name)->sin_addr, 4);
	return name.ss_family == AF_INET;
}

static bool is_loopback(const uint8_t host[FABRIC_HOST])
{
	struct in6_addr address;

	memcpy(&address, host, sizeof(address));
	return IN6_IS_ADDR_LOOPBACK(&address) || (IN6_IS_ADDR_V4MAPPED(&address) && host[12] == 127);
}

/* A worker on the scheduler's own host, as far as its address tells, is reached from there only. */
static void set_peers(struct sched_server_job *job)
{
	bool are_near = true;

	for (uint32_t i = 0; i < job->workers; i++)
		are_near &= !job->conns[i] || is_loopback(job->conns[i]->host);
	for (uint32_t i = 0; i < job->workers; i++) {
		const struct sched_server_conn *conn = job->conns[i];

		if (!conn)
			continue;
		bool is_reached = conn->port > 0 && (are_near || !is_loopback(conn->host));
		sched_set_aggregator(job->sched, i, is_reached && conn->takes_sums);
		sched_set_forwarder(job->sched, i, is_reached);
	}
}

static enum esp_status check_register(const struct sched_server_conn *conn, const struct fabric_msg_register *reg,
                                      struct error *err)
{
	if (!hub_msg_name_is_good(reg->name) || reg->workers < 1 || reg->workers > LEDGER_WORKERS_MOST ||
	    reg->delay_bound < 1)
		return error_set(err, ESP_EINVAL, "a worker registered with values that are out of range");
	if (reg->worker != conn->worker || reg->worker >= reg->workers)
		return error_set(err, ESP_EINVAL, "worker %u registered as worker %u of %u", conn->worker, reg->worker,
		                 reg->workers);
	return ESP_OK;
}

static void remove_job(struct sched_server *server, struct sched_server_job *job)
{
	struct sched_server_job **at = &server->jobs;

	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	server->job_count--;
	free_job(job);
}

/* Workers of a session that is over, some of which may be stopped, or cut off without a word. */
static void refuse_all(struct sched_server_job *job)
{
	struct error why;

	error_set(&why, ESP_ESTATE, "a newer session of the job has begun");
	for (uint32_t i = 0; i < job->workers; i++) {
		if (job->conns[i])
			sched_server_conn_refuse(job->conns[i], &why);
	}
	assert(job->connected == 0);
}

/* The job of this session; NULL: it is to be made. Positions and versions count anew in each session. */
static enum esp_status find_session(struct sched_server *server, uint64_t number, uint64_t session,
                                    struct sched_server_job **out, struct error *err)
{
	struct sched_server_job *job = sched_server_job_find(server, number);

	if (job && session < job->session && job->connected > 0)
		return error_set(err, ESP_ESTATE, "session %" PRIu64 " of the job is over, session %" PRIu64 " has begun",
		                 session, job->session);
	if (job && session > job->session)
		refuse_all(job);
	if (job && job->connected == 0) {
		remove_job(server, job);
		job = NULL;
	}
	*out = job;
	return ESP_OK;
}

enum esp_status sched_server_job_join(struct sched_server *server, struct sched_server_conn *conn,
                                      const struct fabric_msg_register *reg, struct error *err)
{
	struct sched_server_job *job = NULL;
	enum esp_status status = check_register(conn, reg, err);

	if (status == ESP_OK)
		status = find_session(server, conn->job_number, reg->session, &job, err);
	if (status == ESP_OK && !job)
		status = make_job(server, conn->job_number, reg, &job, err);
	if (status != ESP_OK)
		return status;
	if (reg->workers != job->workers || reg->delay_bound != job->bound)
		return error_set(err, ESP_EMISMATCH,
		                 "worker %u was started for %u workers and delay bound %u, others for %u and %u", reg->worker,
		                 reg->workers, reg->delay_bound, job->workers, job->bound);
	if (job->conns[reg->worker]) { /* it has given up the connection, and the end of it has not been heard */
		struct error why;

		error_set(&why, ESP_ESTATE, "worker %u has registered again", reg->worker);
		sched_server_conn_refuse(job->conns[reg->worker], &why);
	}
	status = sched_join(job->sched, reg->worker, reg->rate, loop_now(&server->loop), err);
	if (status != ESP_OK)
		return status;
	job->conns[reg->worker] = conn;
	job->connected++;
	job->empty_ns = 0;
	conn->job = job;
	conn->port = find_host(conn->watched.fd, conn->host) ? reg->port : 0;
	conn->takes_sums = reg->takes_sums;
	set_peers(job);
	conn->state = SCHED_SERVER_CONN_REGISTERED;
	sched_server_log(server, "job %s: worker %u (process %u) has registered", job->name, reg->worker, reg->pid);
	const struct fabric_msg welcome = {.type = FABRIC_WELCOME,
	                                   .welcome = {.epoch = job->epoch, .batch_ns = server->config.batch_ns}};
	sched_server_conn_send(conn, &welcome);
	return ESP_OK;
}

void sched_server_job_leave(struct sched_server_conn *conn)
{
	struct sched_server_job *job = conn->job;

	assert(job->conns[conn->worker] == conn && job->connected > 0);
	conn->job = NULL;
	job->conns[conn->worker] = NULL;
	job->connected--;
	job->empty_ns = loop_now(&job->server->loop);
	log_end(job, conn->worker, LEDGER_GONE, sched_ledger(job->sched)->version, 0);
	sched_gone(job->sched, conn->worker, job->empty_ns);
	sched_server_log(job->server, "job %s: worker %u has left", job->name, conn->worker);
}

enum esp_status sched_server_job_ready(struct sched_server_conn *conn, const struct fabric_msg_ready *ready,
                                       struct error *err)
{
	const struct ledger_update update = {
		.number = ready->number,
		.computed_from = ready->computed_from,
		.bytes = ready->bytes,
		.norm = ready->norm,
		.attempts = ready->attempts,
		.leaves = ready->leaves_ns > 0};
	struct sched_server_job *job = conn->job;
	enum esp_status status = sched_ready(job->sched, conn->worker, &update, loop_now(&job->server->loop), err);

	if (status == ESP_OK)
		run(job);
	return status;
}

enum esp_status sched_server_job_done(struct sched_server_conn *conn, const struct fabric_msg_done *done,
                                      struct error *err)
{
	const struct sched_done ended = {.number = done->number,
	                                 .end = done->end,
	                                 .version = done->version,
	                                 .delay = done->delay,
	                                 .took_ns = done->took_ns};
	struct sched_server_job *job = conn->job;

	if (sched_ledger(job->sched)->updates[conn->worker].number == done->number && done->end < LEDGER_ENDS)
		log_end(job, conn->worker, done->end, done->version, done->delay);
	enum esp_status status = sched_done(job->sched, conn->worker, &ended, loop_now(&job->server->loop), err);

	if (status == ESP_OK)
		run(job);
	return status;
}

enum esp_status sched_server_job_want(struct sched_server_conn *conn, const struct fabric_msg_want *want,
                                      struct error *err)
{
	struct sched_server_job *job = conn->job;
	enum esp_status status = sched_wants(job->sched, conn->worker, want->bytes, loop_now(&job->server->loop), err);

	if (status == ESP_OK)
		run(job);
	return status;
}

enum esp_status sched_server_job_got(struct sched_server_conn *conn, const struct fabric_msg_got *got,
                                     struct error *err)
{
	const struct sched_got told = {.tree = got->tree, .took_ns = got->took_ns};

	return sched_got(conn->job->sched, conn->worker, &told, loop_now(&conn->server->loop), err);
}
