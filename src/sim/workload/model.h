/*
 * model.h - a network that is trained, as the simulator sees it: its parameters one by one, and how long it computes.
 *
 * Read from JSON; docs/models.md describes the format, data/models/ holds those that are shipped, scripts/models/ makes them.
 * Pure but for model_load(): the text may be anything, and what is wrong in it is said with its place.
 *
 * Three kinds of values (enum model_set), each with all of the kinds before it. Whoever shows a result says which one it rests on.
 */
#ifndef SIM_WORKLOAD_MODEL_H
#define SIM_WORKLOAD_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MODEL_FILE_MAX ((size_t)256 << 20)

enum model_set {
	MODEL_PUBLIC,     /* sizes, order and shares from the architecture, times as measured or computed */
	MODEL_FACTORS,    /* and a factor or two per network, read back from published results            */
	MODEL_CALIBRATED, /* and the order of sending and each worker's speed: a fit                      */
};
/* "public", "factors", "calibrated", NULL: for tables of options. */
extern const char *const model_set_names[];

/* One variable that is trained. */
struct model_parameter {
	char *name;
	uint64_t bytes;
	uint64_t macs;          /* multiply-adds of its layer for one sample; on one parameter of a layer     */
	uint32_t forward_order; /* the layer's place in the forward pass; equal within a layer                */
	uint32_t variable;      /* index among all variables, moving averages included: server = index mod P  */
	double forward_share;   /* share of forward_s that its layer takes; all of them sum up to 1           */
	double grad_ready;      /* share of backward_s after which the gradient may be sent; 0 if !aggregated */
	double backward_share;  /* of it, spent since the gradient before; 0 on the others of a layer         */
	bool aggregated;        /* false: it is distributed, but no gradient of it is sent                    */
	bool distributed;       /* false: only its gradient was seen (traces); true in every model file       */
};

/* A variable that is not trained: it takes a place on a server, and nothing else. */
struct model_average {
	char *name;
	uint64_t bytes;
	uint32_t variable;
};

struct model {
	char *name;  /* "vgg-16" */
	char *about; /* a sentence or two; "" if the file has none */
	enum model_set set;
	struct model_parameter *parameters;
	uint32_t parameter_count;
	struct model_average *averages;
	uint32_t average_count;
	double forward_s;   /* of one iteration on one worker */
	double backward_s;
	char *time_source;  /* where the times come from, for people */
	bool times_assumed; /* computed from operations and a rate, not measured */
	uint32_t batch;     /* samples of a worker and an iteration */
	/* MODEL_FACTORS */
	double slowest_factor;      /* on the slowest worker's backward_s; 1: none           */
	double distribution_factor; /* on the bytes sent out where there is one server; 1    */
	/* MODEL_CALIBRATED */
	double *worker_factors; /* on each worker's gradient times; NULL: none */
	uint32_t worker_factor_count;
	uint32_t *distribution_order; /* indices of parameters in the order of sending, each once; NULL: none */
};

struct model_options {
	enum model_set set;
	double flops;         /* operations per second: the times follow from it; 0: as the file says */
	uint32_t batch;       /* samples of a worker and an iteration; 0: as the file says */
	uint32_t value_bytes; /* bytes of a value on the wire; 0: as the file says */
};

/*
 * file names the text in messages: "FILE:LINE:COLUMN: REASON" for what is no JSON, "FILE: parameters[3] ('fc8/weights'): REASON" for
 * what is no model. ESP_EPARSE; ESP_EINVAL: it has no values of that set, or no times of that batch; ESP_ENOMEM. options may be NULL: public, as the file says.
 * Either way model_fini() is allowed afterwards.
 */
ESP_CHECKED enum esp_status model_parse(struct model *model, const char *file, const char *text, size_t size,
                                        const struct model_options *options, struct error *err);
/* The same of a file. ESP_EIO as well. */
ESP_CHECKED enum esp_status model_load(struct model *model, const char *path, const struct model_options *options, struct error *err);
void model_fini(struct model *model);

/* Sets each backward_share from grad_ready. ESP_EPARSE: no parameter is aggregated; ESP_ENOMEM. */
ESP_CHECKED enum esp_status model_share_backward(struct model *model, struct error *err);

uint64_t model_bytes(const struct model *model);            /* what is distributed   */
uint64_t model_aggregated_bytes(const struct model *model); /* what is sent back     */
uint64_t model_macs(const struct model *model);             /* of one sample, forward */

#endif
