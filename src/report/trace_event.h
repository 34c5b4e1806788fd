/*
 * trace_event.h - events of a trace in Chrome's format, for Perfetto and chrome://tracing: a JSON array, one event
 * per line. One thread per trace; no I/O but the FILE.
 *
 * pid is the number of a process, tid that of one of its tracks; slices of a track do not overlap. Times are whole
 * ticks and are written exactly, as microseconds. The end of the array may be missing, as after a process was killed.
 */
#ifndef REPORT_TRACE_EVENT_H
#define REPORT_TRACE_EVENT_H

#include "report/json.h"

/* The length of a tick, as digits after the decimal point of a microsecond. */
enum trace_tick { TRACE_TICK_NS = 3, TRACE_TICK_PS = 6 };

struct trace_events {
	struct json json; /* its open array takes the events */
	enum trace_tick tick;
	bool has_args; /* the open event has arguments */
};

/* A moment on a track. */
struct trace_spot {
	uint32_t pid, tid;
	int64_t at;
};

void trace_events_begin(struct trace_events *events, FILE *out, enum trace_tick tick);
/*
 * Begins an object with the key traceEvents. The caller may add keys after the array (json_array_end(), keys,
 * json_object_end(), json_fini()).
 */
void trace_events_begin_object(struct trace_events *events, FILE *out, enum trace_tick tick);
/* Continues an array of events that another struct trace_events began. */
void trace_events_resume(struct trace_events *events, FILE *out, enum trace_tick tick);
/* Ends the array and the document. ESP_EIO. */
ESP_CHECKED enum esp_status trace_events_end(struct trace_events *events);

/* The name of a process or a track, and its position among the others. */
void trace_name_process(struct trace_events *events, uint32_t pid, const char *name);
void trace_name_track(struct trace_events *events, uint32_t pid, uint32_t tid, const char *name);
void trace_sort_process(struct trace_events *events, uint32_t pid, uint32_t index);
void trace_sort_track(struct trace_events *events, uint32_t pid, uint32_t tid, uint32_t index);

/*
 * Each of these opens an event; trace_args() returns the object of its arguments, and trace_event_end() closes it.
 * category: NULL for none.
 */
void trace_metadata(struct trace_events *events, uint32_t pid, uint32_t tid, const char *name);
void trace_slice(struct trace_events *events, struct trace_spot from, int64_t ticks, const char *category,
                 const char *name);
void trace_mark(struct trace_events *events, struct trace_spot at, const char *category, const char *name);
struct json *trace_args(struct trace_events *events);
void trace_event_end(struct trace_events *events);

/* Puts a key and a time into the open object. */
void trace_put_time(struct trace_events *events, const char *key, int64_t ticks);

/* An arrow from one slice to another. id: unique among arrows of this name. */
void trace_flow(struct trace_events *events, uint64_t id, const char *category, const char *name,
                struct trace_spot from, struct trace_spot to);

#endif
