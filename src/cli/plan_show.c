/*
 * plan_show.c - espalier plan show: a plan for people, as tables or in words.
 */
#include <stdio.h>

#include "base/number.h"
#include "cli/plan.h"
#include "report/table.h"
#include "tools/plan/plan_json.h"
#include "tools/plan/plan_options.h"
#include "tools/plan/plan_words.h"

#define COMMAND "plan show"
#define EVERY UINT64_MAX

struct show_request {
	struct plan_request plan;
	uint64_t node, chunk; /* EVERY: all */
	bool explain, json;
};

/* ---- the head ---- */

static void print_groups(const struct plan *plan)
{
	printf("groups      %u:", plan->group_count);
	for (uint32_t g = 0; g < plan->group_count; g++) {
		const char *between = g ? " | " : " ";

		for (uint32_t node = 0, end; node < plan->nodes; node = end) {
			end = node + 1;
			if (plan->group_of[node] != g)
				continue;
			while (end < plan->nodes && plan->group_of[end] == g)
				end++;
			printf("%s%u", between, node);
			if (end > node + 1)
				printf("-%u", end - 1);
			between = " ";
		}
	}
	putchar('\n');
}

static void print_head(const struct plan *plan)
{
	printf("planner     %s\n", plan_tool_origin(plan));
	/* Planners describe themselves by their allreduce. */
	if (plan->planner && plan->chunks.collective == PLAN_ALLREDUCE)
		printf("            %s\n", plan_planner_summary(plan->planner));
	printf("collective  %s%s\n", plan_collective_name(plan->chunks.collective), plan->in_place ? ", in place" : "");
	printf("nodes       %u", plan->workers);
	if (plan->nodes > plan->workers)
		printf(", and %u extra that hold no data: %u to %u", plan->nodes - plan->workers, plan->workers,
		       plan->nodes - 1);
	printf("\nchunks      %llu\n", (unsigned long long)plan->chunks.chunk_count);
	if (plan->group_count)
		print_groups(plan);
}

/* ---- chunks ---- */

static void print_side(const char *before, uint32_t who)
{
	if (who == PLAN_ALL)
		printf("%s all", before);
	else
		printf("%s %u", before, who);
}

static void print_piece(uint64_t chunk, const struct plan_piece *piece)
{
	char bytes[NUMBER_BYTES_TEXT];

	printf("\nchunk %llu: %s byte%s", (unsigned long long)chunk, number_format_bytes(piece->bytes, bytes),
	       plural(piece->bytes));
	print_side(", from", piece->from);
	print_side(" to", piece->to);
	printf("; at byte %llu of the input, %llu of the output\n", (unsigned long long)piece->in_at,
	       (unsigned long long)piece->out_at);
}

static enum esp_status add_row(struct table *table, const struct plan *plan, uint32_t node, uint64_t chunk,
                               struct plan_row *row)
{
	enum esp_status status = plan_row(plan, node, chunk, row);
	struct plan_words words;

	if (status != ESP_OK || row->count == 0)
		return status;
	status = plan_tool_words_init(&words, row);
	if (status != ESP_OK)
		return status;
	table_cell(table, "%u", node);
	table_cell(table, "%s", words.waits);
	table_cell(table, "%s", words.sends);
	table_cell(table, "%s", words.steps);
	plan_tool_words_fini(&words);
	return ESP_OK;
}

static enum esp_status print_rows(const struct plan *plan, uint64_t chunk, uint32_t only, struct plan_row *row)
{
	static const char *const headers[] = {"node", "waits for", "sends to", "steps", NULL};
	enum esp_status status = ESP_OK;
	struct table table;

	table_init(&table, headers);
	for (uint32_t node = 0; status == ESP_OK && node < plan->nodes; node++) {
		if (only == PLAN_NONE || only == node)
			status = add_row(&table, plan, node, chunk, row);
	}
	if (status == ESP_OK)
		status = table_print(&table, stdout);
	table_fini(&table);
	return status;
}

static enum esp_status explain_row(const struct plan *plan, uint64_t chunk, uint32_t node, struct plan_row *row)
{
	enum esp_status status = plan_row(plan, node, chunk, row);

	if (status != ESP_OK)
		return status;
	if (row->count == 0)
		printf("  node %u has no part in it\n", node);
	for (uint32_t i = 0, number = 1; i < row->count; number++) {
		printf("  %2u. ", number);
		i += plan_tool_explain(row, i, stdout);
		putchar('\n');
	}
	return ESP_OK;
}

static enum esp_status print_chunks(const struct plan *plan, const struct plan_filter *filter, bool explain)
{
	struct plan_row row = {0};
	enum esp_status status = ESP_OK;

	for (uint64_t c = 0; status == ESP_OK && c < plan->chunks.chunk_count; c++) {
		struct plan_piece piece = plan_chunks_piece(&plan->chunks, c);

		if (filter->chunk != UINT64_MAX && filter->chunk != c)
			continue;
		print_piece(c, &piece);
		status = explain ? explain_row(plan, c, filter->node, &row) : print_rows(plan, c, filter->node, &row);
	}
	plan_row_fini(&row);
	return status;
}

/* ---- the command ---- */

static int check_filter(const struct plan *plan, const struct show_request *request, struct plan_filter *out)
{
	if (request->node != EVERY && request->node >= plan->nodes)
		return complain_usage(COMMAND ": there is no node %llu: they are numbered from 0 to %u",
		                      (unsigned long long)request->node, plan->nodes - 1);
	if (request->chunk != EVERY && request->chunk >= plan->chunks.chunk_count)
		return complain_usage(COMMAND ": there is no chunk %llu: the plan has %llu, numbered from 0",
		                      (unsigned long long)request->chunk, (unsigned long long)plan->chunks.chunk_count);
	if (request->explain && request->node == EVERY)
		return complain_usage(COMMAND ": --explain tells what one node does: say which, with --node N");
	out->node = request->node == EVERY ? PLAN_NONE : (uint32_t)request->node;
	out->chunk = request->chunk;
	return -1;
}

static int show(const struct plan *plan, const struct show_request *request)
{
	struct plan_filter filter = {PLAN_NONE, UINT64_MAX};
	struct error err = {0};
	int exit_status = check_filter(plan, request, &filter);

	if (exit_status >= 0)
		return exit_status;
	if (request->json)
		return plan_tool_json_print(plan, &filter, &err) == ESP_OK ? EXIT_OK : complain(COMMAND ": %s", err.text);
	print_head(plan);
	enum esp_status status = print_chunks(plan, &filter, request->explain);
	return status == ESP_OK ? EXIT_OK : complain(COMMAND ": out of memory, or the output cannot be written");
}

static int run(int argc, char **argv)
{
	struct show_request request = {.node = EVERY, .chunk = EVERY};
	struct option_spec options[PLAN_OPTION_MAX];
	size_t count = plan_tool_request_options(&request.plan, options);
	char about[PLAN_ABOUT_TEXT];

	options[count++] = plan_tool_request_planner(&request.plan);
	options[count++] = (struct option_spec){
		"node", 0, OPTION_U64, &request.node, "N", "only what node N does", 0, EVERY - 1, NULL};
	options[count++] =
		(struct option_spec){"chunk", 0, OPTION_U64, &request.chunk, "C", "only chunk C", 0, EVERY - 1, NULL};
	options[count++] = (struct option_spec){
		"explain", 'x', OPTION_FLAG, &request.explain, NULL, "tell in words what --node does", 0, 0, NULL};
	options[count++] = (struct option_spec){"json", 0, OPTION_FLAG, &request.json, NULL, "print JSON", 0, 0, NULL};
	options[count] = (struct option_spec){0};
	const struct options_usage usage = {
		COMMAND,
		"[FILE|-]",
		plan_tool_about("Shows a plan, from a file or from a planner: which node waits for which, and\n"
	                    "sends where, chunk by chunk.",
	                    about),
		options,
		0,
		1};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;

	struct plan *plan;
	int exit_status = plan_tool_from(&request.plan, COMMAND, argc > 1 ? argv[1] : NULL, NULL, &plan);
	if (exit_status >= 0)
		return exit_status;
	exit_status = show(plan, &request);
	plan_close(plan);
	return exit_status;
}

const struct cli_command cli_plan_show = {"show", "shows which nodes wait for which, or explains a node's part", run};
