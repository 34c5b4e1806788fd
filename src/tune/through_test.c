/*
 * When a sum through a switch pays.
 */
#include "tune/through.h"

#include <math.h>

#include "base/check.h"

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b);
}

int main(void)
{
	static const double needs[][2] = {{2, 2.0}, {4, 16 / 6.0}, {8, 64 / 14.0}, {16, 256 / 30.0}};
	const double efficiency = TUNE_RING_GOODPUT / TUNE_THROUGH_GOODPUT;

	for (unsigned i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		uint32_t members = (uint32_t)needs[i][0];
		CHECK(is_near(tune_through_needs(members), needs[i][1]));
		/* just enough, but for the headers of packets: as fast as a ring */
		CHECK(is_near(tune_through_switch(1000, members, 10, needs[i][1]),
		              tune_through_ring(1000, members, 10) * efficiency));
		/* with a link for each member the switch is no bottleneck, and more links are no help */
		CHECK(is_near(tune_through_switch(1000, members, 10, members), 100 / TUNE_THROUGH_GOODPUT));
		CHECK(is_near(tune_through_switch(1000, members, 10, 100), 100 / TUNE_THROUGH_GOODPUT));
	}
	/* at equal speed, eight workers are 4.6 times slower than by a ring */
	double slower = tune_through_switch(1, 8, 1, 1) / tune_through_ring(1, 8, 1);
	CHECK(slower > 4.5 && slower < 4.7);
	CHECK(tune_through_ring(1000, 1, 1) == 0);
	/* One member on each host: the rule above. */
	CHECK(!tune_through_pays(4, 4, 2.6) && tune_through_pays(4, 4, 2.7));
	CHECK(!tune_through_pays(8, 8, 4.5) && tune_through_pays(8, 8, 4.6));
	/* Members of one host share memory; two on each host send twice over its link, a ring of hosts does not. */
	CHECK(!tune_through_pays(4, 1, 1000) && !tune_through_pays(8, 4, 1000));
	return 0;
}
