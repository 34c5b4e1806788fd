#include "hub/store/store_value.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint32_t values_of_group(uint32_t workers)
{
	return workers + STORE_VALUES_SPARE;
}

static struct store_past *past_of(const struct store_values *values, uint32_t worker, uint32_t group)
{
	assert(worker < values->workers && group < values->groups);
	return &values->pasts[(uint64_t)worker * values->groups + group];
}

/* ---- values ---- */

/* The number of a value, used once more; STORE_NO_VALUE: no room. */
static uint32_t value_intern(struct store_values *values, uint32_t group, const struct optimizer *optimizer)
{
	uint32_t first = group * values->group_values, spare = STORE_NO_VALUE;

	for (uint32_t i = first; i < first + values->group_values; i++) {
		struct store_value *value = &values->values[i];

		if (value->uses == 0) {
			spare = spare == STORE_NO_VALUE ? i : spare;
		} else if (optimizer_equal(&value->optimizer, optimizer)) {
			value->uses++;
			return i;
		}
	}
	if (spare != STORE_NO_VALUE)
		values->values[spare] = (struct store_value){.optimizer = *optimizer, .uses = 1};
	return spare;
}

void store_values_release(struct store_values *values, uint32_t value)
{
	assert(value < values->groups * values->group_values && values->values[value].uses > 0);
	values->values[value].uses--;
}

const struct optimizer *store_values_get(const struct store_values *values, uint32_t value)
{
	assert(value < values->groups * values->group_values && values->values[value].uses > 0);
	return &values->values[value].optimizer;
}

/* ---- opening ---- */

uint64_t store_values_bytes(uint32_t groups, uint32_t workers)
{
	return groups *
	       ((uint64_t)values_of_group(workers) * sizeof(struct store_value) + workers * sizeof(struct store_past));
}

enum esp_status store_values_init(struct store_values *values, const struct optimizer *optimizers, uint32_t groups,
                                  uint32_t workers)
{
	*values = (struct store_values){.groups = groups, .workers = workers, .group_values = values_of_group(workers)};
	if (groups == 0)
		return ESP_OK;
	values->values = calloc((uint64_t)groups * values->group_values, sizeof(*values->values));
	values->pasts = calloc((uint64_t)groups * workers, sizeof(*values->pasts));
	if (!values->values || !values->pasts)
		return ESP_ENOMEM;
	for (uint32_t group = 0; group < groups; group++) {
		for (uint32_t worker = 0; worker < workers; worker++) {
			uint32_t value = value_intern(values, group, &optimizers[group]);

			*past_of(values, worker, group) = (struct store_past){.value = {value}, .count = 1};
		}
	}
	return ESP_OK;
}

void store_values_fini(struct store_values *values)
{
	free(values->values);
	free(values->pasts);
	*values = (struct store_values){0};
}

/* ---- values by version ---- */

/* Forgets the oldest value. */
static void past_shift(struct store_values *values, struct store_past *past)
{
	assert(past->count > 0);
	store_values_release(values, past->value[0]);
	past->count--;
	memmove(past->from, past->from + 1, past->count * sizeof(past->from[0]));
	memmove(past->value, past->value + 1, past->count * sizeof(past->value[0]));
}

enum esp_status store_values_set(struct store_values *values, uint32_t worker, uint32_t group, uint64_t from,
                                 const struct optimizer *optimizer)
{
	struct store_past *past = past_of(values, worker, group);
	uint32_t value = value_intern(values, group, optimizer);

	if (value == STORE_NO_VALUE)
		return ESP_ELIMIT;
	while (past->count > 0 && past->from[past->count - 1] >= from)
		store_values_release(values, past->value[--past->count]);
	if (past->count > 0 && past->value[past->count - 1] == value) {
		store_values_release(values, value);
		return ESP_OK;
	}
	if (past->count == STORE_VALUES_PAST)
		past_shift(values, past);
	past->from[past->count] = from;
	past->value[past->count++] = value;
	return ESP_OK;
}

uint32_t store_values_use(struct store_values *values, uint32_t worker, uint32_t group, uint64_t version)
{
	const struct store_past *past = past_of(values, worker, group);

	for (uint32_t i = past->count; i-- > 0;) {
		if (past->from[i] <= version) {
			values->values[past->value[i]].uses++;
			return past->value[i];
		}
	}
	return STORE_NO_VALUE;
}

uint64_t store_values_oldest(const struct store_values *values, uint32_t worker, uint32_t group)
{
	assert(past_of(values, worker, group)->count > 0);
	return past_of(values, worker, group)->from[0];
}
