/*
 * store_value.h - the hyper-parameters that hold for each worker, parameter group and version. Private to hub/store.
 *
 * Each different value of a group is kept once, with a count of its uses, so that terms name a value by a number and
 * two terms agree if their numbers are equal. Of each worker and group the latest few values are remembered with the
 * versions from which they hold, because a chunk's term of an older version may come after the news of a value for a
 * later one.
 */
#ifndef HUB_STORE_STORE_VALUE_H
#define HUB_STORE_STORE_VALUE_H

#include <stdint.h>

#include "base/error.h"
#include "math/optimizer.h"

#define STORE_VALUES_PAST 4u   /* values that are remembered of a worker and group */
#define STORE_VALUES_SPARE 16u /* different values of a group at a time, beyond one per worker */
#define STORE_NO_VALUE UINT32_MAX

struct store_value {
	struct optimizer optimizer;
	uint32_t uses; /* 0: free */
};

struct store_past {
	uint64_t from[STORE_VALUES_PAST];  /* ascending: the version from which it holds */
	uint32_t value[STORE_VALUES_PAST];
	uint32_t count;
};

struct store_values {
	uint32_t groups, workers, group_values;
	struct store_value *values; /* by group; group_values of each */
	struct store_past *pasts;   /* by worker and group */
};

uint64_t store_values_bytes(uint32_t groups, uint32_t workers);
/* optimizers: by group, what holds for all workers from version 0 on. */
ESP_CHECKED enum esp_status store_values_init(struct store_values *values, const struct optimizer *optimizers,
                                              uint32_t groups, uint32_t workers);
void store_values_fini(struct store_values *values); /* accepts a zeroed struct */

/* For this worker the value holds from a version on. ESP_ELIMIT: the group has too many different values at a time. */
ESP_CHECKED enum esp_status store_values_set(struct store_values *values, uint32_t worker, uint32_t group,
                                             uint64_t from, const struct optimizer *optimizer);
/* Number of the value that holds at a version, used once more. STORE_NO_VALUE: too old to be remembered. */
uint32_t store_values_use(struct store_values *values, uint32_t worker, uint32_t group, uint64_t version);
void store_values_release(struct store_values *values, uint32_t value);
const struct optimizer *store_values_get(const struct store_values *values, uint32_t value);
/* The earliest version that is remembered of a worker and group. */
uint64_t store_values_oldest(const struct store_values *values, uint32_t worker, uint32_t group);

#endif
