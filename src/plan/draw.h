/*
 * draw.h - a picture of a plan, as SVG: which node sends which chunks where, round by round.
 *
 * Nodes are columns, time runs down, and every message is an arrow from the row of the round before to the row of its
 * own. Below each round stand the contributions that have arrived at every node: a cell per chunk, filled with a stripe
 * per contribution, solid when it is complete. Everything comes from the checker's walk over the plan, so only a plan
 * that passes can be drawn. The same plan gives the same bytes.
 */
#ifndef PLAN_DRAW_H
#define PLAN_DRAW_H

#include <stdio.h>

#include "plan/plan.h"

/* Beyond these a picture explains nothing any more. */
#define DRAW_WORKERS_MAX 32u
#define DRAW_NODES_MAX 64u /* with extra nodes */
#define DRAW_CHUNKS_MAX 16u
#define DRAW_ROUNDS_MAX 128u

#define DRAW_ALL_CHUNKS UINT64_MAX

/*
 * Draws one chunk or all. ESP_ELIMIT: too much for a picture, err says what to do instead;
 * ESP_EPLAN: the plan is wrong, err says why; ESP_EINVAL: no such chunk; ESP_EIO, ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status plan_draw(const struct plan *plan, uint64_t chunk, FILE *file, struct error *err);

#endif
