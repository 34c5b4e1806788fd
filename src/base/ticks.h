/*
 * ticks.h - the processor's own clock: a third of what CLOCK_MONOTONIC costs, for what is timed a million times a
 * second.
 *
 * Ticks are turned into nanoseconds by comparing both clocks now and at some time before. Only where the kernel itself
 * tells the time by them (ticks_open()): they then run evenly, and the same on all cores. Elsewhere ticks are
 * nanoseconds.
 */
#ifndef BASE_TICKS_H
#define BASE_TICKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

struct ticks {
	bool are_ns;              /* the clock's */
	uint64_t first, first_ns; /* one moment, by both */
};

/* Where both clocks stand now: what ticks are measured by. */
struct ticks_scale {
	uint64_t now, now_ns;
	double ns_per_tick;
};

/* by_clock: ticks are to be nanoseconds in any case. */
void ticks_open(struct ticks *ticks, bool by_clock);

static inline uint64_t ticks_raw(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return clock_now_ns();
#endif
}

static inline uint64_t ticks_now(const struct ticks *ticks)
{
	return ticks->are_ns ? clock_now_ns() : ticks_raw();
}

struct ticks_scale ticks_scale(const struct ticks *ticks);

/* Of a moment that is past. */
static inline uint64_t ticks_to_ns(const struct ticks_scale *scale, uint64_t at)
{
	return at < scale->now ? scale->now_ns - (uint64_t)((double)(scale->now - at) * scale->ns_per_tick) : scale->now_ns;
}

#endif
