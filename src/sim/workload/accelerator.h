/*
 * accelerator.h - speeds of accelerators, for models without measured times.
 *
 * Peaks are from the makers' data sheets; the share of the peak that training reaches is an assumption, and
 * results that depend on it say so. Pure; the table is constant.
 */
#ifndef SIM_WORKLOAD_ACCELERATOR_H
#define SIM_WORKLOAD_ACCELERATOR_H

#include <stddef.h>

#include "base/error.h"

struct accelerator {
	const char *name;   /* "v100-fp32"                                             */
	const char *title;  /* for messages: maker, model, kind of arithmetic */
	double peak;        /* floating-point operations per second, from the data sheet */
	double reached;     /* share of the peak that training reaches: assumed        */
};

/* All of them, by index; NULL behind the last. */
const struct accelerator *workload_accelerator_at(size_t index);

/*
 * Operations per second that training reaches: of an accelerator by its name, or a number such as 4.5e13 or 45T
 * (K, M, G, T and P are powers of 1000), which is used as it is. ESP_EINVAL: neither.
 */
ESP_CHECKED enum esp_status workload_accelerator_rate(const char *text, double *out_flops, struct error *err);

#endif
