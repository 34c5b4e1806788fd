#include "hub/server/hub_jobs.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "hub/server/hub_session.h"

#define WEIGHT_MOST 1000u

static struct hub_job *find_name(const struct hub *hub, const char *name)
{
	struct hub_job *job = hub->jobs;

	while (job && strcmp(job->name, name) != 0)
		job = job->next;
	return job;
}

/* ---- creating ---- */

static void refuse(struct hub_conn *conn, enum esp_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static void refuse(struct hub_conn *conn, enum esp_status status, const char *format, ...)
{
	char text[HUB_WHY_TEXT];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	hub_conn_refuse(conn, status, UINT32_MAX, text);
}

/* The operator's command has checked the same with better sentences; a process with the hub's key may be another
 * program. */
static bool is_good(const struct hub_msg_create *create, struct optimizer *out_optimizer)
{
	return hub_msg_name_is_good(create->name) && create->workers >= 1 && create->workers <= STORE_WORKERS_MOST &&
	       create->chunk_bytes >= LAYOUT_CHUNK_LEAST && create->chunk_bytes <= LAYOUT_CHUNK_MOST &&
	       create->chunk_bytes % 64 == 0 && create->weight >= 1 && create->weight <= WEIGHT_MOST &&
	       create->hubs <= LAYOUT_HUBS_MOST && (create->own == 0 || create->job != 0) &&
	       (create->hubs == 1 || create->delay_bound == 0) && optimizer_decode(create->optimizer, out_optimizer);
}

void hub_jobs_on_create(struct hub_conn *conn, const struct hub_msg_create *create)
{
	struct hub *hub = conn->hub;
	struct optimizer optimizer;
	char text[OPTIMIZER_TEXT], share[32] = "";

	if (!is_good(create, &optimizer)) {
		refuse(conn, ESP_EINVAL,
		       "the hub does not take this job: its name, workers, chunk size, weight or optimizer is out of range");
		return;
	}
	struct hub_job *old = find_name(hub, create->name);
	if (old && !create->replaces) {
		refuse(conn, ESP_ESTATE,
		       "the hub has a job %s already: remove it first, or use --replace, which makes its tickets void",
		       create->name);
		return;
	}
	if (create->job == hub->own_job || hub_job_find(hub, create->job)) {
		refuse(conn, ESP_ESTATE, "the hub has a job with this number already");
		return;
	}
	if (!old && hub->job_count >= hub->config.jobs) {
		refuse(conn, ESP_ELIMIT, "the hub has %u jobs, and takes %u at most (--jobs): remove one", hub->job_count,
		       hub->config.jobs);
		return;
	}
	if (old)
		hub_jobs_remove(old, "the job was replaced by its operator: its old tickets are void");
	struct hub_job *job = hub_job_make(hub, create, &optimizer);
	if (!job) {
		refuse(conn, ESP_ENOMEM, "the hub has no memory for another job");
		return;
	}
	if (job->hubs > 1)
		snprintf(share, sizeof(share), ", hub %u of %u", job->own + 1, job->hubs);
	hub_log(hub, "job %s was created: %u worker%s, %s%s%s", job->name, job->workers, job->workers == 1 ? "" : "s",
	        optimizer_print(&job->optimizer, text), job->delay_bound > 0 ? ", asynchronous" : "", share);
	struct hub_msg ticket = {.type = HUB_MSG_TICKET, .ticket = {.job = job->number}};
	memcpy(ticket.ticket.key, job->key, HUB_KEY_BYTES);
	hub_conn_send(conn, &ticket);
	sodium_memzero(&ticket, sizeof(ticket));
}

/* ---- removing ---- */

/* Workers that have proved themselves and have not joined a session. */
static void send_away_waiting(const struct hub_job *job, const char *why)
{
	for (struct hub_conn *conn = job->hub->conns; conn; conn = conn->next) {
		if (conn->state == HUB_CONN_WORKER && conn->job == job->number && !conn->session)
			hub_conn_refuse(conn, ESP_EABORTED, UINT32_MAX, why);
	}
}

void hub_jobs_remove(struct hub_job *job, const char *why)
{
	hub_log(job->hub, "job %s is removed: %s", job->name, why);
	if (job->session) {
		struct hub_session *session = job->session;

		hub_session_end(session, ESP_EABORTED, UINT32_MAX, why);
		if (job->session) { /* its parts are not back yet */
			session->job = NULL;
			job->session = NULL;
			job->hub->orphans++;
		}
	}
	send_away_waiting(job, why);
	hub_job_free(job);
}

void hub_jobs_on_remove(struct hub_conn *conn, const struct hub_msg_remove *remove)
{
	const struct hub_msg ok = {.type = HUB_MSG_OK};
	struct hub_job *job = find_name(conn->hub, remove->name);

	if (!job) {
		refuse(conn, ESP_EINVAL, "the hub has no job %s",
		       hub_msg_name_is_good(remove->name) ? remove->name : "of this name");
		return;
	}
	hub_jobs_remove(job, "the job was removed by its operator");
	hub_conn_send(conn, &ok);
}

void hub_jobs_look_after(struct hub *hub, uint64_t now_ns)
{
	struct hub_job *next;

	for (struct hub_job *job = hub->jobs; job && hub->config.idle_ns > 0; job = next) {
		next = job->next;
		if (!job->session && now_ns - job->used_ns >= hub->config.idle_ns)
			hub_jobs_remove(job, "the job had no workers for the time of --idle");
	}
}
