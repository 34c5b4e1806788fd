#include "base/check.h"
#include "base/clock.h"
#include "transport/path.h"

#define FOR (4 * NS_PER_S)

static struct path_patience patience;
static struct path_stats stats;

static bool at(uint64_t second)
{
	return path_waits_in_vain(&patience, &stats, (100 + second) * NS_PER_S, FOR);
}

static void begin(void)
{
	patience = (struct path_patience){0};
	stats = (struct path_stats){.has_path = true, .awaits_ack = true, .acked_bytes = 1000, .last_ack_ms = 60000};
}

int main(void)
{
	begin(); /* idle for a minute, then something is sent: the time before does not count */
	CHECK(!at(0) && !at(1) && !at(3) && at(4) && at(5));
	stats.acked_bytes++; /* some of it has arrived */
	CHECK(!at(6) && !at(9) && at(10));
	stats.awaits_ack = false; /* all */
	CHECK(!at(11) && !at(30));
	stats.awaits_ack = true;
	CHECK(!at(31) && !at(33) && at(34));

	begin(); /* the other end takes nothing, but is there */
	CHECK(!at(0));
	stats.last_ack_ms = 200;
	CHECK(!at(4) && !at(100));
	stats.last_ack_ms = 4000;
	CHECK(at(101));

	begin(); /* not TCP */
	stats.has_path = false;
	CHECK(!at(0) && !at(50));
	return 0;
}
