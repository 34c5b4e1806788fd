/*
 * traces_edit.h - traces made from a model, and changed traces.
 *
 * Pure, plain data of one thread. After an error only workload_traces_fini() is allowed.
 */
#ifndef SIM_WORKLOAD_TRACES_EDIT_H
#define SIM_WORKLOAD_TRACES_EDIT_H

#include "sim/workload/model.h"
#include "sim/workload/traces.h"

struct traces_make {
	uint32_t workers, iterations, servers; /* at least 1 */
	double jitter; /* each worker's and iteration's backward pass takes up to this share longer, uniformly */
	uint64_t seed;
};

/*
 * The traces that such workers would have, each at the speed from workload_load_init(). Parameters are assigned to
 * servers round-robin over all variables. ESP_ENOMEM, ESP_EINVAL.
 */
ESP_CHECKED enum esp_status workload_traces_make(struct traces *traces, const struct model *model,
                                                 const struct traces_make *how, struct error *err);

/* Makes all computation `factor` times as fast. factor > 0. */
void workload_traces_scale(struct traces *traces, double factor);

struct traces_addition {
	const struct model *model; /* the source of the layers and their times */
	const char *prefix;        /* of the names of these layers: "mixed_35x35x288b" */
	const char *after;         /* they follow layers with this prefix in the traces; NULL: layers with `prefix` */
	uint32_t count;            /* copies, one behind the other in the forward pass */
};

/* ESP_EINVAL: the model has no such layers, or the traces none to follow; ESP_ENOMEM, ESP_ELIMIT. */
ESP_CHECKED enum esp_status workload_traces_add(struct traces *traces, const struct traces_addition *addition,
                                                struct error *err);

#endif
