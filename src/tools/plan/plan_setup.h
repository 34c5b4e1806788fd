/*
 * plan_setup.h - the input of a planner, made from a request: files are read, sizes and orders computed. Main thread;
 * reads files.
 */
#ifndef TOOLS_PLAN_PLAN_SETUP_H
#define TOOLS_PLAN_PLAN_SETUP_H

#include "tools/plan/plan_options.h"

/* The spec, and the arrays that it borrows. */
struct plan_setup {
	struct plan_spec spec;
	uint64_t chunk_count; /* number of chunks of the plan */
	uint32_t *group_of, *order, *zone_of;
	uint64_t *counts;
};

/* For one planner, whose defaults replace options that were not given. ESP_EINVAL, ESP_EPARSE, ESP_EIO, ESP_ENOMEM. */
ESP_CHECKED enum esp_status plan_tool_setup_init(struct plan_setup *setup, const struct plan_request *request,
                                                 const struct planner *planner, struct error *err);
void plan_tool_setup_fini(struct plan_setup *setup);

#endif
