#include "base/units.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"

#define RATE_MIN 8.0  /* a byte per second */
#define RATE_MAX 1e15 /* uplinks of large racks are beyond 1 Tbit/s */
#define TIME_MAX 3600e9

struct unit {
	const char *name;
	double factor;
};

/* Largest first, as printing wants it. tc's "bps" is bytes per second: refused, as few would expect that. */
static const struct unit rates[] = {{"gbit", 1e9}, {"mbit", 1e6}, {"kbit", 1e3}, {"bit", 1}, {NULL, 0}};
static const struct unit times[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {NULL, 0}};

static bool parse(const char *text, const struct unit *units, double *out)
{
	size_t digits = strspn(text, "0123456789.");
	double number;
	if (!number_parse_double(text, digits, &number))
		return false;
	for (const struct unit *unit = units; unit->name; unit++) {
		if (strcasecmp(text + digits, unit->name) == 0) {
			*out = number * unit->factor;
			return true;
		}
	}
	return false;
}

static const char *format(double value, const struct unit *units, char text[UNITS_TEXT])
{
	const struct unit *unit = units;
	while (unit[1].name && value < unit->factor)
		unit++;
	snprintf(text, UNITS_TEXT, "%.7g%s", value / unit->factor, unit->name);
	return text;
}

bool units_parse_rate(const char *text, uint64_t *out_bits)
{
	double bits;
	if (!parse(text, rates, &bits) || bits < RATE_MIN || bits > RATE_MAX)
		return false;
	*out_bits = (uint64_t)(bits + 0.5);
	return true;
}

bool units_parse_time(const char *text, uint64_t *out_ns)
{
	double ns = 0;
	if (strcmp(text, "0") != 0 && !parse(text, times, &ns))
		return false;
	if (ns > TIME_MAX)
		return false;
	*out_ns = (uint64_t)(ns + 0.5);
	return true;
}

bool units_parse_delay(const char *text, uint64_t *out_ns)
{
	double us;
	if (!number_parse_double(text, strlen(text), &us))
		return units_parse_time(text, out_ns);
	if (!(us >= 0 && us * 1e3 <= TIME_MAX))
		return false;
	*out_ns = (uint64_t)(us * 1e3 + 0.5);
	return true;
}

bool units_parse_share(const char *text, uint32_t *out)
{
	static const struct unit percent[] = {{"%", 0.01 * UNITS_SHARE_ALL}, {NULL, 0}};
	double share = 0;
	if (strcmp(text, "0") != 0 && !parse(text, percent, &share))
		return false;
	if (share > UNITS_SHARE_ALL)
		return false;
	*out = (uint32_t)(share + 0.5);
	return share == 0 || *out > 0;
}

const char *units_format_rate(uint64_t bits, char text[UNITS_TEXT])
{
	return format((double)bits, rates, text);
}

const char *units_format_time(uint64_t ns, char text[UNITS_TEXT])
{
	if (ns == 0) {
		memcpy(text, "0", 2);
		return text;
	}
	return format((double)ns, times, text);
}

const char *units_format_bytes(uint64_t bytes, char text[UNITS_TEXT])
{
	static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double value = (double)bytes;
	unsigned unit = 0;

	while (value >= 999.5) {
		value /= 1024;
		unit++;
	}
	snprintf(text, UNITS_TEXT, "%.3g %s", value, names[unit]);
	return text;
}

const char *units_format_share(uint32_t share, char text[UNITS_TEXT])
{
	snprintf(text, UNITS_TEXT, "%.6g%%", share * 100.0 / UNITS_SHARE_ALL);
	return text;
}
