/*
 * median.h - the middle of a list of numbers, and other places in its order, without sorting all of it.
 *
 * Pure functions that reorder what they are given. No NAN in it.
 */
#ifndef NETWORK_DISCOVER_MEDIAN_H
#define NETWORK_DISCOVER_MEDIAN_H

#include <stddef.h>

/* The value that stands at an index below count once the list is sorted. */
double median_nth(double *values, size_t count, size_t index);

/* The middle one, or the mean of the two; count > 0. */
double median(double *values, size_t count);

#endif
