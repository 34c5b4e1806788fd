/*
 * trace.h - what one worker sent in one iteration, or what one server distributes, in order: one CSV file.
 *
 *     time_s,parameter,bytes,source,destination
 *     0,logits/biases,4004,worker0,server0
 *     0.0012,logits/weights,8200192,worker0,server0
 *
 * A field with a comma or a quote in it stands in quotes, as usual ("" is a quote). Pure: any bytes may be given, and what is
 * wrong in them is said with its line.
 */
#ifndef SIM_WORKLOAD_TRACE_H
#define SIM_WORKLOAD_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define TRACE_EVENTS_MAX (1u << 20)
#define TRACE_BYTES_MAX (UINT64_C(1) << 50) /* of an event: those of a whole file can be added up */

struct trace_event {
	double time_s;    /* since the first event of the file; of a server: any number that puts them in order */
	char *parameter;  /* not empty */
	uint64_t bytes;   /* at least 1 */
	char *source, *destination;
	uint32_t line; /* in the file; 0: it was made here */
};

struct trace {
	struct trace_event *events; /* in the order of the file */
	uint32_t count, capacity;
};

/* file names the text in messages: "FILE:LINE: REASON". ESP_EPARSE, ESP_ENOMEM. Either way trace_fini() is allowed. */
ESP_CHECKED enum esp_status trace_parse(struct trace *trace, const char *file, const char *text, size_t size, struct error *err);
void trace_fini(struct trace *trace);

/* Copies the texts of *event and appends it. ESP_ENOMEM, ESP_ELIMIT. */
ESP_CHECKED enum esp_status trace_add(struct trace *trace, const struct trace_event *event, struct error *err);

/* By time; what has the same time keeps its order. ESP_ENOMEM. */
ESP_CHECKED enum esp_status trace_sort(struct trace *trace, struct error *err);

/* What trace_parse() makes the same trace of. ESP_EIO. */
ESP_CHECKED enum esp_status trace_write(const struct trace *trace, FILE *out, struct error *err);

#endif
