/*
 * sim_sweep.c - espalier sim sweep: one number of a case takes several values, and every mechanism is run at each of
 * them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cli/cli.h"
#include "cli/sim.h"
#include "report/chart.h"
#include "report/json.h"
#include "report/table.h"
#include "tools/sim/sim_case.h"
#include "tools/sim/sim_pace.h"

#define COMMAND "sim sweep"
#define VALUES_MAX 256u

enum over { OVER_WORKERS, OVER_GBPS, OVER_SERVERS, OVER_COMPUTE };
static const char *const over_names[] = {"workers", "gbps", "servers", "compute", NULL};
static const char *const over_titles[] = {"workers", "bandwidth", "servers", "compute speed"};
static const char *const over_labels[] = {"workers", "rate of a host's link (Gbit/s)", "parameter servers",
                                          "speed of the accelerators"};
static const char *const over_defaults[] = {"4:64", "1:100", "1:16", "0.5:8"};

enum show { SHOW_TIME, SHOW_SPEEDUP };
static const char *const show_names[] = {"time", "speedup", NULL};

struct sweep {
	struct sim_case base;
	enum over over;
	enum show show;
	double values[VALUES_MAX];
	size_t value_count;
	struct sim_choice choice;
	double *seconds; /* by mechanism and value; NAN: it does not fit there */
	double *server;  /* by value: the mechanism that speedups are relative to */
	struct sim_pace pace;
};

/* ---- the values ---- */

static bool add_value(struct sweep *sweep, double value)
{
	bool is_count = sweep->over == OVER_WORKERS || sweep->over == OVER_SERVERS;
	if (sweep->value_count == VALUES_MAX || !(value >= 1e-6 && value <= 1e6) ||
	    (is_count && (value != floor(value) || value > LOAD_WORKERS_MAX)))
		return false;
	if (sweep->value_count > 0 && value <= sweep->values[sweep->value_count - 1])
		return false;
	sweep->values[sweep->value_count++] = value;
	return true;
}

/* "4,8,16", or "4:64": from the first to the last, twice as much each time, and the last. */
static bool parse_values(struct sweep *sweep, const char *text)
{
	const char *colon = strchr(text, ':');
	double from, to;
	if (colon) {
		if (!number_parse_double(text, (size_t)(colon - text), &from) ||
		    !number_parse_double(colon + 1, strlen(colon + 1), &to) || !(from > 0 && to >= from))
			return false;
		while (from < to && add_value(sweep, from))
			from *= 2;
		return from >= to && add_value(sweep, to);
	}
	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");
		if (!number_parse_double(at, length, &from) || !add_value(sweep, from))
			return false;
		at += length;
		if (!*at)
			return true;
	}
}

static void set_value(struct sim_case *c, enum over over, double value)
{
	switch (over) {
	case OVER_WORKERS:
		c->workers = (uint64_t)value;
		break;
	case OVER_GBPS:
		c->gbps = value;
		break;
	case OVER_SERVERS:
		c->servers = (uint64_t)value;
		break;
	case OVER_COMPUTE:
	default:
		c->compute = value;
		break;
	}
}

/* ---- running ---- */

static enum esp_status run_one(struct sweep *sweep, const struct sim_case *c, const struct sim_source *source,
                               const struct load *load, const struct mechanism *mechanism, double *out_seconds,
                               struct error *err)
{
	struct train_result result;
	const struct trial trial = sim_tool_case_trial(c, source, load, mechanism);
	enum esp_status status = sim_tool_case_try(&trial, &sweep->choice, &result, err);
	*out_seconds = status == ESP_OK ? result.iteration_s : NAN;
	return status;
}

static enum esp_status run_value(struct sweep *sweep, const struct sim_source *source, size_t v, struct error *err)
{
	struct sim_case c = sweep->base;
	struct load load;
	set_value(&c, sweep->over, sweep->values[v]);
	enum esp_status status = sim_tool_source_load(source, &c, &load, err);
	for (size_t m = 0; m < sweep->choice.count && status == ESP_OK; m++) {
		status =
			run_one(sweep, &c, source, &load, sweep->choice.list[m], &sweep->seconds[m * sweep->value_count + v], err);
		if (status == ESP_OK)
			sim_tool_pace_step(&sweep->pace);
	}
	if (status == ESP_OK)
		status = run_one(sweep, &c, source, &load, workload_mechanism_at(0), &sweep->server[v], err);
	workload_load_fini(&load);
	return status;
}

/* ---- showing ---- */

static double shown(const struct sweep *sweep, size_t m, size_t v)
{
	double seconds = sweep->seconds[m * sweep->value_count + v];
	return sweep->show == SHOW_TIME ? seconds : sweep->server[v] / seconds;
}

static enum esp_status print_table(const struct sweep *sweep)
{
	const char *headers[SIM_MECHANISMS_MAX + 2] = {over_names[sweep->over]};
	struct table table;
	for (size_t m = 0; m < sweep->choice.count; m++)
		headers[1 + m] = sweep->choice.list[m]->name;
	table_init(&table, headers);
	for (size_t v = 0; v < sweep->value_count; v++) {
		table_cell(&table, "%g", sweep->values[v]);
		for (size_t m = 0; m < sweep->choice.count; m++)
			isnan(shown(sweep, m, v))
				? table_cell(&table, "-")
				: table_cell(&table, sweep->show == SHOW_TIME ? "%.4g" : "%.2f", shown(sweep, m, v));
	}
	enum esp_status status = table_print(&table, stdout);
	table_fini(&table);
	return status;
}

static void put_row(struct json *json, const char *key, const struct sweep *sweep, size_t m, enum show show)
{
	json_key(json, key);
	json_array_begin(json);
	for (size_t v = 0; v < sweep->value_count; v++) {
		double seconds = sweep->seconds[m * sweep->value_count + v];
		json_double(json, show == SHOW_TIME ? seconds : sweep->server[v] / seconds);
	}
	json_array_end(json);
}

static enum esp_status print_json(const struct sweep *sweep, const struct sim_case *most,
                                  const struct sim_source *source, const char *text)
{
	struct json json;
	json_init(&json, stdout);
	json_object_begin(&json);
	json_put_string(&json, "case", text);
	sim_tool_case_put(&json, most, source, over_names[sweep->over]);
	json_put_string(&json, "over", over_names[sweep->over]);
	json_key(&json, "values");
	json_array_begin(&json);
	for (size_t v = 0; v < sweep->value_count; v++)
		json_double(&json, sweep->values[v]);
	json_array_end(&json);
	json_key(&json, "results");
	json_array_begin(&json);
	for (size_t m = 0; m < sweep->choice.count; m++) {
		json_object_begin(&json);
		json_put_string(&json, "mechanism", sweep->choice.list[m]->name);
		put_row(&json, "iteration_s", sweep, m, SHOW_TIME);
		put_row(&json, "speedup", sweep, m, SHOW_SPEEDUP);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	return json_fini(&json);
}

/* Logarithmic where the ends are far apart: then times of one mechanism do not flatten all others. */
static bool is_wide(const double *values, size_t count, double factor)
{
	double low = INFINITY, high = 0;
	for (size_t i = 0; i < count; i++)
		if (isfinite(values[i])) {
			low = fmin(low, values[i]);
			high = fmax(high, values[i]);
		}
	return high > factor * low;
}

static enum esp_status write_chart(const struct sweep *sweep, const char *text, const char *path, struct error *err)
{
	struct chart_line lines[SIM_MECHANISMS_MAX];
	size_t cells = sweep->choice.count * sweep->value_count;
	double *y = calloc(cells + 1, sizeof(*y));
	char title[128];
	if (!y)
		return error_set(err, ESP_ENOMEM, "no memory for a chart");
	for (size_t m = 0; m < sweep->choice.count; m++) {
		lines[m] = (struct chart_line){sweep->choice.list[m]->name, &y[m * sweep->value_count]};
		for (size_t v = 0; v < sweep->value_count; v++)
			y[m * sweep->value_count + v] = shown(sweep, m, v);
	}
	snprintf(title, sizeof title, "%s over %s", sweep->show == SHOW_TIME ? "Iteration time" : "Speedup",
	         over_titles[sweep->over]);
	const struct chart chart = {
		.title = title,
		.note = text,
		.x_label = over_labels[sweep->over],
		.y_label = sweep->show == SHOW_TIME ? "seconds of an iteration" : "times as fast as the mechanism server",
		.x = sweep->values,
		.count = sweep->value_count,
		.lines = lines,
		.line_count = sweep->choice.count,
		.log_x = is_wide(sweep->values, sweep->value_count, 5),
		.log_y = is_wide(y, cells, 20),
	};
	enum esp_status status = chart_save(&chart, path, err);
	free(y);
	return status;
}

static enum esp_status show(const struct sweep *sweep, const struct sim_source *source, const char *svg, bool json,
                            struct error *err)
{
	char text[SIM_CASE_TEXT];
	struct sim_case most = sweep->base; /* where the most is drawn that was not recorded */
	set_value(&most, sweep->over, sweep->values[sweep->value_count - 1]);
	sim_tool_case_text(&most, source, over_names[sweep->over], text);
	enum esp_status status = svg ? write_chart(sweep, text, svg, err) : ESP_OK;
	if (status != ESP_OK)
		return status;
	if (json)
		return print_json(sweep, &most, source, text);
	printf("%s: %s\n", text,
	       sweep->show == SHOW_TIME ? "seconds of an iteration" : "times as fast as the mechanism server");
	if (sim_tool_case_notes(&most, source, text)[0])
		puts(text);
	return print_table(sweep);
}

/* ---- the command ---- */

static int simulate(struct sweep *sweep, const char *svg, bool json)
{
	struct sim_source source = {0};
	struct error err = {0};
	sweep->seconds = calloc(sweep->choice.count * sweep->value_count + 1, sizeof(*sweep->seconds));
	sweep->server = calloc(sweep->value_count + 1, sizeof(*sweep->server));
	enum esp_status status = ESP_OK;
	if (!sweep->seconds || !sweep->server)
		status = error_set(&err, ESP_ENOMEM, "no memory for the results");
	if (status == ESP_OK)
		status = sim_tool_source_open(&source, &sweep->base, &err);
	sim_tool_pace_begin(&sweep->pace, COMMAND, sweep->choice.count * sweep->value_count);
	for (size_t v = 0; v < sweep->value_count && status == ESP_OK; v++)
		status = run_value(sweep, &source, v, &err);
	sim_tool_pace_end(&sweep->pace);
	if (status == ESP_OK)
		status = show(sweep, &source, svg, json, &err);
	sim_tool_source_close(&source);
	free(sweep->seconds);
	free(sweep->server);
	return sim_tool_case_end(&sweep->base, &sweep->choice, status, &err);
}

static int run(int argc, char **argv)
{
	struct sweep sweep = {.base = SIM_CASE_INIT(COMMAND), .choice = SIM_CHOICE_INIT};
	const char *values = NULL, *svg = NULL;
	int over = OVER_WORKERS, shows = SHOW_TIME;
	bool json = false;
	const struct option_spec options[] = {
		{"over", 'o', OPTION_CHOICE, &over, "WHAT", "what varies: workers (default), gbps, servers or compute",
	     .choices = over_names},
		{"values", 'v', OPTION_STRING, &values, "A,B,...|A:B", "its values; A:B doubles from A to B"},
		{"show", 0, OPTION_CHOICE, &shows, "WHAT", "time (default), or speedup over the mechanism server",
	     .choices = show_names},
		SIM_CHOICE_OPTION(&sweep.choice, "mechanisms of espalier sim run"),
		{"svg", 0, OPTION_STRING, &svg, "FILE", "draw a chart too"},
		SIM_CASE_OPTIONS(&sweep.base),
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND,
		"",
		"Runs espalier sim run for several numbers of workers or servers, rates of the network or speeds of the\n"
		"accelerators, and prints a table; --svg draws it.\n\n"
		"  espalier sim sweep --model vgg-16 --over gbps --values 5,10,25,50,100 --svg vgg.svg\n"
		"  espalier sim sweep --model resnet-200 --over compute --values 1:4 --show speedup",
		options,
		0,
		0};
	int status = sim_tool_case_parse(&usage, &argc, argv, &sweep.base, &sweep.choice);
	if (status >= 0)
		return status;
	sweep.over = (enum over)over;
	sweep.show = (enum show)shows;
	if (!parse_values(&sweep, values ? values : over_defaults[over]))
		return complain_usage(COMMAND ": --values: not some increasing numbers from %s, such as 4,8,16 or 4:64",
		                      over == OVER_WORKERS || over == OVER_SERVERS ? "1 to 65536, all of them whole"
		                                                                   : "0.000001 to 1000000");
	if (sweep.over == OVER_GBPS && sweep.base.topology)
		return complain_usage(COMMAND ": with --topology the file says the rates; sweep over something else");
	if (sweep.over == OVER_SERVERS)
		sweep.base.servers_given = true; /* not those of traces */
	return simulate(&sweep, svg, json);
}

const struct cli_command cli_sim_sweep = {"sweep", "the same over workers, bandwidth, servers or speed, with a chart",
                                          run};
