/*
 * plan_setup.h - a request with its files read and its sizes worked out: what a planner is given.
 */
#ifndef TOOLS_PLAN_PLAN_SETUP_H
#define TOOLS_PLAN_PLAN_SETUP_H

#include "tools/plan/plan_options.h"

/* Owns what the spec borrows. */
struct plan_setup {
	struct plan_spec spec;
	uint64_t chunk_count; /* that the plan will have */
	uint32_t *group_of, *order, *zone_of;
	uint64_t *counts;
};

/* For one planner, whose habits fill in what was left open. ESP_EINVAL, ESP_EPARSE, ESP_EIO, ESP_ENOMEM. */
ESP_CHECKED enum esp_status plan_setup_init(struct plan_setup *setup, const struct plan_request *request,
                                            const struct planner *planner, struct error *err);
void plan_setup_fini(struct plan_setup *setup);

#endif
