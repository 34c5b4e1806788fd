#include "sim/workload/traces.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"
#include "base/vec.h"

/* ---- parts ---- */

struct traces_worker *workload_traces_add_worker(struct traces *traces, uint32_t rank, uint32_t iteration)
{
	size_t needed = (size_t)traces->worker_count + 1;
	if (needed > TRACES_FILES_MAX ||
	    !vec_reserve(&traces->workers, &traces->worker_room, needed, sizeof(*traces->workers)))
		return NULL;
	struct traces_worker *worker = &traces->workers[traces->worker_count++];
	*worker = (struct traces_worker){.rank = rank, .iteration = iteration};
	return worker;
}

struct traces_server *workload_traces_add_server(struct traces *traces, const char *name)
{
	size_t needed = (size_t)traces->server_count + 1;
	if (needed > TRACES_FILES_MAX ||
	    !vec_reserve(&traces->servers, &traces->server_room, needed, sizeof(*traces->servers)))
		return NULL;
	struct traces_server *server = &traces->servers[traces->server_count++];
	*server = (struct traces_server){0};
	snprintf(server->name, TRACES_SERVER_NAME, "%s", name);
	return server;
}

bool workload_traces_add_layer(struct traces *traces, const char *name, double share)
{
	if (!vec_reserve(&traces->layers, &traces->layer_room, (size_t)traces->layer_count + 1, sizeof(*traces->layers)))
		return false;
	struct traces_layer *layer = &traces->layers[traces->layer_count++];
	*layer = (struct traces_layer){strdup(name), share};
	return layer->name != NULL;
}

void workload_traces_fini(struct traces *traces)
{
	for (uint32_t i = 0; i < traces->worker_count; i++)
		workload_trace_fini(&traces->workers[i].trace);
	for (uint32_t i = 0; i < traces->server_count; i++)
		workload_trace_fini(&traces->servers[i].trace);
	for (uint32_t i = 0; i < traces->layer_count; i++)
		free(traces->layers[i].name);
	free(traces->workers);
	free(traces->servers);
	free(traces->layers);
	free(traces->name);
	*traces = (struct traces){0};
}

/* ---- names of files ---- */

const char *workload_traces_worker_file(const struct traces_worker *worker, char text[TRACES_FILE_NAME])
{
	snprintf(text, TRACES_FILE_NAME, "worker-%" PRIu32 "-%" PRIu32 ".csv", worker->rank, worker->iteration);
	return text;
}

const char *workload_traces_server_file(const struct traces_server *server, char text[TRACES_FILE_NAME])
{
	snprintf(text, TRACES_FILE_NAME, "distribution-%s.csv", server->name);
	return text;
}

/* Parses digits and moves *at behind them; refuses leading zeros, so that each number has one form. */
static bool parse_number(const char **at, uint32_t *out)
{
	uint64_t number;
	size_t digits = strspn(*at, "0123456789");
	if (digits == 0 || (digits > 1 && **at == '0') || !number_parse_u64(*at, digits, &number) || number > UINT32_MAX)
		return false;
	*at += digits;
	*out = (uint32_t)number;
	return true;
}

static bool is_worker(const char *name, uint32_t *out_rank, uint32_t *out_iteration)
{
	const char *at = name + strlen("worker-");
	return parse_number(&at, out_rank) && *at++ == '-' && parse_number(&at, out_iteration) && strcmp(at, ".csv") == 0;
}

/* A number, or any name of ASCII alphanumerics and a few signs. */
static bool is_server(const char *file, char out[TRACES_SERVER_NAME])
{
	const char *at = file + strlen("distribution-");
	size_t length = strlen(at), suffix = strlen(".csv");
	if (length <= suffix || length - suffix >= TRACES_SERVER_NAME || strcmp(at + length - suffix, ".csv") != 0)
		return false;
	snprintf(out, TRACES_SERVER_NAME, "%.*s", (int)(length - suffix), at);
	return strspn(out, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.:") == length - suffix;
}

enum esp_status workload_traces_parse_file(struct traces *traces, const char *name, const char *text, size_t size,
                                           struct error *err)
{
	uint32_t rank, iteration;
	char shown[QUOTE_TEXT], label[TRACES_SERVER_NAME];
	struct trace *trace = NULL;
	if (strcmp(name, "model.json") == 0)
		return workload_traces_parse_model(traces, name, text, size, err);
	if (strncmp(name, "worker-", strlen("worker-")) == 0) {
		if (!is_worker(name, &rank, &iteration))
			return error_set(err, ESP_EPARSE, "%s is not named worker-RANK-ITERATION.csv",
			                 quote(name, strlen(name), shown));
		struct traces_worker *worker = workload_traces_add_worker(traces, rank, iteration);
		trace = worker ? &worker->trace : NULL;
	} else if (strncmp(name, "distribution-", strlen("distribution-")) == 0) {
		if (!is_server(name, label))
			return error_set(err, ESP_EPARSE, "%s is not named distribution-SERVER.csv",
			                 quote(name, strlen(name), shown));
		struct traces_server *server = workload_traces_add_server(traces, label);
		trace = server ? &server->trace : NULL;
	} else {
		return ESP_OK;
	}
	if (!trace)
		return error_set(err, ESP_ELIMIT, "no memory for more files, or more than %u", TRACES_FILES_MAX);
	return workload_trace_parse(trace, name, text, size, err);
}

/* ---- consistency of the files ---- */

static int by_iteration(const void *a, const void *b)
{
	const struct traces_worker *x = a, *y = b;
	if (x->iteration != y->iteration)
		return x->iteration < y->iteration ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int by_server(const void *a, const void *b)
{
	const struct traces_server *x = a, *y = b;
	uint64_t first = 0, second = 0;
	bool is_number = number_parse_u64(x->name, strlen(x->name), &first),
	    is_other = number_parse_u64(y->name, strlen(y->name), &second);
	if (is_number != is_other)
		return is_number ? -1 : 1;
	return first != second ? (first < second ? -1 : 1) : strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
	const struct trace_event *const *x = a, *const *y = b;
	int names = strcmp((*x)->parameter, (*y)->parameter);
	return names ? names : (*x)->line < (*y)->line ? -1 : (*x)->line > (*y)->line;
}

/* The events of a trace sorted by name; the caller frees it. */
static const struct trace_event **sorted_names(const struct trace *trace)
{
	const struct trace_event **list = calloc((size_t)trace->count + 1, sizeof(const struct trace_event *));
	for (uint32_t i = 0; list && i < trace->count; i++)
		list[i] = &trace->events[i];
	if (list)
		qsort(list, trace->count, sizeof(const struct trace_event *), by_name);
	return list;
}

static enum esp_status check_once(const char *file, const struct trace_event *const *list, uint32_t count,
                                  struct error *err)
{
	char shown[QUOTE_TEXT];
	for (uint32_t i = 1; i < count; i++)
		if (strcmp(list[i - 1]->parameter, list[i]->parameter) == 0)
			return error_set(err, ESP_EPARSE, "%s:%" PRIu32 ": %s stands in line %" PRIu32 " already", file,
			                 list[i]->line, quote(list[i]->parameter, strlen(list[i]->parameter), shown),
			                 list[i - 1]->line);
	return ESP_OK;
}

/* Both sorted by name. The first worker's file has what all others must have. */
static enum esp_status check_same(const struct traces_worker *worker, const struct trace_event *const *list,
                                  const struct traces_worker *first, const struct trace_event *const *firsts,
                                  struct error *err)
{
	char file[TRACES_FILE_NAME], other[TRACES_FILE_NAME], shown[QUOTE_TEXT];
	workload_traces_worker_file(worker, file);
	workload_traces_worker_file(first, other);
	for (uint32_t i = 0; i < worker->trace.count || i < first->trace.count; i++) {
		int order = i == worker->trace.count  ? 1
		            : i == first->trace.count ? -1
		                                      : strcmp(list[i]->parameter, firsts[i]->parameter);
		if (order > 0)
			return error_set(err, ESP_EPARSE, "%s:%" PRIu32
			                 ": %s is missing in %s, which must hold the same parameters", other, firsts[i]->line,
			                 quote(firsts[i]->parameter, strlen(firsts[i]->parameter), shown), file);
		if (order < 0)
			return error_set(err, ESP_EPARSE, "%s:%" PRIu32
			                 ": %s is missing in %s, which must hold the same parameters", file, list[i]->line,
			                 quote(list[i]->parameter, strlen(list[i]->parameter), shown), other);
		quote(list[i]->parameter, strlen(list[i]->parameter), shown);
		if (list[i]->bytes != firsts[i]->bytes)
			return error_set(err, ESP_EPARSE, "%s:%" PRIu32 ": %s has %" PRIu64 " bytes here and %" PRIu64 " in %s",
			                 file, list[i]->line, shown, list[i]->bytes, firsts[i]->bytes, other);
		if (strcmp(list[i]->destination, firsts[i]->destination) != 0)
			return error_set(err, ESP_EPARSE, "%s:%" PRIu32 ": %s has another destination here than in %s", file,
			                 list[i]->line, shown, other);
	}
	return ESP_OK;
}

/* All lines of a file have one source. */
static enum esp_status check_source(const char *file, const struct trace *trace, const char *rule, struct error *err)
{
	char shown[QUOTE_TEXT];
	for (uint32_t i = 1; i < trace->count; i++)
		if (strcmp(trace->events[i].source, trace->events[0].source) != 0)
			return error_set(err, ESP_EPARSE, "%s:%" PRIu32 ": the source %s is not that of the line before; %s", file,
			                 trace->events[i].line,
			                 quote(trace->events[i].source, strlen(trace->events[i].source), shown), rule);
	return ESP_OK;
}

static enum esp_status check_worker(const struct traces *traces, uint32_t index,
                                    const struct trace_event *const *firsts, struct error *err)
{
	const struct traces_worker *worker = &traces->workers[index];
	const struct trace_event **list = sorted_names(&worker->trace);
	char file[TRACES_FILE_NAME];
	if (!list)
		return error_set(err, ESP_ENOMEM, "no memory to check traces");
	enum esp_status status = check_once(workload_traces_worker_file(worker, file), list, worker->trace.count, err);
	if (status == ESP_OK && worker->trace.events[0].time_s != 0)
		status = error_set(err, ESP_EPARSE, "%s:%" PRIu32 ": the first event is at %g, not at 0: times count from it",
		                   file, worker->trace.events[0].line, worker->trace.events[0].time_s);
	if (status == ESP_OK)
		status = check_source(file, &worker->trace, "one worker per file", err);
	if (status == ESP_OK)
		status = check_same(worker, list, &traces->workers[0], firsts, err);
	free(list);
	return status;
}

static enum esp_status check_workers(const struct traces *traces, struct error *err)
{
	enum esp_status status = ESP_OK;
	char file[TRACES_FILE_NAME];
	if (traces->worker_count == 0)
		return error_set(err, ESP_EPARSE, "there is no worker-RANK-ITERATION.csv");
	const struct trace_event **firsts = sorted_names(&traces->workers[0].trace);
	if (!firsts)
		return error_set(err, ESP_ENOMEM, "no memory to check traces");
	for (uint32_t i = 0; i < traces->worker_count && status == ESP_OK; i++) {
		status = check_worker(traces, i, firsts, err);
		if (i > 0 && status == ESP_OK && by_iteration(&traces->workers[i - 1], &traces->workers[i]) == 0)
			status =
				error_set(err, ESP_EPARSE, "%s is there twice", workload_traces_worker_file(&traces->workers[i], file));
	}
	free(firsts);
	return status;
}

/* One source per file, and no parameter twice. */
static enum esp_status check_server(const struct traces_server *server, struct error *err)
{
	char file[TRACES_FILE_NAME];
	const struct trace *trace = &server->trace;
	const struct trace_event **list = sorted_names(trace);
	if (!list)
		return error_set(err, ESP_ENOMEM, "no memory to check traces");
	enum esp_status status = check_once(workload_traces_server_file(server, file), list, trace->count, err);
	free(list);
	return status == ESP_OK ? check_source(file, trace, "one server per file", err) : status;
}

struct owned {
	const struct trace_event *event;
	uint32_t server;
};

static int by_owned_name(const void *a, const void *b)
{
	const struct owned *x = a, *y = b;
	int names = strcmp(x->event->parameter, y->event->parameter);
	return names ? names : x->server < y->server ? -1 : x->server > y->server;
}

/* A parameter is on one server. */
static enum esp_status check_owners(const struct traces *traces, struct error *err)
{
	char file[TRACES_FILE_NAME], other[TRACES_FILE_NAME], shown[QUOTE_TEXT];
	size_t count = 0;
	for (uint32_t s = 0; s < traces->server_count; s++)
		count += traces->servers[s].trace.count;
	struct owned *all = calloc(count + 1, sizeof(*all));
	if (!all)
		return error_set(err, ESP_ENOMEM, "no memory to check traces");
	count = 0;
	for (uint32_t s = 0; s < traces->server_count; s++)
		for (uint32_t i = 0; i < traces->servers[s].trace.count; i++)
			all[count++] = (struct owned){&traces->servers[s].trace.events[i], s};
	qsort(all, count, sizeof(*all), by_owned_name);
	enum esp_status status = ESP_OK;
	for (size_t i = 1; i < count && status == ESP_OK; i++)
		if (strcmp(all[i - 1].event->parameter, all[i].event->parameter) == 0)
			status = error_set(err, ESP_EPARSE, "%s:%" PRIu32 ": %s is sent by two servers, see %s:%" PRIu32,
			                   workload_traces_server_file(&traces->servers[all[i].server], file), all[i].event->line,
			                   quote(all[i].event->parameter, strlen(all[i].event->parameter), shown),
			                   workload_traces_server_file(&traces->servers[all[i - 1].server], other),
			                   all[i - 1].event->line);
	free(all);
	return status;
}

enum esp_status workload_traces_finish(struct traces *traces, struct error *err)
{
	enum esp_status status = ESP_OK;
	char file[TRACES_FILE_NAME];
	if (!traces->name)
		return error_set(err, ESP_EPARSE, "there is no model.json, which says how long the forward pass takes: "
		                                  "{\"forward_s\": 0.17}");
	if (traces->worker_count > 0)
		qsort(traces->workers, traces->worker_count, sizeof(*traces->workers), by_iteration);
	if (traces->server_count > 0)
		qsort(traces->servers, traces->server_count, sizeof(*traces->servers), by_server);
	for (uint32_t i = 0; i < traces->worker_count && status == ESP_OK; i++)
		status = workload_trace_sort(&traces->workers[i].trace, err);
	if (status == ESP_OK)
		status = check_workers(traces, err);
	for (uint32_t i = 0; i < traces->server_count && status == ESP_OK; i++) {
		status = workload_trace_sort(&traces->servers[i].trace, err);
		if (status == ESP_OK)
			status = check_server(&traces->servers[i], err);
		if (i > 0 && status == ESP_OK && strcmp(traces->servers[i - 1].name, traces->servers[i].name) == 0)
			status =
				error_set(err, ESP_EPARSE, "%s is there twice", workload_traces_server_file(&traces->servers[i], file));
	}
	return status == ESP_OK ? check_owners(traces, err) : status;
}
