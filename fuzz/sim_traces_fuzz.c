/*
 * sim_traces_fuzz.c - a folder of traces as one text: each file behind a line "@ NAME". What is accepted can be written and read
 * again as it was, and everything that follows from it keeps its promises.
 */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#include "sim/workload/replay.h"
#include "sim/workload/traces.h"

static void check_round_trip(const struct trace *trace)
{
	struct trace again;
	struct error err = {0};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	FUZZ_CHECK(out && workload_trace_write(trace, out, &err) == ESP_OK && fclose(out) == 0);
	FUZZ_CHECK(workload_trace_parse(&again, "again", text, size, &err) == ESP_OK && again.count == trace->count);
	for (uint32_t i = 0; i < trace->count; i++)
		FUZZ_CHECK(again.events[i].time_s == trace->events[i].time_s && again.events[i].bytes == trace->events[i].bytes &&
		           strcmp(again.events[i].parameter, trace->events[i].parameter) == 0);
	workload_trace_fini(&again);
	free(text);
}

static void check(const struct traces *traces)
{
	struct replay replay;
	struct error err = {0};
	for (uint32_t i = 0; i < traces->worker_count; i++)
		check_round_trip(&traces->workers[i].trace);
	if (workload_replay_init(&replay, traces, &err) == ESP_OK) {
		const struct model *model = &replay.model;
		FUZZ_CHECK(model->parameter_count > 0 && replay.file_count == traces->worker_count);
		for (uint32_t i = 0; i < model->parameter_count; i++) {
			const struct model_parameter *parameter = &model->parameters[i];
			FUZZ_CHECK(parameter->aggregated || parameter->distributed);
			FUZZ_CHECK(parameter->grad_ready >= 0 && parameter->grad_ready <= 1);
			for (uint32_t f = 0; f < replay.file_count; f++)
				FUZZ_CHECK(replay.files[f].ready_s[i] >= 0 && replay.files[f].ready_s[i] <= model->backward_s);
		}
		FUZZ_CHECK(workload_replay_pick(&replay, 1000, 3, 7)->ready_s != NULL);
	} else {
		FUZZ_CHECK(err.status != ESP_OK && err.text[0]);
	}
	workload_replay_fini(&replay);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct traces traces = {0};
	struct error err = {0};
	const char *at = (const char *)data, *end = at + size;
	enum esp_status status = ESP_OK;
	while (at < end && status == ESP_OK && *at == '@') {
		char name[TRACES_FILE_NAME];
		const char *line = memchr(at, '\n', (size_t)(end - at));
		size_t length = line && line - at >= 2 ? (size_t)(line - at - 2) : sizeof name;
		if (length >= sizeof name)
			break;
		memcpy(name, at + 2, length);
		name[length] = '\0';
		const char *next = memmem(line, (size_t)(end - line), "\n@", 2);
		next = next && next > line ? next + 1 : end;
		status = workload_traces_parse_file(&traces, name, line + 1, (size_t)(next - line - 1), &err);
		at = next;
	}
	if (status == ESP_OK)
		status = workload_traces_finish(&traces, &err);
	if (status == ESP_OK)
		check(&traces);
	else
		FUZZ_CHECK(err.status != ESP_OK && err.text[0]);
	workload_traces_fini(&traces);
	return 0;
}
