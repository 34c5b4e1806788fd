/*
 * connect_test.c - how long this node tries to reach a peer, and waits for it.
 */
#include "base/check.h"
#include "base/clock.h"
#include "node/control/control_state.h"

/*
 * A joining call may have more time than join_seconds, or less: no rank is given up before that time is over and late
 * ranks have asked their peers. Afterwards the patience is that of join_seconds.
 */
static void waits_as_long_as_others_may_join(void)
{
	static struct control control = {.config = {.patience_ns = 2 * NS_PER_S, .late_ns = NS_PER_S / 2}};
	uint64_t now = 10 * NS_PER_S;

	control.config.join_until_ns = now + 30 * NS_PER_S;
	CHECK_U64(connect_patience_ns(&control, now), 30 * NS_PER_S + NS_PER_S / 2);
	control.config.join_until_ns = now + 2 * NS_PER_S;
	CHECK_U64(connect_patience_ns(&control, now), 2 * NS_PER_S + NS_PER_S / 2);
	control.config.join_until_ns = now + NS_PER_S;
	CHECK_U64(connect_patience_ns(&control, now), 2 * NS_PER_S);
	control.config.join_until_ns = now - NS_PER_S;
	CHECK_U64(connect_patience_ns(&control, now), 2 * NS_PER_S);
	control.config.join_until_ns = now + 30 * NS_PER_S;
	control_settle(&control);
	CHECK_U64(connect_patience_ns(&control, now), 2 * NS_PER_S);
}

int main(void)
{
	waits_as_long_as_others_may_join();
	return 0;
}
