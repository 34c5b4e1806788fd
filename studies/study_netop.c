/*
 * study_netop.c - espalier-study netop: the tables and figures of "How to Train your DNN: The Network Operator
 * Edition", computed.
 */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/json.h"
#include "report/options.h"
#include "report/table.h"
#include "studies/paper.h"
#include "studies/studies.h"
#include "tools/sim/sim_model.h"

#define COMMAND "netop"
#define SETS 3
#define COLUMNS_MAX 16

struct results {
	struct paper_cell *cells;
	size_t count, room;
	bool failed; /* a cell was lost for want of memory */
};

static void keep(void *user, const struct paper_cell *cell)
{
	struct results *results = user;

	if (results->count == results->room) {
		size_t room = results->room ? results->room * 2 : 256;
		struct paper_cell *cells = realloc(results->cells, room * sizeof(*cells));

		results->failed = results->failed || !cells;
		if (!cells)
			return;
		results->cells = cells;
		results->room = room;
	}
	results->cells[results->count++] = *cell;
}

static double error_of(const struct paper_cell *cell)
{
	return cell->value / cell->paper - 1; /* NAN where the paper has nothing */
}

/* ---- computing ---- */

static enum esp_status compute_set(enum model_set set, struct paper_request request, struct results *results,
                                   struct error *err)
{
	struct model models[PAPER_MODELS] = {{0}};
	enum esp_status status = ESP_OK;

	for (int i = 0; i < PAPER_MODELS && status == ESP_OK; i++)
		status = sim_tool_model_open(&models[i], paper_model_names[i], &(struct model_options){.set = set}, err);
	request.models = models;
	request.fn = keep;
	request.user = results;
	if (status == ESP_OK)
		status = paper_run(&request, err);
	for (int i = 0; i < PAPER_MODELS; i++)
		workload_model_fini(&models[i]);
	return status;
}

static bool belongs(const struct paper_cell *cell, const struct paper_part *part)
{
	return cell->is_figure == part->is_figure && cell->number == part->number;
}

/* ---- for machines ---- */

static void put_cell(struct json *json, const struct paper_cell *cell)
{
	json_object_begin(json);
	json_put_u64(json, cell->is_figure ? "figure" : "table", cell->number);
	json_put_string(json, "set", model_set_names[cell->set]);
	json_put_string(json, "model", paper_model_names[cell->model]);
	if (cell->row)
		json_put_string(json, "row", cell->row);
	json_put_string(json, cell->is_figure ? "mechanism" : "column", cell->column);
	if (cell->is_figure)
		json_put_double(json, "x", cell->x);
	json_put_double(json, "value", cell->value);
	json_put_string(json, "unit", cell->unit);
	if (!isnan(cell->paper)) {
		json_put_double(json, "paper", cell->paper);
		json_put_double(json, "error", error_of(cell));
	}
	json_object_end(json);
}

/* How far the cells of a table are from the paper's: mean, worst, and how many are within 4 and 5 %. */
struct distance {
	double mean, worst;
	uint32_t count, within_4, within_5;
};

static struct distance distance(const struct results *results, enum model_set set, uint32_t number)
{
	struct distance found = {0};

	for (size_t i = 0; i < results->count; i++) {
		const struct paper_cell *cell = &results->cells[i];
		double error = fabs(error_of(cell));

		if (cell->is_figure || cell->number != number || cell->set != set || isnan(error))
			continue;
		found.count++;
		found.mean += error;
		found.worst = fmax(found.worst, error);
		found.within_4 += error <= 0.04;
		found.within_5 += error <= 0.05;
	}
	found.mean /= found.count ? found.count : 1;
	return found;
}

static const uint32_t compared[] = {1, 4, 6, 7};
#define COMPARED (sizeof(compared) / sizeof(compared[0]))

static void put_distances(struct json *json, const struct results *results)
{
	json_key(json, "errors");
	json_array_begin(json);
	for (size_t i = 0; i < COMPARED * SETS; i++) {
		enum model_set set = (enum model_set)(i / COMPARED);
		struct distance found = distance(results, set, compared[i % COMPARED]);

		if (found.count == 0)
			continue;
		json_object_begin(json);
		json_put_u64(json, "table", compared[i % COMPARED]);
		json_put_string(json, "set", model_set_names[set]);
		json_put_double(json, "mean", found.mean);
		json_put_double(json, "worst", found.worst);
		json_put_u64(json, "values", found.count);
		json_put_u64(json, "within_4_percent", found.within_4);
		json_put_u64(json, "within_5_percent", found.within_5);
		json_object_end(json);
	}
	json_array_end(json);
}

static enum esp_status print_json(const struct results *results, uint64_t seed)
{
	struct json json;

	json_init(&json, stdout);
	json.flat_depth = 2;
	json_object_begin(&json);
	json_put_string(&json, "paper", "How to Train your DNN: The Network Operator Edition");
	json_put_u64(&json, "seed", seed);
	json_key(&json, "results");
	json_array_begin(&json);
	for (size_t i = 0; i < results->count; i++)
		put_cell(&json, &results->cells[i]);
	json_array_end(&json);
	put_distances(&json, results);
	json_object_end(&json);
	return json_fini(&json);
}

/* ---- for people: a line per model (figures: mechanism) and set, a column per column (x) ---- */

static bool is_same_line(const struct paper_cell *a, const struct paper_cell *b)
{
	bool is_same_row = a->row == b->row || (a->row && b->row && strcmp(a->row, b->row) == 0);

	if (a->set != b->set || a->model != b->model || !is_same_row)
		return false;
	return !a->is_figure || strcmp(a->column, b->column) == 0;
}

static bool is_same_column(const struct paper_cell *a, const struct paper_cell *b)
{
	return a->is_figure ? a->x == b->x : strcmp(a->column, b->column) == 0;
}

/* The first cell of each column. */
static size_t find_columns(const struct results *results, const struct paper_part *part,
                           const struct paper_cell *columns[COLUMNS_MAX])
{
	size_t count = 0;

	for (size_t i = 0; i < results->count; i++) {
		const struct paper_cell *cell = &results->cells[i];
		size_t c = 0;

		while (c < count && !is_same_column(columns[c], cell))
			c++;
		if (belongs(cell, part) && c == count && count < COLUMNS_MAX)
			columns[count++] = cell;
	}
	return count;
}

static void value_cell(struct table *table, const struct paper_cell *cell)
{
	const char *unit = strcmp(cell->unit, "share") == 0 ? "" : cell->unit;

	if (isnan(cell->paper))
		table_cell(table, "%.4g%s%s", cell->value, unit[0] == 's' ? " " : "", unit);
	else
		table_cell(table, "%.4g%s%s (%.4g, %+.1f %%)", cell->value, unit[0] == 's' ? " " : "", unit, cell->paper,
		           100 * error_of(cell));
}

static void print_line(struct table *table, const struct results *results, const struct paper_part *part,
                       const struct paper_cell *first, const struct paper_cell *const *columns, size_t count)
{
	if (part->is_figure)
		table_cell(table, "%s", first->column);
	else
		table_cell(table, "%s%s%s", paper_model_names[first->model], first->row ? ", " : "",
		           first->row ? first->row : "");
	table_cell(table, "%s", model_set_names[first->set]);
	for (size_t c = 0; c < count; c++) {
		const struct paper_cell *found = NULL;

		for (size_t i = 0; i < results->count && !found; i++) {
			const struct paper_cell *cell = &results->cells[i];

			if (belongs(cell, part) && is_same_line(cell, first) && is_same_column(cell, columns[c]))
				found = cell;
		}
		if (found)
			value_cell(table, found);
		else
			table_cell(table, "-");
	}
}

static enum esp_status print_part(const struct results *results, const struct paper_part *part)
{
	const struct paper_cell *columns[COLUMNS_MAX];
	const char *headers[COLUMNS_MAX + 3] = {part->is_figure ? "mechanism" : "model", "set"};
	char texts[COLUMNS_MAX][16];
	size_t count = find_columns(results, part, columns);
	struct table table;

	if (count == 0)
		return ESP_OK;
	for (size_t c = 0; c < count; c++) {
		snprintf(texts[c], sizeof(texts[c]), "%g", columns[c]->x);
		headers[c + 2] = part->is_figure ? texts[c] : columns[c]->column;
	}
	table_init(&table, headers);
	for (size_t i = 0; i < results->count; i++) {
		const struct paper_cell *cell = &results->cells[i];
		bool is_first = belongs(cell, part);

		for (size_t k = 0; k < i && is_first; k++)
			is_first = !(belongs(&results->cells[k], part) && is_same_line(&results->cells[k], cell));
		if (is_first)
			print_line(&table, results, part, cell, columns, count);
	}
	printf("%s %u: %s%s%s\n", part->is_figure ? "Figure" : "Table", part->number, part->title,
	       part->x ? "; across: " : "", part->x ? part->x : "");
	enum esp_status status = table_print(&table, stdout);
	table_fini(&table);
	putchar('\n');
	return status;
}

static void print_distances(const struct results *results)
{
	for (size_t i = 0; i < COMPARED * SETS; i++) {
		enum model_set set = (enum model_set)(i / COMPARED);
		struct distance found = distance(results, set, compared[i % COMPARED]);

		if (found.count > 0)
			printf("table %u, %s: mean error %.1f %%, worst %.1f %%, %u of %u within 4 %%\n", compared[i % COMPARED],
			       model_set_names[set], 100 * found.mean, 100 * found.worst, found.within_4, found.count);
	}
}

static enum esp_status print_text(const struct results *results)
{
	enum esp_status status = ESP_OK;

	for (size_t i = 0; paper_part_at(i) && status == ESP_OK; i++)
		status = print_part(results, paper_part_at(i));
	print_distances(results);
	return status;
}

/* ---- the command ---- */

/* "table4" or "figure12". */
static const struct paper_part *find_part(const char *name)
{
	for (size_t i = 0; paper_part_at(i); i++) {
		char text[16];

		snprintf(text, sizeof(text), "%s%u", paper_part_at(i)->is_figure ? "figure" : "table",
		         paper_part_at(i)->number);
		if (strcmp(name, text) == 0)
			return paper_part_at(i);
	}
	return NULL;
}

static int compute(const char *only_name, int set, uint64_t seed, bool as_json)
{
	const struct paper_part *only = only_name ? find_part(only_name) : NULL;
	struct results results = {0};
	struct error err = {0};
	enum esp_status status = ESP_OK;

	if (only_name && !only)
		return complain_usage(COMMAND ": '%s' is none of table1, table4, table6 to table10, figure3 to figure12",
		                      only_name);
	for (int i = 0; i < SETS && status == ESP_OK; i++) {
		if (set < 0 || set == i)
			status = compute_set((enum model_set)i, (struct paper_request){.seed = seed, .only = only}, &results, &err);
	}
	if (status == ESP_OK && results.failed)
		status = error_set(&err, ESP_ENOMEM, "no memory for the results");
	if (status == ESP_OK)
		status = as_json ? print_json(&results, seed) : print_text(&results);
	free(results.cells);
	return complain_end(COMMAND, status, &err);
}

static int run(int argc, char **argv)
{
	uint64_t seed = 0;
	int set = -1;
	bool json = false;
	const struct option_spec options[] = {
		{"set", 0, OPTION_CHOICE, &set, "SET", "one set of values: public, factors, calibrated (default: all three)",
	     .choices = model_set_names},
		{"seed", 's', OPTION_U64, &seed, "S",
	     "draws the order of sending and the workers' speeds (default 0: the models')"},
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND,
		"[table1 | table4 | ... | figure12]",
		"Computes the tables and the series behind the figures of \"How to Train your DNN: The Network Operator "
	    "Edition\"\n"
		"(Chang et al.), with the paper's value and the distance from it where the paper gives one. Three sets of "
	    "values:\n"
		"public (architectures and measured times), factors (and a factor or two per network, read back from the "
	    "paper's\n"
		"results), calibrated (and an order of sending and workers' speeds that fit its tables 4 and 6).",
		options,
		0,
		1};
	int parsed = options_parse(&usage, &argc, argv);

	if (parsed >= 0)
		return parsed;
	/* Hundreds of runs need about the same memory: it is not given back in between. */
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	return compute(argc > 1 ? argv[1] : NULL, set, seed, json);
}

const struct cli_command study_netop = {
	"netop", "\"How to Train your DNN: The Network Operator Edition\": its tables and figures", run};
