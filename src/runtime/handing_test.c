/*
 * handing_test.c - how long the ranks of a host wait for each other's descriptors; shelf_test.c has how those are handed around.
 */
#include "base/check.h"
#include "base/clock.h"
#include "runtime/steward_parts.h"

/* A call that lets others in may have more time than join_seconds, or less: who waits at a shelf does not go before that is over. */
static void waits_as_long_as_others_may_join(void)
{
	static struct join_config join;
	static struct steward steward = {.config = {.join = &join, .patience_ns = 2 * NS_PER_S}};
	uint64_t now = 10 * NS_PER_S;

	join.deadline_ns = now + 30 * NS_PER_S;
	CHECK_U64(handing_patience_ns(&steward, now), 30 * NS_PER_S);
	join.deadline_ns = now + NS_PER_S;
	CHECK_U64(handing_patience_ns(&steward, now), 2 * NS_PER_S);
	join.deadline_ns = now - NS_PER_S;
	CHECK_U64(handing_patience_ns(&steward, now), 2 * NS_PER_S);
}

int main(void)
{
	waits_as_long_as_others_may_join();
	return 0;
}
