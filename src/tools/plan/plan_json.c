#include "tools/plan/plan_json.h"

#include <stdio.h>

#include "tools/plan/plan_options.h"

const char *plan_tool_place_name(uint32_t place, char *text)
{
	if (place == PLAN_IN)
		return "in";
	if (place == PLAN_OUT)
		return "out";
	snprintf(text, 16, "tmp%u", place - PLAN_TMP);
	return text;
}

void plan_tool_json_facts(struct json *json, const struct plan *plan)
{
	json_put_string(json, "planner", plan->planner ? plan_planner_name(plan->planner) : NULL);
	json_put_string(json, "collective", plan_collective_name(plan->chunks.collective));
	json_put_u64(json, "workers", plan->workers);
	json_put_u64(json, "nodes", plan->nodes);
	json_put_u64(json, "groups", plan->group_count);
	json_put_bool(json, "in_place", plan->in_place);
	json_put_u64(json, "chunk_count", plan->chunks.chunk_count);
}

void plan_tool_json_layout(struct json *json, const struct plan *plan)
{
	json_key(json, "root");
	if (plan_collective_has_root(plan->chunks.collective))
		json_u64(json, plan->chunks.root);
	else
		json_none(json);
	json_key(json, "group_of");
	json_array_begin(json);
	for (uint32_t node = 0; plan->group_count && node < plan->nodes; node++)
		json_u64(json, plan->group_of[node]);
	json_array_end(json);
	json_key(json, "input_bytes");
	json_array_begin(json);
	for (uint32_t node = 0; node < plan->workers; node++)
		json_u64(json, plan_chunks_input_bytes(&plan->chunks, node));
	json_array_end(json);
	json_key(json, "output_bytes");
	json_array_begin(json);
	for (uint32_t node = 0; node < plan->workers; node++)
		json_u64(json, plan_chunks_output_bytes(&plan->chunks, node));
	json_array_end(json);
}

void plan_tool_json_report(struct json *json, const struct plan *plan, const struct plan_report *report)
{
	json_put_u64(json, "rounds", report->rounds);
	json_put_u64(json, "messages", report->messages);
	json_put_u64(json, "wire_bytes", report->wire_bytes);
	json_key(json, "cross_bytes");
	if (plan->group_count)
		json_u64(json, report->cross_bytes);
	else
		json_none(json);
	json_put_u64(json, "busiest_node", report->busiest_node);
	json_put_u64(json, "busiest_bytes", report->busiest_bytes);
	json_put_u64(json, "busiest_sent", report->busiest_sent);
	json_put_u64(json, "busiest_received", report->busiest_received);
	json_put_u64(json, "rows", report->rows);
	json_put_u64(json, "steps", report->steps);
	json_put_u64(json, "row_steps", report->row_steps);
	json_put_u64(json, "scratch_slots", report->scratch_slots);
}

/* ---- steps ---- */

static void put_place(struct json *json, const char *key, uint32_t place)
{
	char text[16];

	json_put_string(json, key, plan_tool_place_name(place, text));
}

static void put_terms(struct json *json, const struct plan_step *terms, uint32_t count)
{
	char text[16];

	json_key(json, "terms");
	json_array_begin(json);
	for (uint32_t i = 0; i < count; i++) {
		if (terms[i].verb == PLAN_TERM)
			json_u64(json, terms[i].node);
		else
			json_text(json, plan_tool_place_name(terms[i].place, text));
	}
	json_array_end(json);
}

/* Writes one step; returns the number of plan steps that it consists of, as a fold is followed by its terms. */
static uint32_t put_step(struct json *json, const struct plan_step *step)
{
	static const char *const verbs[] = {
		[PLAN_FETCH] = "fetch", [PLAN_SEND] = "send",     [PLAN_RECV] = "recv=",      [PLAN_FOLD] = "recv+",
		[PLAN_COPY] = "copy",   [PLAN_UPDATE] = "update", [PLAN_DELIVER] = "deliver",
	};
	uint8_t verb = step->verb;

	json_object_begin(json);
	json_put_string(json, "verb", verbs[verb]);
	if (verb != PLAN_FETCH && verb != PLAN_DELIVER)
		put_place(json, "place", step->place);
	if (verb == PLAN_SEND)
		json_put_u64(json, "to", step->node);
	else if (verb == PLAN_RECV)
		json_put_u64(json, "from", step->node);
	else if (verb == PLAN_COPY)
		put_place(json, "source", step->source);
	else if (verb == PLAN_FOLD)
		put_terms(json, step + 1, step->count);
	json_object_end(json);
	return verb == PLAN_FOLD ? 1 + step->count : 1;
}

static enum esp_status put_row(struct json *json, const struct plan *plan, uint32_t node, uint64_t chunk,
                               struct plan_row *row)
{
	enum esp_status status = plan_row(plan, node, chunk, row);

	if (status != ESP_OK || row->count == 0)
		return status;
	json_object_begin(json);
	json_put_u64(json, "node", node);
	json_key(json, "steps");
	json_array_begin(json);
	for (uint32_t i = 0; i < row->count;)
		i += put_step(json, &row->steps[i]);
	json_array_end(json);
	json_object_end(json);
	return ESP_OK;
}

/* ---- chunks ---- */

static void put_side(struct json *json, const char *key, uint32_t who)
{
	json_key(json, key);
	if (who == PLAN_ALL)
		json_text(json, "all");
	else
		json_u64(json, who);
}

static enum esp_status put_chunk(struct json *json, const struct plan *plan, uint64_t chunk, uint32_t only,
                                 struct plan_row *row)
{
	struct plan_piece piece = plan_chunks_piece(&plan->chunks, chunk);
	enum esp_status status = ESP_OK;

	json_object_begin(json);
	json_put_u64(json, "chunk", chunk);
	json_put_u64(json, "bytes", piece.bytes);
	json_put_u64(json, "in_at", piece.in_at);
	json_put_u64(json, "out_at", piece.out_at);
	put_side(json, "from", piece.from);
	put_side(json, "to", piece.to);
	json_key(json, "rows");
	json_array_begin(json);
	for (uint32_t node = 0; status == ESP_OK && node < plan->nodes; node++) {
		if (only == PLAN_NONE || only == node)
			status = put_row(json, plan, node, chunk, row);
	}
	json_array_end(json);
	json_object_end(json);
	return status;
}

enum esp_status plan_tool_json_chunks(struct json *json, const struct plan *plan, const struct plan_filter *filter,
                                      struct error *err)
{
	struct plan_row row = {0};
	enum esp_status status = ESP_OK;

	json_key(json, "chunks");
	json_array_begin(json);
	for (uint64_t c = 0; status == ESP_OK && c < plan->chunks.chunk_count; c++) {
		if (filter->chunk == UINT64_MAX || filter->chunk == c)
			status = put_chunk(json, plan, c, filter->node, &row);
	}
	json_array_end(json);
	plan_row_fini(&row);
	return status == ESP_OK ? ESP_OK : error_set(err, status, "no memory for a row of the plan");
}

enum esp_status plan_tool_json_print(const struct plan *plan, const struct plan_filter *filter, struct error *err)
{
	struct json json;

	json_init(&json, stdout);
	json_object_begin(&json);
	plan_tool_json_facts(&json, plan);
	plan_tool_json_layout(&json, plan);
	enum esp_status status = plan_tool_json_chunks(&json, plan, filter, err);
	json_object_end(&json);
	if (json_fini(&json) != ESP_OK && status == ESP_OK)
		status = error_set(err, ESP_EIO, "cannot write to the standard output");
	return status;
}
