/*
 * trace_read.h - reads the events of a trace in Chrome's format, one after the other.
 *
 * A JSON array of events, or an object with the array as "traceEvents". A trace that is cut off within an
 * event, as a killed rank leaves it, ends before that event. Pure; the text may be anything.
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
	bool is_cut;      /* the array does not end */
};

/* ESP_EPARSE: there is no array. */
ESP_CHECKED enum esp_status diagnose_trace_reader_open(struct trace_reader *reader, const char *text, size_t size,
                                                       struct error *err);

/* The next event, which the caller json_decref()s; *out is NULL at the end. ESP_EPARSE: an element is no object. */
ESP_CHECKED enum esp_status diagnose_trace_reader_next(struct trace_reader *reader, json_t **out, struct error *err);

/* The first event of an espalier trace. */
struct trace_origin {
	char job[128], host[64];
	uint64_t instance, host_id;
	uint32_t rank, size;
	int64_t now_ns, real_ns;
};
/* False: it is no such event. */
bool diagnose_trace_origin_read(const json_t *event, struct trace_origin *out);

/* The times of an event in nanoseconds; false: missing or out of range. */
bool diagnose_trace_times(const json_t *event, int64_t *out_begin_ns, int64_t *out_end_ns);

/* True for a call in which all ranks of a communicator meet; *out_call is the same on all ranks. */
bool diagnose_trace_meeting(const json_t *event, uint64_t *out_call);

#endif
