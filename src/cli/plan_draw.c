/*
 * plan_draw.c - espalier plan draw: a plan as a picture.
 */
#include "plan/draw.h"

#include <stdlib.h>
#include <string.h>

#include "base/outfile.h"
#include "cli/plan.h"
#include "report/json.h"
#include "tools/plan/plan_json.h"
#include "tools/plan/plan_options.h"

#define COMMAND "plan draw"
#define CLEAR_NODES 8u  /* a picture with more of both is hard to read */
#define CLEAR_CHUNKS 8u

struct draw_request {
	struct plan_request plan;
	uint64_t chunk;
	const char *output; /* NULL: stdout */
	bool json;
};

/* Half a picture is worse than none. */
static enum esp_status draw_to_file(const struct plan *plan, const struct draw_request *request, struct error *err)
{
	struct outfile out;
	enum esp_status status = outfile_open(&out, request->output, err);

	if (status != ESP_OK)
		return status;
	status = plan_draw(plan, request->chunk, out.file, err);
	if (status == ESP_OK)
		return outfile_commit(&out, err);
	outfile_abandon(&out);
	return status;
}

/* The picture inside a document, for programs that want its size and kind with it. */
static enum esp_status draw_to_json(const struct plan *plan, const struct draw_request *request, struct error *err)
{
	char *svg = NULL;
	size_t length = 0;
	FILE *file = open_memstream(&svg, &length);
	struct json json;

	if (!file)
		return error_set(err, ESP_ENOMEM, "no memory for a picture");
	enum esp_status status = plan_draw(plan, request->chunk, file, err);
	if (fclose(file) != 0 && status == ESP_OK)
		status = error_set(err, ESP_ENOMEM, "no memory for a picture");
	if (status == ESP_OK) {
		json_init(&json, stdout);
		json_object_begin(&json);
		plan_tool_json_facts(&json, plan);
		json_key(&json, "svg");
		json_string_n(&json, svg, length);
		json_object_end(&json);
		if (json_fini(&json) != ESP_OK)
			status = error_set(err, ESP_EIO, "cannot write to the standard output");
	}
	free(svg);
	return status;
}

/* Correct, but a reader cannot follow the arrows. */
static void warn_of_thicket(const struct plan *plan, const struct draw_request *request)
{
	uint64_t chunks = plan->chunks.chunk_count;

	if (request->chunk == DRAW_ALL_CHUNKS && plan->nodes > CLEAR_NODES && chunks > CLEAR_CHUNKS)
		complain_note(COMMAND ": %u nodes and %llu chunks make a thicket of arrows; --chunk C draws one chunk",
		              plan->nodes, (unsigned long long)chunks);
}

static int draw(const struct plan *plan, const struct draw_request *request)
{
	struct error err = {0};
	enum esp_status status;

	if (request->json)
		status = draw_to_json(plan, request, &err);
	else if (request->output && strcmp(request->output, "-") != 0)
		status = draw_to_file(plan, request, &err);
	else
		status = plan_draw(plan, request->chunk, stdout, &err);
	if (status == ESP_OK) {
		warn_of_thicket(plan, request);
		return EXIT_OK;
	}
	/* A wrong plan is an answer; too large a picture or no such chunk is a question that makes no sense. */
	if (status == ESP_ELIMIT || status == ESP_EINVAL)
		return complain_usage(COMMAND ": %s", err.text);
	return complain(COMMAND ": %s", err.text);
}

static int run(int argc, char **argv)
{
	struct draw_request request = {.chunk = DRAW_ALL_CHUNKS};
	struct option_spec options[PLAN_OPTION_MAX];
	size_t count = plan_tool_request_options(&request.plan, options);
	char about[PLAN_ABOUT_TEXT];

	options[count++] = plan_tool_request_planner(&request.plan);
	options[count++] = (struct option_spec){
		"chunk", 0, OPTION_U64, &request.chunk, "C", "draw chunk C alone", 0, DRAW_ALL_CHUNKS - 1, NULL};
	options[count++] = (struct option_spec){
		"output", 'o', OPTION_STRING, &request.output, "FILE", "write to FILE (default: stdout)", 0, 0, NULL};
	options[count++] = (struct option_spec){
		"json", 0, OPTION_FLAG, &request.json, NULL, "print JSON with the picture in it", 0, 0, NULL};
	options[count] = (struct option_spec){0};
	const struct options_usage usage = {
		COMMAND,
		"[FILE|-]",
		plan_tool_about(
			"Draws a plan as SVG: nodes are columns, rounds go down, arrows are messages, and the cells show what\n"
			"each node holds after a round. For up to 32 nodes and 16 chunks.",
			about),
		options,
		0,
		1};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	if (request.json && request.output)
		return complain_usage(COMMAND ": --json goes to the standard output; leave out --output");
	if (request.output && request.output[0] == '\0')
		return complain_usage(COMMAND ": --output: the name of the file is empty");

	struct plan *plan;
	int exit_status = plan_tool_from(&request.plan, COMMAND, argc > 1 ? argv[1] : NULL, NULL, &plan);
	if (exit_status >= 0)
		return exit_status;
	exit_status = draw(plan, &request);
	plan_close(plan);
	return exit_status;
}

const struct cli_command cli_plan_draw = {"draw", "draws a plan as a picture (SVG)", run};
