/*
 * replay.h - traces for the simulator: a model, and the time of each gradient on each worker.
 *
 * Parameters are matched with gradients by name, or, if the names differ, by server and size in the reverse of
 * the forward order. A parameter without a gradient is only distributed; a gradient without a parameter is
 * refused. Round-robin over as many servers as the traces have assigns each parameter to its recorded server.
 *
 * Pure, plain data of one thread.
 */
#ifndef SIM_WORKLOAD_REPLAY_H
#define SIM_WORKLOAD_REPLAY_H

#include "sim/workload/model.h"
#include "sim/workload/traces.h"

struct replay_file {
	uint32_t rank, iteration;
	/* by parameter: seconds from the end of the forward pass until its gradient may be sent; 0 if !aggregated */
	double *ready_s;
};

struct replay {
	/* backward_s: the last gradient of the slowest file; grad_ready: the mean of all files, as a share of it */
	struct model model;
	struct replay_file *files; /* by iteration and rank */
	uint32_t file_count;
	uint32_t server_count; /* at least 1 */
};

/*
 * ESP_EPARSE, with file and line: a destination is no server, a gradient has no parameter, a layer does not
 * exist. ESP_ENOMEM. workload_replay_fini() is allowed in any case.
 */
ESP_CHECKED enum esp_status workload_replay_init(struct replay *replay, const struct traces *traces, struct error *err);
void workload_replay_fini(struct replay *replay);

/*
 * The file whose times a worker has in an iteration: its own if it was recorded; otherwise one drawn with the
 * seed, of the same iteration if there is one.
 */
const struct replay_file *workload_replay_pick(const struct replay *replay, uint32_t worker, uint32_t iteration,
                                               uint64_t seed);

/* How much of so many workers and iterations was recorded. */
struct replay_coverage {
	uint32_t workers, iterations; /* with at least one record */
	uint64_t drawn;               /* iterations of a worker that are drawn */
};
struct replay_coverage workload_replay_coverage(const struct replay *replay, uint32_t workers, uint32_t iterations);

#endif
