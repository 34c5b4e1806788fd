#include "tools/launcher/launcher_lines.h"

#include <stdlib.h>
#include <string.h>

static void free_line(struct run_line *line)
{
	free(line->text);
	line->text = NULL;
	line->used = 0;
}

/* Hands out the unfinished line with tail behind it. */
static void emit_line(struct run_line *line, const char *tail, size_t length, bool goes_on, run_line_fn *emit,
                      void *context)
{
	emit(context, line->continued, line->text ? line->text : "", line->used, tail, length);
	line->used = 0;
	line->continued = goes_on;
}

/* Appends bytes that fit. Without memory for them the line is cut here. */
static void keep_part(struct run_line *line, const char *data, size_t length, run_line_fn *emit, void *context)
{
	if (!line->text)
		line->text = malloc(RUN_LINE_MAX);
	if (!line->text) {
		emit_line(line, data, length, true, emit, context);
		return;
	}
	memcpy(line->text + line->used, data, length);
	line->used += length;
}

void launcher_line_feed(struct run_line *line, const char *data, size_t length, run_line_fn *emit, void *context)
{
	while (length > 0) {
		size_t room = RUN_LINE_MAX - line->used, taken = length;
		/* One byte more than there is room for: a line that just fits is not cut. */
		const char *end = memchr(data, '\n', length <= room ? length : room + 1);
		if (end) {
			emit_line(line, data, (size_t)(end - data), false, emit, context);
			taken = (size_t)(end - data) + 1;
		} else if (length > room) {
			emit_line(line, data, room, true, emit, context);
			taken = room;
		} else {
			keep_part(line, data, length, emit, context);
		}
		data += taken;
		length -= taken;
	}
	if (line->used == 0)
		free_line(line);
}

void launcher_line_end(struct run_line *line, run_line_fn *emit, void *context)
{
	if (line->used > 0)
		emit_line(line, "", 0, false, emit, context);
	free_line(line);
	line->continued = false;
}
