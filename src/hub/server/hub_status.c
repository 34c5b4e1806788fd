#include "hub/server/hub_status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "hub/server/hub_async.h"
#include "hub/server/hub_session.h"
#include "node/observe/http_server.h"
#include "report/rows.h"

#define LANE_FULL 0.9   /* of its time, a lane is busy: it limits the jobs */
#define MEMORY_FULL 0.9

const char *hub_status_name(uint32_t user, uint16_t port, char name[HUB_STATUS_NAME])
{
	snprintf(name, HUB_STATUS_NAME, "espalier/%u/hub/%u", user, port);
	return name;
}

/* ---- counting ---- */

static struct hub_counts counts_of(const struct hub_session *session)
{
	struct hub_counts counts = {0};
	bool is_first = true;

	for (uint32_t i = 0; session && i < session->hub->config.lanes; i++) {
		const struct hub_part *part = session->parts[i];
		uint64_t least;

		if (!part)
			continue;
		counts.rounds += atomic_load_explicit(&part->counts.rounds, memory_order_relaxed);
		counts.pushed += atomic_load_explicit(&part->counts.pushed_bytes, memory_order_relaxed);
		counts.pulled += atomic_load_explicit(&part->counts.pulled_bytes, memory_order_relaxed);
		counts.parked += atomic_load_explicit(&part->counts.parked, memory_order_relaxed);
		least = atomic_load_explicit(&part->counts.least_version, memory_order_relaxed);
		if (is_first || least < counts.version)
			counts.version = least;
		is_first = false;
	}
	return counts;
}

static void count_session(struct hub_session *session, double seconds)
{
	struct hub_counts now = counts_of(session);

	session->rates = (struct hub_session_rates){
		.rounds = (double)(now.rounds - session->counted.rounds) / seconds,
		.pushed = (double)(now.pushed - session->counted.pushed) / seconds,
		.pulled = (double)(now.pulled - session->counted.pulled) / seconds,
	};
	session->counted = now;
}

void hub_status_count(struct hub *hub, uint64_t now_ns)
{
	double seconds = (double)(now_ns - hub->rates.since_ns) / (double)NS_PER_S;

	if (hub->rates.since_ns == 0)
		seconds = (double)(now_ns - hub->began_ns) / (double)NS_PER_S;
	for (uint32_t i = 0; i < hub->config.lanes; i++) {
		uint64_t idle = hub_lane_idle_ns(hub->lanes[i]);
		double share = 1 - (double)(idle - hub->rates.idle_ns[i]) / (double)NS_PER_S / seconds;

		hub->rates.busy[i] = share < 0 ? 0 : share;
		hub->rates.idle_ns[i] = idle;
	}
	for (struct hub_job *job = hub->jobs; job; job = job->next) {
		if (job->session && job->session->state == HUB_SESSION_RUNNING)
			count_session(job->session, seconds);
	}
	hub->rates.since_ns = now_ns;
}

static double busiest_lane(const struct hub *hub)
{
	double most = 0;

	for (uint32_t i = 0; i < hub->config.lanes; i++)
		most = hub->rates.busy[i] > most ? hub->rates.busy[i] : most;
	return most;
}

static bool moves_data(const struct hub *hub)
{
	for (const struct hub_job *job = hub->jobs; job; job = job->next) {
		if (job->session && job->session->rates.pushed + job->session->rates.pulled > 0)
			return true;
	}
	return false;
}

/* The limit that keeps the jobs from going faster, or more jobs from running. */
static const char *limit_of(const struct hub *hub)
{
	if (busiest_lane(hub) >= LANE_FULL)
		return "lane";
	if ((double)hub->memory_taken >= MEMORY_FULL * (double)hub->config.memory_bytes)
		return "memory";
	return moves_data(hub) ? "link or workers" : "none";
}

/* ---- jobs ---- */

static const struct column columns[] = {
	{"JOB", "name"},
	{"STATE", "state"},
	{NULL, "workers"},
	{"WORKERS", "joined"},
	{"VERSION", "version"},
	{"CHUNKS/S", "rounds_per_second", "%.0f"},
	{"IN MB/S", "pushed_bytes_per_second", "%.1f", 1e-6},
	{"OUT MB/S", "pulled_bytes_per_second", "%.1f", 1e-6},
	{"MEMORY", "memory_bytes"},
	{NULL, "rounds"},
	{NULL, "early_terms"},
	{"OPTIMIZER", "optimizer"},
	{"MODE", "mode"},
	{NULL, "hub"},
	{NULL, "hubs"},
	{NULL, "delay_bound"},
	{NULL, "updates_applied"},
	{NULL, "updates_late"},
	{NULL, "delay_sum"},
	{0},
};

static const char *state_of(const struct hub_job *job)
{
	static const char *const names[] = {
		[HUB_SESSION_GATHERING] = "gathering", [HUB_SESSION_FILLING] = "starting",
		[HUB_SESSION_RUNNING] = "running", [HUB_SESSION_ENDING] = "ending"};

	return job->session ? names[job->session->state] : "idle";
}

/* Of the session that is under way. */
static void put_mode(struct rows *rows, const struct hub_job *job)
{
	const struct hub_async *async = job->session ? job->session->async : NULL;
	const uint64_t *counts = async ? async->gate.count : NULL;

	if (job->delay_bound > 0)
		rows_shown(rows, "async, bound %u", job->delay_bound);
	else if (job->hubs > 1)
		rows_shown(rows, "rounds, hub %u of %u", job->own + 1, job->hubs);
	rows_text(rows, job->delay_bound > 0 ? "async" : "rounds");
	rows_u64(rows, job->own);
	rows_u64(rows, job->hubs);
	rows_u64(rows, job->delay_bound);
	rows_u64(rows, counts ? counts[GATE_APPLIED] : 0);
	rows_u64(rows, counts ? counts[GATE_LATE] + counts[GATE_LATE_OFFER] : 0);
	rows_u64(rows, async ? async->delay_sum : 0);
}

static void put_job(struct rows *rows, const struct hub_job *job)
{
	static const struct hub_session_rates none;
	const struct hub_session *session = job->session;
	const struct hub_session_rates *rates = session ? &session->rates : &none;
	struct hub_counts counts = counts_of(session);
	char memory[UNITS_TEXT], optimizer[OPTIMIZER_TEXT];
	uint64_t taken = session ? session->taken_bytes : 0;

	rows_text(rows, job->name);
	rows_text(rows, state_of(job));
	rows_u64(rows, job->workers);
	rows_shown(rows, "%u/%u", session ? session->joined - session->left : 0, job->workers);
	rows_u64(rows, session ? session->joined - session->left : 0);
	rows_u64(rows, counts.version);
	rows_double(rows, rates->rounds);
	rows_double(rows, rates->pushed);
	rows_double(rows, rates->pulled);
	rows_shown(rows, "%s", units_format_bytes(taken, memory));
	rows_u64(rows, taken);
	rows_u64(rows, job->rounds + counts.rounds);
	rows_u64(rows, counts.parked);
	rows_text(rows, optimizer_print(&job->optimizer, optimizer));
	put_mode(rows, job);
}

static enum esp_status put_jobs(const struct hub *hub, struct json *json, FILE *out)
{
	struct rows rows;

	rows_begin(&rows, columns, json);
	for (const struct hub_job *job = hub->jobs; job; job = job->next)
		put_job(&rows, job);
	return rows_end(&rows, out);
}

/* ---- answers ---- */

static void answer_text(const struct hub *hub, FILE *out)
{
	char taken[UNITS_TEXT], all[UNITS_TEXT], listen[ADDRESS_TEXT];

	fprintf(out,
	        "hub at %s (process %d): %u job%s, %s of %s of memory, %u lane%s, the busiest %.0f%% busy, limit: %s\n",
	        address_format(&hub->config.listen, listen), (int)getpid(), hub->job_count, hub->job_count == 1 ? "" : "s",
	        units_format_bytes(hub->memory_taken, taken), units_format_bytes(hub->config.memory_bytes, all),
	        hub->config.lanes, hub->config.lanes == 1 ? "" : "s", 100 * busiest_lane(hub), limit_of(hub));
	if (hub->job_count > 0 && put_jobs(hub, NULL, out) != ESP_OK)
		fputs("no memory for the table of jobs\n", out);
}

static void answer_json(const struct hub *hub, FILE *out)
{
	struct json json;
	char listen[ADDRESS_TEXT];

	json_init(&json, out);
	json_object_begin(&json);
	json_put_string(&json, "listen", address_format(&hub->config.listen, listen));
	json_put_u64(&json, "pid", (uint64_t)getpid());
	json_put_double(&json, "uptime_seconds", (double)(loop_now(&hub->loop) - hub->began_ns) / (double)NS_PER_S);
	json_put_u64(&json, "memory_bytes", hub->config.memory_bytes);
	json_put_u64(&json, "memory_taken_bytes", hub->memory_taken);
	json_put_string(&json, "limit", limit_of(hub));
	json_put_u64(&json, "sessions_begun", hub->sessions_begun);
	json_put_u64(&json, "sessions_failed", hub->sessions_failed);
	json_put_u64(&json, "connections_refused", hub->refused);
	json_key(&json, "lanes");
	json_array_begin(&json);
	for (uint32_t i = 0; i < hub->config.lanes; i++) {
		json_object_begin(&json);
		json_put_double(&json, "busy", hub->rates.busy[i]);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_key(&json, "jobs");
	enum esp_status status = put_jobs(hub, &json, out);
	json_object_end(&json);
	if (status == ESP_OK)
		status = json_fini(&json);
	(void)status; /* the answer is written to memory: a want of it shows as an answer that is cut off */
}

static void put_metric(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP espalier_hub_%s %s\n# TYPE espalier_hub_%s %s\n", name, help, name, type);
}

static void answer_metrics(const struct hub *hub, FILE *out)
{
	put_metric(out, "info", "gauge", "The version of the hub.");
	fprintf(out, "espalier_hub_info{version=\"%s\"} 1\n", hub->config.version);
	put_metric(out, "memory_bytes", "gauge", "Memory that jobs may take.");
	fprintf(out, "espalier_hub_memory_bytes %" PRIu64 "\n", hub->config.memory_bytes);
	put_metric(out, "memory_taken_bytes", "gauge", "Memory that jobs have taken.");
	fprintf(out, "espalier_hub_memory_taken_bytes %" PRIu64 "\n", hub->memory_taken);
	put_metric(out, "sessions_failed_total", "counter", "Runs of jobs that ended with an error.");
	fprintf(out, "espalier_hub_sessions_failed_total %" PRIu64 "\n", hub->sessions_failed);
	put_metric(out, "connections_refused_total", "counter", "Connections that did not prove a key.");
	fprintf(out, "espalier_hub_connections_refused_total %" PRIu64 "\n", hub->refused);
	put_metric(out, "lane_busy", "gauge", "Share of the last second in which a lane was busy.");
	for (uint32_t i = 0; i < hub->config.lanes; i++)
		fprintf(out, "espalier_hub_lane_busy{lane=\"%u\"} %.6f\n", i, hub->rates.busy[i]);
	put_metric(out, "job_workers", "gauge", "Workers of a job that are connected.");
	for (const struct hub_job *job = hub->jobs; job; job = job->next)
		fprintf(out, "espalier_hub_job_workers{espalier_job=\"%s\"} %u\n", job->name,
		        job->session ? job->session->joined - job->session->left : 0);
	put_metric(out, "job_rounds_total", "counter", "Chunks that were summed and optimized.");
	for (const struct hub_job *job = hub->jobs; job; job = job->next)
		fprintf(out, "espalier_hub_job_rounds_total{espalier_job=\"%s\"} %" PRIu64 "\n", job->name,
		        job->rounds + counts_of(job->session).rounds);
	put_metric(out, "job_pushed_bytes_total", "counter", "Gradients that came.");
	for (const struct hub_job *job = hub->jobs; job; job = job->next)
		fprintf(out, "espalier_hub_job_pushed_bytes_total{espalier_job=\"%s\"} %" PRIu64 "\n", job->name,
		        job->bytes + counts_of(job->session).pushed);
}

static const char *answer(void *context, const char *path, FILE *out, const char **out_type)
{
	const struct hub *hub = context;

	if (strcmp(path, "/text") == 0) {
		answer_text(hub, out);
	} else if (strcmp(path, "/status") == 0) {
		*out_type = "application/json";
		answer_json(hub, out);
	} else if (strcmp(path, "/metrics") == 0) {
		*out_type = "text/plain; version=0.0.4; charset=utf-8";
		answer_metrics(hub, out);
	} else {
		fputs("/status, /text and /metrics are served\n", out);
		return "404 Not Found";
	}
	return "200 OK";
}

enum esp_status hub_status_open(struct hub *hub, struct error *err)
{
	char name[HUB_STATUS_NAME];
	struct error why;
	enum esp_status status = http_server_open(&hub->loop, answer, hub, &hub->status, err);

	if (status != ESP_OK)
		return status;
	hub_status_name((uint32_t)geteuid(), hub->config.listen.port, name);
	if (http_server_listen_name(hub->status, name, &why) != ESP_OK)
		hub_log(hub, "'espalier hub status' will not find this hub: %s", why.text);
	return hub->config.metrics ? http_server_listen_path(hub->status, hub->config.metrics, err) : ESP_OK;
}

void hub_status_close(struct hub *hub)
{
	http_server_close(hub->status);
	hub->status = NULL;
}
