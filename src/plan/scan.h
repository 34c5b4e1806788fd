/*
 * scan.h - takes the text of a plan apart: lines, words, numbers, signs. Private to src/plan.
 *
 * A cursor over text that need not end in a newline or a NUL and may hold anything. Blanks,
 * tabs and carriage returns separate; # begins a comment; nothing spans two lines. The
 * first failure is kept, with its line, and every function returns false from then on
 * wherever its caller passes that up. No allocation.
 */
#ifndef PLAN_SCAN_H
#define PLAN_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"

struct scan {
	const char *at;
	const char *end;
	uint64_t line; /* of `at`, from 1 */
	enum esp_status status;
	struct error *err; /* borrowed; may be NULL */
};

void plan_scan_init(struct scan *scan, const char *text, size_t length, struct error *err);

/* Both keep "line 7: ..." and return false; the first one as ESP_EPARSE. */
bool plan_scan_fail(struct scan *scan, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool plan_scan_stop(struct scan *scan, enum esp_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* "expected WHAT, not 'what stands here'" */
bool plan_scan_expected(struct scan *scan, const char *what);

/* To the next line that says something; false at the end of the text, which is no failure. */
bool plan_scan_line(struct scan *scan);

/* Nothing but a comment may follow on this line. */
bool plan_scan_end_line(struct scan *scan);

/* A run of characters a to z, digits, - and _; *out_word points into the text. */
bool plan_scan_word(struct scan *scan, const char *what, const char **out_word, size_t *out_length);

static inline bool scan_is_digit(char c)
{
	return (unsigned char)(c - '0') < 10;
}

static inline bool scan_is_word(char c)
{
	return (unsigned char)((c | 32) - 'a') < 26 || scan_is_digit(c) || c == '-' || c == '_';
}

/* Is there more on this line? Moves to it. */
static inline bool scan_more(struct scan *scan)
{
	while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\r'))
		scan->at++;
	return scan->at < scan->end && *scan->at != '\n' && *scan->at != '#';
}

/* A number that begins at `from` is too large, or goes over into a word; for scan_number() only. */
void plan_scan_number_failed(struct scan *scan, const char *from, const char *what);

/* Take a sign or a word that has to stand here. */
bool plan_scan_need_sign(struct scan *scan, char sign);
bool plan_scan_need(struct scan *scan, const char *word);

/* Takes the sign if it is what comes next. */
static inline bool scan_sign(struct scan *scan, char sign)
{
	if (!scan_more(scan) || *scan->at != sign)
		return false;
	scan->at++;
	return true;
}

/* Takes the word if it is what comes next. */
static inline bool scan_is(struct scan *scan, const char *word)
{
	size_t length = strlen(word);

	if (!scan_more(scan) || (size_t)(scan->end - scan->at) < length || memcmp(scan->at, word, length) != 0 ||
	    (scan->at + length < scan->end && scan_is_word(scan->at[length])))
		return false;
	scan->at += length;
	return true;
}

/* Decimal digits, at most 2^64 - 1; `what` is for the message. */
static inline bool scan_number(struct scan *scan, const char *what, uint64_t *out)
{
	uint64_t value = 0;
	bool over = false;

	if (!scan_more(scan) || !scan_is_digit(*scan->at)) {
		plan_scan_expected(scan, what);
		return false; /* in so many words: the compiler sees then that success has written *out */
	}
	const char *from = scan->at;
	for (; scan->at < scan->end && scan_is_digit(*scan->at); scan->at++) {
		over |= __builtin_mul_overflow(value, UINT64_C(10), &value);
		over |= __builtin_add_overflow(value, (uint64_t)(*scan->at - '0'), &value);
	}
	if (over || (scan->at < scan->end && scan_is_word(*scan->at))) {
		plan_scan_number_failed(scan, from, what);
		return false;
	}
	*out = value;
	return true;
}

#endif
