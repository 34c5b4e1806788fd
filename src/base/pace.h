/*
 * pace.h - a transfer that keeps to a rate: a budget of bytes that time fills.
 *
 * The budget never holds more than a few milliseconds of bytes, so a sender that was late catches up by no more than
 * that. A piece may leave it below nothing; then nothing leaves until it is above again, so pieces of any size keep to
 * the rate. Pure: time is an argument and never goes back; one thread at a time.
 */
#ifndef BASE_PACE_H
#define BASE_PACE_H

#include <stdbool.h>
#include <stdint.h>

struct pace {
	uint64_t rate;      /* bytes per second; 0: any */
	uint64_t filled_ns; /* the budget is that of this time */
	int64_t budget;     /* bytes; what leaves is taken from it by the sender */
};

/* From now on. The rate that it has already changes nothing. */
void pace_set(struct pace *pace, uint64_t rate, uint64_t now_ns);
/* True: something may leave. */
bool pace_fill(struct pace *pace, uint64_t now_ns);
/*
 * The rate of a transfer that passes on what comes at a rate: a little more, so that it catches up where it was late.
 * Its source holds it to the rate in the mean.
 */
static inline uint64_t pace_behind(uint64_t rate)
{
	return rate < UINT64_MAX / 2 ? rate + rate / 4 : rate;
}
/* When something may leave, after pace_fill() has said that nothing may. */
uint64_t pace_due(const struct pace *pace);

#endif
