#include "sim/workload/trace.h"

#include "base/check.h"
#include "base/rng.h"

#define HEADER "time_s,parameter,bytes,source,destination\n"

static const struct {
	const char *text;
	const char *says; /* "": no error */
} texts[] = {
	{HEADER "0,fc,10,worker0,server0\n", ""},
	{HEADER "0,fc,10,worker0,server0", ""},
	{"time_s,parameter,bytes,source,destination\r\n0,fc,10,worker0,server0\r\n\r\n", ""},
	{HEADER "0,\"a, \"\"b\"\"\",10,,\n", ""},
	{HEADER "1e-3,fc,10,worker0,server0\n", ""},
	{"", "f.csv:1: the first line is not time_s,parameter,bytes,source,destination"},
	{"time,parameter,bytes,source,destination\n", "f.csv:1: the first line is not"},
	{HEADER, "f.csv:1: there is no event"},
	{HEADER "0,fc,10,worker0\n", "f.csv:2: 4 fields instead of 5"},
	{HEADER "0\n", "f.csv:2: 1 field instead of 5"},
	{HEADER "0,fc,10,worker0,server0,\n", "f.csv:2: more than 5 fields"},
	{HEADER "0,fc,10,worker0,server0\nx,fc,10,worker0,server0\n", "f.csv:3: the time 'x' is no number of seconds"},
	{HEADER "-1,fc,10,worker0,server0\n", "f.csv:2: the time '-1' is no number"},
	{HEADER "nan,fc,10,worker0,server0\n", "f.csv:2: the time 'nan' is no number"},
	{HEADER "0,,10,worker0,server0\n", "f.csv:2: the parameter has no name"},
	{HEADER "0,fc,0,worker0,server0\n", "f.csv:2: '0' is no number of bytes"},
	{HEADER "0,fc,1.5,worker0,server0\n", "f.csv:2: '1.5' is no number of bytes"},
	{HEADER "0,fc,99999999999999999999,worker0,server0\n", "is no number of bytes"},
	{HEADER "0,\"fc,10,worker0,server0\n", "f.csv:2: field 2 has no closing quote"},
	{HEADER "0,\"fc\"x,10,worker0,server0\n", "f.csv:2: field 2 goes on behind its closing quote"},
	{HEADER "0,f\"c,10,worker0,server0\n", "f.csv:2: field 2 has a quote inside"},
	{HEADER "0,f\tc,10,worker0,server0\n", "f.csv:2: field 2 has a control character"},
};

static void test_texts(void)
{
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct trace trace;
		struct error err = {0};
		enum esp_status status = workload_trace_parse(&trace, "f.csv", texts[i].text, strlen(texts[i].text), &err);
		CHECK_MSG(status == (texts[i].says[0] ? ESP_EPARSE : ESP_OK) && strstr(err.text, texts[i].says),
		          "text %zu: %d \"%s\"", i, status, err.text);
		workload_trace_fini(&trace);
	}
}

/* Unusual names: commas, quotes, blanks. */
static void random_name(struct rng *rng, char *name, size_t size)
{
	size_t length = 1 + rng_below(rng, size - 2);
	for (size_t i = 0; i < length; i++)
		name[i] = "ab/,\" _"[rng_below(rng, 7)];
	name[length] = '\0';
}

static void test_round_trip(uint64_t seed)
{
	struct rng rng;
	rng_init(&rng, seed);
	for (int round = 0; round < 200; round++) {
		struct trace trace = {0}, again;
		struct error err = {0};
		char name[20], source[20], destination[20], *text = NULL;
		size_t size = 0;
		uint64_t count = 1 + rng_below(&rng, 100);
		for (uint64_t i = 0; i < count; i++) {
			random_name(&rng, name, sizeof name);
			random_name(&rng, source, sizeof source);
			random_name(&rng, destination, sizeof destination);
			const struct trace_event event = {rng_unit(&rng) * 10, name, 1 + rng_below(&rng, TRACE_BYTES_MAX), source,
			                                  destination, 0};
			CHECK(workload_trace_add(&trace, &event, &err) == ESP_OK);
		}
		CHECK(workload_trace_sort(&trace, &err) == ESP_OK);
		FILE *out = open_memstream(&text, &size);
		CHECK(out && workload_trace_write(&trace, out, &err) == ESP_OK && fclose(out) == 0);
		CHECK_MSG(workload_trace_parse(&again, "f.csv", text, size, &err) == ESP_OK, "%s", err.text);
		CHECK_U64(again.count, trace.count);
		for (uint32_t i = 0; i < trace.count; i++) {
			const struct trace_event *a = &trace.events[i], *b = &again.events[i];
			CHECK(a->time_s == b->time_s && a->bytes == b->bytes && (i == 0 || a->time_s >= a[-1].time_s));
			CHECK_STR(b->parameter, a->parameter);
			CHECK_STR(b->source, a->source);
			CHECK_STR(b->destination, a->destination);
		}
		workload_trace_fini(&trace);
		workload_trace_fini(&again);
		free(text);
	}
}

int main(int argc, char **argv)
{
	test_texts();
	test_round_trip(test_seed(argc, argv, 1));
	return 0;
}
