#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct number_option {
	const char *name;
	size_t offset; /* of a uint64_t in struct options */
	uint64_t least, most;
};

static const struct number_option numbers[] = {
	{"--epochs", offsetof(struct options, epochs), 1, 1000},
	{"--seed", offsetof(struct options, seed), 0, UINT64_MAX},
	{"--batch", offsetof(struct options, batch), 1, 4096},
	{"--samples", offsetof(struct options, samples), 8, 10000000},
	{"--corrupt", offsetof(struct options, corrupt), 0, UINT32_MAX},
};
#define NUMBER_COUNT (sizeof numbers / sizeof numbers[0])

void options_help(FILE *out)
{
	fputs("usage: train [options]\n\n"
	      "Trains a small network on drawn digits, data-parallel over all ranks of the job, once per plan, and proves\n"
	      "that all ranks end with the same weights. Run it as\n\n"
	      "    espalier run -n 8 -- train\n\n"
	      "options:\n"
	      "  --epochs N       passes over the training set under each plan (default 5)\n"
	      "  --seed N         of data, weights and order (default 1)\n"
	      "  --batch N        samples per worker and step (default 32)\n"
	      "  --samples N      size of the training set, over all workers (default 16384)\n"
	      "  --plans A,B,...  plans to compare; default is the library's choice, `espalier plan make --help` lists\n"
	      "                   the others (default: default,ring,halving-doubling,flat,tree)\n"
	      "  --json [FILE]    write the results as JSON to FILE, or to the standard output in place of the tables\n"
	      "  --corrupt RANK   flip one bit of one weight of this rank before the proof, to see it fail\n"
	      "  -h, --help       this text\n\n"
	      "exit status: 0 all ranks have the same weights; 1 they have not, or the work failed; 2 wrong usage\n",
	      out);
}

__attribute__((format(printf, 2, 3)))
static bool wrong(struct options *options, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(options->error, sizeof options->error, format, args);
	va_end(args);
	return false;
}

static bool parse_number(struct options *options, const struct number_option *option, const char *text)
{
	char *end;
	errno = 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < option->least || value > option->most)
		return wrong(options, "%s must be a number from %" PRIu64 " to %" PRIu64 ", not '%s'", option->name,
		             option->least, option->most, text);
	memcpy((char *)options + option->offset, &(uint64_t){value}, sizeof(uint64_t));
	return true;
}

static bool parse_plans(struct options *options, const char *text)
{
	if (strlen(text) >= sizeof options->plan_text)
		return wrong(options, "--plans is too long");
	strcpy(options->plan_text, text);
	options->plan_count = 0;
	for (char *rest = options->plan_text, *name; (name = strsep(&rest, ","));) {
		if (*name == '\0')
			return wrong(options, "--plans has an empty name: '%s'", text);
		if (options->plan_count == OPTIONS_PLANS_MAX)
			return wrong(options, "--plans has more than %d names", OPTIONS_PLANS_MAX);
		options->plans[options->plan_count++] = name;
	}
	return true;
}

static const struct number_option *find_number(const char *name)
{
	for (size_t i = 0; i < NUMBER_COUNT; i++)
		if (strcmp(numbers[i].name, name) == 0)
			return &numbers[i];
	return NULL;
}

/* One option and, where it has one, its value; returns how many words that were, 0: wrong. */
static int parse_option(struct options *options, const char *name, const char *value)
{
	const struct number_option *number = find_number(name);
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
		options->help = true;
		return 1;
	}
	if (strcmp(name, "--json") == 0) {
		bool has_file = value && (value[0] != '-' || value[1] == '\0');
		options->json = has_file ? value : "-";
		return has_file ? 2 : 1;
	}
	if (!number && strcmp(name, "--plans") != 0) {
		wrong(options, "unknown option '%s'; see --help", name);
		return 0;
	}
	if (!value) {
		wrong(options, "%s needs a value", name);
		return 0;
	}
	return (number ? parse_number(options, number, value) : parse_plans(options, value)) ? 2 : 0;
}

bool options_parse(struct options *options, int argc, char **argv)
{
	memset(options, 0, sizeof *options);
	options->epochs = 5;
	options->seed = 1;
	options->batch = 32;
	options->samples = 16384;
	options->corrupt = UINT64_MAX;
	parse_plans(options, OPTIONS_DEFAULT_PLAN ",ring,halving-doubling,flat,tree");
	for (int i = 1, words; i < argc; i += words) {
		words = parse_option(options, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
		if (words == 0)
			return false;
	}
	return true;
}
