/*
 * grow_full_test.c - a member has all the groups that there can be: nobody grows before it has freed one. It could not agree with the others if a
 * rank were lost in the last moment, and it would be left out where they have grown, or they would wait for it.
 */
#include <string.h>

#include "api/api.h"
#include "base/check.h"
#include "job.h"

enum { RANKS = 2, FULL = 1 };

/* leader NULL: a newcomer. */
static struct esp_context *init(uint32_t rank, const char *leader)
{
	static const char *const settings[] = {"linger_seconds=1", "log=off", NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_context *context;

	options.rank = leader ? rank : 0;
	options.size = leader ? RANKS : 0;
	options.leader = leader;
	options.job = "full";
	options.settings = settings;
	OK(esp_init(&options, &context));
	return context;
}

static void check_world(struct esp_context *context)
{
	int32_t mine = 1, all = 0;

	CHECK_U64(esp_size(esp_world(context)), RANKS + 1);
	OK(esp_allreduce(esp_world(context), &mine, &all, 1, ESP_I32, ESP_SUM));
	CHECK(all == RANKS + 1);
	OK(esp_fini(context));
}

static void be_member(uint32_t rank, const char *leader)
{
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_context *context = init(rank, leader), *grown = NULL;
	struct esp_group *last = NULL;

	if (rank == 0)
		job_open_door(context);
	OK(esp_group_split(esp_world(context), 0, 0, &last));
	if (rank == FULL)
		api_context(context)->comms.most = 2;
	EXPECT(esp_grow(esp_world(context), 0, 0, &grown), ESP_ELIMIT);
	OK(esp_last_error(&error));
	CHECK_MSG(error.rank == FULL && strstr(error.text, "free one"), "%s", error.text);
	CHECK(grown == NULL);
	OK(esp_group_free(last));
	OK(esp_grow(esp_world(context), 0, 0, &grown));
	CHECK(grown != NULL);
	OK(esp_fini(context));
	check_world(grown);
}

static void be_newcomer(void)
{
	job_go_to_door();
	check_world(init(0, NULL));
}

int main(void)
{
	pid_t children[RANKS + 1];

	job_fork_with_newcomer(children, RANKS, be_member, be_newcomer);
	job_wait(children, RANKS + 1, JOB_NOBODY);
	return 0;
}
