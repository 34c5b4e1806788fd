/*
 * trace_event.h - events of a trace in Chrome's form, for Perfetto and chrome://tracing: an array of JSON, one event in a line.
 *
 * pid is the number of a process, tid that of one of its tracks, on which slices do not overlap. Times are whole ticks and are written exactly, as microseconds.
 * The array may lack its end, as a process that is killed leaves it. One thread per trace; no I/O but the FILE.
 */
#ifndef REPORT_TRACE_EVENT_H
#define REPORT_TRACE_EVENT_H

#include "report/json.h"

/* What a tick is: digits behind the point of a microsecond. */
enum trace_tick { TRACE_TICK_NS = 3, TRACE_TICK_PS = 6 };

struct trace_events {
	struct json json; /* where events are written: in their array */
	enum trace_tick tick;
	bool has_args; /* the event that is open has them */
};

/* A moment on a track. */
struct trace_spot {
	uint32_t pid, tid;
	int64_t at;
};

void trace_events_begin(struct trace_events *events, FILE *out, enum trace_tick tick);
/* An object with the key traceEvents: what is added after the array's end is the caller's (json_array_end(), keys, json_object_end(), json_fini()). */
void trace_events_begin_object(struct trace_events *events, FILE *out, enum trace_tick tick);
/* Goes on behind events that another struct has written. */
void trace_events_resume(struct trace_events *events, FILE *out, enum trace_tick tick);
/* Ends the array, and the text. ESP_EIO. */
ESP_CHECKED enum esp_status trace_events_end(struct trace_events *events);

/* Names, and where a process or a track stands among the others. */
void trace_name_process(struct trace_events *events, uint32_t pid, const char *name);
void trace_name_track(struct trace_events *events, uint32_t pid, uint32_t tid, const char *name);
void trace_sort_process(struct trace_events *events, uint32_t pid, uint32_t index);
void trace_sort_track(struct trace_events *events, uint32_t pid, uint32_t tid, uint32_t index);

/* Each of these opens an event; trace_args() is the object of its arguments, if it has any, and trace_event_end() closes it. category: NULL for none. */
void trace_metadata(struct trace_events *events, uint32_t pid, uint32_t tid, const char *name);
void trace_slice(struct trace_events *events, struct trace_spot from, int64_t ticks, const char *category, const char *name);
void trace_mark(struct trace_events *events, struct trace_spot at, const char *category, const char *name);
struct json *trace_args(struct trace_events *events);
void trace_event_end(struct trace_events *events);

/* A key and a time in an object that is open. */
void trace_put_time(struct trace_events *events, const char *key, int64_t ticks);

/* An arrow from one slice to another one. id: of no other arrow of its name. */
void trace_flow(struct trace_events *events, uint64_t id, const char *category, const char *name, struct trace_spot from, struct trace_spot to);

#endif
