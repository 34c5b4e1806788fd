#include "node/observe/trace_event.h"

#include <inttypes.h>

#include "base/status.h"
#include "report/trace_event.h"

/* Events are appended to the file one by one, as they happen. */
static struct trace_events resume(FILE *out)
{
	struct trace_events events;
	trace_events_resume(&events, out, TRACE_TICK_NS);
	return events;
}

static int64_t ticks_between(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (int64_t)(to_ns - from_ns) : 0;
}

static void put_track(struct trace_events *events, uint32_t rank, uint32_t track, const char *name)
{
	trace_name_track(events, rank, track, name);
	trace_sort_track(events, rank, track, track);
}

void trace_write_track(FILE *out, uint32_t rank, uint32_t track, const char *name)
{
	struct trace_events events = resume(out);
	put_track(&events, rank, track, name);
}

static void put_hex(struct json *json, const char *key, uint64_t value)
{
	char text[20];
	snprintf(text, sizeof text, "%016" PRIx64, value);
	json_put_string(json, key, text);
}

void trace_write_head(FILE *out, const struct trace_head *head)
{
	struct trace_events events;
	char name[TRACE_TEXT];
	trace_events_begin(&events, out, TRACE_TICK_NS);
	trace_metadata(&events, head->rank, 0, "espalier_clock");
	struct json *args = trace_args(&events);
	json_put_u64(args, "form", 1);
	json_put_string(args, "job", head->job);
	json_put_string(args, "host", head->host);
	put_hex(args, "instance", head->instance);
	put_hex(args, "host_id", head->host_id);
	json_put_u64(args, "rank", head->rank);
	json_put_u64(args, "size", head->size);
	json_put_u64(args, "now_ns", head->now_ns);
	json_put_u64(args, "real_ns", head->real_ns);
	trace_event_end(&events);
	snprintf(name, sizeof name, "rank %u on %.64s", head->rank, head->host);
	trace_name_process(&events, head->rank, name);
	trace_sort_process(&events, head->rank, head->rank);
	put_track(&events, head->rank, TRACE_MARKS, "events");
}

void trace_write_end(FILE *out)
{
	struct trace_events events = resume(out);
	(void)!trace_events_end(&events); /* the caller checks ferror() */
}

static void put_call(struct trace_events *events, const struct record *record, const char *words)
{
	struct json *args = trace_args(events);
	char key[24];
	json_put_string(args, "call", words);
	json_put_u64(args, "group", record->channel);
	json_put_u64(args, "first", record->first);
	json_put_u64(args, "number", record->note.sequence);
	json_put_u64(args, "members", record->members);
	json_put_u64(args, "bytes", record->bytes);
	trace_put_time(events, "waited_us", (int64_t)record->waited_ns);
	snprintf(key, sizeof key, "%" PRIu64, record->note.key);
	if (record->note.flags & CALL_KEYED)
		json_put_string(args, "key", key);
	if (record->plan[0])
		json_put_string(args, "plan", record->plan);
	if (record->note.flags == 0 && record_is_meeting(record))
		json_put_bool(args, "meeting", true);
	if (record->status != ESP_OK)
		json_put_string(args, "status", status_name((enum esp_status)record->status));
	if (record->waits_for != RECORD_NONE)
		json_put_u64(args, "waits_for", record->waits_for);
}

void trace_write_call(FILE *out, uint32_t rank, uint32_t track, const struct record *record, const char *words)
{
	struct trace_events events = resume(out);
	const struct trace_spot from = {rank, track, (int64_t)record->started_ns};
	trace_slice(&events, from, ticks_between(record->started_ns, record->ended_ns), "call",
	            record_kind_name(record->kind));
	put_call(&events, record, words);
	trace_event_end(&events);
}

void trace_write_lane(FILE *out, uint32_t rank, uint32_t track, const char *what, uint64_t from_ns, uint64_t to_ns,
                      uint32_t peer, uint64_t chunk)
{
	struct trace_events events = resume(out);
	bool waits = peer != RECORD_NONE;
	trace_slice(&events, (struct trace_spot){rank, track, (int64_t)from_ns}, ticks_between(from_ns, to_ns),
	            waits ? "wait" : "lane", what);
	if (waits)
		json_put_u64(trace_args(&events), "waits_for", peer);
	if (waits && chunk != RECORD_NO_CHUNK)
		json_put_u64(trace_args(&events), "chunk", chunk);
	trace_event_end(&events);
}

void trace_write_mark(FILE *out, uint32_t rank, uint64_t at_ns, const char *text)
{
	struct trace_events events = resume(out);
	trace_mark(&events, (struct trace_spot){rank, TRACE_MARKS, (int64_t)at_ns}, "event", text);
	trace_event_end(&events);
}

uint32_t trace_track(struct trace_tracks *tracks, uint64_t from_ns, uint64_t to_ns)
{
	uint32_t track = 0;
	while (track < TRACE_TRACKS - 1 && tracks->busy_until_ns[track] > from_ns)
		track++;
	tracks->busy_until_ns[track] = to_ns;
	tracks->used = track >= tracks->used ? track + 1 : tracks->used;
	return track;
}
