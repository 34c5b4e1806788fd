/*
 * cores_time.h - how busy the machine's cores are: time since the machine began, from /proc/stat. Any thread.
 */
#ifndef TOOLS_BENCH_CORES_TIME_H
#define TOOLS_BENCH_CORES_TIME_H

#include <stdint.h>

struct cores_time {
	uint64_t idle, all; /* ticks of all cores */
};

struct cores_time bench_cores_time(void);
/* The part of all cores' time since then that was idle; 0: not known. */
double bench_cores_idle_since(struct cores_time before);

#endif
