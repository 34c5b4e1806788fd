#include "tune/quick.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "plan/partition.h"

typedef unsigned __int128 wide;

/* Chunks that a node moves of one slot. */
struct share {
	uint64_t member, local, global;
};

static struct share share_of(const struct plan_masters *masters, uint32_t group, enum tune_count count)
{
	uint64_t size = masters->group_size[group], groups = masters->groups;

	if (count == TUNE_COUNT_MASTERS)
		return (struct share){0, size, size + groups};
	return (struct share){1, size, size + groups - 2};
}

uint64_t tune_quick_load(const struct plan_masters *masters, uint32_t worker, enum tune_count count)
{
	uint32_t group = masters->group_of[worker];
	struct share share = share_of(masters, group, count);
	uint64_t load = 0;

	for (uint32_t s = 0; s < masters->slots; s++) {
		if (plan_masters_local(masters, group, s) != worker)
			load += share.member;
		else
			load += masters->global_group[s] == group ? share.global : share.local;
	}
	return load;
}

/* Global masters to groups, in proportion to what their members carry to other groups together. */
static enum esp_status deal_global(struct plan_masters *masters, const uint64_t *cross, uint64_t *sizes,
                                   uint64_t *weights)
{
	memset(weights, 0, masters->groups * sizeof(*weights));
	for (uint32_t i = 0; i < masters->workers; i++)
		weights[masters->group_of[i]] += cross[i];
	for (uint32_t s = 0; s < masters->slots; s++)
		sizes[s] = 1;
	return plan_partition_lpt(sizes, masters->slots, weights, masters->groups, masters->global_group);
}

/* Which node would have moved (load + more) first? Ties go to the node with fewer bytes, then to the lower number. */
static uint32_t find_taker(const struct plan_masters *masters, uint32_t group, const uint64_t *rates,
                           const uint64_t *loads, uint64_t more)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < masters->workers; i++) {
		if (masters->group_of[i] != group)
			continue;
		if (best == UINT32_MAX) {
			best = i;
			continue;
		}
		wide mine = (wide)(loads[i] + more) * rates[best], theirs = (wide)(loads[best] + more) * rates[i];

		if (mine < theirs || (mine == theirs && loads[i] < loads[best]))
			best = i;
	}
	return best;
}

/*
 * The heavier ones first. Slots of one weight are dealt in their order, so that any first few of them are spread as
 * well.
 */
static void deal_locals(struct plan_masters *masters, uint32_t group, const uint64_t *rates, enum tune_count count,
                        uint64_t *loads)
{
	struct share share = share_of(masters, group, count);

	for (uint32_t i = 0; i < masters->workers; i++)
		loads[i] = share.member * masters->slots;
	for (int globals = 1; globals >= 0; globals--) {
		uint64_t more = (globals ? share.global : share.local) - share.member;

		for (uint32_t s = 0; s < masters->slots; s++) {
			if ((masters->global_group[s] == group) != (globals == 1))
				continue;
			uint32_t taker = find_taker(masters, group, rates, loads, more);

			masters->local_master[(uint64_t)group * masters->slots + s] = taker;
			loads[taker] += more;
		}
	}
}

enum esp_status tune_quick(struct plan_masters *masters, const uint64_t *rates, const uint64_t *cross,
                           enum tune_count count)
{
	uint32_t most = masters->slots > masters->workers ? masters->slots : masters->workers;
	uint64_t *loads, *weights;
	enum esp_status status = ESP_ENOMEM;

	for (uint32_t i = 0; i < masters->workers; i++) {
		if (rates[i] == 0 || (cross && cross[i] == 0))
			return ESP_EINVAL;
	}
	assert(most > 0);
	loads = calloc(most, sizeof(*loads));
	weights = calloc(masters->groups, sizeof(*weights));
	if (loads && weights)
		status = deal_global(masters, cross ? cross : rates, loads, weights);
	for (uint32_t g = 0; status == ESP_OK && g < masters->groups; g++)
		deal_locals(masters, g, rates, count, loads);
	free(loads);
	free(weights);
	return status;
}
