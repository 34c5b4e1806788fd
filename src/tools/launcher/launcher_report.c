#include "tools/launcher/launcher_report.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "report/complain.h"
#include "report/json.h"

#define GONE_TEXT 128

__attribute__((format(printf, 2, 3))) static void report_line(const struct run_job *job, const char *format, ...)
{
	char text[RUN_HOW_TEXT + 1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (job->output.clears)
		fputs(RUN_OUTPUT_CLEAR, stderr);
	complain_note("%s: %s", job->request->said_by, text);
}

int launcher_report_exit_status(const struct run_job *job)
{
	if (job->start_status)
		return job->start_status;
	if (job->end.timed_out)
		return RUN_EXIT_TIMEOUT;
	if (job->broken_pipe)
		return EXIT_NO;
	if (job->failed)
		return launcher_child_exit_status(&job->children[job->first_failed]);
	if (job->started < job->request->size)
		return 128 + job->end.asked; /* interrupted before all were started */
	return launcher_output_error(&job->output) ? EXIT_NO : EXIT_OK;
}

/* A remote shell reports a signal as a status. */
const char *launcher_report_how(const struct run_job *job, uint32_t rank, char text[RUN_HOW_TEXT])
{
	const struct run_child *child = &job->children[rank];
	int from_shell = job->controls && child->status > 128 && child->status <= 128 + SIGRTMAX ? child->status - 128 : 0;
	if (child->signal)
		snprintf(text, RUN_HOW_TEXT, "was killed by signal %d (%s)", child->signal, strsignal(child->signal));
	else if (from_shell)
		snprintf(text, RUN_HOW_TEXT, "ended with status %d (as after signal %d, %s)", child->status, from_shell,
		         strsignal(from_shell));
	else if (job->controls && child->status == 255)
		snprintf(text, RUN_HOW_TEXT, "ended with status 255 (which %.100s also returns if it cannot reach a host)",
		         job->request->rsh[0]);
	else
		snprintf(text, RUN_HOW_TEXT, "ended with status %d", child->status);
	return text;
}

/*
 * Ranks that ended with status 0 before the first failure: a rank that leaves in the middle of a job fails the
 * others. Its end may be reported here a moment after theirs.
 */
struct gone {
	uint32_t count;
	uint32_t near; /* of those: reported after the failure */
	uint32_t last; /* the latest rank */
};

static struct gone find_gone(const struct run_job *job)
{
	const struct run_child *failed = &job->children[job->first_failed];
	struct gone gone = {0};
	for (uint32_t rank = 0; rank < job->started && !failed->signal; rank++) {
		const struct run_child *child = &job->children[rank];
		bool has_ended = child->state == RUN_CHILD_LEFT || child->state == RUN_CHILD_GONE;
		if (!has_ended || launcher_child_failed(child) || child->ended_ns > failed->ended_ns + RUN_CAUSE_NS)
			continue;
		if (gone.count++ == 0 || child->order > job->children[gone.last].order)
			gone.last = rank;
		gone.near += child->order > job->first_order;
	}
	return gone;
}

static const char *describe_gone(const struct gone *gone, char text[GONE_TEXT])
{
	const char *when =
		gone->near == 0 ? "had ended with status 0 by then" : "ended with status 0 at about the same time";
	text[0] = 0;
	if (gone->count == 1)
		snprintf(text, GONE_TEXT, "; rank %u %s", gone->last, when);
	else if (gone->count > 1)
		snprintf(text, GONE_TEXT, "; %u ranks %s%s, the last of them rank %u", gone->count, when,
		         gone->near > 0 && gone->near < gone->count ? " or before" : "", gone->last);
	return text;
}

/* Writes "; 2 other ranks ended after that, 1 of them only when told to". Each rank counts once. */
static void describe_others(const struct run_job *job, const struct gone *gone, char *text, size_t size)
{
	uint32_t after = job->after_first - gone->near, told = job->told < after ? job->told : after;
	char when_told[64] = "";
	text[0] = 0;
	if (told)
		snprintf(when_told, sizeof(when_told), ", %u of them only when told to", told);
	if (after)
		snprintf(text, size, "; %u other rank%s ended after that%s", after, plural(after), when_told);
}

static bool are_all_alike(const struct run_job *job)
{
	for (uint32_t rank = 0; rank < job->started; rank++)
		if (!job->children[rank].was_lost && launcher_child_exit_status(&job->children[rank]) !=
		                                         launcher_child_exit_status(&job->children[job->first_failed]))
			return false;
	return true;
}

/* The first rank that returns a status may only have been the first to notice another failure. */
static bool is_cause_unknown(const struct run_job *job, const struct gone *gone)
{
	bool is_killed = launcher_child_exit_status(&job->children[job->first_failed]) >= 128;
	return job->after_first - gone->near > job->told && !is_killed && !are_all_alike(job) &&
	       !launcher_blame_has_named(&job->blame, job->first_failed);
}

static void summarize_failure(const struct run_job *job)
{
	struct gone gone = find_gone(job);
	char text[RUN_HOW_TEXT], gone_text[GONE_TEXT], others[128] = "", named[96] = "", host[RUN_HOST_TEXT + 8] = "",
												   file[256] = "";
	uint32_t rank = job->first_failed;
	const char *cause = is_cause_unknown(job, &gone) ? "; the cause may be another rank: see what they said" : "";
	if (job->controls)
		snprintf(host, sizeof(host), " on %s", launcher_hosts_of(&job->request->hosts, rank)->name);
	if (rank == job->first_seen) {
		describe_gone(&gone, gone_text);
		describe_others(job, &gone, others, sizeof(others));
	} else {
		gone_text[0] = 0;
		snprintf(named, sizeof(named), "; rank %u, which ended before it, has failed because of it", job->first_seen);
	}
	if (job->request->output)
		snprintf(file, sizeof(file), "; see %.200s/rank-%u.err", job->request->output, rank);
	report_line(job, "rank %u%s %s%s%s%s%s%s", rank, host, launcher_report_how(job, rank, text), named, gone_text,
	            others, cause, file);
}

/* A signal came, and the ranks ended as they were told: none of them is at fault. */
static bool is_interrupted(const struct run_job *job)
{
	return job->failed && job->end.asked && job->children[job->first_failed].was_told;
}

static void say_interrupted(const struct run_job *job)
{
	bool are_all = job->started == job->request->size;
	const char *name = job->end.asked == SIGINT ? "SIGINT" : job->end.asked == SIGTERM ? "SIGTERM" : "SIGHUP";
	char which[64];
	if (!are_all)
		snprintf(which, sizeof(which), "the %u rank%s that had been started", job->started, plural(job->started));
	else if (job->started > 1)
		snprintf(which, sizeof(which), "all %u ranks", job->started);
	else
		snprintf(which, sizeof(which), "the rank");
	report_line(job, "interrupted (%s): %s %s ended", name, which, job->started == 1 ? "has" : "have");
}

void launcher_report_summary(const struct run_job *job)
{
	uint32_t size = job->request->size, missing = size - job->started;
	int error = launcher_output_error(&job->output);
	if (is_interrupted(job) && !job->broken_pipe)
		say_interrupted(job);
	else if (job->failed && !job->broken_pipe)
		summarize_failure(job);
	if (job->cut_off && !job->broken_pipe)
		report_line(job, "%u rank%s ended by the time limit", job->cut_off, job->cut_off == 1 ? " was" : "s were");
	if (missing && !job->start_status)
		report_line(job, "%u of %u ranks had not been started yet", missing, size);
	if (error && error != EPIPE) /* a reader that has closed the pipe, as head does, needs no message */
		report_line(job, "cannot write what the ranks print: %s", strerror(error));
}

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
	return (double)(to_ns - from_ns) / (double)NS_PER_S;
}

static void print_rank(struct json *json, const struct run_job *job, uint32_t rank)
{
	const struct run_child *child = &job->children[rank];
	bool ended = child->state == RUN_CHILD_LEFT || child->state == RUN_CHILD_GONE;
	json_object_begin(json);
	json_put_u64(json, "rank", rank);
	json_put_string(json, "host", job->controls ? launcher_hosts_of(&job->request->hosts, rank)->name : NULL);
	json_key(json, "status");
	if (ended)
		json_i64(json, launcher_child_exit_status(child));
	else
		json_none(json);
	json_key(json, "signal");
	if (ended && child->signal)
		json_i64(json, child->signal);
	else
		json_none(json);
	json_key(json, "seconds");
	if (ended)
		json_double(json, seconds(child->started_ns, child->ended_ns));
	else
		json_none(json);
	json_object_end(json);
}

enum esp_status launcher_report_json(const struct run_job *job)
{
	struct json json;
	json_init(&json, stdout);
	json_object_begin(&json);
	json_put_string(&json, "job", job->request->job);
	json_put_string(&json, "leader", job->request->leader);
	json_put_i64(&json, "status", launcher_report_exit_status(job));
	json_put_double(&json, "seconds", seconds(job->began_ns, job->over_ns));
	json_put_bool(&json, "timed_out", job->end.timed_out);
	json_key(&json, "first_failed");
	if (job->failed)
		json_u64(&json, job->first_failed);
	else
		json_none(&json);
	json_key(&json, "ranks");
	json_array_begin(&json);
	for (uint32_t rank = 0; rank < job->request->size; rank++)
		print_rank(&json, job, rank);
	json_array_end(&json);
	json_object_end(&json);
	return json_fini(&json);
}
