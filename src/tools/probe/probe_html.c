/*
 * probe_html.c - the outcome of espalier probe for a browser: the template probe_report.html with the document of
 * --json and numbers that only pictures need.
 */
#include <math.h>
#include <stdlib.h>

#include "report/page.h"
#include "tools/probe/probe_map.h"
#include "tools/probe/probe_outcome.h"

/* per row of a heat map: with more hosts, hosts share cells, and the page has means instead of matrices */
#define CELLS_MOST 96u

extern const char probe_report_page[]; /* made from probe_report.html by scripts/embed */

/* ---- the map ---- */

/* All distances minus the shortest one: in a picture, the usual distance of neighbours is zero. */
static enum esp_status beyond_shortest(const struct matrix *matrix, struct matrix *out)
{
	size_t count = (size_t)matrix->size * matrix->size;
	double least = INFINITY;
	enum esp_status status = matrix_copy(out, matrix, NULL);

	for (uint32_t i = 0; i < matrix->size; i++)
		for (uint32_t j = 0; j < i; j++)
			least = fmin(least, matrix_get(matrix, i, j)); /* fmin() ignores NAN */
	for (size_t i = 0; i < count && status == ESP_OK && isfinite(least); i++)
		out->at[i] = out->at[i] > least ? out->at[i] - least : isnan(out->at[i]) ? NAN : 0;
	return status;
}

/*
 * Where hosts are in the map. The embedding that groups are made of has many dimensions, and its distances are roots
 * of the measured ones: a picture of it exaggerates small differences, and racks that are all equally far from each
 * other coincide. So latencies are embedded again, in a plane and in proportion.
 */
static enum esp_status find_places(const struct probe_outcome *outcome, double *x, double *y)
{
	const struct verdict_kind *kind = &outcome->verdict.kinds[outcome->verdict.kind];
	const struct embed_options options = {
		.alpha = 1, .dimensions = 2, .no_startup = true, .seed = outcome->options->seed};
	struct embedding embedding = {0};
	struct matrix distances = {0};

	if (outcome->verdict.kind != SURVEY_LATENCY)
		return probe_tool_map(&kind->candidates.embedding, x, y);
	enum esp_status status = beyond_shortest(&kind->tamed, &distances);
	if (status == ESP_OK)
		status = discover_embed(&distances, &options, &embedding, NULL);
	if (status == ESP_OK)
		status = probe_tool_map(&embedding, x, y);
	discover_embedding_fini(&embedding);
	matrix_fini(&distances);
	return status;
}

static enum esp_status put_map(const struct probe_outcome *outcome, struct json *json)
{
	uint32_t hosts = outcome->found.survey.count;
	double *x = calloc(hosts, sizeof(*x)), *y = calloc(hosts, sizeof(*y));
	enum esp_status status = x && y ? find_places(outcome, x, y) : ESP_ENOMEM;

	json_key(json, "map");
	json_array_begin(json);
	for (uint32_t i = 0; i < hosts && status == ESP_OK; i++) {
		json_array_begin(json);
		json_double(json, x[i]);
		json_double(json, y[i]);
		json_array_end(json);
	}
	json_array_end(json);
	free(x);
	free(y);
	return status;
}

/* ---- heat maps of many hosts ---- */

/* The mean of the distances between two spans of hosts; NAN: none is known. */
static double mean_between(const struct matrix *matrix, const uint32_t *order, uint32_t row, uint32_t column)
{
	uint32_t n = matrix->size, known = 0;
	double sum = 0;

	for (uint32_t i = row * n / CELLS_MOST; i < (row + 1) * n / CELLS_MOST; i++)
		for (uint32_t j = column * n / CELLS_MOST; j < (column + 1) * n / CELLS_MOST; j++) {
			double each = matrix_get(matrix, order[i], order[j]);

			if (i == j || !isfinite(each))
				continue;
			sum += each;
			known++;
		}
	return known ? sum / known : NAN;
}

static void put_range(const struct matrix *matrix, struct json *json)
{
	double least = INFINITY, most = -INFINITY;

	for (uint32_t i = 0; i < matrix->size; i++)
		for (uint32_t j = 0; j < matrix->size; j++) {
			double each = matrix_get(matrix, i, j);

			if (i == j || !isfinite(each) || each <= 0)
				continue;
			least = fmin(least, each);
			most = fmax(most, each);
		}
	json_put_double(json, "least", least);
	json_put_double(json, "most", most);
}

static void put_cells(const struct matrix *matrix, const uint32_t *order, struct json *json)
{
	json_object_begin(json);
	put_range(matrix, json);
	json_key(json, "cells");
	json_array_begin(json);
	for (uint32_t row = 0; row < CELLS_MOST; row++) {
		json_array_begin(json);
		for (uint32_t column = 0; column < CELLS_MOST; column++)
			json_double(json, mean_between(matrix, order, row, column));
		json_array_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

static enum esp_status put_means(const struct probe_outcome *outcome, struct json *json)
{
	const struct survey *survey = &outcome->found.survey;
	uint32_t *order = calloc(survey->count, sizeof(*order));

	if (!order)
		return ESP_ENOMEM;
	probe_tool_order(outcome, order);
	json_key(json, "means");
	json_object_begin(json);
	for (uint32_t k = 0; k < SURVEY_KINDS; k++) {
		if (survey->matrices[k].size == 0)
			continue;
		json_key(json, probe_tool_matrix_key((enum survey_kind)k));
		put_cells(&survey->matrices[k], order, json);
	}
	json_object_end(json);
	free(order);
	return ESP_OK;
}

/* ---- the page ---- */

static enum esp_status put_document(const struct probe_outcome *outcome, FILE *file)
{
	bool is_large = outcome->found.survey.count > CELLS_MOST;
	enum esp_status status = ESP_OK;
	struct json json;

	json_init(&json, file);
	json.flat_depth = 2;
	json_object_begin(&json);
	probe_tool_put_keys(outcome, !is_large, &json);
	json_key(&json, "page");
	json_object_begin(&json);
	json_put_string(&json, "topology_file", outcome->options->out);
	status = put_map(outcome, &json);
	if (is_large && status == ESP_OK)
		status = put_means(outcome, &json);
	json_object_end(&json);
	json_object_end(&json);
	enum esp_status written = json_fini(&json);
	return status != ESP_OK ? status : written;
}

enum esp_status probe_tool_print_html(const struct probe_outcome *outcome, FILE *file, struct error *err)
{
	char *text = NULL;
	size_t length = 0;
	FILE *document = open_memstream(&text, &length);
	enum esp_status status = document ? put_document(outcome, document) : ESP_ENOMEM;

	if (document && fclose(document) != 0 && status == ESP_OK)
		status = ESP_ENOMEM;
	if (status == ESP_OK)
		status = page_write(probe_report_page, text, length, file);
	free(text);
	return status == ESP_OK ? ESP_OK : error_set(err, status, "the report cannot be written");
}
