/*
 * probe_print.c - the outcome of espalier probe for people.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/complain.h"
#include "report/table.h"
#include "tools/probe/probe_outcome.h"

#define MEMBERS_SHOWN 64u /* names per group; the files have all of them */

static const char *const kind_title[] = {
	[SURVEY_LATENCY] = "latency there and back, us (one in twenty of the packets is faster)",
	[SURVEY_INVERSE_BANDWIDTH] = "bandwidth with all hosts sending, Mbit/s (mean of all rounds and both ways)",
};

/* In the unit of the title, with three digits. */
static void cell(char text[PROBE_NUMBER], enum survey_kind kind, double distance)
{
	double value = kind == SURVEY_LATENCY ? distance * 1e6 : 8e-6 / distance;

	if (!isfinite(distance) || !isfinite(value))
		snprintf(text, PROBE_NUMBER, "?");
	else
		snprintf(text, PROBE_NUMBER, value < 9.995 ? "%.2f" : value < 99.95 ? "%.1f" : "%.0f", value);
}

/* ---- small matrices ---- */

static void print_matrix(const struct probe_outcome *outcome, enum survey_kind kind, const uint32_t *order, FILE *file)
{
	const struct survey *survey = &outcome->found.survey;
	const uint32_t *group_of = outcome->verdict.grouping.group_of;
	int widest = 4;
	char text[PROBE_NUMBER];

	for (uint32_t i = 0; i < survey->count; i++)
		widest = (int)strlen(survey->names[i]) > widest ? (int)strlen(survey->names[i]) : widest;
	fprintf(file, "\n%s\n\n%*s   ", kind_title[kind], widest, "");
	for (uint32_t j = 0; j < survey->count; j++)
		fprintf(file, "%s%6u", j > 0 && group_of[order[j]] != group_of[order[j - 1]] ? " |" : "", j);
	fputc('\n', file);
	for (uint32_t i = 0; i < survey->count; i++) {
		if (i > 0 && group_of[order[i]] != group_of[order[i - 1]])
			fputc('\n', file);
		fprintf(file, "%*s %2u", widest, survey->names[order[i]], i);
		for (uint32_t j = 0; j < survey->count; j++) {
			cell(text, kind, matrix_get(&survey->matrices[kind], order[i], order[j]));
			fprintf(file, "%s%6s", j > 0 && group_of[order[j]] != group_of[order[j - 1]] ? " |" : "",
			        i == j ? "." : text);
		}
		fputc('\n', file);
	}
}

/* ---- large matrices ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

#define PAIRS_SHOWN 10u /* with more groups, all others are taken together */
#define OTHERS UINT32_MAX

/* The known distances from a group to another one, or to all others, sorted. Returns their number. */
static uint32_t between(const struct probe_outcome *outcome, enum survey_kind kind, uint32_t a, uint32_t b, double *out)
{
	const struct matrix *matrix = &outcome->found.survey.matrices[kind];
	const uint32_t *group_of = outcome->verdict.grouping.group_of;
	uint32_t count = 0;

	for (uint32_t i = 0; i < matrix->size; i++)
		for (uint32_t j = 0; j < matrix->size && group_of[i] == a; j++)
			if (i != j && (b == OTHERS ? group_of[j] != a : group_of[j] == b) && isfinite(matrix_get(matrix, i, j)))
				out[count++] = matrix_get(matrix, i, j);
	qsort(out, count, sizeof(*out), compare);
	return count;
}

static void add_row(const struct probe_outcome *outcome, enum survey_kind kind, uint32_t a, uint32_t b, double *values,
                    struct table *table)
{
	uint32_t count = between(outcome, kind, a, b, values);
	char text[PROBE_NUMBER];

	if (count == 0)
		return;
	table_cell(table, "%u", a);
	if (b == OTHERS)
		table_cell(table, "others");
	else
		table_cell(table, "%u", b);
	table_cell(table, "%u", a == b ? count / 2 : count);
	for (uint32_t tenth = 1; tenth <= 9; tenth += 4) {
		cell(text, kind, values[(uint64_t)(count - 1) * tenth / 10]);
		table_cell(table, "%s", text);
	}
}

static enum esp_status print_summary(const struct probe_outcome *outcome, enum survey_kind kind, FILE *file)
{
	static const char *const headers[] = {"from group", "to group", "pairs", "tenth", "median", "nine tenths", NULL};
	uint32_t size = outcome->found.survey.count, groups = outcome->verdict.grouping.count;
	double *values = calloc((size_t)size * size, sizeof(*values));
	struct table table;

	if (!values)
		return ESP_ENOMEM;
	table_init(&table, headers);
	for (uint32_t a = 0; a < groups; a++) {
		add_row(outcome, kind, a, a, values, &table);
		for (uint32_t b = a + 1; b < groups && groups <= PAIRS_SHOWN; b++)
			add_row(outcome, kind, a, b, values, &table);
		if (groups > PAIRS_SHOWN)
			add_row(outcome, kind, a, OTHERS, values, &table);
	}
	fprintf(file, "\n%s\n\n", kind_title[kind]);
	enum esp_status status = table_print(&table, file);
	table_fini(&table);
	free(values);
	return status;
}

/* ---- groups ---- */

static void print_group(const struct probe_outcome *outcome, uint32_t group, FILE *file)
{
	const struct found *found = &outcome->found;
	char out[PROBE_NUMBER], in[PROBE_NUMBER];
	uint32_t shown = 0, size = 0;

	for (uint32_t i = 0; i < found->survey.count; i++)
		size += found->grouping.group_of[i] == group;
	fprintf(file, "\ngroup %u: %u host%s", group, size, plural(size));
	if (found->grouping.count > 1 && outcome->has_rates)
		fprintf(file, ", %s out together, %s in", probe_tool_rate_text(found->uplink_out[group], out),
		        probe_tool_rate_text(found->uplink_in[group], in));
	fputs("\n ", file);
	for (uint32_t i = 0; i < found->survey.count; i++) {
		if (found->grouping.group_of[i] != group)
			continue;
		if (shown++ == MEMBERS_SHOWN) {
			fprintf(file, " and %u more", size - MEMBERS_SHOWN);
			break;
		}
		fprintf(file, " %s", found->survey.names[i]);
		if (outcome->has_rates)
			fprintf(file, " (%s)", probe_tool_rate_text(found->rate_out[i], out));
	}
	fputc('\n', file);
}

static void print_sure(const struct probe_outcome *outcome, FILE *file)
{
	const struct verdict *verdict = &outcome->verdict;
	char text[PROBE_SENTENCE];

	fprintf(file, "\nhow sure: %s\n", probe_tool_say_sure(outcome, text));
	if (verdict->grouping.count > 1 && verdict->word != VERDICT_SURE)
		fprintf(file, "          %s belongs the least: %.2f, of 1\n", outcome->found.survey.names[verdict->doubtful],
		        verdict->belonging[verdict->doubtful]);
	if (probe_tool_say_source(outcome, text)[0])
		fprintf(file, "found by: %s\n", text);
	if (probe_tool_say_uplinks(outcome, text)[0])
		fprintf(file, "          %s\n", text);
	if (!outcome->truth.known)
		return;
	fprintf(file, "against %s: adjusted mutual information %.3f", outcome->options->racks, outcome->truth.ami);
	for (uint32_t k = 0; k < SURVEY_KINDS; k++)
		if (isfinite(outcome->truth.paia[k]))
			fprintf(file, ", PAIA by %s %.1f %%", survey_kind_name((enum survey_kind)k), outcome->truth.paia[k] * 100);
	fputc('\n', file);
}

static void print_next(const struct probe_outcome *outcome, FILE *file)
{
	const struct probe_options *options = outcome->options;

	fputc('\n', file);
	if (!outcome->has_rates)
		fprintf(file, "no topology: %s\n", outcome->rates_missing);
	else if (outcome->has_out)
		fprintf(file,
		        "next: espalier run --topology %s ... (or ESP_TOPOLOGY=%s), espalier sim run --collective allreduce "
		        "--topology %s\n",
		        options->out, options->out, options->out);
	else
		fputs("next: the same with --out topology.txt, then espalier run --topology topology.txt ...\n", file);
	if (outcome->has_html)
		fprintf(file, "      %s has it as pictures\n", options->html);
}

enum esp_status probe_tool_print(const struct probe_outcome *outcome, FILE *file, struct error *err)
{
	uint32_t hosts = outcome->found.survey.count;
	uint32_t *order = calloc(hosts, sizeof(*order));
	enum esp_status status = order ? ESP_OK : ESP_ENOMEM;

	if (order)
		probe_tool_order(outcome, order);
	if (outcome->stored)
		fprintf(file, "%u hosts, measured before\n", hosts);
	else
		fprintf(file, "%u hosts probed in %.1f s\n", hosts, outcome->found.seconds);
	for (uint32_t k = 0; k < SURVEY_KINDS && status == ESP_OK; k++) {
		if (outcome->found.survey.matrices[k].size == 0)
			continue;
		if (hosts <= PROBE_TABLE_HOSTS)
			print_matrix(outcome, (enum survey_kind)k, order, file);
		else
			status = print_summary(outcome, (enum survey_kind)k, file);
	}
	free(order);
	for (uint32_t g = 0; g < outcome->found.grouping.count && status == ESP_OK; g++)
		print_group(outcome, g, file);
	print_sure(outcome, file);
	print_next(outcome, file);
	if (status == ESP_OK && (fflush(file) != 0 || ferror(file)))
		status = ESP_EIO;
	return status == ESP_OK ? ESP_OK : error_set(err, status, "cannot print");
}
