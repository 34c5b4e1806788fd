/*
 * rows.h - the rows of a plan, computed once: for running the same plan, or plans that differ in sizes alone, many
 * times.
 *
 * A training has a call for every layer. Their plans are one plan for buffers of different sizes, and their messages do
 * not depend on sizes, but for owners that are spread by size, which are compared. Any thread may read them.
 */
#ifndef PLAN_ROWS_H
#define PLAN_ROWS_H

#include "plan/plan.h"

struct plan_rows;

/* The rows of all nodes and chunks. The plan is borrowed as long as they are there. ESP_ENOMEM. */
ESP_CHECKED enum esp_status plan_rows_open(const struct plan *plan, struct plan_rows **out, struct error *err);
void plan_rows_close(struct plan_rows *rows); /* NULL is fine */

/*
 * Has this plan the same rows? Then plan_row() takes them from there from now on, and they are borrowed as long as the
 * plan is there.
 */
bool plan_rows_share(struct plan *plan, const struct plan_rows *rows);

/* One of them; borrowed. */
struct plan_row plan_rows_at(const struct plan_rows *rows, uint32_t node, uint64_t chunk);

#endif
