#include "cli/probe_start.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "cli/run.h"
#include "espalier/espalier.h"
#include "tools/launcher/launcher_job.h"
#include "tools/launcher/launcher_report.h"
#include "tools/probe/probe_home.h"
#include "tools/probe/probe_roll.h"

#define WORDS 18 /* in front of and between what was typed */

struct start {
	const struct probe_options *options;
	int argc; /* as typed */
	char **argv;
	char self[4096];
	struct run_hosts hosts; /* none: ranks of this machine */
	bool *is_left;          /* by host of the list: it has not been left out */
	bool *is_blamed;        /* by host of the list, after a try: it was not there */
	bool has_failed;        /* after a try: a rank says so, and the job may well have done without it */
	bool has_result;        /* after a try: it was told, and could be shown */
	bool tries_again;       /* after a try: some hosts were there, and some were not */
	struct home home;       /* messages of the ranks */
};

/* ---- hosts that are left ---- */

static uint32_t count_left(const struct start *start)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < start->hosts.count; i++)
		count += start->is_left[i] && start->hosts.list[i].slots > 0;
	return count;
}

static void leave_out(struct start *start, uint32_t host, const char *why)
{
	start->is_left[host] = false;
	complain_note("probe: host %s is left out: %s", launcher_host_address(&start->hosts.list[host]), why);
}

static void write_host(FILE *file, const struct run_host *host)
{
	const char *address = launcher_host_address(host);
	bool is_v6 = strchr(address, ':') != NULL;

	fprintf(file, "%.*s%s%s%s:%u", (int)(address - host->name), host->name, is_v6 ? "[" : "", address, is_v6 ? "]" : "",
	        host->slots);
}

/* "a:1,user@[fe80::1]:2" of hosts that are left; the names alone of the others. NULL: no memory. */
static char *list_hosts(const struct start *start, bool is_left)
{
	char *text = NULL;
	size_t length = 0;
	FILE *file = open_memstream(&text, &length);
	bool is_first = true;

	if (!file)
		return NULL;
	for (uint32_t i = 0; i < start->hosts.count; i++) {
		const struct run_host *host = &start->hosts.list[i];
		if (start->is_left[i] != is_left || host->slots == 0)
			continue;
		if (!is_first)
			fputc(',', file);
		is_first = false;
		if (is_left)
			write_host(file, host);
		else
			fputs(launcher_host_address(host), file);
	}
	if (fclose(file) == 0)
		return text;
	free(text);
	return NULL;
}

static uint32_t count_ranks(const struct start *start)
{
	uint32_t ranks = 0;

	for (uint32_t i = 0; i < start->hosts.count; i++)
		ranks += start->is_left[i] ? start->hosts.list[i].slots : 0;
	return ranks;
}

static uint64_t patience_ns(const struct probe_options *options)
{
	return (uint64_t)(options->wait * (double)NS_PER_S);
}

/* ---- the roll call ---- */

static enum esp_status call_roll(struct start *start, struct error *err)
{
	const struct roll_question question = {&start->hosts, start->options->rsh, start->self,
	                                       patience_ns(start->options)};
	struct roll_answer *answers = calloc(start->hosts.count, sizeof(*answers));

	if (!answers)
		return error_set(err, ESP_ENOMEM, "no memory for %u hosts", start->hosts.count);
	enum esp_status status = probe_tool_roll_call(&question, answers, err);
	for (uint32_t i = 0; i < start->hosts.count && status == ESP_OK; i++)
		if (!answers[i].is_present && start->hosts.list[i].slots > 0)
			leave_out(start, i, answers[i].why);
	free(answers);
	return status;
}

/* ---- a try ---- */

/* The host of the list that has this rank, when only hosts that are left have ranks. */
static uint32_t host_of(const struct start *start, uint32_t rank)
{
	uint32_t host = 0;

	for (; host + 1 < start->hosts.count; host++) {
		uint32_t slots = start->is_left[host] ? start->hosts.list[host].slots : 0;
		if (rank < slots)
			break;
		rank -= slots;
	}
	return host;
}

/* Some ranks say that others have not joined: ranks that do not say so are meant. */
static void on_over(void *context, const struct run_job *job)
{
	struct start *start = context;
	uint32_t lonely = 0, ranks = job->request->size;

	start->has_failed = false;
	for (uint32_t rank = 0; rank < ranks; rank++) {
		int status = launcher_child_exit_status(&job->children[rank]);
		lonely += status == PROBE_EXIT_LONELY;
		start->has_failed = start->has_failed || status == PROBE_EXIT_FAILED;
	}
	if (start->home.has_end) /* ranks that were left out meanwhile may say what they like */
		start->has_failed = !start->home.is_good;
	start->has_result = start->home.has_end && launcher_output_error(&job->output) == 0;
	start->tries_again = start->hosts.count > 0 && !start->home.has_end && lonely > 0 && lonely < ranks &&
	                     !job->end.asked && !job->start_status && !job->broken_pipe;
	if (lonely == 0 && !start->has_failed && !start->has_result) /* otherwise a rank has said what there is to say */
		launcher_report_summary(job);
	for (uint32_t i = 0; i < start->hosts.count; i++)
		start->is_blamed[i] = false;
	for (uint32_t rank = 0; rank < ranks && start->tries_again; rank++)
		if (launcher_child_exit_status(&job->children[rank]) != PROBE_EXIT_LONELY)
			start->is_blamed[host_of(start, rank)] = true;
}

static bool take(void *context, const char *head, size_t head_length, const char *tail, size_t tail_length)
{
	struct start *start = context;

	return probe_tool_home_take(&start->home, head, head_length, tail, tail_length);
}

/* All has been told; or rank 0, where they meet, does not wait any longer for missing ranks: then no rank does. */
static bool is_done(void *context, const struct run_job *job)
{
	const struct start *start = context;
	const struct run_child *first = &job->children[0];
	bool has_ended = first->state == RUN_CHILD_LEFT || first->state == RUN_CHILD_GONE;

	return start->home.has_end || (has_ended && launcher_child_exit_status(first) == PROBE_EXIT_LONELY);
}

static char *word(const char *text)
{
	return (char *)(uintptr_t)text;
}

/* espalier run --prefix=none [--hosts ...] -- espalier probe ..., without leaving this process. */
static int try_once(struct start *start)
{
	const struct probe_options *options = start->options;
	const struct run_watch watch = {on_over, take, is_done, start};
	char ranks[24], lose[24], seconds[48], port[32];
	char *hosts = list_hosts(start, true), *absent = list_hosts(start, false);
	char **argv = calloc(WORDS + (size_t)start->argc, sizeof(*argv));
	uint64_t size = start->hosts.count ? count_ranks(start) : options->ranks;
	int count = 0, status = EXIT_NO;

	if (!argv || !hosts || !absent) {
		status = complain("probe: %s", esp_status_text(ESP_ENOMEM));
		goto out;
	}
	probe_tool_home_begin(&start->home);
	argv[count++] = word("run");
	argv[count++] = word("--prefix=none");
	if (options->port) {
		snprintf(port, sizeof(port), "--port=%" PRIu64, options->port);
		argv[count++] = port;
	}
	if (start->hosts.count) {
		argv[count++] = word("--hosts");
		argv[count++] = hosts;
	} else {
		snprintf(ranks, sizeof(ranks), "--ranks=%" PRIu64, size);
		argv[count++] = ranks;
	}
	if (options->rsh) {
		argv[count++] = word("--rsh");
		argv[count++] = word(options->rsh);
	}
	snprintf(lose, sizeof(lose), "--lose=%" PRIu64, size - 2); /* the rest goes on without them */
	argv[count++] = lose;
	/* for ranks that have not joined, or have been left out: the others are not busy */
	argv[count++] = word("--grace=2");
	snprintf(seconds, sizeof(seconds), "--env=ESP_JOIN_SECONDS=%.0f", ceil(options->wait));
	argv[count++] = seconds;
	argv[count++] =
		word(start->home.terminal >= 0 ? "--env=" PROBE_HOME_VARIABLE "=bar" : "--env=" PROBE_HOME_VARIABLE "=yes");
	argv[count++] = word("--");
	argv[count++] = start->self;
	argv[count++] = start->argv[0];
	argv[count++] = word("--absent");
	argv[count++] = absent;
	for (int i = 1; i < start->argc; i++)
		argv[count++] = start->argv[i];
	status = run_as("probe", count, argv, &watch);
out:
	free(argv);
	free(hosts);
	free(absent);
	return status;
}

/* The meaning of the last try, for the user of the command. */
static int conclude(struct start *start, int status)
{
	if (start->has_failed || status == PROBE_EXIT_LONELY)
		status = EXIT_NO;
	else if (start->has_result)
		status = EXIT_OK;
	return probe_tool_home_write(&start->home, status == EXIT_OK) == EXIT_OK ? status : EXIT_NO;
}

/* ---- hosts ---- */

static int too_few(const struct start *start)
{
	uint32_t count = count_left(start);

	return complain("probe: %u of %u hosts %s left, and what is probed is the way between two; espalier run --hosts "
	                "A,B,... -- espalier "
	                "doctor looks for reasons",
	                count, start->hosts.count, count == 1 ? "is" : "are");
}

static void leave_out_blamed(struct start *start)
{
	char why[96];

	snprintf(why, sizeof(why), "it was started, and did not join the others within %.15g s", start->options->wait);
	for (uint32_t i = 0; i < start->hosts.count; i++)
		if (start->is_blamed[i] && start->is_left[i])
			leave_out(start, i, why);
}

/* Each try leaves a host out, so there is an end. */
static int probe_hosts(struct start *start)
{
	struct error err = {0};
	int status = EXIT_NO;
	bool needs_two = !start->options->each_rank;

	if (call_roll(start, &err) != ESP_OK)
		return complain("probe: %s", err.text);
	do {
		if (count_left(start) < (needs_two ? 2 : 1) || count_ranks(start) < 2)
			return too_few(start);
		start->tries_again = false;
		status = try_once(start);
		leave_out_blamed(start);
	} while (start->tries_again);
	return conclude(start, status);
}

static int take_hosts(struct start *start)
{
	const struct probe_options *options = start->options;
	struct error err = {0};

	enum esp_status status = run_hosts_given(&start->hosts, options->hosts, options->hostfile, &err);
	if (status == ESP_OK)
		status = launcher_hosts_settle(&start->hosts, (uint32_t)options->ranks, &err);
	if (status == ESP_EINVAL || status == ESP_ELIMIT)
		return complain_usage("probe: %s", err.text);
	if (status != ESP_OK)
		return complain("probe: %s", err.text);
	start->is_left = calloc(start->hosts.count, sizeof(*start->is_left));
	start->is_blamed = calloc(start->hosts.count, sizeof(*start->is_blamed));
	if (!start->is_left || !start->is_blamed)
		return complain("probe: %s", esp_status_text(ESP_ENOMEM));
	memset(start->is_left, true, start->hosts.count * sizeof(*start->is_left));
	return probe_hosts(start);
}

int probe_start(const struct probe_options *options, int argc, char **argv)
{
	struct start start = {.options = options, .argc = argc, .argv = argv};
	ssize_t length = readlink("/proc/self/exe", start.self, sizeof(start.self) - 1);

	if (length < 0)
		return complain("probe: cannot find out which program this is");
	probe_tool_home_open(&start.home, options, isatty(STDERR_FILENO) == 1 ? STDERR_FILENO : -1);
	int status = options->hosts || options->hostfile ? take_hosts(&start) : conclude(&start, try_once(&start));
	probe_tool_home_close(&start.home);
	launcher_hosts_fini(&start.hosts);
	free(start.is_left);
	free(start.is_blamed);
	return status;
}
