#include "plan/scan.h"

#include <stdarg.h>
#include <stdio.h>

#define SHOWN 24 /* most bytes of the text that a message repeats */

void plan_scan_init(struct scan *scan, const char *text, size_t length, struct error *err)
{
	if (length == 0)
		text = ""; /* no arithmetic on NULL */
	*scan = (struct scan){.at = text, .end = text + length, .line = 1, .err = err};
}

__attribute__((format(printf, 3, 0)))
static void keep(struct scan *scan, enum esp_status status, const char *format, va_list args)
{
	char text[sizeof(scan->err->text)];

	vsnprintf(text, sizeof(text), format, args);
	scan->status = error_set(scan->err, status, "line %llu: %s", (unsigned long long)scan->line, text);
}

bool plan_scan_fail(struct scan *scan, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	keep(scan, ESP_EPARSE, format, args);
	va_end(args);
	return false;
}

bool plan_scan_stop(struct scan *scan, enum esp_status status, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	keep(scan, status, format, args);
	va_end(args);
	return false;
}

/* The word or sign at `at`, fit to be shown to people whatever bytes it is made of. */
static void show(const struct scan *scan, char out[SHOWN + 4])
{
	size_t length = 0;
	const char *at = scan->at;

	do {
		out[length++] = *at >= ' ' && *at <= '~' ? *at : '?';
		at++;
	} while (length < SHOWN && at < scan->end && scan_is_word(at[-1]) && scan_is_word(*at));
	bool cut = length == SHOWN && at < scan->end && scan_is_word(*at);
	snprintf(out + length, 4, "%s", cut ? "..." : "");
}

bool plan_scan_expected(struct scan *scan, const char *what)
{
	char shown[SHOWN + 4];

	if (!scan_more(scan))
		return plan_scan_fail(scan, "expected %s, not the end of the %s", what, scan->at < scan->end ? "line" : "text");
	show(scan, shown);
	return plan_scan_fail(scan, "expected %s, not '%s'", what, shown);
}

void plan_scan_number_failed(struct scan *scan, const char *from, const char *what)
{
	char shown[SHOWN + 4];
	bool is_number = scan->at == scan->end || !scan_is_word(*scan->at);

	scan->at = from;
	show(scan, shown);
	if (is_number)
		plan_scan_fail(scan, "%s is too large for %s: at most 2^64 - 1", shown, what);
	else
		plan_scan_expected(scan, what);
}

bool plan_scan_need_sign(struct scan *scan, char sign)
{
	char what[] = {'\'', sign, '\'', 0};

	return scan_sign(scan, sign) || plan_scan_expected(scan, what);
}

bool plan_scan_need(struct scan *scan, const char *word)
{
	char what[32];

	if (scan_is(scan, word))
		return true;
	snprintf(what, sizeof(what), "'%s'", word);
	return plan_scan_expected(scan, what);
}

bool plan_scan_line(struct scan *scan)
{
	while (!scan_more(scan)) {
		const char *newline = memchr(scan->at, '\n', (size_t)(scan->end - scan->at));

		if (!newline) {
			scan->at = scan->end;
			return false;
		}
		scan->at = newline + 1;
		scan->line++;
	}
	return true;
}

bool plan_scan_end_line(struct scan *scan)
{
	return !scan_more(scan) || plan_scan_expected(scan, "the end of the line");
}

bool plan_scan_word(struct scan *scan, const char *what, const char **out_word, size_t *out_length)
{
	if (!scan_more(scan) || !scan_is_word(*scan->at))
		return plan_scan_expected(scan, what);
	const char *from = scan->at;
	while (scan->at < scan->end && scan_is_word(*scan->at))
		scan->at++;
	*out_word = from;
	*out_length = (size_t)(scan->at - from);
	return true;
}
