/*
 * trace.h - the messages of one worker in one iteration, or the parameters of one server, in order: one CSV
 * file.
 *
 *     time_s,parameter,bytes,source,destination
 *     0,logits/biases,4004,worker0,server0
 *     0.0012,logits/weights,8200192,worker0,server0
 *
 * A field with a comma or a quote is quoted ("" is a quote). Pure: the text may be any bytes, and errors tell
 * the line.
 */
#ifndef SIM_WORKLOAD_TRACE_H
#define SIM_WORKLOAD_TRACE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define TRACE_EVENTS_MAX (1u << 20)
#define TRACE_BYTES_MAX (UINT64_C(1) << 50) /* of an event: so that a file's total does not overflow */

struct trace_event {
	double time_s;    /* since the first event of the file; of a server: any number that orders them */
	char *parameter;  /* not empty */
	uint64_t bytes;   /* at least 1 */
	char *source, *destination;
	uint32_t line; /* in the file; 0: made by this program */
};

struct trace {
	struct trace_event *events; /* in the order of the file */
	uint32_t count;
	size_t capacity;
};

/* file names the text in messages: "FILE:LINE: REASON". ESP_EPARSE, ESP_ENOMEM. workload_trace_fini() is allowed in any
 * case. */
ESP_CHECKED enum esp_status workload_trace_parse(struct trace *trace, const char *file, const char *text, size_t size,
                                                 struct error *err);
void workload_trace_fini(struct trace *trace);

/* Appends *event with copies of its texts. ESP_ENOMEM, ESP_ELIMIT. */
ESP_CHECKED enum esp_status workload_trace_add(struct trace *trace, const struct trace_event *event, struct error *err);

/* Sorts by time, stably. ESP_ENOMEM. */
ESP_CHECKED enum esp_status workload_trace_sort(struct trace *trace, struct error *err);

/* Writes text from which workload_trace_parse() makes the same trace. ESP_EIO. */
ESP_CHECKED enum esp_status workload_trace_write(const struct trace *trace, FILE *out, struct error *err);

#endif
