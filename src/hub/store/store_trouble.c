#include <assert.h>
#include <inttypes.h>

#include "hub/store/store_state.h"

enum esp_status store_blame(struct store_lane *lane, uint32_t worker, const struct error *err)
{
	assert(err->status < 0 && (worker < lane->config.workers || worker == UINT32_MAX));
	if (!lane->has_trouble) {
		lane->has_trouble = true;
		lane->trouble = (struct store_trouble){.status = err->status, .worker = worker, .why = *err};
	}
	return err->status;
}

void store_blame_left(struct store_lane *lane, uint32_t chunk)
{
	uint64_t lacking = lane->left & ~store_contributors(lane, lane->chunks[chunk].terms);
	uint32_t worker = (uint32_t)__builtin_ctzll(lacking), tensor = store_cut(lane, chunk)->tensor;
	struct error why;

	assert(lacking != 0 && lane->chunks[chunk].terms != 0);
	error_set(&why, ESP_EPEER, "worker %u has left, and round %" PRIu64 " of tensor %u waits for it", worker,
	          lane->chunks[chunk].version, tensor);
	store_blame(lane, worker, &why);
}

void store_blame_value(struct store_lane *lane, uint32_t chunk, uint32_t worker, uint32_t value)
{
	char own[OPTIMIZER_VALUE_TEXT], first[OPTIMIZER_VALUE_TEXT];
	uint32_t group = lane->config.layout->tensor[store_cut(lane, chunk)->tensor].group;
	struct error why;

	optimizer_print_difference(store_values_get(&lane->values, value),
	                           store_values_get(&lane->values, lane->chunks[chunk].value), own, first);
	error_set(&why, ESP_EMISMATCH,
	          "worker %u uses %s for parameter group %u where worker 0 uses %s", worker, own, group,
	          first);
	store_blame(lane, worker, &why);
}

bool store_lane_take_trouble(struct store_lane *lane, struct store_trouble *out)
{
	if (!lane->has_trouble || lane->was_told)
		return false;
	lane->was_told = true;
	*out = lane->trouble;
	return true;
}
