/*
 * bench_measure.h - checks and measures one call.
 *
 * In each mode: one call to see which plan it takes; one on fresh data, whose result is checked; some to
 * warm up; batches of calls, each after a barrier, until the pace (bench_time.h) has its samples; and
 * once more one on fresh data that is checked.
 */
#ifndef TOOLS_BENCH_BENCH_MEASURE_H
#define TOOLS_BENCH_BENCH_MEASURE_H

#include "tools/bench/bench_job.h"

/*
 * By all ranks alike, in all modes that the collective has. What *out points to lasts until the next call.
 * What fails is in esp_last_error().
 */
ESP_CHECKED enum esp_status bench_measure(struct bench_job *job, const struct bench_shape *shape, const char *plan,
                                          struct bench_row *out);

#endif
