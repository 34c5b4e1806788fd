/*
 * background.h - work of lane 0's thread beside driving: it runs callbacks, and checks closed gates and small calls
 * without a waiter.
 *
 * Callbacks run here and nowhere else, so that their thread is known.
 */
#ifndef RANK_COMM_BACKGROUND_H
#define RANK_COMM_BACKGROUND_H

#include <stdint.h>

/* For struct progress_events; the argument is the rank. Returns the time of the next look. */
uint64_t comm_background_run(void *rank);

#endif
