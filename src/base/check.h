/*
 * check.h - output and failure of a test program; for x_test.c files only.
 *
 * A test is a plain program: main() returns 0, a failed CHECK ends it with 1 and the place, test_skip() with 77 and a
 * reason. Property tests take their seed with test_seed(), so that the seed in a failure's output replays it. A word on
 * the command line that none of them understands ends the program with 2: a mistyped option must not pass for a run
 * with the defaults.
 */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_TEXT_(value) #value
#define CHECK_TEXT(value) CHECK_TEXT_(value) /* a macro's value as a string */

#define CHECK(condition) \
	((condition) ? (void)0 : check_fail(__FILE__, __LINE__, "%s", #condition))

/* As CHECK, with a printf text about the case at hand. */
#define CHECK_MSG(condition, ...) \
	((condition) ? (void)0 : check_fail(__FILE__, __LINE__, __VA_ARGS__))

#define CHECK_U64(actual, expected) \
	check_u64(__FILE__, __LINE__, #actual, (uint64_t)(actual), (uint64_t)(expected))

#define CHECK_STR(actual, expected) \
	check_str(__FILE__, __LINE__, #actual, (actual), (expected))

__attribute__((noreturn, format(printf, 3, 4), unused))
static void check_fail(const char *file, int line, const char *format, ...)
{
	va_list args;
	fflush(stdout);
	fprintf(stderr, "%s:%d: failed: ", file, line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

__attribute__((unused))
static void check_u64(const char *file, int line, const char *what, uint64_t actual, uint64_t expected)
{
	if (actual != expected)
		check_fail(file, line, "%s is %" PRIu64 ", expected %" PRIu64, what, actual, expected);
}

__attribute__((unused))
static void check_str(const char *file, int line, const char *what, const char *actual, const char *expected)
{
	if (!actual || !expected ? actual != expected : strcmp(actual, expected) != 0)
		check_fail(file, line, "%s is \"%s\", expected \"%s\"", what, actual ? actual : "(null)",
		           expected ? expected : "(null)");
}

__attribute__((noreturn, unused))
static void test_skip(const char *reason)
{
	puts(reason);
	exit(77);
}

/* Options of the tests that call test_option(); a test with others defines this before it includes the header. */
#ifndef TEST_OPTIONS
#define TEST_OPTIONS "--seed", "--count"
#endif

__attribute__((noreturn, unused))
static void test_usage(const char *program, const char *const *names, int status)
{
	FILE *out = status == 0 ? stdout : stderr;
	fprintf(out, "usage: %s", program);
	for (; *names; names++)
		fprintf(out, " [%s NUMBER]", *names);
	fputc('\n', out);
	exit(status);
}

/* Digits, or 0x and digits: all of the text. */
__attribute__((unused))
static bool test_number(const char *text, uint64_t *out)
{
	char *end;
	errno = 0;
	*out = strtoull(text, &end, 0);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

__attribute__((unused))
static bool test_is_among(const char *word, const char *const *names)
{
	while (*names && strcmp(*names, word) != 0)
		names++;
	return *names != NULL;
}

/* Goes over the whole command line, whichever option is asked for. names ends with NULL. */
__attribute__((unused))
static uint64_t test_option_among(int argc, char **argv, const char *const *names, const char *name, uint64_t otherwise)
{
	uint64_t found = otherwise, number;
	for (int i = 1; i < argc; i += 2) {
		if (strcmp(argv[i], "--help") == 0)
			test_usage(argv[0], names, 0);
		if (!test_is_among(argv[i], names)) {
			fprintf(stderr, "%s: unknown option '%s'\n", argv[0], argv[i]);
			test_usage(argv[0], names, 2);
		}
		if (i + 1 == argc || !test_number(argv[i + 1], &number)) {
			fprintf(stderr, "%s: %s needs a number\n", argv[0], argv[i]);
			test_usage(argv[0], names, 2);
		}
		if (strcmp(argv[i], name) == 0)
			found = number;
	}
	return found;
}

/* The number after an option such as --count, or otherwise. */
__attribute__((unused))
static uint64_t test_option(int argc, char **argv, const char *name, uint64_t otherwise)
{
	static const char *const names[] = {TEST_OPTIONS, NULL};
	return test_option_among(argc, argv, names, name, otherwise);
}

/*
 * For what is to be the same in every run, to the last bit of a double. Structs: zeroed before they are filled in, as
 * they have gaps.
 */
__attribute__((unused))
static bool test_same_bits(const void *a, const void *b, size_t bytes)
{
	return memcmp(a, b, bytes) == 0;
}

/* The number after --seed, or otherwise; printed, so that it stands in the output of a failure. */
__attribute__((unused))
static uint64_t test_seed(int argc, char **argv, uint64_t otherwise)
{
	static const char *const names[] = {"--seed", NULL};
	uint64_t seed = test_option_among(argc, argv, names, "--seed", otherwise);
	printf("seed %" PRIu64 "\n", seed);
	fflush(stdout);
	return seed;
}

#endif
