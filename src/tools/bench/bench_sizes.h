/*
 * bench_sizes.h - the sizes that a benchmark measures: "4:128M", "4,1K,64K:1M". Pure: no I/O, no allocation.
 */
#ifndef TOOLS_BENCH_BENCH_SIZES_H
#define TOOLS_BENCH_BENCH_SIZES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define BENCH_SIZES_MAX 256u
#define BENCH_SIZE_MAX (UINT64_C(1) << 46) /* bytes, more than any machine has */

struct bench_sizes {
	uint64_t bytes[BENCH_SIZES_MAX]; /* in the order of measurement */
	size_t count;
	uint64_t least, most;            /* the smallest and the largest */
	uint64_t end;                    /* end of the range as it was given, perhaps above `most` */
	struct bench_step {
		uint64_t factor; /* at least 2, or 0 */
		uint64_t bytes;  /* if factor is 0 */
	} step;                          /* of the range; zeroed: the sizes are a list */
};

/*
 * Parses items with commas between them: a size, or FROM:TO, which means FROM, FROM * factor (or FROM + bytes), ...
 * up to TO. ESP_EINVAL with the reason in *err: not a size, 0, FROM above TO, too many.
 */
ESP_CHECKED enum esp_status bench_sizes_parse(const char *text, struct bench_step step, struct bench_sizes *out,
                                              struct error *err);

#endif
