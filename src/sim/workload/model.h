/*
 * model.h - a network to be trained: its parameters one by one, and its computing times.
 *
 * Read from JSON; docs/models.md describes the format, data/models/ has the shipped ones, scripts/models/ makes
 * them. Pure but for workload_model_load(): the text may be anything, and errors tell their place in it.
 *
 * Three kinds of values (enum model_set), each with all of the previous ones. Results say which kind they
 * depend on.
 */
#ifndef SIM_WORKLOAD_MODEL_H
#define SIM_WORKLOAD_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MODEL_FILE_MAX ((size_t)256 << 20)

enum model_set {
	MODEL_PUBLIC,     /* sizes, order and shares from the architecture, times measured or computed */
	MODEL_FACTORS,    /* and one or two factors per network, fitted to published results */
	MODEL_CALIBRATED, /* and the order of sending and each worker's speed, fitted */
};
/* "public", "factors", "calibrated", NULL: for tables of options. */
extern const char *const model_set_names[];

/* A trained variable. */
struct model_parameter {
	char *name;
	uint64_t bytes;
	uint64_t macs;          /* multiply-adds of its layer for one sample; on one parameter of a layer     */
	uint32_t forward_order; /* position of the layer in the forward pass; equal within a layer */
	uint32_t variable;      /* index among all variables, moving averages included: server = index mod P  */
	double forward_share;   /* share of forward_s that its layer takes; all of them sum up to 1           */
	double grad_ready;      /* share of backward_s after which the gradient may be sent; 0 if !aggregated */
	double backward_share;  /* of it, since the previous gradient; 0 on the others of a layer */
	bool aggregated;        /* false: it is distributed, but its gradient is not sent */
	bool distributed;       /* false: only its gradient was recorded (traces); true in every model file */
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
	char *time_source;  /* source of the times, for messages */
	bool times_assumed; /* computed from operations and a rate, not measured */
	uint32_t batch;     /* samples of a worker and an iteration */
	/* MODEL_FACTORS */
	double slowest_factor;      /* on the slowest worker's backward_s; 1: none           */
	double distribution_factor; /* on the bytes distributed if there is one server; 1: none */
	/* MODEL_CALIBRATED */
	double *worker_factors; /* on each worker's gradient times; NULL: none */
	uint32_t worker_factor_count;
	uint32_t *distribution_order; /* indices of parameters in the order of sending, each once; NULL: none */
};

struct model_options {
	enum model_set set;
	double flops;         /* operations per second: the times follow from it; 0: the file's times */
	uint32_t batch;       /* samples of a worker and an iteration; 0: the file's */
	uint32_t value_bytes; /* bytes of a value on the wire; 0: the file's */
};

/*
 * file names the text in messages: "FILE:LINE:COLUMN: REASON" for invalid JSON, "FILE: parameters[3]
 * ('fc8/weights'): REASON" for an invalid model. ESP_EPARSE; ESP_EINVAL: it has no values of that set, or no
 * times for that batch; ESP_ENOMEM. options may be NULL: public, with the file's values. workload_model_fini() is
 * allowed in any case.
 */
ESP_CHECKED enum esp_status workload_model_parse(struct model *model, const char *file, const char *text, size_t size,
                                                 const struct model_options *options, struct error *err);
/* The same from a file. Also ESP_EIO. */
ESP_CHECKED enum esp_status workload_model_load(struct model *model, const char *path,
                                                const struct model_options *options, struct error *err);
void workload_model_fini(struct model *model);

/* Sets each backward_share from grad_ready. ESP_EPARSE: no parameter is aggregated; ESP_ENOMEM. */
ESP_CHECKED enum esp_status workload_model_share_backward(struct model *model, struct error *err);

uint64_t workload_model_bytes(const struct model *model);            /* distributed */
uint64_t workload_model_aggregated_bytes(const struct model *model); /* sent back */
uint64_t workload_model_macs(const struct model *model);             /* of one sample, forward */

#endif
