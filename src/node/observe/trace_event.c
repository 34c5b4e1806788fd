#include "node/observe/trace_event.h"

#include <inttypes.h>

#include "base/status.h"
#include "report/json.h"

/* Microseconds with all digits, whatever the locale. */
static void write_us(FILE *out, const char *key, uint64_t ns)
{
	fprintf(out, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void write_text(FILE *out, const char *text)
{
	struct json json;
	json_init(&json, out);
	json_text(&json, text);
}

static void write_name(FILE *out, uint32_t rank, const char *what, uint32_t track, const char *name)
{
	fprintf(out, ",\n{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":", what, rank, track);
	write_text(out, name);
	fputs("}}", out);
}

static void write_order(FILE *out, uint32_t rank, const char *what, uint32_t track, uint32_t order)
{
	fprintf(out, ",\n{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"args\":{\"sort_index\":%u}}", what, rank, track, order);
}

void trace_write_track(FILE *out, uint32_t rank, uint32_t track, const char *name)
{
	write_name(out, rank, "thread_name", track, name);
	write_order(out, rank, "thread_sort_index", track, track);
}

void trace_write_head(FILE *out, const struct trace_head *head)
{
	char name[TRACE_TEXT];
	fprintf(out, "[\n{\"name\":\"espalier_clock\",\"ph\":\"M\",\"pid\":%u,\"tid\":0,\"args\":{\"form\":1,\"job\":", head->rank);
	write_text(out, head->job);
	fputs(",\"host\":", out);
	write_text(out, head->host);
	fprintf(out,
	        ",\"instance\":\"%016" PRIx64 "\",\"host_id\":\"%016" PRIx64 "\",\"rank\":%u,\"size\":%u,\"now_ns\":%" PRIu64
	        ",\"real_ns\":%" PRIu64 "}}",
	        head->instance, head->host_id, head->rank, head->size, head->now_ns, head->real_ns);
	snprintf(name, sizeof name, "rank %u on %.64s", head->rank, head->host);
	write_name(out, head->rank, "process_name", 0, name);
	write_order(out, head->rank, "process_sort_index", 0, head->rank);
	trace_write_track(out, head->rank, TRACE_MARKS, "events");
}

void trace_write_end(FILE *out)
{
	fputs("\n]\n", out);
}

static void write_slice(FILE *out, uint32_t rank, uint32_t track, const char *name, const char *category, uint64_t from_ns,
                        uint64_t to_ns)
{
	fputs(",\n{\"name\":", out);
	write_text(out, name);
	fprintf(out, ",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":%u,\"tid\":%u", category, rank, track);
	write_us(out, "ts", from_ns);
	write_us(out, "dur", to_ns > from_ns ? to_ns - from_ns : 0);
}

void trace_write_call(FILE *out, uint32_t rank, uint32_t track, const struct record *record, const char *words)
{
	write_slice(out, rank, track, record_kind_name(record->kind), "call", record->started_ns, record->ended_ns);
	fputs(",\"args\":{\"call\":", out);
	write_text(out, words);
	fprintf(out, ",\"group\":%u,\"first\":%u,\"number\":%" PRIu64 ",\"members\":%u,\"bytes\":%" PRIu64, record->channel,
	        record->first, record->note.sequence, record->members, record->bytes);
	write_us(out, "waited_us", record->waited_ns);
	if (record->note.flags & CALL_KEYED)
		fprintf(out, ",\"key\":\"%" PRIu64 "\"", record->note.key);
	if (record->plan[0])
		fprintf(out, ",\"plan\":\"%s\"", record->plan);
	if (record->note.flags == 0 && record_is_meeting(record))
		fputs(",\"meeting\":true", out);
	if (record->status != ESP_OK)
		fprintf(out, ",\"status\":\"%s\"", status_name((enum esp_status)record->status));
	if (record->waits_for != RECORD_NONE)
		fprintf(out, ",\"waits_for\":%u", record->waits_for);
	fputs("}}", out);
}

void trace_write_lane(FILE *out, uint32_t rank, uint32_t track, const char *what, uint64_t from_ns, uint64_t to_ns, uint32_t peer,
                      uint64_t chunk)
{
	bool waits = peer != RECORD_NONE;
	write_slice(out, rank, track, what, waits ? "wait" : "lane", from_ns, to_ns);
	if (waits) {
		fprintf(out, ",\"args\":{\"waits_for\":%u", peer);
		if (chunk != RECORD_NO_CHUNK)
			fprintf(out, ",\"chunk\":%" PRIu64, chunk);
		fputc('}', out);
	}
	fputc('}', out);
}

void trace_write_mark(FILE *out, uint32_t rank, uint64_t at_ns, const char *text)
{
	fputs(",\n{\"name\":", out);
	write_text(out, text);
	fprintf(out, ",\"cat\":\"event\",\"ph\":\"i\",\"s\":\"p\",\"pid\":%u,\"tid\":%u", rank, TRACE_MARKS);
	write_us(out, "ts", at_ns);
	fputc('}', out);
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
