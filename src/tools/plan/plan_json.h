/*
 * plan_json.h - plans and what the checker counts in them, as JSON with stable keys.
 */
#ifndef TOOLS_PLAN_PLAN_JSON_H
#define TOOLS_PLAN_PLAN_JSON_H

#include "plan/check.h"
#include "plan/plan.h"
#include "report/json.h"

/* Which rows: of one node (PLAN_NONE: all) and one chunk (UINT64_MAX: all). */
struct plan_filter {
	uint32_t node;
	uint64_t chunk;
};

/* Keys of the object that is open: what the plan is for. */
void plan_json_facts(struct json *json, const struct plan *plan);
/*
 * More of them, with which the chunks are the whole plan: the root (null where the
 * collective has none), the group of every node (empty where none are known), and the
 * bytes of every worker's input and output.
 */
void plan_json_layout(struct json *json, const struct plan *plan);
/* Keys of the object that is open: what the checker counted. cross_bytes is null where no groups are known. */
void plan_json_report(struct json *json, const struct plan *plan, const struct plan_report *report);
/* A key "chunks" with the pieces and rows that pass the filter. */
ESP_CHECKED enum esp_status plan_json_chunks(struct json *json, const struct plan *plan,
                                             const struct plan_filter *filter, struct error *err);

/* The facts, the layout and the chunks, as one document on stdout. */
ESP_CHECKED enum esp_status plan_json_print(const struct plan *plan, const struct plan_filter *filter,
                                            struct error *err);

/* "in", "out", "tmp0"; text holds 16 bytes. */
const char *plan_place_name(uint32_t place, char *text);

#endif
