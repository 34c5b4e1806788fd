#include "base/pace.h"

#include "base/clock.h"

#define BURST_NS (4 * NS_PER_MS) /* threads wake up late by a tenth of it at p99, and seldom by more than all of it */

void pace_set(struct pace *pace, uint64_t rate, uint64_t now_ns)
{
	if (pace->rate == rate && rate > 0)
		return;
	*pace = (struct pace){.rate = rate, .filled_ns = now_ns, .budget = rate == 0 ? INT64_MAX / 2 : 1};
}

/* Rounded up: a transfer is never faster than its rate. */
static uint64_t time_of(uint64_t rate, uint64_t bytes)
{
	return (uint64_t)(((unsigned __int128)bytes * NS_PER_S + rate - 1) / rate);
}

static uint64_t bytes_in(uint64_t rate, uint64_t ns)
{
	return (uint64_t)((unsigned __int128)rate * ns / NS_PER_S);
}

bool pace_fill(struct pace *pace, uint64_t now_ns)
{
	if (pace->rate == 0)
		return true;
	int64_t most = (int64_t)bytes_in(pace->rate, BURST_NS) + 1;
	uint64_t more = bytes_in(pace->rate, now_ns - pace->filled_ns);
	if ((int64_t)more > most - pace->budget) {
		pace->budget = most;
		pace->filled_ns = now_ns;
	} else { /* the time of a part of a byte is kept: a loop that turns often would lose most of it */
		pace->budget += (int64_t)more;
		pace->filled_ns += time_of(pace->rate, more);
	}
	return pace->budget > 0;
}

uint64_t pace_due(const struct pace *pace)
{
	return pace->rate == 0 ? 0 : pace->filled_ns + time_of(pace->rate, (uint64_t)(1 - pace->budget));
}
