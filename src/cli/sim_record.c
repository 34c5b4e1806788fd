/*
 * sim_record.c - espalier sim record: traces for the simulator from a real training.
 *
 * Each rank writes its calls with the setting `trace` (docs/observing.md), either now, under `espalier run`, or before,
 * wherever it ran. Here those files are read and the steps found in them (sim/workload/steps.h).
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/infile.h"
#include "base/number.h"
#include "base/vec.h"
#include "cli/run.h"
#include "cli/sim.h"
#include "report/json.h"
#include "report/options.h"
#include "sim/workload/steps.h"
#include "tools/diagnose/trace_read.h"

#define COMMAND "sim record"
#define RANKS_MAX 65536u

struct recording {
	struct steps_rank *ranks; /* by rank once all are read */
	uint32_t count, size;     /* size: of the job, 0: no file yet */
	uint64_t instance;
};

static void recording_fini(struct recording *recording)
{
	for (uint32_t i = 0; i < recording->count; i++)
		free(recording->ranks[i].calls);
	free(recording->ranks);
	*recording = (struct recording){0};
}

/* ---- reading what a rank wrote ---- */

static bool is_reduction(const json_t *event)
{
	static const char *const kinds[] = {"allreduce", "reduce", "reduce-scatter", NULL};
	const char *name = json_string_value(json_object_get(event, "name")),
			   *category = json_string_value(json_object_get(event, "cat"));
	for (const char *const *kind = kinds; name && category && strcmp(category, "call") == 0 && *kind; kind++)
		if (strcmp(name, *kind) == 0)
			return true;
	return false;
}

/*
 * A reduction of all ranks that went well; false: it is something else. Times count from start_ns, the first one's (or
 * -1).
 */
static bool read_call(const json_t *event, uint32_t size, int64_t *start_ns, struct steps_call *out)
{
	const json_t *args = json_object_get(event, "args");
	const char *key = json_string_value(json_object_get(args, "key"));
	json_int_t number = json_integer_value(json_object_get(args, "number")),
	           bytes = json_integer_value(json_object_get(args, "bytes"));
	int64_t from_ns, to_ns;
	if (!is_reduction(event) || json_object_get(args, "status") ||
	    json_integer_value(json_object_get(args, "members")) != size || number < 0 || bytes <= 0 ||
	    (uint64_t)bytes > TRACE_BYTES_MAX || !diagnose_trace_times(event, &from_ns, &to_ns))
		return false;
	*start_ns = *start_ns < 0 ? from_ns : *start_ns;
	*out = (struct steps_call){.number = (uint64_t)number,
	                           .bytes = (uint64_t)bytes,
	                           .from_s = (double)(from_ns - *start_ns) * 1e-9,
	                           .to_s = (double)(to_ns - *start_ns) * 1e-9};
	out->has_key = key && number_parse_u64(key, strlen(key), &out->key);
	return true;
}

static enum esp_status add_call(struct steps_rank *rank, const struct steps_call *call, struct error *err)
{
	if (rank->count == STEPS_CALLS_MAX)
		return error_set(err, ESP_ELIMIT, "rank %" PRIu32 " made more than %u calls", rank->rank, STEPS_CALLS_MAX);
	if (!vec_reserve(&rank->calls, &rank->capacity, (size_t)rank->count + 1, sizeof(*rank->calls)))
		return error_set(err, ESP_ENOMEM, "no memory for %" PRIu32 " calls", rank->count + 1);
	rank->calls[rank->count++] = *call;
	return ESP_OK;
}

/* The first event says whose trace it is. */
static enum esp_status begin_rank(struct recording *recording, const json_t *event, struct error *err)
{
	struct trace_origin origin;
	if (!event || !diagnose_trace_origin_read(event, &origin))
		return error_set(err, ESP_EPARSE, "it is no trace of a rank");
	if (recording->count > 0 && (origin.size != recording->size || origin.instance != recording->instance))
		return error_set(err, ESP_EINVAL, "it is of another run than the files before");
	struct steps_rank *ranks = realloc(recording->ranks, ((size_t)recording->count + 1) * sizeof(*ranks));
	if (!ranks)
		return error_set(err, ESP_ENOMEM, "no memory for another rank");
	ranks[recording->count++] = (struct steps_rank){.rank = origin.rank};
	recording->ranks = ranks;
	recording->size = origin.size;
	recording->instance = origin.instance;
	return ESP_OK;
}

static enum esp_status read_events(struct recording *recording, const char *text, size_t size, struct error *err)
{
	struct trace_reader reader;
	struct steps_call call;
	json_t *event;
	int64_t start_ns = -1;
	enum esp_status status = diagnose_trace_reader_open(&reader, text, size, err);
	if (status == ESP_OK)
		status = diagnose_trace_reader_next(&reader, &event, err);
	if (status == ESP_OK) {
		status = begin_rank(recording, event, err);
		json_decref(event);
	}
	while (status == ESP_OK) {
		status = diagnose_trace_reader_next(&reader, &event, err);
		if (status != ESP_OK || !event)
			break;
		if (read_call(event, recording->size, &start_ns, &call))
			status = add_call(&recording->ranks[recording->count - 1], &call, err);
		json_decref(event);
	}
	return status;
}

static enum esp_status read_file(struct recording *recording, const char *path, struct error *err)
{
	struct infile file;
	struct error reason = {0};
	enum esp_status status = infile_open(&file, path, err);
	if (status != ESP_OK)
		return status;
	status = read_events(recording, file.text, file.length, &reason);
	infile_close(&file);
	return status == ESP_OK ? ESP_OK : error_set(err, status, "%.100s: %s", path, reason.text);
}

static int by_rank(const void *a, const void *b)
{
	const struct steps_rank *x = a, *y = b;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static enum esp_status sort_ranks(struct recording *recording, struct error *err)
{
	qsort(recording->ranks, recording->count, sizeof(*recording->ranks), by_rank);
	for (uint32_t i = 1; i < recording->count; i++)
		if (recording->ranks[i - 1].rank == recording->ranks[i].rank)
			return error_set(err, ESP_EINVAL, "there are two traces of rank %" PRIu32, recording->ranks[i].rank);
	return ESP_OK;
}

/* ---- running the program ---- */

static int run_program(uint64_t ranks, const char *folder, int argc, char **argv)
{
	char count[24], variable[128], run[] = "run", n[] = "-n", env[] = "--env", end[] = "--";
	char **words = calloc((size_t)argc + 8, sizeof(*words));
	int used = 0;
	if (!words)
		return complain(COMMAND ": no memory");
	snprintf(count, sizeof count, "%" PRIu64, ranks);
	snprintf(variable, sizeof variable, "ESP_TRACE=%s/rank-%%r.json", folder);
	char *const head[] = {run, n, count, env, variable, end};
	for (size_t i = 0; i < sizeof head / sizeof head[0]; i++)
		words[used++] = head[i];
	for (int i = 1; i < argc; i++)
		words[used++] = argv[i];
	int status = run_as(COMMAND, used, words, NULL);
	free(words);
	return status;
}

static enum esp_status read_folder(struct recording *recording, const char *folder, uint64_t ranks, struct error *err)
{
	enum esp_status status = ESP_OK;
	for (uint64_t rank = 0; rank < ranks && status == ESP_OK; rank++) {
		char path[128];
		snprintf(path, sizeof path, "%s/rank-%" PRIu64 ".json", folder, rank);
		if (access(path, R_OK) != 0)
			return error_set(err, ESP_EINVAL,
			                 "rank %" PRIu64 " left no trace: does the program call esp_init() and esp_fini()?", rank);
		status = read_file(recording, path, err);
	}
	return status;
}

static void remove_folder(const char *folder)
{
	struct dirent **entries = NULL;
	int count = scandir(folder, &entries, NULL, NULL);
	for (int i = 0; i < count; i++) {
		char path[512];
		snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
		if (entries[i]->d_name[0] != '.')
			unlink(path);
		free(entries[i]);
	}
	free(entries);
	rmdir(folder);
}

/* Returns an exit status; the traces of the ranks are read and gone. */
static int record(struct recording *recording, uint64_t ranks, int argc, char **argv)
{
	char folder[] = "/tmp/espalier-record-XXXXXX";
	struct error err = {0};
	if (!mkdtemp(folder))
		return complain(COMMAND ": cannot make a folder in /tmp: %s", strerror(errno));
	int exit_status = run_program(ranks, folder, argc, argv);
	if (exit_status == 0 && read_folder(recording, folder, ranks, &err) != ESP_OK)
		exit_status = complain(COMMAND ": %s", err.text);
	else if (exit_status != 0)
		complain_note(COMMAND ": the program failed, so nothing is written");
	remove_folder(folder);
	return exit_status;
}

/* ---- the result ---- */

static enum esp_status show_json(const struct steps_found *found, const struct traces *traces, const char *folder)
{
	struct json json;
	json_init(&json, stdout);
	json_object_begin(&json);
	json_put_string(&json, "folder", folder);
	json_put_u64(&json, "files", traces->worker_count);
	json_put_u64(&json, "calls_per_step", found->length);
	json_put_u64(&json, "bytes_per_step", found->bytes);
	json_put_u64(&json, "steps", found->steps);
	json_put_u64(&json, "steps_written", found->used);
	json_put_bool(&json, "by_key", found->by_key);
	json_put_double(&json, "overlap", found->overlap);
	json_put_double(&json, "forward_s", traces->forward_s);
	json_object_end(&json);
	return json_fini(&json);
}

static void show_text(const struct steps_found *found, const struct traces *traces, const struct steps_options *options,
                      const char *folder)
{
	printf("%s: %" PRIu32 " files, %" PRIu32 " steps of %" PRIu32 " calls and %" PRIu64
	       " bytes each, told apart by %s\n",
	       folder, traces->worker_count, found->used, found->length, found->bytes,
	       found->by_key ? "their keys" : "what repeats");
	printf("forward pass: %.6g s (%s)\n", traces->forward_s,
	       options->forward_s > 0 ? "as given"
	                              : "the usual time from the end of a step to the first gradient of the next");
	if (found->overlap == 0 && found->length > 1 && !options->blocking)
		complain_note(COMMAND ": no call was handed over while another was under way: if the program waits for each "
		                      "call before it computes on, these\n"
		                      "  times hold the network's time too, and --blocking takes it out");
}

static int write_traces(struct recording *recording, const struct steps_options *options, const char *folder, bool json)
{
	struct traces traces = {0};
	struct steps_found found;
	struct error err = {0};
	enum esp_status status = sort_ranks(recording, &err);
	if (status == ESP_OK)
		status = workload_steps_find(recording->ranks, recording->count, options, &traces, &found, &err);
	if (status == ESP_OK)
		status = workload_traces_save(&traces, folder, &err);
	if (status == ESP_OK && recording->count < recording->size)
		complain_note(COMMAND ": traces of %" PRIu32 " of %" PRIu32 " ranks; a simulation draws the others from these",
		              recording->count, recording->size);
	if (status == ESP_OK && json)
		status = show_json(&found, &traces, folder);
	else if (status == ESP_OK)
		show_text(&found, &traces, options, folder);
	workload_traces_fini(&traces);
	return status == ESP_OK ? EXIT_OK : complain(COMMAND ": %s", err.text);
}

static int run(int argc, char **argv)
{
	uint64_t ranks = 0, length = 0, skip = 1, most = 10;
	const char *folder = NULL, *name = "recorded";
	bool json = false;
	struct steps_options wanted = {0};
	const struct option_spec options[] = {
		{"output", 'o', OPTION_STRING, &folder, "FOLDER", "a new folder for the traces"},
		{"ranks", 'n', OPTION_U64, &ranks, "N", "run the command with so many ranks here; otherwise files are read",
	     .min = 1, .max = RANKS_MAX},
		{"steps", 's', OPTION_U64, &most, "N", "steps to write, the last ones (default 10)", .min = 1, .max = 65536},
		{"skip", 0, OPTION_U64, &skip, "N", "steps at the beginning that are never written (default 1)"},
		{"calls", 0, OPTION_U64, &length, "N", "calls of a step (default: find out)", .min = 1, .max = STEPS_CALLS_MAX},
		{"blocking", 0, OPTION_FLAG, &wanted.blocking, NULL, "the program waits for each call: take its time out"},
		{"no-order", 0, OPTION_FLAG, &wanted.without_order, NULL,
	     "do not say that the forward order is the reverse of the gradients'"},
		{"forward", 0, OPTION_DOUBLE, &wanted.forward_s, "SECONDS",
	     "of a forward pass (default: the pause between steps)"},
		{"name", 0, OPTION_STRING, &name, "NAME", "of the model (default recorded)"},
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND,
		"-o FOLDER -n N -- COMMAND [ARGUMENT]... | -o FOLDER FILE...",
		"Records a training for the simulator: when each rank handed over each gradient, step by step. Runs\n"
		"the command on this machine, or reads what the ranks of a run wrote with ESP_TRACE=NAME-%r.json. A step\n"
		"is what repeats: the sizes of the reductions of all ranks, or their keys.",
		options,
		1,
		-1};
	struct recording recording = {0};
	struct error err = {0};
	int status = options_parse(&usage, &argc, argv);
	if (status >= 0)
		return status;
	if (!folder)
		return complain_usage(COMMAND ": say where to write with -o FOLDER");
	if (!(wanted.forward_s >= 0 && wanted.forward_s < 1e9))
		return complain_usage(COMMAND ": --forward is no number of seconds");
	wanted.name = name;
	wanted.length = (uint32_t)length;
	wanted.skip = skip < UINT32_MAX ? (uint32_t)skip : UINT32_MAX;
	wanted.most = (uint32_t)most;
	status = EXIT_OK;
	if (ranks > 0)
		status = record(&recording, ranks, argc, argv);
	for (int i = 1; ranks == 0 && i < argc && status == EXIT_OK; i++)
		if (read_file(&recording, argv[i], &err) != ESP_OK)
			status = complain(COMMAND ": %s", err.text);
	if (status == EXIT_OK)
		status = write_traces(&recording, &wanted, folder, json);
	recording_fini(&recording);
	return status;
}

const struct cli_command cli_sim_record = {"record", "records a real training, to simulate it elsewhere", run};
