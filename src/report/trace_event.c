#include "report/trace_event.h"

#include <assert.h>

void trace_events_begin(struct trace_events *events, FILE *out, enum trace_tick tick)
{
	*events = (struct trace_events){.tick = tick};
	json_init(&events->json, out);
	events->json.flat_depth = 1;
	json_array_begin(&events->json);
}

void trace_events_begin_object(struct trace_events *events, FILE *out, enum trace_tick tick)
{
	*events = (struct trace_events){.tick = tick};
	json_init(&events->json, out);
	events->json.flat_depth = 2;
	json_object_begin(&events->json);
	json_key(&events->json, "traceEvents");
	json_array_begin(&events->json);
}

void trace_events_resume(struct trace_events *events, FILE *out, enum trace_tick tick)
{
	*events = (struct trace_events){.tick = tick};
	json_array_resume(&events->json, out);
	events->json.flat_depth = 1;
}

enum esp_status trace_events_end(struct trace_events *events)
{
	json_array_end(&events->json);
	return json_fini(&events->json);
}

/* ---- events ---- */

void trace_put_time(struct trace_events *events, const char *key, int64_t ticks)
{
	json_key(&events->json, key);
	json_decimal(&events->json, ticks, (unsigned)events->tick);
}

static void begin_event(struct trace_events *events, const char *phase, uint32_t pid, uint32_t tid,
                        const char *category, const char *name)
{
	struct json *json = &events->json;

	events->has_args = false;
	json_object_begin(json);
	json_put_string(json, "name", name);
	if (category)
		json_put_string(json, "cat", category);
	json_put_string(json, "ph", phase);
	json_put_u64(json, "pid", pid);
	json_put_u64(json, "tid", tid);
}

void trace_metadata(struct trace_events *events, uint32_t pid, uint32_t tid, const char *name)
{
	begin_event(events, "M", pid, tid, NULL, name);
}

void trace_slice(struct trace_events *events, struct trace_spot from, int64_t ticks, const char *category,
                 const char *name)
{
	assert(ticks >= 0);
	begin_event(events, "X", from.pid, from.tid, category, name);
	trace_put_time(events, "ts", from.at);
	trace_put_time(events, "dur", ticks);
}

void trace_mark(struct trace_events *events, struct trace_spot at, const char *category, const char *name)
{
	begin_event(events, "i", at.pid, at.tid, category, name);
	json_put_string(&events->json, "s", "p"); /* across all tracks of the process */
	trace_put_time(events, "ts", at.at);
}

struct json *trace_args(struct trace_events *events)
{
	if (!events->has_args) {
		json_key(&events->json, "args");
		json_object_begin(&events->json);
	}
	events->has_args = true;
	return &events->json;
}

void trace_event_end(struct trace_events *events)
{
	if (events->has_args)
		json_object_end(&events->json);
	json_object_end(&events->json);
}

/* ---- names ---- */

static void put_name(struct trace_events *events, const char *what, uint32_t pid, uint32_t tid, const char *name)
{
	trace_metadata(events, pid, tid, what);
	json_put_string(trace_args(events), "name", name);
	trace_event_end(events);
}

static void put_order(struct trace_events *events, const char *what, uint32_t pid, uint32_t tid, uint32_t index)
{
	trace_metadata(events, pid, tid, what);
	json_put_u64(trace_args(events), "sort_index", index);
	trace_event_end(events);
}

void trace_name_process(struct trace_events *events, uint32_t pid, const char *name)
{
	put_name(events, "process_name", pid, 0, name);
}

void trace_name_track(struct trace_events *events, uint32_t pid, uint32_t tid, const char *name)
{
	put_name(events, "thread_name", pid, tid, name);
}

void trace_sort_process(struct trace_events *events, uint32_t pid, uint32_t index)
{
	put_order(events, "process_sort_index", pid, 0, index);
}

void trace_sort_track(struct trace_events *events, uint32_t pid, uint32_t tid, uint32_t index)
{
	put_order(events, "thread_sort_index", pid, tid, index);
}

/* ---- arrows ---- */

static void put_end(struct trace_events *events, const char *phase, uint64_t id, const char *category, const char *name,
                    struct trace_spot spot)
{
	begin_event(events, phase, spot.pid, spot.tid, category, name);
	json_put_u64(&events->json, "id", id);
	if (phase[0] == 'f')
		json_put_string(&events->json, "bp", "e"); /* binds to the slice around this time, not to the next one */
	trace_put_time(events, "ts", spot.at);
	trace_event_end(events);
}

void trace_flow(struct trace_events *events, uint64_t id, const char *category, const char *name,
                struct trace_spot from, struct trace_spot to)
{
	put_end(events, "s", id, category, name, from);
	put_end(events, "f", id, category, name, to);
}
