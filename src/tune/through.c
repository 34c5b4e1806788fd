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
