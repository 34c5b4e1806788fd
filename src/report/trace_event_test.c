#include "report/trace_event.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

static char *text;
static size_t length;

static FILE *open_text(void)
{
	FILE *out = open_memstream(&text, &length);

	CHECK(out != NULL);
	return out;
}

static void check_text(FILE *out, const char *expected)
{
	CHECK(fclose(out) == 0);
	CHECK_MSG(strcmp(text, expected) == 0, "%s", text);
	free(text);
}

static void test_events(void)
{
	FILE *out = open_text();
	struct trace_events events;

	trace_events_begin(&events, out, TRACE_TICK_NS);
	trace_name_process(&events, 3, "rank \"3\"");
	trace_sort_track(&events, 3, 1, 7);
	trace_slice(&events, (struct trace_spot){3, 1, 1234567}, 5, "call", "a\\b");
	json_put_u64(trace_args(&events), "bytes", 8);
	trace_put_time(&events, "waited_us", 1000);
	trace_event_end(&events);
	trace_mark(&events, (struct trace_spot){3, 1, 999}, NULL, "now");
	trace_event_end(&events);
	trace_flow(&events, 4, "flow", "to", (struct trace_spot){3, 1, 1000}, (struct trace_spot){2, 1, 2001});
	CHECK(trace_events_end(&events) == ESP_OK);
	check_text(
		out,
		"[\n"
		"  {\"name\": \"process_name\", \"ph\": \"M\", \"pid\": 3, \"tid\": 0, \"args\": {\"name\": \"rank "
		"\\\"3\\\"\"}},\n"
		"  {\"name\": \"thread_sort_index\", \"ph\": \"M\", \"pid\": 3, \"tid\": 1, \"args\": {\"sort_index\": 7}},\n"
		"  {\"name\": \"a\\\\b\", \"cat\": \"call\", \"ph\": \"X\", \"pid\": 3, \"tid\": 1, \"ts\": 1234.567, \"dur\": "
		"0.005, "
		"\"args\": {\"bytes\": 8, \"waited_us\": 1.000}},\n"
		"  {\"name\": \"now\", \"ph\": \"i\", \"pid\": 3, \"tid\": 1, \"s\": \"p\", \"ts\": 0.999},\n"
		"  {\"name\": \"to\", \"cat\": \"flow\", \"ph\": \"s\", \"pid\": 3, \"tid\": 1, \"id\": 4, \"ts\": 1.000},\n"
		"  {\"name\": \"to\", \"cat\": \"flow\", \"ph\": \"f\", \"pid\": 2, \"tid\": 1, \"id\": 4, \"bp\": \"e\", "
		"\"ts\": 2.001}\n"
		"]\n");
}

/* Events that are written one by one, each by its own struct trace_events, make the same array. */
static void test_resume(void)
{
	FILE *out = open_text();
	struct trace_events events;

	trace_events_begin(&events, out, TRACE_TICK_PS);
	trace_sort_process(&events, 0, 0);
	for (uint32_t i = 1; i < 3; i++) {
		trace_events_resume(&events, out, TRACE_TICK_PS);
		trace_slice(&events, (struct trace_spot){i, 0, 1}, INT64_MAX, NULL, "x");
		trace_event_end(&events);
	}
	trace_events_resume(&events, out, TRACE_TICK_PS);
	CHECK(trace_events_end(&events) == ESP_OK);
	check_text(
		out,
		"[\n"
		"  {\"name\": \"process_sort_index\", \"ph\": \"M\", \"pid\": 0, \"tid\": 0, \"args\": {\"sort_index\": 0}},\n"
		"  {\"name\": \"x\", \"ph\": \"X\", \"pid\": 1, \"tid\": 0, \"ts\": 0.000001, \"dur\": 9223372036854.775807},\n"
		"  {\"name\": \"x\", \"ph\": \"X\", \"pid\": 2, \"tid\": 0, \"ts\": 0.000001, \"dur\": 9223372036854.775807}\n"
		"]\n");
}

static void test_object(void)
{
	FILE *out = open_text();
	struct trace_events events;

	trace_events_begin_object(&events, out, TRACE_TICK_NS);
	trace_name_track(&events, 1, 2, "lane");
	json_array_end(&events.json);
	json_put_string(&events.json, "displayTimeUnit", "ms");
	json_object_end(&events.json);
	CHECK(json_fini(&events.json) == ESP_OK);
	check_text(
		out, "{\n"
			 "  \"traceEvents\": [\n"
			 "    {\"name\": \"thread_name\", \"ph\": \"M\", \"pid\": 1, \"tid\": 2, \"args\": {\"name\": \"lane\"}}\n"
			 "  ],\n"
			 "  \"displayTimeUnit\": \"ms\"\n"
			 "}\n");
}

int main(void)
{
	test_events();
	test_resume();
	test_object();
	return 0;
}
