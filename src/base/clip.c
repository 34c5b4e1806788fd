#include "base/clip.h"

#include <stdio.h>
#include <string.h>

#define DOTS "..."
#define WORD_MOST 24u /* a longer word is cut within: a path, say */

static void end_with_dots(char *text, size_t size)
{
	size_t room = sizeof DOTS - 1 < size ? size - sizeof DOTS : 0, end = room;

	while (end > 0 && room - end < WORD_MOST && text[end] != ' ')
		end--;
	if (end == 0 || text[end] != ' ')
		end = room;
	while (end > 0 && strchr(" ,;:(", text[end - 1])) /* nothing follows them any more */
		end--;
	snprintf(text + end, size - end, DOTS);
}

const char *clip_list(char *out, size_t size, const char *format, va_list arguments)
{
	int length = vsnprintf(out, size, format, arguments);

	if (length >= 0 && (size_t)length >= size)
		end_with_dots(out, size);
	return out;
}

const char *clip(char *out, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	clip_list(out, size, format, arguments);
	va_end(arguments);
	return out;
}
