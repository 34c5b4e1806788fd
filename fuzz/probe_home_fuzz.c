/*
 * probe_home_fuzz.c - lines from the ranks of espalier probe --hosts, which other hosts may have made up: whatever comes, only files that came whole are
 * kept, and of the bar nothing that would steer a terminal.
 */
#include <string.h>

#include "fuzz.h"
#include "tools/probe/probe_home.h"

/* A line comes in two pieces, wherever the launcher's buffer ended. */
static void feed(struct home *home, const char *text, size_t length)
{
	while (length > 0) {
		const char *end = memchr(text, '\n', length);
		size_t line = end ? (size_t)(end - text) : length, cut = line / 2;

		(void)probe_tool_home_take(home, text, cut, text + cut, line - cut);
		text += end ? line + 1 : line;
		length -= end ? line + 1 : line;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct probe_options options = {.save_matrix = "matrix", .html = "report"};
	struct home home;

	probe_tool_home_open(&home, &options, -1);
	probe_tool_home_begin(&home);
	feed(&home, (const char *)data, size);
	for (int i = 0; i < HOME_FILES; i++) {
		const struct home_part *part = &home.parts[i];

		FUZZ_CHECK(!part->is_whole || (home.paths[i] && !part->file && part->text && part->length == part->taken));
	}
	probe_tool_home_close(&home);
	return 0;
}
