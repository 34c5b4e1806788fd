#include "base/utf8.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* How many bytes the first byte announces; 0 for one that cannot be first. */
static size_t announced(uint8_t first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef)
		return 3;
	return first >= 0xf0 && first <= 0xf4 ? 4 : 0;
}

/* The second byte rules out overlong forms, surrogates and what lies above U+10FFFF. */
static bool second_fits(uint8_t first, uint8_t second)
{
	switch (first) {
	case 0xe0:
		return second >= 0xa0 && second <= 0xbf;
	case 0xed:
		return second >= 0x80 && second <= 0x9f;
	case 0xf0:
		return second >= 0x90 && second <= 0xbf;
	case 0xf4:
		return second >= 0x80 && second <= 0x8f;
	default:
		return second >= 0x80 && second <= 0xbf;
	}
}

size_t utf8_character(const char *text, size_t length)
{
	const uint8_t *bytes = (const uint8_t *)text;
	size_t needed = length > 0 ? announced(bytes[0]) : 0;
	if (needed > length)
		return 0;
	if (needed > 1 && !second_fits(bytes[0], bytes[1]))
		return 0;
	for (size_t i = 2; i < needed; i++)
		if ((bytes[i] & 0xc0) != 0x80)
			return 0;
	return needed;
}

size_t utf8_mark(const char *text, size_t length)
{
	return length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

bool utf8_is_utf16(const char *text, size_t length)
{
	return length >= 2 && (memcmp(text, "\xff\xfe", 2) == 0 || memcmp(text, "\xfe\xff", 2) == 0);
}

size_t utf8_count(const char *text)
{
	size_t count = 0;
	for (size_t length = strlen(text); length > 0; count++) {
		size_t bytes = utf8_character(text, length);
		bytes += bytes == 0;
		text += bytes;
		length -= bytes;
	}
	return count;
}
