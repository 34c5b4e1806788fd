#include "tune/sample.h"

#include <stdlib.h>

/* In thousandths of the median: what counts as the median, and from where on a rate counts as it is. */
#define ALIKE_LEAST 800u
#define ALIKE_MOST 1250u
#define OWN_BELOW 667u
#define OWN_ABOVE 1500u
#define ONE 1000u
#define BUSY_LEAST 500u

uint64_t tune_sample_time(const struct tune_sample *sample)
{
	uint64_t least = 0;

	for (uint32_t i = 0; i < sample->nodes; i++) {
		uint64_t time = sample->at[i].time_ns;

		if (time > 0 && (least == 0 || time < least))
			least = time;
	}
	return least;
}

uint64_t tune_sample_bytes(const struct tune_sample *sample)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < sample->nodes; i++)
		sum += sample->at[i].sent_bytes;
	return sum;
}

/* The rate without the time in which connections were idle. */
static uint64_t stretch(uint64_t rate, uint64_t busy, uint64_t bytes)
{
	uint64_t share = busy > 0 && bytes > 0 ? busy / bytes : ONE;

	share = share < BUSY_LEAST ? BUSY_LEAST : share > ONE ? ONE : share;
	return rate / share * ONE + rate % share * ONE / share;
}

uint64_t tune_node_rate(const struct tune_sample *sample, uint32_t node)
{
	const struct tune_node *at = &sample->at[node];
	uint64_t out = stretch(at->send_rate, at->send_busy, at->sent_bytes);
	uint64_t in = stretch(at->receive_rate, at->receive_busy, at->received_bytes);

	if (out == 0 || in == 0)
		return out + in;
	return (out < in) != sample->is_chain ? out : in;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

uint64_t tune_median(const uint64_t *rates, uint32_t count, uint64_t *scratch)
{
	uint32_t known = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (rates[i] > 0)
			scratch[known++] = rates[i];
	}
	if (known == 0)
		return 0;
	qsort(scratch, known, sizeof(*scratch), compare);
	return scratch[known / 2];
}

/*
 * Thousandths of the median that a rate counts as. Between what counts as the median and what counts as it is lies a
 * slope and no step: a rate that scatters about a step would have its masters moved to and fro.
 */
static uint64_t weigh(uint64_t part)
{
	if (part < OWN_BELOW || part > OWN_ABOVE)
		return part;
	if (part < ALIKE_LEAST)
		return OWN_BELOW + (part - OWN_BELOW) * (ONE - OWN_BELOW) / (ALIKE_LEAST - OWN_BELOW);
	if (part > ALIKE_MOST)
		return ONE + (part - ALIKE_MOST) * (OWN_ABOVE - ONE) / (OWN_ABOVE - ALIKE_MOST);
	return ONE;
}

uint64_t tune_level(uint64_t *rates, uint32_t count, uint64_t *scratch)
{
	uint64_t median = tune_median(rates, count, scratch);

	for (uint32_t i = 0; i < count; i++) {
		unsigned __int128 part = median > 0 && rates[i] > 0 ? (unsigned __int128)rates[i] * ONE / median : ONE;
		uint64_t weight = weigh(part > TUNE_WEIGHT_MOST ? TUNE_WEIGHT_MOST : (uint64_t)part);

		rates[i] = weight > 0 ? weight : 1;
	}
	return median;
}
