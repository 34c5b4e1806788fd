/*
 * bench.c - espalier bench: how fast are collectives here, and are they right?
 *
 * Without a launcher, the command starts itself once per rank through `espalier run`; under one, it joins. Every
 * rank goes through the same collectives, plans and sizes; rank 0 prints.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/conf.h"
#include "base/cores.h"
#include "base/number.h"
#include "cli/bench_fabric.h"
#include "cli/bench_hub.h"
#include "cli/bench_switch.h"
#include "cli/cli.h"
#include "cli/run.h"
#include "rank/join/launch.h"
#include "tools/bench/bench_measure.h"
#include "tools/bench/bench_options.h"
#include "tools/bench/bench_print.h"

/* Tells ranks that were started here, whose own output is a pipe, the descriptor of a terminal for their progress. */
#define PROGRESS_VARIABLE "ESP_BENCH_PROGRESS"

/* The command line as it was typed. */
struct typed {
	int argc;
	char **argv;
};

/* ---- starting ranks ---- */

static uint64_t default_ranks(void)
{
	uint32_t cores = cores_allowed();

	if (cores > BENCH_RANKS_MAX)
		return BENCH_RANKS_MAX;
	return cores > 2 ? cores : 2;
}

/* On a terminal that does not show the rows already. */
static bool wants_progress(void)
{
	return isatty(STDERR_FILENO) == 1 && isatty(STDOUT_FILENO) != 1;
}

/* Without one the ranks just work in silence. */
static void offer_terminal(void)
{
	char number[24];
	int terminal = dup(STDERR_FILENO); /* one that exec leaves open */

	snprintf(number, sizeof(number), "%d", terminal);
	if (terminal >= 0)
		setenv(PROGRESS_VARIABLE, number, 1);
}

/*
 * Before anything is started: memory that is shared is reserved, and where there is too little the system ends
 * processes, not always those that asked for it. Data of collectives with blocks is larger at most by an element per
 * rank.
 */
static int check_memory(const struct bench_options *options, uint64_t ranks)
{
	char size[NUMBER_BYTES_TEXT];
	uint64_t needed, all = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	bool moves_data = options->collective_count > 1 || options->collectives[0] != ESP_BARRIER;

	if (!moves_data || (!__builtin_mul_overflow(options->sizes.most, 2 * ranks, &needed) && needed <= all))
		return EXIT_OK;
	return complain_usage("bench: --size: %s in two buffers of each of %" PRIu64
	                      " ranks is more than the memory of this machine "
	                      "(%.1f GiB)",
	                      number_format_bytes(options->sizes.most, size), ranks, (double)all / (1 << 30));
}

/* espalier run --prefix=none -n N -- espalier bench ..., without leaving this process. */
static int start_ranks(const struct bench_options *options, const struct typed *typed)
{
	char self[4096], number[24], name[] = "run", plain[] = "--prefix=none", ranks_option[] = "-n", end[] = "--";
	uint64_t ranks = options->ranks ? options->ranks : default_ranks();
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (options->root >= ranks)
		return complain_usage("bench: --root %" PRIu64 ", but ranks end at %" PRIu64, options->root, ranks - 1);
	int exit_status = check_memory(options, ranks);
	if (exit_status != EXIT_OK)
		return exit_status;
	if (length < 0)
		return complain("bench: cannot find out which program this is");
	self[length] = '\0';
	snprintf(number, sizeof(number), "%" PRIu64, ranks);
	char *const words[] = {name, plain, ranks_option, number, end, self};
	size_t count = sizeof(words) / sizeof(words[0]);
	char **argv = calloc(count + (size_t)typed->argc + 1, sizeof(*argv));
	if (!argv)
		return complain("bench: %s", esp_status_text(ESP_ENOMEM));
	if (wants_progress())
		offer_terminal();
	memcpy(argv, words, sizeof(words));
	memcpy(argv + count, typed->argv, (size_t)typed->argc * sizeof(*argv));
	exit_status = run_as("bench", (int)count + typed->argc, argv, NULL);
	free(argv);
	return exit_status;
}

/* ---- what is said besides the results ---- */

/* By rank 0, and by the others only where that one may not be able to. */
static int fail_rank(const struct bench_job *job, const struct esp_error *err)
{
	if (job->rank == 0 || err->rank == 0 || err->rank == (int32_t)job->rank)
		complain("bench: %s", err->text);
	return EXIT_NO;
}

struct progress {
	int terminal; /* -1: none */
	uint64_t done, all;
};

static int progress_terminal(void)
{
	const char *text = conf_environment(NULL, PROGRESS_VARIABLE);
	uint64_t number;

	if (wants_progress())
		return STDERR_FILENO;
	if (!text || !number_parse_u64(text, strlen(text), &number) || number > INT_MAX || isatty((int)number) != 1)
		return -1;
	return (int)number;
}

static void show_progress(struct progress *progress, const struct bench_shape *shape)
{
	char text[NUMBER_BYTES_TEXT];

	if (progress->terminal >= 0)
		dprintf(progress->terminal, "\r\033[Kespalier: bench: %" PRIu64 " of %" PRIu64 ", %s of %s", progress->done + 1,
		        progress->all, esp_collective_name(shape->collective), number_format_bytes(bench_bytes(shape), text));
	progress->done++;
}

static void end_progress(const struct progress *progress)
{
	if (progress->terminal >= 0 && progress->done > 0)
		dprintf(progress->terminal, "\r\033[K");
}

/* ---- the story ---- */

static bool is_printer(const struct bench_job *job)
{
	return job->rank == 0;
}

/* Every size once: small ones are the same where each rank gets one element at least. */
static enum esp_status go_through_sizes(struct bench_job *job, enum esp_collective collective, const char *plan,
                                        struct bench_print *print, struct progress *progress)
{
	const struct bench_sizes *sizes = &job->options->sizes;
	uint64_t last = UINT64_MAX;

	for (size_t i = 0; i < sizes->count; i++) {
		struct bench_shape shape = bench_job_shape(job, collective, sizes->bytes[i]);
		struct bench_row row;
		show_progress(progress, &shape);
		if (shape.count == last)
			continue;
		last = shape.count;
		enum esp_status status = bench_measure(job, &shape, plan, &row);
		if (status != ESP_OK)
			return status;
		if (is_printer(job))
			bench_print_row(print, &row);
	}
	return ESP_OK;
}

static enum esp_status go_through_all(struct bench_job *job, struct bench_print *print)
{
	const struct bench_options *options = job->options;
	struct progress progress = {
		.terminal = is_printer(job) ? progress_terminal() : -1,
		.all = (uint64_t)options->collective_count * options->plan_count * options->sizes.count,
	};
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; i < options->collective_count && status == ESP_OK; i++)
		for (uint32_t j = 0; j < options->plan_count && status == ESP_OK; j++)
			status = go_through_sizes(job, options->collectives[i], options->plans[j], print, &progress);
	end_progress(&progress);
	return status;
}

static int measure(struct bench_job *job, const struct bench_config *config)
{
	struct esp_error err = ESP_ERROR_INIT;
	struct bench_print print = {0};

	if (is_printer(job))
		bench_print_begin(&print, stdout, job->options->json, config);
	enum esp_status status = go_through_all(job, &print);
	if (status != ESP_OK) {
		bench_last_error(status, &err);
		fail_rank(job, &err);
	}
	if (is_printer(job) && bench_print_end(&print, status == ESP_OK ? NULL : err.text) != ESP_OK)
		return complain("bench: cannot write to the standard output");
	return status != ESP_OK || print.bad > 0 ? EXIT_NO : EXIT_OK;
}

/* NULL: floats, as ever. */
static const char *numerics_name(enum esp_numerics numerics)
{
	return numerics == ESP_NUMERICS_FIXED ? "fixed" : numerics == ESP_NUMERICS_FIXED16 ? "fixed16" : NULL;
}

/* Needs to know the ranks that take part. */
static int describe_and_measure(struct bench_job *job, const struct typed *typed, const struct bench_rank *ranks)
{
	const struct bench_options *options = job->options;
	time_t now = time(NULL);
	char start_time[32] = "";
	struct tm local;

	if (localtime_r(&now, &local))
		strftime(start_time, sizeof(start_time), "%Y-%m-%d %H:%M:%S", &local);
	const struct bench_config config = {
		.version = esp_version(),
		.start_time = start_time,
		.argc = typed->argc,
		.argv = typed->argv,
		.sizes = &options->sizes,
		.type = options->type,
		.iters = options->iters,
		.warmup = options->warmup,
		.seconds = options->seconds,
		.check = options->check,
		.calls = bench_calls_name(options->calls),
		.memory = bench_memories[options->memory],
		.transport = esp_setting(job->context, "transport"),
		.numerics = numerics_name(bench_job_numerics(job)),
		.ranks = job->ranks,
		.rank = ranks,
	};
	return measure(job, &config);
}

static int take_part(const struct bench_options *options, const struct typed *typed)
{
	struct esp_error err = ESP_ERROR_INIT;
	struct bench_rank *ranks = NULL;
	struct bench_job job;
	int exit_status;

	if (bench_job_open(&job, options, &err) != ESP_OK) {
		exit_status = fail_rank(&job, &err);
		return job.is_misused ? EXIT_USAGE : exit_status;
	}
	enum esp_status status = bench_job_ranks(&job, &ranks);
	if (status == ESP_OK) {
		exit_status = describe_and_measure(&job, typed, ranks);
	} else {
		bench_last_error(status, &err);
		exit_status = fail_rank(&job, &err);
	}
	free(ranks);
	bench_job_close(&job);
	return exit_status;
}

static int run(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "fabric") == 0)
		return cli_bench_fabric(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "hub") == 0)
		return cli_bench_hub(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "switch") == 0)
		return cli_bench_switch(argc - 1, argv + 1);

	struct bench_options options;
	struct typed typed = {argc, calloc((size_t)argc + 1, sizeof(*argv))};

	if (!typed.argv)
		return complain("bench: %s", esp_status_text(ESP_ENOMEM));
	memcpy(typed.argv, argv, (size_t)argc * sizeof(*argv));
	int exit_status = bench_options_parse(&options, argc, argv);
	if (exit_status < 0) {
		bool is_rank = launch_is_told(conf_environment, NULL);
		exit_status = is_rank ? take_part(&options, &typed) : start_ranks(&options, &typed);
		bench_options_fini(&options);
	}
	free(typed.argv);
	return exit_status;
}

const struct cli_command cli_bench = {"bench", "measures collectives, and checks their results", run};
