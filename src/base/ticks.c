#include "base/ticks.h"

#include <stdio.h>
#include <string.h>

#define SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

static bool kernel_counts_by_them(void)
{
	char name[32] = "";
	FILE *file = fopen(SOURCE, "re");
	if (!file)
		return false;
	if (!fgets(name, sizeof name, file))
		name[0] = '\0';
	fclose(file);
	return strcmp(name, "tsc\n") == 0 || strcmp(name, "arch_sys_counter\n") == 0;
}

void ticks_open(struct ticks *ticks, bool by_clock)
{
	*ticks = (struct ticks){.are_ns = by_clock || !kernel_counts_by_them()};
	ticks->first = ticks_now(ticks);
	ticks->first_ns = clock_now_ns();
}

struct ticks_scale ticks_scale(const struct ticks *ticks)
{
	struct ticks_scale scale = {.ns_per_tick = 1};
	scale.now = ticks_now(ticks);
	scale.now_ns = ticks->are_ns ? scale.now : clock_now_ns();
	if (!ticks->are_ns && scale.now > ticks->first)
		scale.ns_per_tick = (double)(scale.now_ns - ticks->first_ns) / (double)(scale.now - ticks->first);
	return scale;
}
