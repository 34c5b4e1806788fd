/*
 * rank_ends_test.c - how long late ranks ask others, and when one that has left is to blame; tests/job/named_test.c has
 * whole jobs.
 */
#include "rank/rank_ends.h"

#include "base/check.h"
#include "rank/comm/comm.h"

#define SOON (10 * NS_PER_MS)

static struct rank new_context(uint32_t liveness_ms)
{
	return (struct rank){.conf = {.liveness_ms = liveness_ms}};
}

/*
 * It asks, and then waits for the others as long: a second is promised after the deadline. With a short interval both
 * are short.
 */
static void asks_for_a_while(void)
{
	struct rank usual = new_context(10000), hasty = new_context(1000), patient = new_context(600000);

	CHECK(2 * rank_word_ns(&usual) < NS_PER_S);
	CHECK(2 * rank_word_ns(&patient) < NS_PER_S);
	CHECK(rank_word_ns(&hasty) <= rank_patience_ns(&hasty));
}

/* A call that lets others in, and a sixteenth of the time that its members have to join: the vote comes afterwards. */
static void asks_within_a_call(void)
{
	struct rank context = new_context(10000);

	context.opening.began_ns = 7 * NS_PER_S;
	context.join.deadline_ns = 8 * NS_PER_S;
	CHECK(16 * rank_word_ns(&context) > NS_PER_S);
	context.join.kin = 3;
	CHECK_U64(rank_word_ns(&context), NS_PER_S / 16);
}

/* A rank that gives up waits for the others no longer than if it were late already, however long the interval is. */
static void leaves_in_time(void)
{
	struct rank usual = new_context(10000), patient = new_context(60000);
	uint64_t deadline = 50 * NS_PER_S, early = deadline - NS_PER_S / 2;

	usual.join.deadline_ns = patient.join.deadline_ns = deadline;
	CHECK_U64(rank_farewell_ns(&usual, deadline - 20 * NS_PER_S), rank_patience_ns(&usual));
	CHECK_U64(rank_farewell_ns(&patient, early), NS_PER_S / 2 + rank_word_ns(&patient));
	CHECK_U64(rank_farewell_ns(&patient, deadline), rank_word_ns(&patient));
	CHECK_U64(rank_farewell_ns(&patient, deadline + NS_PER_S), rank_word_ns(&patient));
}

/* A rank that is gone has sent what it had to send; but one without a clue waits itself for others to tell. */
static void blames_the_clueless_late(void)
{
	uint8_t fates[2] = {FATE_HERE, FATE_LEFT};
	struct rank context = new_context(1000);
	uint64_t left = 5 * NS_PER_S, since = NS_PER_S, over = left + rank_patience_ns(&context);

	context.size = 2;
	context.fates.of = fates;
	context.fates.gone = 1;
	context.fates.gone_ns = left;
	CHECK(!rank_has_left(&context, 1, since, over - SOON));
	CHECK(rank_has_left(&context, 1, since, over));
	context.fates.clueless = 1;
	CHECK(!rank_has_left(&context, 1, since, over));
	CHECK(!rank_has_left(&context, 1, since, over + rank_word_ns(&context)));
	CHECK(rank_has_left(&context, 1, since, over + 2 * rank_word_ns(&context)));
}

/* Only where one refuses, and only as long as rank 0 may have ended as well: an accusation by another rank stands. */
static void doubts_who_refuses(void)
{
	uint8_t fates[4] = {FATE_HERE, FATE_HERE, FATE_HERE, FATE_HERE};
	bool has_met[4] = {false};
	struct rank context = new_context(1000);

	context.size = 4;
	context.rank = 3;
	context.fates.of = fates;
	context.opening.has_met = has_met;
	context.opening.failure = (struct failure){.status = ESP_ELINK, .rank = 2};
	CHECK(!rank_doubts_culprit(&context));
	context.opening.found_ended = true;
	CHECK(rank_doubts_culprit(&context));
	has_met[0] = true;
	CHECK(!rank_doubts_culprit(&context));
	has_met[0] = false;
	fates[0] = FATE_DEAD;
	CHECK(!rank_doubts_culprit(&context));
	fates[0] = FATE_HERE;
	context.opening.failure.rank = 0;
	CHECK(!rank_doubts_culprit(&context));
}

int main(void)
{
	asks_for_a_while();
	asks_within_a_call();
	leaves_in_time();
	blames_the_clueless_late();
	doubts_who_refuses();
	return 0;
}
