#include "sim/workload/steps_period.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#define NEARLY_ALL 0.9
#define LOOKED_AT 32768u /* calls searched for the length: this times STEPS_LENGTH_MAX is about a second of work */

struct sequence {
	const struct steps_call *calls;
	uint32_t count;
	/* before each call: time since all earlier calls ended; negative: one was under way; NAN for the first */
	double *pause;
};

static double *find_pauses(const struct steps_rank *rank)
{
	double *pause = calloc((size_t)rank->count + 1, sizeof(*pause));
	double ended = -INFINITY;
	for (uint32_t i = 0; pause && i < rank->count; i++) {
		pause[i] = i == 0 ? NAN : rank->calls[i].from_s - ended;
		ended = fmax(ended, rank->calls[i].to_s);
	}
	return pause;
}

/* True if the call at i has the size of the one a period later. */
static bool repeats(const struct sequence *sequence, uint32_t i, uint32_t length)
{
	return i + length < sequence->count && sequence->calls[i].bytes == sequence->calls[i + length].bytes;
}

/* The next run of at least two steps from *at on: its begin and number of calls. False: there is none. */
static bool next_run(const struct sequence *sequence, uint32_t length, uint32_t *at, uint32_t *out_from,
                     uint32_t *out_calls)
{
	while (*at + 2 * length <= sequence->count) {
		uint32_t from = *at, run = 0;
		while (repeats(sequence, from + run, length))
			run++;
		*at = from + run + 1;
		if (run >= length) {
			*out_from = from;
			*out_calls = run + length;
			*at = from + *out_calls;
			return true;
		}
	}
	return false;
}

/* The offset in the period at which a step begins: where the pauses are the longest. */
static uint32_t best_offset(const struct sequence *sequence, uint32_t from, uint32_t calls, uint32_t length)
{
	uint32_t best = 0;
	double longest = -INFINITY;
	for (uint32_t turn = 0; turn < length; turn++) {
		double sum = 0;
		uint32_t count = 0;
		for (uint32_t i = from + turn; i + length <= from + calls; i += length) {
			bool is_known = !isnan(sequence->pause[i]);
			sum += is_known ? fmin(sequence->pause[i], 3600) : 0; /* a night between two runs is no pause */
			count += is_known;
		}
		if (count > 0 && sum / count > longest) {
			longest = sum / count;
			best = turn;
		}
	}
	return best;
}

struct fit {
	double covered;        /* bytes in whole steps: small calls between them are not of the steps */
	uint32_t steps, quiet; /* steps before which all earlier calls had ended */
	uint32_t pattern;      /* begin of the first step of the longest run */
};

static struct fit fit(const struct sequence *sequence, uint32_t length)
{
	struct fit fit = {0};
	uint32_t at = 0, from, calls, longest = 0;
	while (next_run(sequence, length, &at, &from, &calls)) {
		uint32_t turn = best_offset(sequence, from, calls, length);
		if (calls > longest) {
			longest = calls;
			fit.pattern = from + turn;
		}
		for (uint32_t i = from + turn; i + length <= from + calls; i += length) {
			fit.steps++;
			fit.quiet += !(sequence->pause[i] < 0);
			for (uint32_t k = 0; k < length; k++)
				fit.covered += (double)sequence->calls[i + k].bytes;
		}
	}
	return fit;
}

static bool matches(const struct sequence *sequence, uint32_t pattern, uint32_t at, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		if (sequence->calls[pattern + i].bytes != sequence->calls[at + i].bytes)
			return false;
	return true;
}

/* All occurrences of the pattern, also single ones. */
static uint32_t find_all(const struct sequence *sequence, uint32_t pattern, uint32_t length, uint32_t *starts)
{
	uint32_t count = 0;
	for (uint32_t at = 0; at + length <= sequence->count;)
		if (matches(sequence, pattern, at, length)) {
			starts[count++] = at;
			at += length;
		} else {
			at++;
		}
	return count;
}

static uint32_t find_length(const struct sequence *whole)
{
	const struct sequence beginning = {whole->calls, whole->count < LOOKED_AT ? whole->count : LOOKED_AT, whole->pause},
	    *sequence = &beginning;
	uint32_t most = sequence->count / 2 < STEPS_LENGTH_MAX ? sequence->count / 2 : STEPS_LENGTH_MAX;
	double best = 0, *covered = calloc((size_t)most + 1, sizeof(*covered));
	uint32_t found = 0;
	for (uint32_t length = 1; covered && length <= most; length++) {
		struct fit fits = fit(sequence, length);
		covered[length] = fits.quiet >= NEARLY_ALL * fits.steps ? fits.covered : 0;
		best = fmax(best, covered[length]);
	}
	for (uint32_t length = most; covered && best > 0 && length > 0; length--)
		found = covered[length] >= NEARLY_ALL * best ? length : found;
	free(covered);
	return found;
}

enum esp_status workload_steps_period(const struct steps_rank *rank, uint32_t wanted, uint32_t *out_length,
                                      uint32_t **out_starts, uint32_t *out_count, struct error *err)
{
	struct sequence sequence = {rank->calls, rank->count, find_pauses(rank)};
	uint32_t *starts = calloc((size_t)rank->count + 1, sizeof(*starts));
	enum esp_status status = ESP_OK;
	if (!sequence.pause || !starts) {
		free(sequence.pause);
		free(starts);
		return error_set(err, ESP_ENOMEM, "no memory for traces");
	}
	uint32_t length = wanted ? wanted : find_length(&sequence);
	struct fit found = {0};
	uint32_t steps = 0;
	if (length > 0 && length <= rank->count / 2)
		found = fit(&sequence, length);
	if (found.steps > 0)
		steps = find_all(&sequence, found.pattern, length, starts);
	if (steps == 0)
		status = wanted ? error_set(err, ESP_EINVAL, "no %" PRIu32 " calls repeat among the %" PRIu32 " of rank %"
		                            PRIu32, wanted, rank->count, rank->rank)
		                : error_set(err, ESP_EINVAL,
		                            "no steps were found among %" PRIu32 " calls of rank %" PRIu32
		                            ": nothing repeats; say how many calls a step has, or use keys", rank->count,
		                            rank->rank);
	free(sequence.pause);
	if (status != ESP_OK) {
		free(starts);
		return status;
	}
	*out_length = length;
	*out_starts = starts;
	*out_count = steps;
	return ESP_OK;
}
