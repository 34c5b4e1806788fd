/*
 * bench_measure.h - checks and measures one call. Main thread; calls the library, prints nothing.
 *
 * In each mode: one call to learn the plan; one on fresh data, whose result is checked; some to warm up; batches of
 * calls, each after a barrier, until the pace (bench_time.h) has its samples; and another one on fresh data that is
 * checked.
 */
#ifndef TOOLS_BENCH_BENCH_MEASURE_H
#define TOOLS_BENCH_BENCH_MEASURE_H

#include "tools/bench/bench_job.h"

/*
 * All ranks call it alike. Measures all modes that the collective has. Memory that *out points to is valid until the
 * next call. The reason of a failure is in esp_last_error().
 */
ESP_CHECKED enum esp_status bench_measure(struct bench_job *job, const struct bench_shape *shape, const char *plan,
                                          struct bench_row *out);

#endif
