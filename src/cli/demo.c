/*
 * demo.c - espalier demo: eight workers on this machine train a small network together.
 *
 * The training is a program of its own, examples/train, over the public interface; here it is found and handed
 * to `espalier run`.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/conf.h"
#include "cli/cli.h"
#include "cli/run.h"
#include "rank/join/launch.h"
#include "report/options.h"
#include "tools/plan/plan_options.h"

#define GO_ON (-1)

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

/* Options behind RANKS are passed on. All is checked here, as every worker would complain. */
enum { RANKS, EPOCHS, SEED, BATCH, SAMPLES, CORRUPT, NUMBER_COUNT, PLANS = NUMBER_COUNT, JSON, OPTION_COUNT };
#define PLAN_CACHE_MAX 16 /* as the program has it */
#define PLAN_CACHE_TEXT 512

struct given {
	uint64_t numbers[NUMBER_COUNT];
	const char *texts[OPTION_COUNT]; /* of those that are no numbers; NULL: not given */
	bool are_given[NUMBER_COUNT];
};

static int start(const char *train, const struct given *given, const struct option_spec *options)
{
	char count[24], names[OPTION_COUNT][16], values[NUMBER_COUNT][24], program[PATH_MAX];
	char *words[6 + 2 * OPTION_COUNT + 1] = {"run", "--no-prefix", "-n", count, "--", program};
	int word_count = 6;
	snprintf(count, sizeof count, "%" PRIu64, given->numbers[RANKS]);
	snprintf(program, sizeof program, "%s", train);
	for (int i = RANKS + 1; i < OPTION_COUNT; i++) {
		if (i < NUMBER_COUNT ? !given->are_given[i] : !given->texts[i])
			continue;
		snprintf(names[i], sizeof names[i], "--%s", options[i].name);
		if (i < NUMBER_COUNT)
			snprintf(values[i], sizeof values[i], "%" PRIu64, given->numbers[i]);
		words[word_count++] = names[i];
		words[word_count++] = i < NUMBER_COUNT ? values[i] : (char *)given->texts[i];
	}
	return run_as("demo", word_count, words, NULL);
}

static int check_plans(const char *names)
{
	char text[PLAN_CACHE_TEXT];
	char *rest = text;
	struct error err;
	if ((size_t)snprintf(text, sizeof text, "%s", names) >= sizeof text)
		return complain_usage("demo: --plans: too many names");
	for (int count = 0; rest; count++) {
		const char *name = strsep(&rest, ",");
		if (count == PLAN_CACHE_MAX)
			return complain_usage("demo: --plans: more than %d names", PLAN_CACHE_MAX);
		if (strcmp(name, "default") != 0 && !plan_tool_find_runnable(name, "default", &err))
			return complain_usage("demo: --plans: %s", err.text);
	}
	return GO_ON;
}

static int check_numbers(const struct given *given)
{
	const uint64_t *numbers = given->numbers;
	if (numbers[SAMPLES] < 4 * numbers[RANKS] || numbers[SAMPLES] / numbers[RANKS] < numbers[BATCH])
		return complain_usage("demo: --samples %" PRIu64 " is not a batch of %" PRIu64 " for each of %" PRIu64
		                      " workers",
		                      numbers[SAMPLES], numbers[BATCH], numbers[RANKS]);
	if (given->are_given[CORRUPT] && numbers[CORRUPT] >= numbers[RANKS])
		return complain_usage("demo: --corrupt %" PRIu64 ", but workers end at %" PRIu64, numbers[CORRUPT],
		                      numbers[RANKS] - 1);
	return GO_ON;
}

/* A pipe or a device is not opened here: its reader would think that was all. */
static int check_json(const char *path)
{
	struct stat facts;
	bool is_there = stat(path, &facts) == 0;
	if (strcmp(path, "-") == 0)
		return GO_ON;
	int fd = is_there ? -1 : open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (is_there && S_ISDIR(facts.st_mode))
		return complain_usage("demo: --json: %s is a folder", path);
	if (is_there ? access(path, W_OK) != 0 : fd < 0)
		return complain_usage("demo: --json: cannot write to %s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return GO_ON;
}

/* The file last: it is made. */
static int check(const struct given *given)
{
	int status = given->texts[PLANS] ? check_plans(given->texts[PLANS]) : GO_ON;
	if (status == GO_ON)
		status = check_numbers(given);
	if (status == GO_ON && launch_is_told(conf_environment, NULL))
		status = complain_usage("demo: a launcher has started this as one rank of a job, and it starts all its workers "
		                        "itself: call it alone");
	return status == GO_ON && given->texts[JSON] ? check_json(given->texts[JSON]) : status;
}

static int run(int argc, char **argv)
{
	struct given given = {.numbers = {[RANKS] = 8, [BATCH] = 32, [SAMPLES] = 16384}};
	uint64_t *numbers = given.numbers;
	bool *are_given = given.are_given;
	const struct option_spec options[] = {
		[RANKS] = {"ranks", 'n', OPTION_U64, &numbers[RANKS], "N", "number of workers (default 8)", .min = 1,
	               .max = 1024},
		[EPOCHS] = {"epochs", 0, OPTION_U64, &numbers[EPOCHS], "N", "passes over the training set (default 5)",
	                .min = 1, .max = 1000, .given = &are_given[EPOCHS]},
		[SEED] = {"seed", 0, OPTION_U64, &numbers[SEED], "N", "of data, weights and order (default 1)",
	              .given = &are_given[SEED]},
		[BATCH] = {"batch", 0, OPTION_U64, &numbers[BATCH], "N", "samples per worker and step (default 32)", .min = 1,
	               .max = 4096, .given = &are_given[BATCH]},
		[SAMPLES] = {"samples", 0, OPTION_U64, &numbers[SAMPLES], "N", "size of the training set (default 16384)",
	                 .min = 8, .max = 10000000, .given = &are_given[SAMPLES]},
		[CORRUPT] = {"corrupt", 0, OPTION_U64, &numbers[CORRUPT], "RANK", "flip a bit of its weights, to see it found",
	                 .given = &are_given[CORRUPT]},
		[PLANS] = {"plans", 0, OPTION_STRING, &given.texts[PLANS], "A,B,...", "plans; default is the library's choice"},
		[JSON] = {"json", 0, OPTION_STRING, &given.texts[JSON], "FILE", "write JSON to FILE; -: the standard output"},
		{0},
	};
	const struct options_usage usage = {
		"demo",
		"",
		"Trains a small network on drawn digits with eight workers on this machine, which average their\n"
		"gradients after each step: once under each of several plans. Compares the plans, and proves that\n"
		"all workers end with the same weights. Takes less than a minute on two cores.",
		options,
		0,
		0};
	char train[PATH_MAX];
	int status = options_parse(&usage, &argc, argv);
	if (status == GO_ON)
		status = check(&given);
	if (status != GO_ON)
		return status;
	if (!find_train(train))
		return complain("demo: the program examples/train is neither beside this command nor at %s", DEMO_TRAIN);
	return start(train, &given, options);
}

const struct cli_command cli_demo = {"demo", "trains a small network with eight workers, and compares plans", run};
