#include "plan/masters.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "plan/partition.h"

#define SLOTS_PER_MEMBER 16u /* of the largest group: moving one changes what a node moves by 3 % or so */
#define ROUND_MOST 1024u     /* slots after which all have had equally many: more are not worth it */

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	assert(a > 0);
	return a;
}

static enum esp_status count_members(struct plan_masters *masters, struct error *err)
{
	for (uint32_t i = 0; i < masters->workers; i++)
		masters->group_size[masters->group_of[i]]++;
	for (uint32_t g = 0; g < masters->groups; g++) {
		if (masters->group_size[g] == 0)
			return error_set(err, ESP_EINVAL, "group %u of %u has no node", g, masters->groups);
	}
	return ESP_OK;
}

static uint32_t count_groups(const uint32_t *group_of, uint32_t workers)
{
	uint32_t groups = 0;

	for (uint32_t i = 0; i < workers; i++)
		groups = group_of[i] >= groups ? group_of[i] + 1 : groups;
	return groups;
}

/* With the sizes of the groups. */
static uint32_t suit_slots(const uint32_t *sizes, uint32_t groups, uint32_t workers)
{
	uint64_t round = workers, largest = 1;

	for (uint32_t g = 0; g < groups; g++) {
		uint64_t size = sizes[g] ? sizes[g] : 1, longer = round / greatest_divisor(round, size) * size;

		round = longer <= ROUND_MOST ? longer : round;
		largest = size > largest ? size : largest;
	}
	assert(round > 0); /* there are workers */
	uint64_t wanted = SLOTS_PER_MEMBER * largest, slots = (wanted + round - 1) / round * round;
	return slots <= PLAN_SLOTS_MAX ? (uint32_t)slots : PLAN_SLOTS_MAX;
}

uint32_t plan_masters_slots(const uint32_t *group_of, uint32_t workers)
{
	uint32_t groups = count_groups(group_of, workers), slots = 0;
	uint32_t *sizes = groups > 0 && groups <= workers ? calloc(groups, sizeof(*sizes)) : NULL;

	for (uint32_t i = 0; sizes && i < workers; i++)
		sizes[group_of[i]]++;
	if (sizes)
		slots = suit_slots(sizes, groups, workers);
	free(sizes);
	return slots;
}

static bool allocate(struct plan_masters *masters)
{
	uint64_t locals = (uint64_t)masters->groups * masters->slots;

	masters->global_group = calloc(masters->slots, sizeof(*masters->global_group));
	masters->local_master = calloc(locals, sizeof(*masters->local_master));
	masters->group_of = calloc(masters->workers, sizeof(*masters->group_of));
	masters->group_size = calloc(masters->groups, sizeof(*masters->group_size));
	return masters->global_group && masters->local_master && masters->group_of && masters->group_size;
}

/*
 * In a group, slots weigh what their masters move; and a little more where an update is run, so that these are even
 * too.
 */
static enum esp_status deal_locals(struct plan_masters *masters, uint32_t group, const uint32_t *members,
                                   uint64_t *sizes)
{
	uint32_t *local = &masters->local_master[(uint64_t)group * masters->slots], size = masters->group_size[group];

	for (uint32_t s = 0; s < masters->slots; s++) {
		bool is_global = masters->global_group[s] == group;

		sizes[s] = 8 * (uint64_t)(is_global ? size + masters->groups - 2 : size) + is_global;
	}
	enum esp_status status = plan_partition_lpt(sizes, masters->slots, NULL, size, local);
	for (uint32_t s = 0; status == ESP_OK && s < masters->slots; s++)
		local[s] = members[local[s]];
	return status;
}

static enum esp_status deal(struct plan_masters *masters)
{
	uint64_t *sizes = calloc(masters->slots > masters->groups ? masters->slots : masters->groups, sizeof(*sizes));
	uint64_t *weights = calloc(masters->groups, sizeof(*weights));
	uint32_t *members = calloc(masters->workers, sizeof(*members));
	enum esp_status status = sizes && weights && members ? ESP_OK : ESP_ENOMEM;

	if (status == ESP_OK) {
		for (uint32_t g = 0; g < masters->groups; g++)
			weights[g] = masters->group_size[g];
		for (uint32_t s = 0; s < masters->slots; s++)
			sizes[s] = 1;
		status = plan_partition_lpt(sizes, masters->slots, weights, masters->groups, masters->global_group);
	}
	for (uint32_t g = 0; status == ESP_OK && g < masters->groups; g++) {
		uint32_t count = 0;

		for (uint32_t i = 0; i < masters->workers; i++) {
			if (masters->group_of[i] == g)
				members[count++] = i;
		}
		status = deal_locals(masters, g, members, sizes);
	}
	free(sizes);
	free(weights);
	free(members);
	return status;
}

enum esp_status plan_masters_init(struct plan_masters *masters, const uint32_t *group_of, uint32_t workers,
                                  uint32_t slots, struct error *err)
{
	struct plan_masters made = {.workers = workers, .groups = count_groups(group_of, workers)};

	if (workers == 0 || made.groups > workers)
		return error_set(err, ESP_EINVAL, "%u groups of %u nodes: groups are numbered from 0 without gaps", made.groups,
		                 workers);
	made.slots = slots ? slots : plan_masters_slots(group_of, workers);
	if (slots > PLAN_SLOTS_MAX)
		return error_set(err, ESP_EINVAL, "%u slots: there are at most %u", slots, PLAN_SLOTS_MAX);
	enum esp_status status = made.slots > 0 && allocate(&made) ? ESP_OK : ESP_ENOMEM;
	if (status == ESP_OK) {
		memcpy(made.group_of, group_of, workers * sizeof(*group_of));
		status = count_members(&made, err);
		if (status == ESP_OK)
			status = deal(&made);
	}
	if (status != ESP_OK) {
		plan_masters_fini(&made);
		return status == ESP_ENOMEM ? error_set(err, status, "no memory for masters of %u nodes", workers) : status;
	}
	*masters = made;
	return ESP_OK;
}

enum esp_status plan_masters_copy(struct plan_masters *to, const struct plan_masters *from)
{
	struct plan_masters copy = {.slots = from->slots, .groups = from->groups, .workers = from->workers};

	if (!allocate(&copy)) {
		plan_masters_fini(&copy);
		return ESP_ENOMEM;
	}
	memcpy(copy.global_group, from->global_group, from->slots * sizeof(*from->global_group));
	memcpy(copy.local_master, from->local_master, (size_t)from->slots * from->groups * sizeof(*from->local_master));
	memcpy(copy.group_of, from->group_of, from->workers * sizeof(*from->group_of));
	memcpy(copy.group_size, from->group_size, from->groups * sizeof(*from->group_size));
	plan_masters_fini(to);
	*to = copy;
	return ESP_OK;
}

void plan_masters_fini(struct plan_masters *masters)
{
	free(masters->global_group);
	free(masters->local_master);
	free(masters->group_of);
	free(masters->group_size);
	*masters = (struct plan_masters){0};
}

bool plan_masters_fit(const struct plan_masters *masters, const uint32_t *group_of, uint32_t workers, uint32_t groups)
{
	if (masters->slots == 0 || masters->groups != groups || masters->workers != workers)
		return false;
	for (uint32_t s = 0; s < masters->slots; s++) {
		if (masters->global_group[s] >= groups)
			return false;
		for (uint32_t g = 0; g < groups; g++) {
			uint32_t local = plan_masters_local(masters, g, s);

			if (local >= workers || group_of[local] != g)
				return false;
		}
	}
	return true;
}

bool plan_masters_are_of(const struct plan_masters *masters, const uint32_t *group_of, uint32_t workers)
{
	return masters->workers == workers && memcmp(masters->group_of, group_of, workers * sizeof(*group_of)) == 0;
}

bool plan_masters_same(const struct plan_masters *a, const struct plan_masters *b)
{
	return a->slots == b->slots && a->groups == b->groups && a->workers == b->workers &&
	       memcmp(a->global_group, b->global_group, a->slots * sizeof(*a->global_group)) == 0 &&
	       memcmp(a->local_master, b->local_master, (size_t)a->slots * a->groups * sizeof(*a->local_master)) == 0;
}

uint64_t plan_masters_load(const struct plan_masters *masters, uint32_t worker)
{
	uint32_t group = masters->group_of[worker];
	uint64_t size = masters->group_size[group], load = 0;

	for (uint32_t s = 0; s < masters->slots; s++) {
		if (plan_masters_local(masters, group, s) != worker)
			load += 1;
		else if (masters->global_group[s] == group)
			load += size + masters->groups - 2;
		else
			load += size;
	}
	return load;
}
