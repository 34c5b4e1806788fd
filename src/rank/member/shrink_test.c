/*
 * shrink_test.c - calls that are refused before a member is asked; whole groups are shrunk in tests/job and
 * tests/members.
 */
#include "rank/member/shrink.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "rank/comm/comm.h"

/* A rank that has so many groups, on channels that follow each other. */
static struct comm *new_groups(uint32_t count)
{
	struct rank *context = calloc(1, sizeof(*context));
	struct comm *groups = calloc(count, sizeof(*groups));

	CHECK(context && groups);
	pthread_mutex_init(&context->lock, NULL);
	rank_cond_init(&context->changed);
	for (uint32_t i = 0; i < count; i++) {
		pthread_mutex_init(&groups[i].lock, NULL);
		groups[i].context = context;
		groups[i].channel = (uint16_t)(i * COMM_CHANNELS);
		groups[i].next = i + 1 < count ? &groups[i + 1] : NULL;
	}
	context->comms.list = groups;
	context->comms.most = COMMS_MOST;
	context->rank = 3;
	return groups;
}

static void free_groups(struct comm *groups, uint32_t count)
{
	struct rank *context = groups->context;

	for (uint32_t i = 0; i < count; i++)
		pthread_mutex_destroy(&groups[i].lock);
	pthread_cond_destroy(&context->changed);
	pthread_mutex_destroy(&context->lock);
	free(groups);
	free(context);
}

/*
 * A rank that has all the groups that there can be has no channel for another one, whatever is proposed: the caller is
 * told so at once.
 */
static void too_many_groups(void)
{
	struct comm *groups = new_groups(COMMS_MOST), *group = &groups[7], *left = NULL;
	struct shrink_report report = {0};
	struct failure failure = FAILURE_NONE;

	group->fail.status = ESP_EPEER;
	CHECK(comm_shrink(group, (int64_t)NS_PER_S, &left, &report, &failure) == ESP_ELIMIT);
	CHECK(!left && failure.rank == 3 && strstr(failure.text, "16384 groups"));
	/* But as a part of a call that ends alike for all it is late, as the members are that wait for it. */
	failure = FAILURE_NONE;
	CHECK(comm_agree(group, (int64_t)NS_PER_MS, &report, &failure) == ESP_ETIMEOUT);
	CHECK(failure.rank == 3 && strstr(failure.text, "16384 groups"));
	CHECK(!comm_keep_channel(group));
	free_groups(groups, COMMS_MOST);
}

/* The last channel, once it is kept for a group, is no other group's. */
static void keeps_the_last(void)
{
	const uint32_t last = COMMS_MOST - 1;
	struct comm *groups = new_groups(last), *group = &groups[7], *other = &groups[8];
	struct rank *context = group->context;

	CHECK_U64(comm_propose_channel(context, NULL, 0), last * COMM_CHANNELS);
	CHECK(comm_keep_channel(group) && comm_keep_channel(group));
	CHECK(!comm_keep_channel(other));
	CHECK_U64(comm_propose_channel(context, NULL, 0), COMM_NO_CHANNEL);
	CHECK_U64(comm_propose_channel(context, other, 0), COMM_NO_CHANNEL);
	CHECK_U64(comm_propose_channel(context, group, 0), last * COMM_CHANNELS);
	comm_release_channel(group);
	CHECK(comm_keep_channel(other));
	free_groups(groups, last);
}

int main(void)
{
	too_many_groups();
	keeps_the_last();
	return 0;
}
