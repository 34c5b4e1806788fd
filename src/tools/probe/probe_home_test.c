/*
 * probe_home_test.c - files through lines and back: complete or not at all, and only files that are wanted. Real
 * hosts send files in tests/probe_cli_test.py.
 */
#include "tools/probe/probe_home.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"

/* Gives the text to home line by line, each split in two. Returns the number of lines that were ordinary output. */
static uint32_t feed(struct home *home, const char *text, size_t length)
{
	uint32_t shown = 0;

	for (const char *at = text, *end; at < text + length; at = end + 1) {
		end = memchr(at, '\n', (size_t)(text + length - at));
		CHECK(end != NULL);
		size_t all = (size_t)(end - at), head = all / 3;
		shown += !probe_tool_home_take(home, at, head, at + head, all - head);
	}
	return shown;
}

static void test_round_trip(void)
{
	const struct probe_options options = {.out = "topology", .html = "report"};
	char bytes[9001], *lines = NULL;
	size_t length = 0;
	struct home home;
	FILE *file = open_memstream(&lines, &length);

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 7);
	fputs("a line for people\n\n", file);
	probe_tool_home_send(HOME_TOPOLOGY, "not this", 8, file);
	probe_tool_home_send(HOME_TOPOLOGY, bytes, sizeof(bytes), file); /* a second attempt replaces the first */
	probe_tool_home_send(HOME_REPORT, "", 0, file);
	probe_tool_home_send(HOME_MATRIX, "not asked for", 13, file);
	probe_tool_home_send_progress("[##..]", file);
	fputs("another one\n", file);
	fclose(file);
	for (size_t i = 0, column = 0; i < length; i++) {
		column = lines[i] == '\n' ? 0 : column + 1;
		CHECK(column < 16384); /* so that espalier run does not cut the line */
	}
	probe_tool_home_open(&home, &options, -1);
	CHECK(feed(&home, lines, length) == 3);
	CHECK(home.parts[HOME_TOPOLOGY].is_whole && home.parts[HOME_TOPOLOGY].length == sizeof(bytes));
	CHECK(memcmp(home.parts[HOME_TOPOLOGY].text, bytes, sizeof(bytes)) == 0);
	CHECK(home.parts[HOME_REPORT].is_whole && home.parts[HOME_REPORT].length == 0);
	CHECK(!home.parts[HOME_MATRIX].is_whole && !home.parts[HOME_MATRIX].text);
	probe_tool_home_close(&home);
	free(lines);
}

static void test_nonsense(void)
{
	static const char *const texts[] = {
		"\036B1\n\036F16162\n",
		"\036F161\n\036E1\n",
		"\036B1\n\036F1zz\n\036E1\n",
		"\036B9\n\036F961\n\036E9\n",
		"\036B\n\036E\n",
		"\036x1\n",
		"\036P\n\036P\033[2J\n",
	};
	const struct probe_options options = {.out = "/nonexistent/topology"};
	struct home home;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		probe_tool_home_open(&home, &options, -1);
		CHECK(feed(&home, texts[i], strlen(texts[i])) == 0);
		CHECK(probe_tool_home_write(&home, false) == 0); /* no file is complete, so none is written */
		CHECK(probe_tool_home_write(&home, true) == 1);  /* and after success a missing file is an error */
		probe_tool_home_close(&home);
	}
	probe_tool_home_open(&home, &options, -1);
	CHECK(feed(&home, "\x1e\n", 2) == 1);
	CHECK(feed(&home,
	           "\x1e"
	           "B1\n\x1e"
	           "F161\n\x1e"
	           "E1\n",
	           14) == 0 &&
	      probe_tool_home_write(&home, true) == 1);
	probe_tool_home_close(&home);
}

/* Files of an attempt before the last one are not written. */
static void test_two_tries(void)
{
	const struct probe_options options = {.out = "/nonexistent/topology"};
	struct home home;

	probe_tool_home_open(&home, &options, -1);
	probe_tool_home_begin(&home);
	CHECK(feed(&home, "\x1e" "B1\n\x1e" "F161\n\x1e" "E1\n", 14) == 0 && home.parts[HOME_TOPOLOGY].is_whole);
	probe_tool_home_begin(&home);
	CHECK(!home.parts[HOME_TOPOLOGY].is_whole && probe_tool_home_write(&home, false) == 0);
	probe_tool_home_close(&home);
}

/* The end of the report, and whether it was a success; of the last attempt only. */
static void test_end(void)
{
	const struct probe_options options = {0};
	struct home home;
	char *line = NULL;
	size_t length = 0;

	for (int is_good = 0; is_good < 2; is_good++) {
		FILE *file = open_memstream(&line, &length);
		probe_tool_home_open(&home, &options, -1);
		probe_tool_home_send_end(is_good, file);
		fclose(file);
		CHECK(!home.has_end && feed(&home, line, length) == 0);
		CHECK(home.has_end && home.is_good == is_good);
		probe_tool_home_begin(&home);
		CHECK(!home.has_end && !home.is_good);
		probe_tool_home_close(&home);
		free(line);
	}
}

/* A rank that sends too much is ignored. */
static void test_too_much(void)
{
	const struct probe_options options = {.out = "/nonexistent/topology"};
	struct home home;

	probe_tool_home_open(&home, &options, -1);
	CHECK(feed(&home, "\x1e" "B1\n", 4) == 0);
	home.parts[HOME_TOPOLOGY].taken = HOME_FILE_MOST;
	CHECK(feed(&home, "\x1e" "F161\n\x1e" "F162\n\x1e" "E1\n", 16) == 0);
	CHECK(!home.parts[HOME_TOPOLOGY].is_whole && !home.parts[HOME_TOPOLOGY].text);
	probe_tool_home_close(&home);
}

/* A bar fits into one line of a terminal and holds no control characters. */
static void test_bar(void)
{
	static const char *const bad[] = {"\x1e" "P\033[2J\n", "\x1e" "P\x9b" "2J\n", "\x1e" "P\x7f\n",
		"\x1e" "P12345678901234567890123456789012345678901234567890123456789012345678901234567890\n"};
	const struct probe_options options = {0};
	FILE *terminal = tmpfile();
	struct home home;

	CHECK(terminal != NULL);
	probe_tool_home_open(&home, &options, fileno(terminal));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(feed(&home, bad[i], strlen(bad[i])) == 0 && !home.has_bar && lseek(fileno(terminal), 0, SEEK_END) == 0);
	CHECK(feed(&home, "\x1e" "P[##..] 50 %\n", 14) == 0 && home.has_bar);
	probe_tool_home_close(&home);
	fclose(terminal);
}

int main(void)
{
	test_round_trip();
	test_nonsense();
	test_two_tries();
	test_end();
	test_too_much();
	test_bar();
	return 0;
}
