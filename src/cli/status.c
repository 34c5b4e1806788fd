/* status.c - espalier status: calls of the ranks of this host, what they wait for, since when, and which rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "cli/cli.h"
#include "report/options.h"
#include "tools/diagnose/status_ask.h"

#define HOLD_UP NS_PER_S /* shorter waits are everyday life */

static int compare_ranks(const void *a, const void *b)
{
	const struct accounts_silent *x = a, *y = b;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Ranks of this job that did not answer. */
static uint32_t list_silent(const struct status_answers *answers, uint64_t instance, struct accounts_silent *out)
{
	uint32_t count = 0;
	for (size_t i = 0; i < answers->silent_count; i++)
		if (answers->silent[i].instance == instance)
			out[count++] = answers->silent[i].who;
	if (count > 0)
		qsort(out, count, sizeof(*out), compare_ranks);
	return count;
}

static struct verdict judge(const struct accounts_job *job, const struct accounts_silent *silent, uint32_t silent_count)
{
	uint32_t *mute = calloc(silent_count + 1, sizeof(*mute));
	for (uint32_t i = 0; mute && i < silent_count; i++)
		mute[i] = silent[i].rank;
	struct verdict verdict = diagnose_verdict_find_live(job->list, job->count, mute, mute ? silent_count : 0);
	free(mute);
	return verdict;
}

static enum esp_status print_job(const struct accounts_job *job, const struct accounts_silent *silent,
                                 uint32_t silent_count)
{
	struct verdict verdict = judge(job, silent, silent_count);
	char title[ACCOUNTS_TITLE];
	printf("%s, %u here\n", diagnose_accounts_title(job, title), job->count + silent_count);
	enum esp_status status = diagnose_accounts_print(job, silent, silent_count);
	if (verdict.kind != VERDICT_NONE &&
	    (verdict.waited_ns >= HOLD_UP || verdict.kind == VERDICT_OTHER || verdict.kind == VERDICT_DIED))
		printf("%s\n", verdict.text);
	return status;
}

/* Prints silent processes of jobs without an answer. Returns how many. */
static size_t print_orphans(const struct status_answers *answers)
{
	size_t orphans = 0;
	for (size_t i = 0; i < answers->silent_count; i++) {
		const struct accounts_silent *who = &answers->silent[i].who;
		bool has_job = false;
		for (size_t k = 0; k < answers->accounts.count; k++)
			has_job |= answers->accounts.list[k].instance == answers->silent[i].instance;
		if (has_job)
			continue;
		orphans++;
		printf("process %u, rank %u of a job in which no rank answers: stopped?\n", who->pid, who->rank);
	}
	return orphans;
}

/* name: NULL: any job. */
static bool is_meant(const struct accounts_job *job, const char *name)
{
	return !name || strcmp(job->list->job, name) == 0;
}

static enum esp_status print_all(const struct status_answers *answers, const char *name)
{
	struct accounts_job job;
	struct accounts_silent *silent = calloc(answers->silent_count + 1, sizeof(*silent));
	enum esp_status status = silent ? ESP_OK : ESP_ENOMEM;
	size_t at = 0, orphans, shown = 0;
	while (status == ESP_OK && diagnose_accounts_next(&answers->accounts, &at, &job)) {
		if (!is_meant(&job, name))
			continue;
		if (shown++ > 0)
			putchar('\n');
		status = print_job(&job, silent, list_silent(answers, job.list->instance, silent));
	}
	orphans = name ? 0 : print_orphans(answers);
	if (shown == 0 && name)
		printf("No rank of the job %s answers on this host.\n", name);
	else if (shown == 0 && orphans == 0)
		puts("No rank of yours runs on this host.");
	free(silent);
	return status;
}

static enum esp_status print_json(const struct status_answers *answers, const char *name)
{
	struct accounts_job job;
	struct accounts_silent *silent = calloc(answers->silent_count + 1, sizeof(*silent));
	struct json json;
	size_t at = 0;
	if (!silent)
		return ESP_ENOMEM;
	json_init(&json, stdout);
	json_array_begin(&json);
	while (diagnose_accounts_next(&answers->accounts, &at, &job)) {
		if (!is_meant(&job, name))
			continue;
		uint32_t silent_count = list_silent(answers, job.list->instance, silent);
		struct verdict verdict = judge(&job, silent, silent_count);
		diagnose_accounts_print_json(&job, &verdict, silent, silent_count, &json);
	}
	json_array_end(&json);
	free(silent);
	return json_fini(&json);
}

static int show_once(const char *name, bool everybody, bool json, uint64_t patience_ms)
{
	struct status_answers answers;
	struct error err;
	if (diagnose_status_ask(everybody, (unsigned)patience_ms, &answers, &err) != ESP_OK) {
		diagnose_status_answers_fini(&answers);
		return complain("status: %s", err.text);
	}
	enum esp_status status = json ? print_json(&answers, name) : print_all(&answers, name);
	diagnose_status_answers_fini(&answers);
	return status == ESP_OK ? EXIT_OK : complain("status: %s", status_text(status));
}

static int run(int argc, char **argv)
{
	bool json = false, everybody = false, again = false;
	uint64_t patience_ms = 2000;
	double seconds = 1;
	const struct option_spec options[] = {
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON"},
		{"all", 'a', OPTION_FLAG, &everybody, NULL, "ranks of other users too; only root gets answers"},
		{"watch", 'w', OPTION_DOUBLE, &seconds, "SECONDS", "again and again, with so long a pause", .given = &again},
		{"timeout", 't', OPTION_U64, &patience_ms, "MS", "how long ranks may take to answer (default 2000)", .min = 1,
	     .max = 600000},
		{0},
	};
	const struct options_usage usage = {
		"status",
		"[JOB]",
		"Asks the ranks of yours that run on this host what they are doing: the call that each is in, for how\n"
		"long, which rank it waits for and since when; and which rank holds a job up. Ranks answer while they\n"
		"wait, and are not kept from anything by that. JOB: only those of the job of this name.",
		options,
		0,
		1};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	if (again && !(seconds >= 0.1 && seconds <= 86400))
		return complain_usage("status: --watch is a time from 0.1 to 86400 seconds");
	int status = show_once(argc > 1 ? argv[1] : NULL, everybody, json, patience_ms);
	while (again && status == EXIT_OK) {
		struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
		if (fflush(stdout) != 0)
			break;
		nanosleep(&pause, NULL);
		if (isatty(STDOUT_FILENO))
			fputs("\033[H\033[2J", stdout);
		else
			putchar('\n');
		status = show_once(argc > 1 ? argv[1] : NULL, everybody, json, patience_ms);
	}
	return status;
}

const struct cli_command cli_status = {"status", "shows what the ranks on this host do and wait for", run};
