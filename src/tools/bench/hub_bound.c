#include "tools/bench/hub_bound.h"

#include <assert.h>

#define FRAME 1514.0
#define PAYLOAD 1448.0

double bench_hub_bound_goodput(uint64_t rate_bits)
{
	return (double)rate_bits / 8 * PAYLOAD / FRAME;
}

double bench_hub_bound_hub(uint64_t bytes, uint32_t workers, double hub_links, double goodput)
{
	assert(workers > 0 && hub_links > 0 && goodput > 0);
	double shared = (double)workers / hub_links;

	return (double)bytes / goodput * (shared > 1 ? shared : 1);
}

double bench_hub_bound_colocated(uint64_t bytes, uint32_t workers, double goodput)
{
	assert(workers > 0 && goodput > 0);
	return 2 * (double)(workers - 1) / (double)workers * (double)bytes / goodput;
}
