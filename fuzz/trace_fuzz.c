/*
 * trace_fuzz.c - traces: whatever the text is, its events come one after the other and there is an end.
 */
#include "fuzz.h"

#include "tools/diagnose/trace_read.h"

static void look_at(const json_t *event)
{
	struct trace_origin origin;
	int64_t begin, end;
	uint64_t call;

	if (diagnose_trace_origin_read(event, &origin))
		FUZZ_CHECK(origin.rank < origin.size && origin.size <= 65536);
	if (diagnose_trace_times(event, &begin, &end))
		FUZZ_CHECK(begin >= 0 && end >= begin);
	(void)diagnose_trace_meeting(event, &call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace_reader reader;
	struct error err;
	json_t *event = NULL;

	if (diagnose_trace_reader_open(&reader, (const char *)data, size, &err) != ESP_OK)
		return 0;
	size_t before = reader.at;
	while (diagnose_trace_reader_next(&reader, &event, &err) == ESP_OK && event) {
		FUZZ_CHECK(reader.at > before && reader.at <= size);
		before = reader.at;
		look_at(event);
		json_decref(event);
	}
	return 0;
}
