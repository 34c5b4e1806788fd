#include "base/quote.h"

#include <string.h>

const char *quote(const char *text, size_t length, char out[QUOTE_TEXT])
{
	static const char more[] = "...";
	size_t room = QUOTE_TEXT - 2 - sizeof more; /* two quotes, the dots and the NUL */
	size_t shown = length < room ? length : room;
	char *to = out;
	*to++ = '\'';
	for (size_t i = 0; i < shown; i++)
		*to++ = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
	*to++ = '\'';
	strcpy(to, shown < length ? more : "");
	return out;
}
