#include "base/check.h"
#include "base/clock.h"
#include "sim/fabric/fabric_flows.h"

/* Two transfers of 1,000 bytes over a link of 1,000 bytes a second, the second one begun half a second later. */
static void run(struct fabric_flows *flows, bool has_turns, double caps, uint64_t out_ends[2])
{
	const uint32_t link = 0;
	uint64_t cookie;

	fabric_flows_init(flows, 1);
	flows->has_turns = has_turns;
	fabric_flows_set_rate(flows, link, 1000);
	fabric_flows_start(flows, &link, 1, 1000, caps, 0);
	fabric_flows_advance(flows, NS_PER_S / 2);
	fabric_flows_start(flows, &link, 1, 1000, caps, 1);
	for (uint32_t ended = 0; ended < 2;) {
		fabric_flows_advance(flows, fabric_flows_due(flows));
		while (fabric_flows_ended(flows, &cookie)) {
			out_ends[cookie] = flows->now;
			ended++;
		}
	}
	CHECK(flows->open == 0);
}

static bool is_at(uint64_t ns, double seconds)
{
	return ns > (uint64_t)((seconds - 0.002) * (double)NS_PER_S) && ns < (uint64_t)((seconds + 0.002) * (double)NS_PER_S);
}

/* Shared fairly the first one ends later; in turns it ends as if it were alone. The link is full in both. */
static void test_sharing(void)
{
	static struct fabric_flows flows;
	uint64_t ends[2];

	run(&flows, false, 0, ends);
	CHECK(is_at(ends[0], 1.5) && is_at(ends[1], 2));
	run(&flows, true, 0, ends);
	CHECK(is_at(ends[0], 1) && is_at(ends[1], 2));
}

/* No transfer is faster than its cap; a link gives the next one what the first leaves. */
static void test_caps(void)
{
	static struct fabric_flows flows;
	uint64_t ends[2];

	run(&flows, true, 600, ends);
	CHECK(is_at(ends[0], 1000.0 / 600));
	CHECK(is_at(ends[1], 1000.0 / 600 + (1000 - 400 * (1000.0 / 600 - 0.5)) / 600));
	run(&flows, false, 500, ends);
	CHECK(is_at(ends[0], 2) && is_at(ends[1], 2.5));
}

int main(void)
{
	test_sharing();
	test_caps();
	return 0;
}
