/*
 * sched_server_status.c - the status of a scheduler: as text, and as JSON.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "fabric/server/sched_server_conn.h"
#include "node/observe/http_server.h"
#include "report/rows.h"

#define BAR 40u /* columns of the longest bar */

const char *sched_server_status_name(uint32_t user, uint16_t port, char name[SCHED_SERVER_STATUS_NAME])
{
	snprintf(name, SCHED_SERVER_STATUS_NAME, "espalier/%u/sched/%u", user, port);
	return name;
}

/* ---- workers ---- */

static const struct column columns[] = {
	{"WORKER", "worker"},
	{"STATE", "state"},
	{"UPDATE", "update"},
	{"POSITION", "position"},
	{"DEADLINE", "deadline"},
	{"NORM", "norm", "%.3g"},
	{"LINK MB/S", "rate_bytes_per_second", "%.3f", 1e-6},
	{"IN MB/S", "rate_in_bytes_per_second", "%.3f", 1e-6},
	{"KNOWN", "rate_is_measured"},
	{"LAST MB/S", "achieved_bytes_per_second", "%.3f", 1e-6},
	{"SENT MB", "sent_bytes", "%.3f", 1e-6},
	{"TO", "sends_to"},
	{"SUMS", "sums"},
	{"MODELS", "models"},
	{"FROM", "model_from"},
	{0},
};

static const char *state_of(const struct sched_server_job *job, uint32_t worker)
{
	static const char *const names[] = {
		[LEDGER_NONE] = "computes", [LEDGER_READY] = "ready", [LEDGER_DECIDED] = "sends"};

	return job->conns[worker] ? names[sched_ledger(job->sched)->updates[worker].state] : "away";
}

/* Which link carries the worker's update: its own to the hub, or to the aggregator of its sum. */
static void put_target(struct rows *rows, const struct sched_link *link, uint32_t worker, bool sends)
{
	char text[64];

	if (!sends) {
		rows_none(rows);
		return;
	}
	if (link->members)
		snprintf(text, sizeof(text), "hub, sum of %d", __builtin_popcountll(link->members));
	else if (link->aggregator != SCHED_ALONE && link->aggregator != worker)
		snprintf(text, sizeof(text), "worker %u", link->next_hop);
	else
		snprintf(text, sizeof(text), "hub");
	rows_text(rows, text);
}

/* From where it got its latest model. */
static void put_source(struct rows *rows, const struct sched_link *link)
{
	char text[64] = "hub";

	if (link->models == 0) {
		rows_none(rows);
		return;
	}
	if (link->source != SCHED_HUB)
		snprintf(text, sizeof(text), "worker %u", link->source);
	rows_text(rows, text);
}

static void put_worker(struct rows *rows, const struct sched_server_job *job, uint32_t worker)
{
	const struct ledger *ledger = sched_ledger(job->sched);
	const struct ledger_update *update = &ledger->updates[worker];
	const struct sched_link *link = sched_worker(job->sched, worker);
	bool has_update = update->state != LEDGER_NONE;

	rows_u64(rows, worker);
	rows_text(rows, state_of(job, worker));
	rows_u64(rows, ledger->last[worker]);
	if (update->state == LEDGER_DECIDED)
		rows_u64(rows, update->position);
	else
		rows_none(rows);
	if (has_update) /* the last version that it may make */
		rows_u64(rows, update->computed_from + ledger->bound);
	else
		rows_none(rows);
	if (has_update)
		rows_double(rows, update->norm);
	else
		rows_none(rows);
	rows_double(rows, (double)link->rate);
	rows_double(rows, (double)link->rate_in);
	rows_shown(rows, "%s", link->is_measured ? "yes" : "assumed");
	rows_bool(rows, link->is_measured);
	rows_double(rows, (double)link->achieved);
	rows_double(rows, (double)link->sent);
	put_target(rows, link, worker, update->state == LEDGER_DECIDED);
	rows_u64(rows, link->sums);
	rows_u64(rows, link->models);
	put_source(rows, link);
}

static enum esp_status put_workers(const struct sched_server_job *job, struct json *json, FILE *out)
{
	struct rows rows;

	rows_begin(&rows, columns, json);
	for (uint32_t worker = 0; worker < job->workers; worker++)
		put_worker(&rows, job, worker);
	return rows_end(&rows, out);
}

/* ---- jobs ---- */

static void text_ends(const struct ledger *ledger, FILE *out)
{
	bool is_first = true;

	fprintf(out, "updates: %" PRIu64 " announced", ledger->announced);
	for (uint8_t end = 0; end < LEDGER_ENDS; end++) {
		if (end == LEDGER_APPLIED || ledger->ends[end] > 0) {
			fprintf(out, "%s %" PRIu64 " %s", is_first ? ":" : ",", ledger->ends[end], ledger_end_name(end));
			is_first = false;
		}
	}
	fprintf(out, "; %.3f MB were not sent as they would have been too late\n", (double)ledger->unsent_bytes / 1e6);
}

/* Delays from 1 to the bound, in equal parts. */
static void part_bounds(const struct ledger *ledger, uint32_t part, uint64_t *out_first, uint64_t *out_last)
{
	*out_first = ((uint64_t)part * ledger->bound + LEDGER_DELAYS - 1) / LEDGER_DELAYS + 1;
	*out_last = ((uint64_t)(part + 1) * ledger->bound + LEDGER_DELAYS - 1) / LEDGER_DELAYS;
}

static void text_delays(const struct ledger *ledger, FILE *out)
{
	uint64_t most = 1, first, last;

	fprintf(out, "delays against the bound of %u: %.1f on average, %" PRIu64 " at most\n", ledger->bound,
	        ledger->ends[LEDGER_APPLIED] > 0 ? (double)ledger->delay_sum / (double)ledger->ends[LEDGER_APPLIED] : 0.0,
	        ledger->delay_most);
	for (uint32_t i = 0; i < LEDGER_DELAYS; i++)
		most = ledger->delays[i] > most ? ledger->delays[i] : most;
	for (uint32_t i = 0; i < LEDGER_DELAYS; i++) {
		part_bounds(ledger, i, &first, &last);
		if (first > last) /* a bound of less than so many parts */
			continue;
		fprintf(out, "  %5" PRIu64 "-%-5" PRIu64 " %8" PRIu64 " %.*s\n", first, last, ledger->delays[i],
		        (int)(ledger->delays[i] * BAR / most), "########################################");
	}
}

static double booked_seconds(const struct sched_server_job *job)
{
	uint64_t now = loop_now(&job->server->loop), until = sched_hub_booked_until(job->sched);

	return until > now && until != CALENDAR_NEVER ? (double)(until - now) / (double)NS_PER_S : 0;
}

static void text_job(const struct sched_server_job *job, FILE *out)
{
	uint32_t updates, sent;
	uint64_t sums, summed, trees, models;

	sched_latest(job->sched, &updates, &sent);
	fprintf(out,
	        "\njob %s: %u of %u workers, version %" PRIu64 " or later, %" PRIu64 " batches (%u updates in the last, %u "
	        "sent), the hub's link is booked for %.3f s\n",
	        job->name, job->connected, job->workers, sched_ledger(job->sched)->version, sched_batches(job->sched),
	        updates, sent, booked_seconds(job));
	text_ends(sched_ledger(job->sched), out);
	sched_sums(job->sched, &sums, &summed);
	if (sums > 0)
		fprintf(out, "sums: %" PRIu64 " of %" PRIu64 " updates\n", sums, summed);
	sched_trees(job->sched, &trees, &models);
	if (trees > 0)
		fprintf(out, "models: %" PRIu64 " by %" PRIu64 " trees\n", models, trees);
	text_delays(sched_ledger(job->sched), out);
	if (put_workers(job, NULL, out) != ESP_OK)
		fputs("no memory for the table of workers\n", out);
}

static void json_ends(const struct ledger *ledger, struct json *json)
{
	static const char *const keys[LEDGER_ENDS] = {
		[LEDGER_APPLIED] = "applied",
		[LEDGER_LATE] = "late_at_source",
		[LEDGER_CROWDED] = "crowded_out",
		[LEDGER_OVERTAKEN] = "overtaken",
		[LEDGER_LATE_AT_OFFER] = "late_at_offer",
		[LEDGER_LATE_AT_HUB] = "late_at_hub",
		[LEDGER_GONE] = "worker_gone",
		[LEDGER_UNHEARD] = "unheard_of",
		[LEDGER_BROKEN] = "sum_broken",
	};

	json_key(json, "updates");
	json_object_begin(json);
	json_put_u64(json, "announced", ledger->announced);
	for (uint8_t end = 0; end < LEDGER_ENDS; end++)
		json_put_u64(json, keys[end], ledger->ends[end]);
	json_put_u64(json, "unsent_bytes", ledger->unsent_bytes);
	json_object_end(json);
}

static void json_delays(const struct ledger *ledger, struct json *json)
{
	uint64_t first, last;

	json_key(json, "delays");
	json_object_begin(json);
	json_put_u64(json, "bound", ledger->bound);
	json_put_u64(json, "most", ledger->delay_most);
	json_put_u64(json, "sum", ledger->delay_sum);
	json_key(json, "histogram");
	json_array_begin(json);
	for (uint32_t i = 0; i < LEDGER_DELAYS; i++) {
		part_bounds(ledger, i, &first, &last);
		if (first > last)
			continue;
		json_object_begin(json);
		json_put_u64(json, "first", first);
		json_put_u64(json, "last", last);
		json_put_u64(json, "updates", ledger->delays[i]);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

static enum esp_status json_job(const struct sched_server_job *job, struct json *json)
{
	uint32_t updates, sent;
	uint64_t sums, summed, trees, models;

	sched_latest(job->sched, &updates, &sent);
	sched_sums(job->sched, &sums, &summed);
	sched_trees(job->sched, &trees, &models);
	json_object_begin(json);
	json_put_string(json, "name", job->name);
	json_put_u64(json, "workers", job->workers);
	json_put_u64(json, "connected", job->connected);
	json_put_u64(json, "version", sched_ledger(job->sched)->version);
	json_put_u64(json, "batches", sched_batches(job->sched));
	json_put_u64(json, "batch_updates", updates);
	json_put_u64(json, "batch_sent", sent);
	json_put_u64(json, "sums", sums);
	json_put_u64(json, "summed_updates", summed);
	json_put_u64(json, "trees", trees);
	json_put_u64(json, "models", models);
	json_put_double(json, "hub_booked_seconds", booked_seconds(job));
	json_ends(sched_ledger(job->sched), json);
	json_delays(sched_ledger(job->sched), json);
	json_key(json, "links");
	enum esp_status status = put_workers(job, json, NULL);
	json_object_end(json);
	return status;
}

/* ---- answers ---- */

static void answer_text(const struct sched_server *server, FILE *out)
{
	char listen[ADDRESS_TEXT];

	fprintf(out, "scheduler at %s (process %d): batches of %.0f ms, %u job%s, hub's link %.3f MB/s\n",
	        address_format(&server->config.listen, listen), (int)getpid(), (double)server->config.batch_ns / 1e6,
	        server->job_count, server->job_count == 1 ? "" : "s", (double)server->config.hub_rate / 1e6);
	for (const struct sched_server_job *job = server->jobs; job; job = job->next)
		text_job(job, out);
}

static void answer_json(const struct sched_server *server, FILE *out)
{
	enum esp_status status = ESP_OK;
	char listen[ADDRESS_TEXT];
	struct json json;

	json_init(&json, out);
	json_object_begin(&json);
	json_put_string(&json, "listen", address_format(&server->config.listen, listen));
	json_put_u64(&json, "pid", (uint64_t)getpid());
	json_put_double(&json, "uptime_seconds", (double)(loop_now(&server->loop) - server->began_ns) / (double)NS_PER_S);
	json_put_double(&json, "batch_seconds", (double)server->config.batch_ns / (double)NS_PER_S);
	json_put_u64(&json, "hub_rate_bytes_per_second", server->config.hub_rate);
	json_put_u64(&json, "connections_refused", server->refused);
	json_key(&json, "jobs");
	json_array_begin(&json);
	for (const struct sched_server_job *job = server->jobs; job && status == ESP_OK; job = job->next)
		status = json_job(job, &json);
	json_array_end(&json);
	json_object_end(&json);
	if (status == ESP_OK)
		status = json_fini(&json);
	(void)status; /* the answer is written to memory: a want of it shows as an answer that is cut off */
}

/* Of the newest job that has one. */
static bool answer_picture(const struct sched_server *server, FILE *out)
{
	const struct sched_server_job *job = server->jobs;
	char title[FABRIC_JOB_NAME + 32];

	while (job && job->picture.count == 0 && job->next)
		job = job->next;
	if (!job)
		return false;
	snprintf(title, sizeof(title), "job %s", job->name);
	sched_picture_draw(&job->picture, title, job->workers, out);
	return true;
}

static const char *answer(void *context, const char *path, FILE *out, const char **out_type)
{
	const struct sched_server *server = context;

	if (strcmp(path, "/text") == 0) {
		answer_text(server, out);
	} else if (strcmp(path, "/status") == 0) {
		*out_type = "application/json";
		answer_json(server, out);
	} else if (strcmp(path, "/svg") == 0 && answer_picture(server, out)) {
		*out_type = "image/svg+xml";
	} else {
		fputs("/status and /text are served, and /svg where there is a job\n", out);
		return "404 Not Found";
	}
	return "200 OK";
}

enum esp_status sched_server_status_open(struct sched_server *server, struct error *err)
{
	char name[SCHED_SERVER_STATUS_NAME];
	struct error why;
	enum esp_status status = http_server_open(&server->loop, answer, server, &server->status, err);

	if (status != ESP_OK)
		return status;
	sched_server_status_name((uint32_t)geteuid(), server->config.listen.port, name);
	if (http_server_listen_name(server->status, name, &why) != ESP_OK)
		sched_server_log(server, "'espalier sched status' will not find this scheduler: %s", why.text);
	return ESP_OK;
}

void sched_server_status_close(struct sched_server *server)
{
	http_server_close(server->status);
	server->status = NULL;
}
