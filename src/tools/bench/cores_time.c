#include "tools/bench/cores_time.h"

#include <stdio.h>

struct cores_time bench_cores_time(void)
{
	FILE *file = fopen("/proc/stat", "re");
	unsigned long long at[8] = {0};
	struct cores_time time = {0};

	if (file && fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &at[0], &at[1], &at[2], &at[3], &at[4],
	                   &at[5], &at[6], &at[7]) == 8) {
		time.idle = at[3] + at[4];
		for (uint32_t i = 0; i < 8; i++)
			time.all += at[i];
	}
	if (file)
		fclose(file);
	return time;
}

double bench_cores_idle_since(struct cores_time before)
{
	struct cores_time now = bench_cores_time();

	return now.all > before.all ? (double)(now.idle - before.idle) / (double)(now.all - before.all) : 0;
}
