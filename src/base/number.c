#include "base/number.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char units[] = "KMGT";

bool number_parse_u64(const char *text, size_t length, uint64_t *out)
{
	uint64_t value = 0;
	if (length == 0)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value))
			return false;
	}
	*out = value;
	return true;
}

/* The power of two of the unit that ends the text; *length loses the unit. */
static unsigned take_unit(const char *text, size_t *length)
{
	size_t end = *length;
	if (end > 2 && text[end - 2] == 'i' && text[end - 1] == 'B')
		end -= 2;
	if (end < 2)
		return 0;
	char letter = text[end - 1];
	if (letter >= 'a' && letter <= 'z')
		letter = (char)(letter - 'a' + 'A');
	const char *unit = memchr(units, letter, sizeof units - 1);
	if (!unit)
		return 0;
	*length = end - 1;
	return 10 * (unsigned)(unit - units + 1);
}

bool number_parse_bytes(const char *text, size_t length, uint64_t *out)
{
	uint64_t value;
	unsigned shift = take_unit(text, &length);
	if (!number_parse_u64(text, length, &value) || value > UINT64_MAX >> shift)
		return false;
	*out = value << shift;
	return true;
}

static bool is_decimal_char(char c)
{
	return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E';
}

/* strtod reads the point of the locale that the host program has set. */
bool number_parse_double(const char *text, size_t length, double *out)
{
	const char *point = localeconv()->decimal_point;
	char copy[128];
	size_t used = 0;
	if (length == 0 || length > 64 || text[0] == '+')
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!is_decimal_char(text[i]))
			return false;
		size_t room = sizeof copy - used;
		int wrote = text[i] == '.' ? snprintf(copy + used, room, "%s", point)
		                           : snprintf(copy + used, room, "%c", text[i]);
		if (wrote < 0 || (size_t)wrote >= room)
			return false;
		used += (size_t)wrote;
	}
	char *end;
	double value = strtod(copy, &end);
	if (*end != '\0' || end == copy || !isfinite(value))
		return false;
	*out = value;
	return true;
}

const char *number_format_bytes(uint64_t bytes, char text[NUMBER_BYTES_TEXT])
{
	unsigned unit = 0;
	while (unit < sizeof units - 1 && bytes != 0 && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(text, NUMBER_BYTES_TEXT, "%" PRIu64 "%.*s", bytes, unit ? 1 : 0, unit ? units + unit - 1 : "");
	return text;
}

/* Puts a point where the locale has put something else, which may be more than one byte. */
static void write_point(char *text)
{
	char *to = text;
	bool inside = false;
	for (const char *from = text; *from; from++) {
		bool ours = is_decimal_char(*from) && *from != '.';
		if (ours)
			*to++ = *from;
		else if (!inside)
			*to++ = '.';
		inside = !ours;
	}
	*to = '\0';
}

/* Numbers that people read without an exponent; beyond, zeros would have to be counted. */
#define PLAIN_LEAST 1e-6
#define PLAIN_END 1e21

const char *number_format_double(double value, char text[NUMBER_DOUBLE_TEXT])
{
	if (!isfinite(value))
		return strcpy(text, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
	int digits = 0;
	do {
		digits++;
		snprintf(text, NUMBER_DOUBLE_TEXT, "%.*g", digits, value);
	} while (digits < 17 && strtod(text, NULL) != value);
	const char *exponent = strchr(text, 'e');
	if (exponent && fabs(value) >= PLAIN_LEAST && fabs(value) < PLAIN_END) {
		int behind = digits - 1 - (int)strtol(exponent + 1, NULL, 10); /* the same digits, behind the point */
		snprintf(text, NUMBER_DOUBLE_TEXT, "%.*f", behind > 0 ? behind : 0, value);
	}
	write_point(text);
	return text;
}
