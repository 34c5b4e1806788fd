/*
 * trace_read.h - goes over the events of a trace in Chrome's form, one after the other.
 *
 * A JSON array of events, or an object that has it as "traceEvents". What is cut off in the middle of an event ends there, as a
 * rank that was killed leaves it. Pure; the text may be anything.
 */
#ifndef TOOLS_DIAGNOSE_TRACE_READ_H
#define TOOLS_DIAGNOSE_TRACE_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct trace_reader {
	const char *text; /* borrowed */
	size_t size, at;
	uint64_t events;  /* so far */
	bool is_cut;      /* the array has no end */
};

/* ESP_EPARSE: there is no array. */
ESP_CHECKED enum esp_status trace_reader_open(struct trace_reader *reader, const char *text, size_t size, struct error *err);

/* The next event, which the caller json_decref()s; NULL in *out: there is no other. ESP_EPARSE: it is no object. */
ESP_CHECKED enum esp_status trace_reader_next(struct trace_reader *reader, json_t **out, struct error *err);

/* What the first event of an espalier trace says about it. */
struct trace_origin {
	char job[128], host[64];
	uint64_t instance, host_id;
	uint32_t rank, size;
	int64_t now_ns, real_ns;
};
/* False: it is none. */
bool trace_origin_read(const json_t *event, struct trace_origin *out);

/* The times of an event in nanoseconds; false: it has none, or none that makes sense. */
bool trace_times(const json_t *event, int64_t *out_begin_ns, int64_t *out_end_ns);

/* Is it a call in which all ranks of a group meet? Then *out_call names it, the same on all ranks. */
bool trace_meeting(const json_t *event, uint64_t *out_call);

#endif
