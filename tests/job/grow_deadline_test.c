/*
 * grow_deadline_test.c - a member stops while all join anew: the deadline of esp_grow() is that of all that follows, too, and it does not wait
 * until that member is given up, which would take longer.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "job.h"

enum { RANKS = 2, DEADLINE_S = 4 };

/* leader NULL: a newcomer. */
static enum esp_status init(uint32_t rank, const char *leader, void (*log)(void *, int, const char *), struct esp_context **out)
{
	static const char *const settings[] = {"linger_seconds=1", "log=info", "join_seconds=60", "liveness_ms=20000", NULL};
	struct esp_options options = ESP_OPTIONS_INIT;

	options.rank = leader ? rank : 0;
	options.size = leader ? RANKS : 0;
	options.leader = leader;
	options.job = "late";
	options.settings = settings;
	options.log = log;
	return esp_init(&options, out);
}

static void be_quiet(void *context, int level, const char *line)
{
	(void)context, (void)level, (void)line;
}

static void stop_when_joined(void *context, int level, const char *line)
{
	(void)context, (void)level;
	if (strstr(line, "joined 3 ranks"))
		raise(SIGSTOP);
}

/* Whatever was waited for, it was not for longer. */
static void check_deadline(const char *text)
{
	static const char before[] = "the deadline of rank 0 (";
	const char *at = strstr(text, before);

	CHECK_MSG(!at || strtod(at + sizeof(before) - 1, NULL) <= DEADLINE_S, "%s", text);
}

static void be_member(uint32_t rank, const char *leader)
{
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_context *context, *grown = NULL;

	OK(init(rank, leader, rank == 1 ? stop_when_joined : be_quiet, &context));
	if (rank == 0)
		job_open_door(context);
	OK(esp_barrier(esp_world(context)));
	enum esp_status status = esp_grow(esp_world(context), 0, DEADLINE_S * (int64_t)NS_PER_S, &grown);
	if (rank == 1) { /* it has not come so far, if the machine is slow: then it stops here */
		for (;;)
			raise(SIGSTOP);
	}
	OK(esp_last_error(&error));
	CHECK_MSG(status == ESP_ETIMEOUT, "%s: %s", esp_status_name(status), error.text);
	CHECK(grown == NULL);
	check_deadline(error.text);
	OK(esp_fini(context));
}

static void be_newcomer(void)
{
	struct esp_context *context;

	job_go_to_door();
	CHECK(init(0, NULL, be_quiet, &context) != ESP_OK);
}

int main(void)
{
	pid_t children[RANKS + 1];

	job_fork_with_newcomer(children, RANKS, be_member, be_newcomer);
	job_wait(&children[0], 1, JOB_NOBODY);
	CHECK(kill(children[1], SIGKILL) == 0);
	job_wait(&children[1], 1, 0);
	job_wait(&children[2], 1, JOB_NOBODY);
	return 0;
}
