/*
 * plan_work.h - estimates how long walking plans will take, announces it, and shows progress. Main thread; stderr
 * only.
 *
 * Work of more than a few seconds is announced on stderr; on a terminal a percentage follows. Estimates are rough: a
 * row is a chunk on a node, and its cost was measured on one machine.
 *
 *       struct plan_work work = {0};
 *       plan_tool_work_add(&work, planner, &setup);        for each plan
 *       plan_tool_work_announce(&work, "plan check");
 *       plan_tool_work_check(&work, plan, &report, ...);   in place of plan_check(), for each
 *       plan_tool_work_end(&work);
 */
#ifndef TOOLS_PLAN_PLAN_WORK_H
#define TOOLS_PLAN_PLAN_WORK_H

#include "plan/check.h"
#include "tools/plan/plan_setup.h"

struct plan_work {
	double rows;    /* of all plans */
	double seconds; /* estimated time of all of them */
	double done;    /* part of that time, of plans that were checked */
	double now;     /* part of that time, of the plan that is being checked */
	uint64_t chunks; /* of that plan */
	const char *command;
	bool shows;  /* progress is shown on the terminal */
	int percent; /* the last one shown */
};

void plan_tool_work_add(struct plan_work *work, const struct planner *planner, const struct plan_setup *setup);
void plan_tool_work_add_plan(struct plan_work *work, const struct plan *plan);
void plan_tool_work_announce(struct plan_work *work, const char *command);

/* plan_check() with progress; the same result. */
ESP_CHECKED enum esp_status plan_tool_work_check(struct plan_work *work, const struct plan *plan,
                                                 struct plan_report *out_report, struct plan_fault *out_fault,
                                                 struct error *err);
/* Removes the percentage; before any further output. */
void plan_tool_work_end(struct plan_work *work);

#endif
