#include "tune/through.h"

#include <assert.h>

double tune_through_ring(uint64_t bytes, uint32_t members, double rate)
{
	assert(members > 0 && rate > 0);
	return 2.0 * (members - 1) / members * (double)bytes / (rate * TUNE_RING_GOODPUT);
}

double tune_through_switch(uint64_t bytes, uint32_t members, double rate, double links)
{
	assert(members > 0 && rate > 0 && links > 0);
	double shared = members / links;

	return (double)bytes * (shared > 1 ? shared : 1) / (rate * TUNE_THROUGH_GOODPUT);
}

double tune_through_needs(uint32_t members)
{
	assert(members > 1);
	return (double)members * members / (2.0 * (members - 1));
}

bool tune_through_pays(uint32_t members, uint32_t hosts, double links)
{
	assert(hosts >= 1 && hosts <= members);
	if (hosts == 1)
		return false;
	/* By a host's link, each way: of the ring, and of the switch on the busier of its own link and a host's. */
	double ring = 2.0 * (hosts - 1) / hosts, own = members / links, shared = (double)members / hosts;

	return (own > shared ? own : shared) < ring;
}
