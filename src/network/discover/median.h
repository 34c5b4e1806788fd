/*
 * median.h - medians and other order statistics without sorting.
 *
 * Pure functions that reorder their input. No NAN in it.
 */
#ifndef NETWORK_DISCOVER_MEDIAN_H
#define NETWORK_DISCOVER_MEDIAN_H

#include <stddef.h>

/* The element that would be at this index if the list were sorted. */
double discover_median_nth(double *values, size_t count, size_t index);

/* The middle one, or the mean of the two; count > 0. */
double median(double *values, size_t count);

#endif
