/*
 * shrink_test.c - what is refused before anybody is asked; whole groups are shrunk in tests/job and tests/members.
 */
#include "runtime/shrink.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/group.h"

/* A rank that has all the groups that there can be has no channel for another one, whatever is proposed: the caller is told so at once. */
static void too_many_groups(void)
{
	struct context *context = calloc(1, sizeof(*context));
	struct group *groups = calloc(GROUPS_MOST, sizeof(*groups));
	struct shrink_report report = {0};
	struct failure failure = FAILURE_NONE;
	struct group *left = NULL;

	CHECK(context && groups);
	pthread_mutex_init(&context->lock, NULL);
	context_cond_init(&context->changed);
	for (uint32_t i = 0; i < GROUPS_MOST; i++) {
		groups[i].context = context;
		groups[i].channel = (uint16_t)(i * GROUP_CHANNELS);
		groups[i].next = i + 1 < GROUPS_MOST ? &groups[i + 1] : NULL;
	}
	context->groups = groups;
	context->rank = 3;
	struct group *group = &groups[7];
	pthread_mutex_init(&group->lock, NULL);
	group->failed = ESP_EPEER;
	CHECK(group_shrink(group, (int64_t)NS_PER_S, &left, &report, &failure) == ESP_ELIMIT);
	CHECK(!left && failure.rank == 3 && strstr(failure.text, "16384 groups"));
	/* But as a part of a call that ends alike for all it is late, as those are who wait for it. */
	CHECK(group_agree(group, (int64_t)NS_PER_MS, &report, &failure) == ESP_ETIMEOUT);
	pthread_mutex_destroy(&group->lock);
	pthread_cond_destroy(&context->changed);
	pthread_mutex_destroy(&context->lock);
	free(groups);
	free(context);
}

int main(void)
{
	too_many_groups();
	return 0;
}
