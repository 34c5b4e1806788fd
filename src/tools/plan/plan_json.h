/*
 * plan_json.h - plans and the checker's report on them, as JSON with stable keys. One thread; no I/O but the JSON's
 * FILE, and stdout in plan_tool_json_print().
 */
#ifndef TOOLS_PLAN_PLAN_JSON_H
#define TOOLS_PLAN_PLAN_JSON_H

#include "plan/check.h"
#include "plan/plan.h"
#include "report/json.h"

/* Selects rows: of one node (PLAN_NONE: all) and one chunk (UINT64_MAX: all). */
struct plan_filter {
	uint32_t node;
	uint64_t chunk;
};

/* Puts keys into the open object: collective, sizes, planner. */
void plan_tool_json_facts(struct json *json, const struct plan *plan);
/*
 * Puts further keys, which together with the chunks make up the whole plan: the root (null if the collective has
 * none), the group of every node (empty if none are known), and the bytes of every worker's input and output.
 */
void plan_tool_json_layout(struct json *json, const struct plan *plan);
/* Puts the counts of the checker into the open object. cross_bytes is null if no groups are known. */
void plan_tool_json_report(struct json *json, const struct plan *plan, const struct plan_report *report);
/* Puts a key "chunks" with the pieces and rows that pass the filter. */
ESP_CHECKED enum esp_status plan_tool_json_chunks(struct json *json, const struct plan *plan,
                                                  const struct plan_filter *filter, struct error *err);

/* Prints facts, layout and chunks as one document on stdout. */
ESP_CHECKED enum esp_status plan_tool_json_print(const struct plan *plan, const struct plan_filter *filter,
                                                 struct error *err);

/* "in", "out", "tmp0"; text holds 16 bytes. */
const char *plan_tool_place_name(uint32_t place, char *text);

#endif
