/*
 * watch.h - clocks, in nanoseconds.
 */
#ifndef TRAIN_WATCH_H
#define TRAIN_WATCH_H

#include <stdint.h>
#include <time.h>

static inline int64_t watch_read(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Time that passes, CPU time of this thread, and of all threads of the process. */
static inline int64_t watch_now(void)
{
	return watch_read(CLOCK_MONOTONIC);
}
static inline int64_t watch_thread_cpu(void)
{
	return watch_read(CLOCK_THREAD_CPUTIME_ID);
}
static inline int64_t watch_process_cpu(void)
{
	return watch_read(CLOCK_PROCESS_CPUTIME_ID);
}

#endif
