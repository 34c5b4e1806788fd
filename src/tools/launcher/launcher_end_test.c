#include "tools/launcher/launcher_end.h"

#include <signal.h>

#include "base/check.h"

#define S UINT64_C(1000000000)

static void test_failure(void)
{
	struct run_end end;
	launcher_end_init(&end, 5 * S, 0, 100 * S);
	CHECK_U64(launcher_end_next_ns(&end), RUN_END_NEVER);
	CHECK_U64(launcher_end_on_time(&end, 1000 * S), 0);
	launcher_end_on_failure(&end, 1000 * S);
	launcher_end_on_failure(&end, 1004 * S); /* the second one changes nothing */
	CHECK_U64(launcher_end_next_ns(&end), 1005 * S);
	CHECK_U64(launcher_end_on_time(&end, 1005 * S - 1), 0);
	CHECK_U64(launcher_end_on_time(&end, 1005 * S), SIGTERM);
	CHECK_U64(launcher_end_on_time(&end, 1005 * S), 0);
	CHECK_U64(launcher_end_on_trouble(&end, 1006 * S), 0);
	CHECK_U64(launcher_end_next_ns(&end), 1007 * S);
	CHECK_U64(launcher_end_on_time(&end, 1008 * S), SIGKILL);
	CHECK(end.stage == RUN_KILL && launcher_end_next_ns(&end) == 1010 * S);
	CHECK_U64(launcher_end_on_time(&end, 1010 * S), SIGKILL);
	CHECK(end.stage == RUN_CUT && launcher_end_next_ns(&end) == RUN_END_NEVER);
	CHECK(!end.timed_out && !end.asked);
}

static void test_no_grace(void)
{
	struct run_end end;
	launcher_end_init(&end, 0, 0, 0);
	launcher_end_on_failure(&end, 7);
	CHECK_U64(launcher_end_on_time(&end, 7), SIGTERM);
	launcher_end_init(&end, UINT64_MAX, UINT64_MAX, 1); /* no grace limit */
	launcher_end_on_failure(&end, 7);
	CHECK_U64(launcher_end_next_ns(&end), RUN_END_NEVER);
}

static void test_limit(void)
{
	struct run_end end;
	launcher_end_init(&end, 5 * S, 10 * S, 100 * S);
	CHECK_U64(launcher_end_next_ns(&end), 110 * S);
	CHECK_U64(launcher_end_on_time(&end, 109 * S), 0);
	CHECK_U64(launcher_end_on_time(&end, 111 * S), SIGTERM);
	CHECK(end.timed_out && launcher_end_next_ns(&end) == 113 * S);
	CHECK_U64(launcher_end_on_time(&end, 113 * S), SIGKILL);

	launcher_end_init(&end, 5 * S, 10 * S, 100 * S);
	launcher_end_on_failure(&end, 109 * S);
	CHECK_U64(launcher_end_next_ns(&end), 110 * S);
	CHECK_U64(launcher_end_on_time(&end, 110 * S), SIGTERM); /* the limit cuts the grace short */
	CHECK(end.timed_out);

	launcher_end_init(&end, 0, 10 * S, 100 * S);
	launcher_end_on_failure(&end, 100 * S);
	CHECK_U64(launcher_end_on_time(&end, 100 * S), SIGTERM);
	CHECK_U64(launcher_end_on_time(&end, 110 * S), SIGKILL); /* ending already: no time-out */
	CHECK(!end.timed_out);
}

/* Ranks that were told to end have all of a long grace, but for the time limit. */
static void test_limit_after_signal(void)
{
	struct run_end end;
	launcher_end_init(&end, 1000 * S, 10 * S, 100 * S);
	CHECK_U64(launcher_end_on_signal(&end, SIGTERM, 101 * S), SIGTERM);
	CHECK_U64(launcher_end_next_ns(&end), 110 * S);
	CHECK_U64(launcher_end_on_time(&end, 110 * S), 0);
	CHECK_U64(launcher_end_next_ns(&end), 112 * S);
	CHECK_U64(launcher_end_on_time(&end, 112 * S), SIGKILL);
	CHECK(!end.timed_out);

	launcher_end_init(&end, 3 * S, 10 * S, 100 * S);
	CHECK_U64(launcher_end_on_signal(&end, SIGTERM, 108 * S), SIGTERM);
	CHECK_U64(launcher_end_on_time(&end, 110 * S), 0);
	CHECK_U64(launcher_end_next_ns(&end), 111 * S); /* the grace is over sooner */

	launcher_end_init(&end, 0, 10 * S, 100 * S);
	CHECK_U64(launcher_end_on_trouble(&end, 100 * S), SIGTERM);
	CHECK_U64(launcher_end_on_time(&end, 102 * S), SIGKILL);
	CHECK_U64(launcher_end_on_time(&end, 104 * S), SIGKILL);
	CHECK_U64(launcher_end_on_time(&end, 110 * S), 0); /* there is no stage after the last one */
	CHECK_U64(launcher_end_next_ns(&end), RUN_END_NEVER);
}

static void test_signals(void)
{
	struct run_end end;
	launcher_end_init(&end, 5 * S, 0, 0);
	CHECK_U64(launcher_end_on_signal(&end, SIGTERM, 1 * S), SIGTERM);
	CHECK(end.stage == RUN_TERM && launcher_end_next_ns(&end) == 6 * S);
	CHECK_U64(launcher_end_on_signal(&end, SIGTERM, 2 * S), SIGTERM);
	CHECK_U64(launcher_end_on_signal(&end, SIGINT, 2 * S), SIGINT);
	CHECK_U64(launcher_end_on_signal(&end, SIGHUP, 2 * S), SIGHUP);
	CHECK_U64(launcher_end_next_ns(&end), 6 * S); /* not extended by a further signal */
	launcher_end_on_failure(&end, 2 * S);
	CHECK_U64(launcher_end_on_time(&end, 6 * S - 1), 0);
	CHECK_U64(launcher_end_on_time(&end, 6 * S), SIGKILL);
	CHECK(end.stage == RUN_KILL && end.asked == SIGTERM && !end.timed_out);
	CHECK_U64(launcher_end_on_time(&end, 8 * S), SIGKILL);
	CHECK_U64(end.stage, RUN_CUT);
}

/* A rank that ignores SIGINT, as a shell's background jobs do, may handle SIGTERM. */
static void test_interrupts(void)
{
	struct run_end end;
	launcher_end_init(&end, 5 * S, 0, 0);
	CHECK_U64(launcher_end_on_signal(&end, SIGINT, 1 * S), SIGINT);
	CHECK_U64(launcher_end_on_time(&end, 6 * S), SIGTERM);
	CHECK_U64(launcher_end_on_time(&end, 8 * S), SIGKILL);

	launcher_end_init(&end, 5 * S, 0, 0);
	CHECK_U64(launcher_end_on_signal(&end, SIGHUP, 1 * S), SIGHUP);
	CHECK_U64(launcher_end_on_signal(&end, SIGINT, 2 * S), SIGINT);
	CHECK_U64(launcher_end_next_ns(&end), 6 * S);
	CHECK_U64(launcher_end_on_signal(&end, SIGINT, 3 * S), SIGKILL);
	CHECK(end.stage == RUN_KILL && end.asked == SIGHUP && launcher_end_next_ns(&end) == 5 * S);
	CHECK_U64(launcher_end_on_signal(&end, SIGINT, 4 * S), SIGKILL);
	CHECK_U64(launcher_end_next_ns(&end), 5 * S);
	launcher_end_on_failure(&end, 4 * S);
	CHECK_U64(end.stage, RUN_KILL);
}

/* One Ctrl-C may come as several signals; the ranks get it once. */
static void test_same_interrupt(void)
{
	struct run_end end;
	launcher_end_init(&end, 5 * S, 0, 0);
	CHECK_U64(launcher_end_on_signal(&end, SIGINT, 1 * S), SIGINT);
	CHECK_U64(launcher_end_on_signal(&end, SIGINT, 1 * S), 0);
	CHECK_U64(launcher_end_on_signal(&end, SIGINT, 1 * S + RUN_END_AGAIN_NS - 1), 0);
	CHECK(end.stage == RUN_GRACE && launcher_end_next_ns(&end) == 6 * S);
	CHECK_U64(launcher_end_on_signal(&end, SIGINT, 1 * S + RUN_END_AGAIN_NS), SIGKILL);
	CHECK_U64(launcher_end_on_signal(&end, SIGINT, 1 * S + RUN_END_AGAIN_NS), SIGKILL);
	launcher_end_init(&end, 5 * S, 0, 0); /* other signals are forwarded each time */
	CHECK_U64(launcher_end_on_signal(&end, SIGINT, 0), SIGINT);
	CHECK_U64(launcher_end_on_signal(&end, SIGTERM, 0), SIGTERM);
	CHECK_U64(launcher_end_on_signal(&end, SIGINT, 0), 0);
	CHECK_U64(end.stage, RUN_TERM);
}

/* A failure has begun the grace: a signal does not extend it. */
static void test_signal_after_failure(void)
{
	struct run_end end;
	launcher_end_init(&end, 5 * S, 0, 0);
	launcher_end_on_failure(&end, 1 * S);
	CHECK_U64(launcher_end_on_signal(&end, SIGINT, 4 * S), SIGINT);
	CHECK_U64(launcher_end_on_time(&end, 6 * S), SIGTERM);

	launcher_end_init(&end, 50 * S, 0, 0);
	launcher_end_on_failure(&end, 1 * S);
	CHECK_U64(launcher_end_on_signal(&end, SIGTERM, 40 * S), SIGTERM);
	CHECK_U64(launcher_end_on_time(&end, 51 * S - 1), 0);
	CHECK_U64(launcher_end_on_time(&end, 51 * S), SIGKILL);

	launcher_end_init(&end, 50 * S, 0, 0);
	launcher_end_on_failure(&end, 1 * S);
	CHECK_U64(launcher_end_on_signal(&end, SIGTERM, 50 * S), SIGTERM);
	CHECK_U64(launcher_end_next_ns(&end), 52 * S); /* but two seconds from SIGTERM to SIGKILL */

	launcher_end_init(&end, 0, 0, 0); /* no grace: two seconds from SIGTERM to SIGKILL all the same */
	CHECK_U64(launcher_end_on_signal(&end, SIGTERM, 1 * S), SIGTERM);
	CHECK_U64(launcher_end_next_ns(&end), 3 * S);
}

static void test_trouble(void)
{
	struct run_end end;
	launcher_end_init(&end, 5 * S, 0, 0);
	launcher_end_on_failure(&end, 0);
	CHECK_U64(launcher_end_on_trouble(&end, S), SIGTERM);
	CHECK_U64(launcher_end_next_ns(&end), 3 * S);
}

static void test_standstill(void)
{
	struct run_end end;
	launcher_end_init(&end, 5 * S, 0, 0);
	CHECK_U64(launcher_end_on_standstill(&end, S), SIGKILL);
	CHECK_U64(launcher_end_on_standstill(&end, S), 0);
	CHECK(end.stage == RUN_KILL && launcher_end_next_ns(&end) == 3 * S);
}

int main(void)
{
	test_failure();
	test_no_grace();
	test_limit();
	test_limit_after_signal();
	test_signals();
	test_interrupts();
	test_same_interrupt();
	test_signal_after_failure();
	test_trouble();
	test_standstill();
	return 0;
}
