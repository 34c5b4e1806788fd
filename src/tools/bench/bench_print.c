#include "tools/bench/bench_print.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define JSON_VERSION 2 /* of nccl-tests' format, which has the same keys */

/* Names of types in nccl-tests. */
static const char *const type_names[ESP_TYPE_COUNT] = {
	[ESP_F32] = "float",  [ESP_F64] = "double",  [ESP_F16] = "half",    [ESP_BF16] = "bfloat16", [ESP_I8] = "int8",
	[ESP_U8] = "uint8",   [ESP_I16] = "int16",   [ESP_U16] = "uint16",  [ESP_I32] = "int32",     [ESP_U32] = "uint32",
	[ESP_I64] = "int64",  [ESP_U64] = "uint64",  [ESP_BYTES] = "bytes",
};

static const char *op_text(const struct bench_row *row)
{
	return bench_reduces(row->collective) ? esp_op_name(row->op) : "none";
}

static int64_t root_number(const struct bench_row *row)
{
	return bench_has_root(row->collective) ? (int64_t)row->root : -1;
}

static double bus_bw(const struct bench_row *row, const struct bench_result *result, uint32_t ranks)
{
	return bench_alg_bw(row->bytes, result->stats.p50) * bench_bus_factor(row->collective, ranks);
}

/* ---- sizes that were rounded ---- */

#define CHANGES_MAX 4 /* number of changes that are listed */
#define NOTE_TEXT 256

/* A note on sizes that are no whole number of elements, and so were changed; "": there are none. Returns text. */
static const char *describe_changes(const struct bench_config *config, char text[NOTE_TEXT])
{
	const struct bench_sizes *sizes = config->sizes;
	uint64_t unit = esp_type_bytes(config->type);
	size_t used = 0, changes = 0;

	text[0] = '\0';
	for (size_t i = 0; i < sizes->count && used < NOTE_TEXT; i++) {
		uint64_t bytes = sizes->bytes[i], elements = bytes / unit > 0 ? bytes / unit : 1;
		if (bytes == elements * unit || ++changes > CHANGES_MAX)
			continue;
		if (changes == 1)
			used = (size_t)snprintf(text, NOTE_TEXT, "sizes are multiples of %" PRIu64 " bytes (%s):", unit,
			                        type_names[config->type]);
		used += (size_t)snprintf(text + used, NOTE_TEXT - used, "%s %" PRIu64 " became %" PRIu64,
		                         changes > 1 ? "," : "", bytes, elements * unit);
	}
	if (changes > CHANGES_MAX && used < NOTE_TEXT)
		snprintf(text + used, NOTE_TEXT - used, ", and %zu more", changes - CHANGES_MAX);
	return text;
}

/* ---- the table ---- */

/*
 * Prints as many of two decimals as fit into the width. A value below 0.1 has as many as fit, or an exponent if not
 * one digit would be left: a slow network's 13 MB/s are 0.0131 GB/s.
 */
static void put_number(FILE *out, int width, double value)
{
	char text[32];
	int decimals = value > 0 && value < 0.1 ? width - 2 : 2;

	while (snprintf(text, sizeof(text), "%.*f", decimals, value) > width && decimals > 0)
		decimals--;
	if (strlen(text) > (size_t)width || (value > 0 && strtod(text, NULL) <= 0))
		snprintf(text, sizeof(text), "%.*e", width >= 7 ? 1 : 0, value);
	fprintf(out, "  %*s", width, text);
}

static void put_result(const struct bench_print *print, const struct bench_row *row, const struct bench_result *result)
{
	FILE *out = print->out;

	if (!result->measured) {
		fprintf(out, "  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
		return;
	}
	put_number(out, 7, result->stats.p50);
	put_number(out, 6, bench_alg_bw(row->bytes, result->stats.p50));
	put_number(out, 6, bus_bw(row, result, print->config->ranks));
	if (result->checked)
		fprintf(out, "  %6g", (double)result->wrong);
	else
		fprintf(out, "  %6s", "N/A");
}

static void put_columns(FILE *out)
{
	static const char *const names[] = {"time", "algbw", "busbw", "#wrong"};
	static const char *const units[] = {"(us)", "(GB/s)", "(GB/s)", ""};

	fprintf(out, "# %50s           out-of-place                       in-place          \n", "");
	fprintf(out, "# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root");
	for (int i = 0; i < 8; i++)
		fprintf(out, "  %*s", i % 4 == 0 ? 7 : 6, names[i % 4]);
	fprintf(out, "\n# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "");
	for (int i = 0; i < 8; i++)
		fprintf(out, "  %*s", i % 4 == 0 ? 7 : 6, units[i % 4]);
	fputc('\n', out);
}

static void put_step(FILE *out, const struct bench_sizes *sizes)
{
	fprintf(out, "minBytes %" PRIu64 " maxBytes %" PRIu64 " step: ", sizes->least, sizes->end);
	if (sizes->step.factor)
		fprintf(out, "%" PRIu64 "(factor)", sizes->step.factor);
	else if (sizes->step.bytes)
		fprintf(out, "%" PRIu64 "(bytes)", sizes->step.bytes);
	else
		fputs("list", out);
}

static void table_begin(const struct bench_print *print)
{
	const struct bench_config *config = print->config;
	FILE *out = print->out;
	char note[NOTE_TEXT];

	fprintf(out, "# espalier version %s\n# nRanks %u ", config->version, config->ranks);
	put_step(out, config->sizes);
	fprintf(out, " warmup iters: %" PRIu64 " iters: %" PRIu64 " validation: %d\n", config->warmup, config->iters,
	        config->check);
	fprintf(out, "# transport: %s memory: %s calls: %s\n", config->transport, config->memory, config->calls);
	if (config->numerics)
		fprintf(out, "# numerics: %s, results are compared with its bound of the error\n", config->numerics);
	if (describe_changes(config, note)[0])
		fprintf(out, "# %s\n", note);
	fputs("# time: the median of all samples; a sample is the time of a batch of calls on rank 0 per call\n#\n"
	      "# Using ranks\n",
	      out);
	for (uint32_t i = 0; i < config->ranks; i++)
		fprintf(out, "#  Rank %2u Pid %6" PRIu64 " on %10s\n", i, config->rank[i].pid, config->rank[i].host);
	fflush(out);
}

static void table_end(struct bench_print *print)
{
	if (print->rows == 0)
		return;
	fprintf(print->out, "# %-20s : %" PRIu64 " %s\n", "Out of bounds values", print->table_bad,
	        print->table_bad ? "FAILED" : "OK");
	fprintf(print->out, "# %-20s : %g\n", "Avg bus bandwidth",
	        print->table_bus_count ? print->table_bus_sum / (double)print->table_bus_count : 0);
	print->table_bad = print->table_bus_count = 0;
	print->table_bus_sum = 0;
}

static bool same_plan(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static void table_row(struct bench_print *print, const struct bench_row *row)
{
	if (print->rows == 0 || row->collective != print->collective || !same_plan(row->asked_plan, print->asked_plan)) {
		table_end(print);
		fprintf(print->out, "#\n# Collective test starting: %s\n#\n", esp_collective_name(row->collective));
		put_columns(print->out);
		print->collective = row->collective;
		print->asked_plan = row->asked_plan;
		print->plan[0] = '\0';
	}
	if (strcmp(row->plan, print->plan) != 0) {
		fprintf(print->out, "# plan: %s\n", row->plan);
		snprintf(print->plan, sizeof(print->plan), "%s", row->plan);
	}
	fprintf(print->out, "%12" PRIu64 "  %12" PRIu64 "  %8s  %6s  %6" PRId64, row->bytes, row->count,
	        type_names[row->type], op_text(row), root_number(row));
	for (int mode = 0; mode < BENCH_MODE_COUNT; mode++)
		put_result(print, row, &row->results[mode]);
	fputc('\n', print->out);
	fflush(print->out);
}

/* ---- JSON ---- */

/* Microseconds, rounded to the picosecond: further digits are noise. */
static double rounded(double value)
{
	return round(value * 1e6) / 1e6;
}

static void json_config(struct json *json, const struct bench_config *config)
{
	const struct bench_sizes *sizes = config->sizes;
	char note[NOTE_TEXT];

	json_key(json, "config");
	json_object_begin(json);
	json_put_u64(json, "nranks", config->ranks);
	json_put_u64(json, "minimum_bytes", sizes->least);
	json_put_u64(json, "maximum_bytes", sizes->end);
	json_key(json, "step_factor");
	if (sizes->step.factor)
		json_u64(json, sizes->step.factor);
	else
		json_none(json);
	if (sizes->step.bytes)
		json_put_u64(json, "step_bytes", sizes->step.bytes);
	json_put_u64(json, "warmup_iters", config->warmup);
	json_put_u64(json, "iterations", config->iters);
	json_put_double(json, "seconds", config->seconds);
	json_put_u64(json, "validation", config->check);
	json_put_bool(json, "blocking_collectives", strcmp(config->calls, "blocking") == 0);
	json_put_string(json, "calls", config->calls);
	json_put_string(json, "memory", config->memory);
	json_put_string(json, "transport", config->transport);
	if (config->numerics)
		json_put_string(json, "numerics", config->numerics);
	if (describe_changes(config, note)[0])
		json_put_string(json, "note", note);
	json_key(json, "devices");
	json_array_begin(json);
	for (uint32_t i = 0; i < config->ranks; i++) {
		json_object_begin(json);
		json_put_u64(json, "rank", i);
		json_put_u64(json, "pid", config->rank[i].pid);
		json_put_string(json, "hostname", config->rank[i].host);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

static void json_begin(struct bench_print *print)
{
	const struct bench_config *config = print->config;
	struct json *json = &print->json;

	json_init(json, print->out);
	json_object_begin(json);
	json_put_u64(json, "version", JSON_VERSION);
	json_put_string(json, "espalier_version", config->version);
	json_put_string(json, "start_time", config->start_time);
	json_key(json, "args");
	json_array_begin(json);
	json_text(json, "espalier");
	for (int i = 0; i < config->argc; i++)
		json_text(json, config->argv[i]);
	json_array_end(json);
	json_config(json, config);
	json_key(json, "results");
	json_array_begin(json);
}

static void json_result(struct bench_print *print, const struct bench_row *row, const struct bench_result *result)
{
	struct json *json = &print->json;

	if (!result->measured) {
		json_none(json);
		return;
	}
	json_object_begin(json);
	json_put_double(json, "time", rounded(result->stats.p50));
	json_put_double(json, "alg_bw", rounded(bench_alg_bw(row->bytes, result->stats.p50)));
	json_put_double(json, "bus_bw", rounded(bus_bw(row, result, print->config->ranks)));
	json_key(json, "nwrong");
	if (result->checked)
		json_u64(json, result->wrong);
	else
		json_none(json);
	json_put_double(json, "min", rounded(result->stats.min));
	json_put_double(json, "p50", rounded(result->stats.p50));
	json_put_double(json, "p90", rounded(result->stats.p90));
	json_put_double(json, "max", rounded(result->stats.max));
	json_put_double(json, "slowest_rank", rounded(result->slowest_us));
	json_put_u64(json, "calls_per_sample", result->calls);
	json_key(json, "samples");
	json_array_begin(json);
	for (size_t i = 0; i < result->sample_count; i++)
		json_double(json, rounded(result->samples_us[i]));
	json_array_end(json);
	json_object_end(json);
}

static void json_row(struct bench_print *print, const struct bench_row *row)
{
	struct json *json = &print->json;

	json_object_begin(json);
	json_put_string(json, "collective", esp_collective_name(row->collective));
	json_put_u64(json, "size", row->bytes);
	json_put_u64(json, "count", row->count);
	json_put_string(json, "type", type_names[row->type]);
	json_put_string(json, "redop", op_text(row));
	json_put_i64(json, "root", root_number(row));
	json_put_string(json, "plan", row->plan);
	json_put_string(json, "transport", print->config->transport);
	json_put_u64(json, "ranks", print->config->ranks);
	json_key(json, "out_of_place");
	json_result(print, row, &row->results[BENCH_OUT_OF_PLACE]);
	json_key(json, "in_place");
	json_result(print, row, &row->results[BENCH_IN_PLACE]);
	json_object_end(json);
}

static enum esp_status json_end(struct bench_print *print, const char *failure)
{
	struct json *json = &print->json;

	json_array_end(json);
	json_key(json, "out_of_bounds");
	json_object_begin(json);
	json_put_u64(json, "count", print->bad);
	json_put_bool(json, "okay", print->bad == 0);
	json_object_end(json);
	json_key(json, "average_bus_bandwidth");
	json_object_begin(json);
	json_put_double(json, "bandwidth", print->bus_count ? rounded(print->bus_sum / (double)print->bus_count) : 0);
	json_put_string(json, "okay", "unchecked");
	json_object_end(json);
	json_key(json, "errors");
	json_array_begin(json);
	if (failure)
		json_text(json, failure);
	json_array_end(json);
	json_object_end(json);
	return json_fini(json);
}

/* ---- both ---- */

void bench_print_begin(struct bench_print *print, FILE *out, bool as_json, const struct bench_config *config)
{
	*print = (struct bench_print){.out = out, .as_json = as_json, .config = config};
	if (as_json)
		json_begin(print);
	else
		table_begin(print);
}

static void add_up(struct bench_print *print, const struct bench_row *row)
{
	for (int mode = 0; mode < BENCH_MODE_COUNT; mode++) {
		const struct bench_result *result = &row->results[mode];
		if (!result->measured)
			continue;
		double bus = bus_bw(row, result, print->config->ranks);
		bool bad = result->checked && result->wrong > 0;
		print->bad += bad;
		print->table_bad += bad;
		print->bus_sum += bus;
		print->table_bus_sum += bus;
		print->bus_count++;
		print->table_bus_count++;
	}
}

void bench_print_row(struct bench_print *print, const struct bench_row *row)
{
	if (print->as_json)
		json_row(print, row);
	else
		table_row(print, row);
	print->rows++;
	add_up(print, row);
}

enum esp_status bench_print_end(struct bench_print *print, const char *failure)
{
	if (print->as_json)
		return json_end(print, failure);
	table_end(print);
	if (failure)
		fprintf(print->out, "# error: %s\n", failure);
	return fflush(print->out) != 0 || ferror(print->out) ? ESP_EIO : ESP_OK;
}
