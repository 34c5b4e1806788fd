/*
 * past_verdict_test.c - the decision that a late member gets is the one that was made, for a group of this name and
 * size alone.
 */
#include "rank/member/past_verdict.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

enum { SIZE = 9, KEPT = 64 };

static struct rank *new_rank(void)
{
	struct rank *context = calloc(1, sizeof(*context));

	CHECK(context != NULL);
	pthread_mutex_init(&context->lock, NULL);
	return context;
}

static void free_rank(struct rank *context)
{
	past_verdict_forget_all(context);
	CHECK(context->comms.past == NULL);
	pthread_mutex_destroy(&context->lock);
	free(context);
}

/* Members 0 and 3 go on, 3 was not asked, and 8 has freed the group. */
static void keep(struct rank *context, uint16_t channel, uint64_t ballot)
{
	uint32_t ranks[SIZE] = {7};
	struct comm *group = calloc(1, sizeof(*group));
	struct agreement_config config = {.size = SIZE};
	struct agreement agreement;

	CHECK(group && agreement_init(&agreement, &config) == ESP_OK);
	group->context = context;
	group->channel = channel;
	group->size = SIZE;
	group->ranks = ranks;
	agreement.is_decided = true;
	agreement.accepted = (struct verdict_terms){.ballot = ballot, .everywhere = 5, .somewhere = 6, .channel = 12};
	verdict_set_bit(agreement.accepted_members, 0);
	verdict_set_bit(agreement.accepted_members, 3);
	verdict_set_bit(agreement.behind, 3);
	agreement.places[8].has_left = true;
	past_verdict_keep(group, &agreement);
	agreement_fini(&agreement);
	free(group);
}

/* The ballot of the decision; 0: none is known. */
static uint64_t ballot_of(struct rank *context, uint32_t channel, uint32_t first, uint32_t size)
{
	uint8_t *bytes = NULL;
	struct verdict_msg msg;
	size_t n = past_verdict_find(context, channel, first, size, &bytes);

	CHECK((n > 0) == (bytes != NULL));
	if (n == 0)
		return 0;
	CHECK(verdict_msg_decode(bytes, n, SIZE, &msg) && msg.type == VERDICT_DECIDED);
	CHECK(msg.terms.everywhere == 5 && msg.terms.somewhere == 6 && msg.terms.channel == 12);
	for (uint32_t i = 0; i < SIZE; i++) {
		CHECK(verdict_bit(msg.members, i) == (i == 0 || i == 3) && verdict_bit(msg.behind, i) == (i == 3));
		CHECK(verdict_bit(msg.left, i) == (i == 8));
	}
	uint64_t ballot = msg.terms.ballot;
	free(bytes);
	return ballot;
}

static void finds_by_name(void)
{
	struct rank *context = new_rank();

	CHECK_U64(ballot_of(context, 4, 7, SIZE), 0);
	keep(context, 4, 77);
	CHECK_U64(ballot_of(context, 4, 7, SIZE), 77);
	CHECK(ballot_of(context, 8, 7, SIZE) == 0 && ballot_of(context, 4, 6, SIZE) == 0);
	CHECK_U64(ballot_of(context, 4, 7, SIZE - 1), 0);
	free_rank(context);
}

/* A group that is opened has the name of an earlier one: the earlier decision is not about it. */
static void forgets_a_name(void)
{
	struct rank *context = new_rank();

	keep(context, 4, 1);
	keep(context, 8, 2);
	keep(context, 4, 3);
	past_verdict_forget(context, 4, 6);
	CHECK_U64(ballot_of(context, 4, 7, SIZE), 3);
	past_verdict_forget(context, 4, 7);
	CHECK(ballot_of(context, 4, 7, SIZE) == 0 && ballot_of(context, 8, 7, SIZE) == 2);
	free_rank(context);
}

static void keeps_the_latest(void)
{
	struct rank *context = new_rank();

	for (uint16_t i = 0; i <= KEPT; i++)
		keep(context, i, 1 + i);
	CHECK(ballot_of(context, 0, 7, SIZE) == 0);
	for (uint16_t i = 1; i <= KEPT; i++)
		CHECK_U64(ballot_of(context, i, 7, SIZE), 1 + i);
	free_rank(context);
}

int main(void)
{
	finds_by_name();
	forgets_a_name();
	keeps_the_latest();
	return 0;
}
