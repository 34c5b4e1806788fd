/*
 * bench_sizes.h - the sizes that a benchmark goes through: "4:128M", "4,1K,64K:1M".
 *
 * Pure: no I/O, no allocation.
 */
#ifndef TOOLS_BENCH_BENCH_SIZES_H
#define TOOLS_BENCH_BENCH_SIZES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define BENCH_SIZES_MAX 256u
#define BENCH_SIZE_MAX (UINT64_C(1) << 46) /* bytes: no machine has more */

struct bench_sizes {
	uint64_t bytes[BENCH_SIZES_MAX]; /* in the order in which they are measured */
	size_t count;
	uint64_t least, most;            /* of them                                 */
	uint64_t end;                    /* as it was given: of a range, perhaps above most */
	struct bench_step {
		uint64_t factor; /* at least 2, or 0   */
		uint64_t bytes;  /* if factor is 0     */
	} step;                          /* of the one range that they are; zeroed: a list */
};

/*
 * Items with commas between them: a size, or FROM:TO, which means FROM, FROM * factor (or FROM + bytes), ... up to TO.
 * ESP_EINVAL with the reason in *err: not a size, 0, FROM above TO, too many.
 */
ESP_CHECKED enum esp_status bench_sizes_parse(const char *text, struct bench_step step, struct bench_sizes *out,
                                              struct error *err);

#endif
