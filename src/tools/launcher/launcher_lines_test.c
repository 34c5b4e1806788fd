#include "tools/launcher/launcher_lines.h"

#include "base/check.h"
#include "base/rng.h"

#define ROOM (1u << 20)

/* The lines so far: "text\n", with a + before a piece that continues a line. */
static struct {
	char text[ROOM];
	size_t length;
} got;

static void put(const char *text, size_t length)
{
	CHECK(length <= ROOM - got.length);
	memcpy(got.text + got.length, text, length);
	got.length += length;
}

static void on_line(void *context, bool continued, const char *head, size_t head_length, const char *tail,
                    size_t tail_length)
{
	CHECK(context == &got && head_length + tail_length <= RUN_LINE_MAX);
	put("+", continued);
	put(head, head_length);
	put(tail, tail_length);
	put("\n", 1);
}

static const char *fed(const char *const *pieces)
{
	struct run_line line = {0};
	got.length = 0;
	for (; *pieces; pieces++)
		launcher_line_feed(&line, *pieces, strlen(*pieces), on_line, &got);
	launcher_line_end(&line, on_line, &got);
	CHECK(!line.text && line.used == 0);
	put("", 1);
	return got.text;
}
#define FED(...) fed((const char *const[]){__VA_ARGS__, NULL})

static void test_lines(void)
{
	CHECK_STR(FED(""), "");
	CHECK_STR(FED("a\n"), "a\n");
	CHECK_STR(FED("a\nb\n\nc"), "a\nb\n\nc\n");
	CHECK_STR(FED("a", "b", "c\nd", "\n", "\n"), "abc\nd\n\n");
	CHECK_STR(FED("a\r", "b\n"), "a\rb\n");
}

static void test_no_memory_is_kept(void)
{
	struct run_line line = {0};
	launcher_line_feed(&line, "ab", 2, on_line, &got);
	CHECK(line.text);
	launcher_line_feed(&line, "c\nd\n", 4, on_line, &got);
	CHECK(!line.text);
}

/* The same, computed byte by byte. */
static size_t expected(const char *data, size_t length, char *out)
{
	size_t used = 0, column = 0;
	for (size_t i = 0; i < length; i++) {
		if (data[i] == '\n') {
			out[used++] = '\n';
			column = 0;
			continue;
		}
		if (column > 0 && column % RUN_LINE_MAX == 0) {
			out[used++] = '\n';
			out[used++] = '+';
		}
		out[used++] = data[i];
		column++;
	}
	if (column > 0)
		out[used++] = '\n';
	return used;
}

static void test_any_pieces(struct rng *rng)
{
	static char data[ROOM / 2], wanted[ROOM];
	/* Lengths of lines: mostly around the limit and its multiples, where mistakes are likely. */
	size_t length = 0;
	while (length < sizeof(data) - 4 * RUN_LINE_MAX) {
		size_t line = rng_below(rng, 3) ? RUN_LINE_MAX * rng_below(rng, 3) + rng_below(rng, 3) : rng_below(rng, 100);
		for (size_t i = 0; i < line; i++) {
			char letter = (char)rng_below(rng, 256);
			data[length++] = letter == '\n' ? '\0' : letter;
		}
		data[length++] = '\n';
	}
	length -= rng_below(rng, 2); /* with or without the last line end */

	struct run_line line = {0};
	got.length = 0;
	for (size_t at = 0; at < length;) {
		size_t piece = 1 + rng_below(rng, rng_below(rng, 2) ? 100 : 3 * RUN_LINE_MAX);
		piece = piece < length - at ? piece : length - at;
		launcher_line_feed(&line, data + at, piece, on_line, &got);
		at += piece;
	}
	launcher_line_end(&line, on_line, &got);
	CHECK_U64(got.length, expected(data, length, wanted));
	CHECK(memcmp(got.text, wanted, got.length) == 0);
}

int main(int argc, char **argv)
{
	struct rng rng;
	rng_init(&rng, test_seed(argc, argv, 1));
	test_lines();
	test_no_memory_is_kept();
	for (int i = 0; i < 30; i++)
		test_any_pieces(&rng);
	return 0;
}
