/*
 * study_table1.c - espalier-study table1: table 1 of the PLink paper, counted.
 *
 * Every number beside a formula is what the checker counted in the plan that the engine
 * would run, for a buffer whose chunks are equal and as many for each node.
 */
#include <math.h>
#include <stdio.h>

#include "base/number.h"
#include "plan/check.h"
#include "report/json.h"
#include "report/table.h"
#include "studies/paper_groups.h"
#include "studies/studies.h"
#include "tools/plan/plan_options.h"
#include "tools/plan/plan_work.h"

#define COMMAND "table1"
#define NODES_MAX 2048u /* plans grow with the square of it: this takes some seconds */

struct table1 {
	struct paper_shape shape;
	double counted[PAPER_ROW_COUNT][PAPER_COLUMN_COUNT];
};

/* ---- counting ---- */

/* Chunks such that all owners own equally many. */
static uint64_t even_chunks(enum paper_row row, uint64_t nodes)
{
	uint64_t cube = 1;

	switch (row) {
	case PAPER_HALVING_DOUBLING: /* the vertices of the hypercube own */
		while (cube * 2 <= nodes)
			cube *= 2;
		return cube;
	case PAPER_TREE:
	case PAPER_TREE_INNER: /* all chunks take the same way */
		return 1;
	default:
		return nodes;
	}
}

static enum esp_status prepare(enum paper_row row, const struct paper_shape *shape, struct plan_setup *setup,
                               struct error *err)
{
	uint64_t nodes = (uint64_t)shape->per_rack * shape->racks, chunks = even_chunks(row, nodes);
	const struct plan_request request = {
		.planner = paper_row_planner(row),
		.nodes = nodes,
		.chunks = chunks,
		.bytes = chunks,
		.racks = shape->racks,
		.place = (int)shape->place,
		.fanout = paper_fanout(shape),
		.leaves = row == PAPER_TREE,
		.given = {[PLAN_OPTION_BYTES] = true},
	};

	return plan_tool_setup_init(setup, &request, plan_planner_find(request.planner), err);
}

static enum esp_status count(enum paper_row row, const struct plan_setup *setup, struct plan_work *work,
                             double counted[PAPER_COLUMN_COUNT], struct error *err)
{
	double chunks = (double)setup->chunk_count;
	struct plan_report report;
	struct plan *plan;
	enum esp_status status = plan_open(plan_planner_find(paper_row_planner(row)), &setup->spec, &plan, err);

	if (status != ESP_OK)
		return status;
	status = plan_tool_work_check(work, plan, &report, NULL, err);
	plan_close(plan);
	if (status != ESP_OK)
		return status;
	counted[PAPER_ROUNDS] = report.rounds;
	counted[PAPER_WIRE] = (double)report.wire_bytes / chunks;
	counted[PAPER_CROSS] = (double)report.cross_bytes / chunks;
	return ESP_OK;
}

/* All rows. On a failure *out_row is the one that failed. */
static enum esp_status count_all(struct table1 *table1, unsigned *out_row, struct error *err)
{
	struct plan_setup setups[PAPER_ROW_COUNT] = {0};
	struct plan_work work = {0};
	enum esp_status status = ESP_OK;
	unsigned row;

	for (row = 0; status == ESP_OK && row < PAPER_ROW_COUNT; row++) {
		status = prepare(row, &table1->shape, &setups[row], err);
		if (status == ESP_OK)
			plan_tool_work_add(&work, plan_planner_find(paper_row_planner(row)), &setups[row]);
	}
	if (status == ESP_OK)
		plan_tool_work_announce(&work, COMMAND);
	for (row = status == ESP_OK ? 0 : row; status == ESP_OK && row < PAPER_ROW_COUNT; row++)
		status = count(row, &setups[row], &work, table1->counted[row], err);
	plan_tool_work_end(&work);
	for (unsigned i = 0; i < PAPER_ROW_COUNT; i++)
		plan_tool_setup_fini(&setups[i]);
	*out_row = row - 1;
	return status;
}

/* ---- for people ---- */

/* Whole where it is whole, else three decimals. */
static void add_number(struct table *table, double value)
{
	if (isnan(value))
		table_cell(table, "-");
	else if (fabs(value - round(value)) < 1e-9)
		table_cell(table, "%.0f", value);
	else
		table_cell(table, "%.3f", value);
}

static const char *verdict(double counted, double formula)
{
	return isnan(formula) ? "undefined" : paper_same(counted, formula) ? "same" : "differs";
}

static enum esp_status print_table(const struct table1 *table1)
{
	static const char *const headers[] = {"algorithm", "rounds",  "paper", "", "wire/S", "paper",
	                                      "",          "racks/S", "paper", "", NULL};
	struct table table;

	table_init(&table, headers);
	for (unsigned row = 0; row < PAPER_ROW_COUNT; row++) {
		table_cell(&table, "%s", paper_row_name(row));
		for (unsigned column = 0; column < PAPER_COLUMN_COUNT; column++) {
			double formula = paper_formula(row, column, &table1->shape);

			add_number(&table, table1->counted[row][column]);
			add_number(&table, formula);
			table_cell(&table, "%s", verdict(table1->counted[row][column], formula));
		}
	}
	enum esp_status status = table_print(&table, stdout);
	table_fini(&table);
	return status;
}

static void print_reasons(const struct table1 *table1)
{
	char why[PAPER_WHY_TEXT];
	const char *heading = "\nwhy they differ:\n";

	for (unsigned row = 0; row < PAPER_ROW_COUNT; row++) {
		for (unsigned column = 0; column < PAPER_COLUMN_COUNT; column++) {
			double counted = table1->counted[row][column];

			if (paper_same(counted, paper_formula(row, column, &table1->shape)))
				continue;
			paper_why(row, column, &table1->shape, counted, why);
			printf("%s  %s, %s (paper: %s)\n      %s.\n", heading, paper_row_name(row), paper_column_name(column),
			       paper_formula_text(row, column), why);
			heading = "";
		}
	}
}

static enum esp_status print_text(const struct table1 *table1)
{
	const struct paper_shape *shape = &table1->shape;

	printf("%u node%s in C = %u rack%s of N = %u each, placed %s; each has a buffer of S bytes\n"
	       "(wire/S: bytes on the wire, racks/S: bytes between racks; paper: the formulas of table 1)\n\n",
	       shape->per_rack * shape->racks, plural(shape->per_rack * shape->racks), shape->racks,
	       plural(shape->racks), shape->per_rack,
	       shape->place == PLACE_INTERLEAVED ? "interleaved" : "contiguously");
	enum esp_status status = print_table(table1);
	print_reasons(table1);
	return status;
}

/* ---- for programs ---- */

static void put_column(struct json *json, const struct table1 *table1, enum paper_row row, enum paper_column column)
{
	static const char *const keys[] = {"rounds", "wire", "cross"};
	double counted = table1->counted[row][column], formula = paper_formula(row, column, &table1->shape);
	char why[PAPER_WHY_TEXT];

	json_key(json, keys[column]);
	json_object_begin(json);
	json_put_double(json, "counted", counted);
	json_put_double(json, "paper", formula); /* null where it is undefined */
	json_key(json, "formula");
	json_text(json, paper_formula_text(row, column));
	json_put_bool(json, "same", paper_same(counted, formula));
	json_key(json, "why");
	if (paper_same(counted, formula)) {
		json_none(json);
	} else {
		paper_why(row, column, &table1->shape, counted, why);
		json_text(json, why);
	}
	json_object_end(json);
}

static enum esp_status print_json(const struct table1 *table1)
{
	struct json json;

	json_init(&json, stdout);
	json_object_begin(&json);
	json_put_u64(&json, "nodes_per_rack", table1->shape.per_rack);
	json_put_u64(&json, "racks", table1->shape.racks);
	json_put_string(&json, "place", table1->shape.place == PLACE_INTERLEAVED ? "interleaved" : "contiguous");
	json_key(&json, "rows");
	json_array_begin(&json);
	for (unsigned row = 0; row < PAPER_ROW_COUNT; row++) {
		json_object_begin(&json);
		json_put_string(&json, "algorithm", paper_row_name(row));
		json_put_string(&json, "planner", paper_row_planner(row));
		for (unsigned column = 0; column < PAPER_COLUMN_COUNT; column++)
			put_column(&json, table1, row, column);
		json_object_end(&json);
	}
	json_array_end(&json);
	json_object_end(&json);
	return json_fini(&json);
}

/* ---- the command ---- */

/* -1 to go on, or the exit status. */
static int find_shape(uint64_t nodes, uint64_t per_rack, uint64_t racks, struct paper_shape *shape)
{
	if (nodes && per_rack)
		return complain_usage(COMMAND ": --nodes and --nodes-per-rack both say how many there are: give one of them");
	if (nodes && nodes % racks)
		return complain_usage(COMMAND
		                      ": %llu nodes do not fill %llu racks evenly, and the formulas are for equal racks",
		                      (unsigned long long)nodes, (unsigned long long)racks);
	if (nodes)
		per_rack = nodes / racks;
	if (per_rack == 0)
		per_rack = 4;
	nodes = per_rack * racks;
	if (nodes > NODES_MAX)
		return complain_usage(COMMAND ": %llu nodes are too many to count one by one: at most %u",
		                      (unsigned long long)nodes, NODES_MAX);
	shape->per_rack = (uint32_t)per_rack;
	shape->racks = (uint32_t)racks;
	return -1;
}

static int print(struct table1 *table1, bool json)
{
	struct error err = {0};
	unsigned row;

	if (count_all(table1, &row, &err) != ESP_OK)
		return complain(COMMAND ": %s: %s", paper_row_name(row), err.text);
	enum esp_status status = json ? print_json(table1) : print_text(table1);
	return status == ESP_OK ? EXIT_OK : complain(COMMAND ": cannot write to the standard output");
}

static int run(int argc, char **argv)
{
	static const char *const placements[] = {"contiguous", "interleaved", NULL};
	uint64_t nodes = 0, per_rack = 0, racks = 2;
	int place = PLACE_CONTIGUOUS;
	bool json = false;
	const struct option_spec options[] = {
		{"nodes-per-rack", 'N', OPTION_U64, &per_rack, "N", "nodes in each rack (default 4)", 1, NODES_MAX, NULL},
		{"racks", 'C', OPTION_U64, &racks, "C", "racks (default 2)", 1, NODES_MAX, NULL},
		{"nodes", 'n', OPTION_U64, &nodes, "NC", "all nodes, in place of --nodes-per-rack", 1, NODES_MAX, NULL},
		{"place", 0, OPTION_CHOICE, &place, "HOW", "how nodes fill the racks (default contiguous)", 0, 0, placements},
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON", 0, 0, NULL},
		{0},
	};
	const struct options_usage usage = {
		COMMAND,
		"",
		"Prints table 1 of the PLink paper (Luo et al., MLSys 2020): rounds, bytes on the wire and bytes between\n"
		"racks of an allreduce of S bytes on C racks of N nodes. The checker's counts in our plans stand beside\n"
		"the paper's formulas, with the reason where they differ. For up to 2,048 nodes in all.",
		options,
		0,
		0};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;

	struct table1 table1 = {.shape.place = (enum placement)place};
	int exit_status = find_shape(nodes, per_rack, racks, &table1.shape);
	return exit_status >= 0 ? exit_status : print(&table1, json);
}

const struct cli_command study_table1 = {"table1", "table 1 of the PLink paper, counted beside its formulas", run};
