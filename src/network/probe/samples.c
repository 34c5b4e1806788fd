#include "network/probe/samples.h"

#include <math.h>
#include <stdlib.h>

#include "base/vec.h"

void probe_samples_add(struct samples *samples, double value)
{
	if (samples->count < SAMPLES_MOST &&
	    vec_reserve(&samples->at, &samples->capacity, (size_t)samples->count + 1, sizeof(*samples->at)))
		samples->at[samples->count++] = value;
}

void probe_samples_fini(struct samples *samples)
{
	free(samples->at);
	*samples = (struct samples){0};
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double probe_samples_quantile(struct samples *samples, double share)
{
	if (samples->count == 0)
		return NAN;
	qsort(samples->at, samples->count, sizeof(*samples->at), compare);
	return samples->at[(uint32_t)(share * (samples->count - 1) + 0.5)];
}
