/*
 * lane.h - one lane of a node: its executors behind the connections of a transport.
 *
 * A lane has a few streams, each an executor of its own. Calls on different streams do not
 * wait for each other, so a small call need not queue behind a large one; calls on one
 * stream must be started in the same order on all nodes. All streams of a lane share one
 * connection per peer; the channel in each frame says which stream it is for. A lane is
 * driven by one thread at a time and shares nothing with other lanes.
 */
#ifndef ENGINE_LANE_H
#define ENGINE_LANE_H

#include "engine/exec.h"

struct lane;

struct lane_config {
	struct exec_config exec; /* of each stream */
	uint32_t streams;
};

ESP_CHECKED enum esp_status lane_open(const struct lane_config *config, struct lane **out, struct error *err);
void lane_close(struct lane *lane); /* NULL is fine */

/* As exec_start(), on one of the streams. */
ESP_CHECKED enum esp_status lane_start(struct lane *lane, uint32_t stream, const struct exec_call *call,
                                       struct error *err);
bool lane_take_done(struct lane *lane, struct exec_done *out);

/* All streams of a lane fail together, and the first reason counts. */
void lane_fail(struct lane *lane, uint32_t peer, enum esp_status status);
struct exec_failure lane_failure(const struct lane *lane);
struct exec_stats lane_stats(const struct lane *lane); /* over its streams */

/* What a transport calls; its user is the lane. */
extern const struct transport_user lane_user;

/* Which lane each chunk of a plan belongs to: out_lane[chunk], by longest first. All nodes compute the same. */
ESP_CHECKED enum esp_status lanes_assign(const struct plan *plan, uint32_t lanes, uint8_t *out_lane);

#endif
