/*
 * traces_edit.h - traces out of nothing but a model, and traces of trainings that nobody has run yet.
 *
 * Pure, plain data of one thread. What fails leaves the traces such that traces_fini() is all that may follow.
 */
#ifndef SIM_WORKLOAD_TRACES_EDIT_H
#define SIM_WORKLOAD_TRACES_EDIT_H

#include "sim/workload/model.h"
#include "sim/workload/traces.h"

struct traces_make {
	uint32_t workers, iterations, servers; /* at least 1 */
	double jitter; /* each worker's and iteration's backward pass takes up to this share longer, drawn evenly */
	uint64_t seed;
};

/* What such workers would have been seen to do, each at the speed that load_init() gives it. Parameters go to servers round-robin over all variables. ESP_ENOMEM, ESP_EINVAL. */
ESP_CHECKED enum esp_status traces_make(struct traces *traces, const struct model *model, const struct traces_make *how, struct error *err);

/* Everything is computed so many times as fast. factor > 0. */
void traces_scale(struct traces *traces, double factor);

struct traces_addition {
	const struct model *model; /* whose layers are copied, with its times                                    */
	const char *prefix;        /* of the names of these layers: "mixed_35x35x288b"                           */
	const char *after;         /* they follow what begins with this in the traces; NULL: what begins with prefix */
	uint32_t count;            /* copies, one behind the other in the forward pass                           */
};

/* ESP_EINVAL: the model has no such layers, or the traces nothing that they could follow; ESP_ENOMEM, ESP_ELIMIT. */
ESP_CHECKED enum esp_status traces_add(struct traces *traces, const struct traces_addition *addition, struct error *err);

#endif
