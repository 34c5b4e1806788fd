/*
 * replay.h - traces as the simulator uses them: a model, and when each worker had each gradient.
 *
 * Parameters are found again among the gradients by their names, and where those differ by their server and their size, in the
 * reverse of the forward order. What has no gradient is only distributed; a gradient without its parameter is refused. Round-robin
 * over as many servers as the traces have gives each parameter to the server that had it.
 *
 * Pure, plain data of one thread.
 */
#ifndef SIM_WORKLOAD_REPLAY_H
#define SIM_WORKLOAD_REPLAY_H

#include "sim/workload/model.h"
#include "sim/workload/traces.h"

struct replay_file {
	uint32_t rank, iteration;
	double *ready_s; /* by parameter: seconds from the end of the forward pass until its gradient may be sent; 0 if !aggregated */
};

struct replay {
	struct model model; /* backward_s: the slowest file's last gradient; grad_ready: the mean of all files, as a share of it */
	struct replay_file *files; /* by iteration and rank */
	uint32_t file_count;
	uint32_t server_count; /* at least 1 */
};

/* ESP_EPARSE: a destination is no server, a gradient has no parameter, a layer is none: with file and line. ESP_ENOMEM. Either way replay_fini() is allowed. */
ESP_CHECKED enum esp_status replay_init(struct replay *replay, const struct traces *traces, struct error *err);
void replay_fini(struct replay *replay);

/*
 * Whose times a worker has in an iteration: its own where they were recorded; otherwise those of a file drawn with the seed, of the
 * same iteration if there are any.
 */
const struct replay_file *replay_pick(const struct replay *replay, uint32_t worker, uint32_t iteration, uint64_t seed);

/* How much of so many workers and iterations was recorded. */
struct replay_coverage {
	uint32_t workers, iterations; /* of which there is something       */
	uint64_t drawn;               /* iterations of a worker that are not its own */
};
struct replay_coverage replay_coverage(const struct replay *replay, uint32_t workers, uint32_t iterations);

#endif
