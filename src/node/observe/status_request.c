#include "node/observe/status_request.h"

#include <stdbool.h>
#include <string.h>

/* A request ends with an empty line. */
static bool is_whole(const char *text, size_t size)
{
	for (size_t i = 1; i < size; i++) {
		if (text[i] == '\n' && (text[i - 1] == '\n' || (i >= 2 && text[i - 1] == '\r' && text[i - 2] == '\n')))
			return true;
	}
	return false;
}

static size_t word_length(const char *text, size_t size)
{
	size_t length = 0;
	while (length < size && (unsigned char)text[length] > ' ' && text[length] != 0x7f)
		length++;
	return length;
}

enum request_verdict request_parse(const char *text, size_t size, char path[REQUEST_PATH])
{
	if (!is_whole(text, size < REQUEST_BYTES ? size : REQUEST_BYTES))
		return size < REQUEST_BYTES ? REQUEST_UNFINISHED : REQUEST_BAD;
	size_t method = word_length(text, size);
	if (method == 0 || method == size || text[method] != ' ')
		return REQUEST_BAD;
	const char *target = text + method + 1;
	size_t length = word_length(target, size - method - 1), rest = size - method - 1 - length;
	if (length == 0 || target[0] != '/' || rest < 6 || memcmp(target + length, " HTTP/", 6) != 0)
		return REQUEST_BAD;
	const char *query = memchr(target, '?', length);
	if (query)
		length = (size_t)(query - target);
	length = length < REQUEST_PATH ? length : REQUEST_PATH - 1;
	memcpy(path, target, length);
	path[length] = '\0';
	return method == 3 && memcmp(text, "GET", 3) == 0 ? REQUEST_GET : REQUEST_OTHER;
}
