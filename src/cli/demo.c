/*
 * demo.c - espalier demo: eight workers on this machine train a small network together.
 *
 * The training is a program of its own, examples/train, over the public interface; here it is found and handed
 * to `espalier run`.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/plan_options.h"

/* Where the program stands, seen from the folder of this command: in a build folder, and where it is installed. */
static const char *const places[] = {"examples/train/train", "../libexec/espalier/train"};
#define PLACE_COUNT (sizeof places / sizeof places[0])

static bool find_train(char path[PATH_MAX])
{
	char folder[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
	if (length < 0)
		return false;
	folder[length] = '\0';
	*strrchr(folder, '/') = '\0';
	for (size_t i = 0; i < PLACE_COUNT; i++)
		if (snprintf(path, PATH_MAX, "%s/%s", folder, places[i]) < PATH_MAX && access(path, X_OK) == 0)
			return true;
	return snprintf(path, PATH_MAX, "%s", DEMO_TRAIN) < PATH_MAX && access(path, X_OK) == 0;
}

/* The options behind RANKS are passed on as they are: the program knows what they may be. */
enum { RANKS, EPOCHS, SEED, BATCH, SAMPLES, PLANS, JSON, CORRUPT, OPTION_COUNT };

static int start(const char *train, uint64_t ranks, const struct cli_option *options, const char *const *values)
{
	char count[24], names[OPTION_COUNT][16], program[PATH_MAX];
	char *words[6 + 2 * OPTION_COUNT + 1] = {"run", "--no-prefix", "-n", count, "--", program};
	int word_count = 6;
	snprintf(count, sizeof count, "%" PRIu64, ranks);
	snprintf(program, sizeof program, "%s", train);
	for (int i = RANKS + 1; i < OPTION_COUNT; i++) {
		if (!values[i])
			continue;
		snprintf(names[i], sizeof names[i], "--%s", options[i].name);
		words[word_count++] = names[i];
		words[word_count++] = (char *)values[i];
	}
	return cli_run.run(word_count, words);
}

/* Here, as every worker would complain. */
static int check_plans(const char *names)
{
	char text[1024];
	char *rest = text;
	struct error err;
	if ((size_t)snprintf(text, sizeof text, "%s", names) >= sizeof text)
		return cli_usage_error("demo: --plans: too many names");
	while (rest) {
		const char *name = strsep(&rest, ",");
		if (strcmp(name, "default") != 0 && !plan_find(name, &err))
			return cli_usage_error("demo: --plans: %s", err.text);
	}
	return -1;
}

static int run(int argc, char **argv)
{
	uint64_t ranks = 8;
	const char *values[OPTION_COUNT] = {NULL};
	const struct cli_option options[] = {
		[RANKS] = {"ranks", 'n', CLI_U64, &ranks, "N", "number of workers (default 8)", .min = 1, .max = 1024},
		[EPOCHS] = {"epochs", 0, CLI_STRING, &values[EPOCHS], "N", "passes over the training set (default 5)"},
		[SEED] = {"seed", 0, CLI_STRING, &values[SEED], "N", "of data, weights and order (default 1)"},
		[BATCH] = {"batch", 0, CLI_STRING, &values[BATCH], "N", "samples per worker and step (default 32)"},
		[SAMPLES] = {"samples", 0, CLI_STRING, &values[SAMPLES], "N", "size of the training set (default 16384)"},
		[PLANS] = {"plans", 0, CLI_STRING, &values[PLANS], "A,B,...", "plans; default is the library's choice"},
		[JSON] = {"json", 0, CLI_STRING, &values[JSON], "FILE", "write JSON to FILE; -: the standard output"},
		[CORRUPT] = {"corrupt", 0, CLI_STRING, &values[CORRUPT], "RANK", "flip a bit of its weights, to see it found"},
		{0},
	};
	const struct cli_usage usage = {
		"demo",
		"",
		"Trains a small network on drawn digits with eight workers on this machine, which average their\n"
		"gradients after each step: once under each of several plans. Compares the plans, and proves that\n"
		"all workers end with the same weights. Takes less than a minute on two cores.",
		options,
		0,
		0};
	int parsed = cli_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	parsed = values[PLANS] ? check_plans(values[PLANS]) : -1;
	if (parsed >= 0)
		return parsed;
	char train[PATH_MAX];
	if (!find_train(train))
		return cli_fail("demo: the program examples/train is neither beside this command nor at %s", DEMO_TRAIN);
	return start(train, ranks, options, values);
}

const struct cli_command cli_demo = {"demo", "trains a small network with eight workers, and compares plans", run};
