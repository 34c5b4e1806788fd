#include "report/options.h"

#include <stdbool.h>

#include "base/check.h"
#include "report/complain.h"

/* A variable for each kind of option, and the results of the last parse. */
static struct {
	bool flag, other, bytes_given, flag_given;
	uint64_t ranks, bytes;
	double rate;
	const char *file, *where;
	int kind;
	int argc;
	char *argv[16];
} got;

static const char *const kinds[] = {"ring", "tree", NULL};
static const struct option_spec options[] = {
	{"flag", 'f', OPTION_FLAG, &got.flag, NULL, "a flag", .given = &got.flag_given},
	{"other", 'o', OPTION_FLAG, &got.other, NULL, "another"},
	{"ranks", 'n', OPTION_U64, &got.ranks, "N", "ranks", .min = 1, .max = 64},
	{"bytes", 'b', OPTION_BYTES, &got.bytes, "BYTES", "bytes", .max = 1 << 20, .given = &got.bytes_given},
	{"rate", 0, OPTION_DOUBLE, &got.rate, "X", "rate"},
	{"file", 0, OPTION_STRING, &got.file, "FILE", "file"},
	{"at", 0, OPTION_STRING, &got.where, "[P]", "place", .bare = "here"},
	{"kind", 'k', OPTION_CHOICE, &got.kind, "KIND", "kind", .choices = kinds},
	{0},
};
static const struct options_usage usage = {"try", "[A] [B] [C]", "Tries options.", options, 0, 3};

/* Parses words, split at blanks; `_` stands for an empty word. */
static int parse(const char *line)
{
	static char copy[256];
	memset(&got, 0, sizeof got);
	got.ranks = 8;
	snprintf(copy, sizeof copy, "%s", line);
	got.argv[got.argc++] = "try";
	for (char *word = strtok(copy, " "); word; word = strtok(NULL, " "))
		got.argv[got.argc++] = strcmp(word, "_") == 0 ? "" : word;
	return options_parse(&usage, &got.argc, got.argv);
}

static void test_accepted(void)
{
	CHECK(parse("") == -1 && got.ranks == 8 && got.argc == 1);
	CHECK(parse("--ranks 4 --bytes=64K") == -1 && got.ranks == 4 && got.bytes == 65536);
	CHECK(parse("-n 4 -b64K -fo") == -1 && got.ranks == 4 && got.bytes == 65536 && got.flag && got.other);
	CHECK(parse("-fn4") == -1 && got.flag && got.ranks == 4);
	CHECK(parse("--rate=-0.5 --kind tree") == -1 && got.rate == -0.5 && got.kind == 1);
	CHECK(parse("--kind TREE") == -1 && got.kind == 1);
	CHECK(parse("--kind t_re-e") == -1 && got.kind == 1);
	CHECK(parse("--bytes 0") == -1 && got.bytes == 0 && got.bytes_given && !got.flag_given);
	CHECK(parse("-f") == -1 && got.flag_given && !got.bytes_given);
	CHECK(parse("--ranks 4 --ranks 5") == -1 && got.ranks == 5);
	CHECK(parse("--file=") == -1);
	CHECK_STR(got.file, "");
	CHECK(parse("--file -x") == -1);
	CHECK_STR(got.file, "-x");
}

/* An option whose value may be left out. */
static void test_bare(void)
{
	CHECK(parse("--at") == -1);
	CHECK_STR(got.where, "here");
	CHECK(parse("--at --flag") == -1 && got.flag);
	CHECK_STR(got.where, "here");
	CHECK(parse("--at there --flag") == -1 && got.flag);
	CHECK_STR(got.where, "there");
	CHECK(parse("--at=-there") == -1);
	CHECK_STR(got.where, "-there");
}

static void test_arguments(void)
{
	CHECK(parse("a --flag - -n 3 c") == -1 && got.flag && got.ranks == 3);
	CHECK_U64(got.argc, 4);
	CHECK_STR(got.argv[1], "a");
	CHECK_STR(got.argv[2], "-");
	CHECK_STR(got.argv[3], "c");
	CHECK(parse("a -- --flag -n") == -1 && !got.flag);
	CHECK_U64(got.argc, 4);
	CHECK_STR(got.argv[2], "--flag");
	CHECK(parse("a b c d") == EXIT_USAGE);
	CHECK(parse("_") == -1 && got.argc == 2);
}

static void test_refused(void)
{
	static const char *const bad[] = {
		"--ranks",     "--ranks 0", "--ranks 65",  "--ranks x",  "--ranks -1", "--ranks= ",    "--bytes 2M",
		"--bytes 1KB", "--rate x",  "--kind star", "--kind",     "--flag=1",   "--nosuch",     "--f",
		"--f x",       "--ran 4",   "--fl",        "--rankss 4", "--kind tre", "--kind trees", "--kind _",
		"-x",          "-fx",       "-n",          "--=4",       "--ranks _"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		CHECK_MSG(parse(bad[i]) == EXIT_USAGE, "'%s' was accepted", bad[i]);
	CHECK(got.ranks == 8);
}

static void test_help(void)
{
	char text[2048] = "";
	FILE *out = fmemopen(text, sizeof text, "w");
	options_print_help(&usage, out);
	fclose(out);
	CHECK(strstr(text, "usage: espalier try [options] [A] [B] [C]\n"));
	CHECK(strstr(text, "  -n, --ranks N      ranks\n"));
	CHECK(strstr(text, "      --rate X       rate\n"));
	CHECK(strstr(text, "  -k, --kind KIND    kind: one of ring, tree\n"));
	CHECK(strstr(text, "  -h, --help         this text\n"));
	CHECK(parse("--help --nosuch") == EXIT_OK);
	CHECK(parse("-fh") == EXIT_OK);
}

int main(void)
{
	test_accepted();
	test_bare();
	test_arguments();
	test_refused();
	test_help();
	return 0;
}
