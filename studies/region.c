#include "studies/region.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

static const char *const level_names[REGION_LEVELS] = {"region", "datacenter", "cluster", "row", "rack", "host"};

const char *region_level_name(enum region_level level)
{
	return level_names[level];
}

struct region_spec region_defaults(void)
{
	return (struct region_spec){
		.count = {[REGION_HOST] = 20},
		.host_rate = 10e9 / 8,
		.share = {[REGION_DATACENTER] = 2, [REGION_CLUSTER] = 1.5, [REGION_ROW] = 2, [REGION_RACK] = 4},
		.delay = {[REGION_DATACENTER] = 150e-6, [REGION_CLUSTER] = 5e-6, [REGION_ROW] = 2e-6, [REGION_RACK] = 1.5e-6,
		          [REGION_HOST] = 4e-6},
	};
}

static enum esp_status check_spec(const struct region_spec *spec, struct error *err)
{
	uint32_t above = 1;

	for (uint32_t level = REGION_DATACENTER; level <= REGION_RACK; level++) {
		if (spec->count[level] < above)
			return error_set(err, ESP_EINVAL, "%u %ss in %u %ss: each needs one", spec->count[level],
			                 level_names[level], above, level_names[level - 1]);
		if (spec->count[level] > 1u << 16)
			return error_set(err, ESP_ELIMIT, "%u %ss: there may be %u at most", spec->count[level], level_names[level],
			                 1u << 16);
		above = spec->count[level];
	}
	if (spec->machines < 2 || spec->machines > REGION_MACHINES_MOST)
		return error_set(err, ESP_EINVAL, "%u machines: from 2 to %u are placed", spec->machines, REGION_MACHINES_MOST);
	if (spec->count[REGION_HOST] == 0 || spec->count[REGION_HOST] > 1u << 12 ||
	    (uint64_t)above * spec->count[REGION_HOST] < spec->machines)
		return error_set(err, ESP_EINVAL, "%u racks of %u hosts have no room for %u machines", above,
		                 spec->count[REGION_HOST], spec->machines);
	return ESP_OK;
}

/* ---- places ---- */

/* The parent of number `number` of a level with `count` vertices: neighbours share it. */
static uint32_t parent_of(uint32_t number, uint32_t count, uint32_t above)
{
	return (uint32_t)((uint64_t)number * above / count);
}

/* How many vertices of a level with `count` have the parent `number`. */
static uint32_t children_of(uint32_t number, uint32_t count, uint32_t above)
{
	uint64_t first = ((uint64_t)number * count + above - 1) / above,
	    next = ((uint64_t)(number + 1) * count + above - 1) / above;

	return (uint32_t)(next - first);
}

static uint32_t count_of(const struct region_spec *spec, uint32_t level)
{
	return level == REGION_WHOLE ? 1 : spec->count[level];
}

/* The rate of a switch's uplink: the sum of all below it, with machines or not, divided by its share. */
static double uplink_rate(const struct region_spec *spec, uint32_t level, uint32_t number)
{
	double rate;

	if (level == REGION_RACK)
		return spec->host_rate * spec->count[REGION_HOST] / spec->share[level];
	uint32_t count = count_of(spec, level + 1), above = count_of(spec, level);
	uint32_t children = children_of(number, count, above),
	    first = (uint32_t)(((uint64_t)number * count + above - 1) / above);
	rate = 0;
	for (uint32_t i = 0; i < children; i++)
		rate += uplink_rate(spec, level + 1, first + i);
	return rate / spec->share[level];
}

static void shuffle(uint32_t *list, uint32_t count, struct rng *rng)
{
	for (uint32_t i = count; i > 1; i--) {
		uint32_t other = (uint32_t)rng_below(rng, i), kept = list[i - 1];

		list[i - 1] = list[other];
		list[other] = kept;
	}
}

/*
 * The racks of the machines, as a cloud allocates them; taken: by rack. When the allocation returns to a rack,
 * other tenants may have left it.
 */
static void allocate_packed(const struct region_spec *spec, struct rng *rng, uint32_t *order, uint32_t *taken,
                            uint32_t *out_rack)
{
	uint32_t racks = spec->count[REGION_RACK];

	assert(racks > 0);
	for (uint32_t i = 0; i < racks; i++)
		order[i] = i;
	shuffle(order, racks, rng);
	for (uint32_t given = 0, i = 0; given < spec->machines; i = (i + 1) % racks) {
		uint32_t room = spec->count[REGION_HOST] - taken[order[i]], most = room < REGION_FREE_MOST
		                ? room : REGION_FREE_MOST;
		uint32_t free_hosts = most > 0 ? 1 + (uint32_t)rng_below(rng, most) : 0;

		taken[order[i]] += free_hosts;
		for (uint32_t k = 0; k < free_hosts && given < spec->machines; k++)
			out_rack[given++] = order[i];
	}
}

static void allocate_spread(const struct region_spec *spec, struct rng *rng, uint32_t *taken, uint32_t *out_rack)
{
	for (uint32_t given = 0; given < spec->machines;) {
		uint32_t rack = (uint32_t)rng_below(rng, spec->count[REGION_RACK]);

		/* The probability that the drawn host is free. */
		if (rng_below(rng, spec->count[REGION_HOST]) < taken[rack])
			continue;
		taken[rack]++;
		out_rack[given++] = rack;
	}
}

/* ---- making ---- */

/* The switch of a level and number, made with all above it if it is new. index: by level and number, 0: none. */
static uint32_t switch_at(struct region *region, uint32_t *const index[REGION_HOST], uint32_t level, uint32_t number)
{
	const struct region_spec *spec = &region->spec;

	if (level == REGION_WHOLE)
		return 0;
	if (index[level][number] > 0)
		return index[level][number];
	uint32_t above = switch_at(region, index, level - 1,
	                           parent_of(number, spec->count[level], count_of(spec, level - 1)));
	region->switches[region->switch_count] = (struct region_switch){
		above, level, number, uplink_rate(spec, level, number), spec->delay[level]};
	return index[level][number] = region->switch_count++;
}

static void place_machine(struct region *region, uint32_t machine, uint32_t rack)
{
	uint32_t *place = region->truth.place + (size_t)machine * region->truth.levels;

	region->rack_of[machine] = rack;
	for (uint32_t at = rack; at != 0; at = region->switches[at].parent)
		place[region->switches[at].level] = region->switches[at].number;
	place[REGION_WHOLE] = 0;
}

static void make_region(struct region *region, uint64_t seed, uint32_t *const index[REGION_HOST], uint32_t *scratch,
                        uint32_t *rack)
{
	const struct region_spec *spec = &region->spec;
	struct rng rng;

	rng_init(&rng, seed);
	if (spec->allocation == REGION_PACKED)
		allocate_packed(spec, &rng, scratch, scratch + spec->count[REGION_RACK], rack);
	else
		allocate_spread(spec, &rng, scratch, rack);
	shuffle(rack, spec->machines, &rng);
	region->switch_count = 1; /* the root */
	for (uint32_t i = 0; i < spec->machines; i++)
		place_machine(region, i, switch_at(region, index, REGION_RACK, rack[i]));
}

enum esp_status region_init(struct region *region, const struct region_spec *spec, uint64_t seed, struct error *err)
{
	uint32_t *index[REGION_HOST] = {NULL}, *scratch = NULL, *rack = NULL;
	size_t switches_most = 1 + (size_t)spec->machines * REGION_RACK;
	enum esp_status status = check_spec(spec, err);

	*region = (struct region){0};
	if (status != ESP_OK)
		return status;
	region->spec = *spec;
	region->switches = calloc(switches_most, sizeof(*region->switches));
	region->rack_of = calloc(spec->machines, sizeof(*region->rack_of));
	region->truth = (struct racks){.nodes = spec->machines, .levels = REGION_HOST,
	                               .place = calloc((size_t)spec->machines * REGION_HOST, sizeof(uint32_t))};
	bool has_memory = region->switches && region->rack_of && region->truth.place;
	for (uint32_t level = REGION_DATACENTER; level <= REGION_RACK; level++)
		has_memory = (index[level] = calloc(spec->count[level], sizeof(**index))) && has_memory;
	scratch = calloc(2 * (size_t)spec->count[REGION_RACK], sizeof(*scratch));
	rack = calloc(spec->machines, sizeof(*rack));
	if (has_memory && scratch && rack)
		make_region(region, seed, index, scratch, rack);
	else
		status = error_set(err, ESP_ENOMEM, "no memory for a region of %u machines", spec->machines);
	for (uint32_t level = REGION_DATACENTER; level <= REGION_RACK; level++)
		free(index[level]);
	free(scratch);
	free(rack);
	if (status != ESP_OK)
		region_fini(region);
	return status;
}

void region_fini(struct region *region)
{
	free(region->switches);
	free(region->rack_of);
	racks_fini(&region->truth);
	*region = (struct region){0};
}

/* ---- reading ---- */

uint32_t region_held(const struct region *region, enum region_level level)
{
	uint32_t count = 0;

	if (level == REGION_HOST)
		return region->spec.machines;
	for (uint32_t i = 0; i < region->switch_count; i++)
		count += region->switches[i].level == level;
	return count;
}

enum esp_status region_grouping(const struct region *region, enum region_level level, struct grouping *out,
                                struct error *err)
{
	uint32_t machines = region->spec.machines;
	uint32_t *labels = calloc(machines, sizeof(*labels));

	if (!labels)
		return error_set(err, ESP_ENOMEM, "no memory for %u machines", machines);
	for (uint32_t i = 0; i < machines; i++)
		labels[i] = region->truth.place[(size_t)i * region->truth.levels + level];
	enum esp_status status = grouping_from(out, labels, machines, err);
	free(labels);
	return status;
}

uint32_t region_way(const struct region *region, uint32_t from, uint32_t to, uint32_t out_links[REGION_WAY_MOST])
{
	uint32_t up = region->rack_of[from], down = region->rack_of[to], count = 0, behind = REGION_WAY_MOST;

	/* Both ends are equally deep, as all racks are. */
	while (up != down) {
		out_links[count++] = 2 * up;
		out_links[--behind] = 2 * down + 1;
		up = region->switches[up].parent;
		down = region->switches[down].parent;
	}
	memmove(&out_links[count], &out_links[behind], count * sizeof(*out_links));
	return 2 * count;
}

double region_round_trip(const struct region *region, uint32_t a, uint32_t b)
{
	uint32_t links[REGION_WAY_MOST], count = region_way(region, a, b, links);
	double one_way = a == b ? 0 : 2 * region->spec.delay[REGION_HOST];

	for (uint32_t i = 0; i < count; i++)
		one_way += region->switches[links[i] / 2].delay;
	return 2 * one_way;
}

/* ---- as a topology ---- */

static const char *switch_name(const struct region *region, uint32_t number, char text[TOPOLOGY_NAME])
{
	const struct region_switch *it = &region->switches[number];

	if (it->level == REGION_WHOLE)
		snprintf(text, TOPOLOGY_NAME, "region");
	else
		snprintf(text, TOPOLOGY_NAME, "%s%u", it->level == REGION_DATACENTER ? "dc" : level_names[it->level],
		         it->number);
	return text;
}

static void write_link(FILE *file, const char *above, double rate, double delay)
{
	fprintf(file, " under %s rate %llubit", above, (unsigned long long)llround(rate * 8));
	if (delay > 0)
		fprintf(file, " delay %lluns", (unsigned long long)llround(delay * 1e9));
	putc('\n', file);
}

static void write_topology(const struct region *region, const double *host_share, const uint32_t *flows, FILE *file)
{
	char name[TOPOLOGY_NAME], above[TOPOLOGY_NAME];

	fputs("topology 1\nswitch region\n", file);
	for (uint32_t i = 1; i < region->switch_count; i++) {
		const struct region_switch *it = &region->switches[i];

		fprintf(file, "switch %s", switch_name(region, i, name));
		write_link(file, switch_name(region, it->parent, above), it->rate, it->delay);
	}
	for (uint32_t i = 0; i < region->spec.machines; i++) {
		fprintf(file, "host vm%02u", i);
		write_link(file, switch_name(region, region->rack_of[i], above),
		           region->spec.host_rate * (host_share ? host_share[i] : 1), region->spec.delay[REGION_HOST]);
	}
	for (uint32_t i = 2; flows && i < 2 * region->switch_count; i++) {
		const char *low = switch_name(region, i / 2, name),
		    *high = switch_name(region, region->switches[i / 2].parent, above);

		if (flows[i] > 0)
			fprintf(file, "from 0s %s > %s flows %u\n", i % 2 == 0 ? low : high, i % 2 == 0 ? high : low, flows[i]);
	}
}

enum esp_status region_topology(const struct region *region, const double *host_share, const uint32_t *flows,
                                struct topology **out, struct error *err)
{
	char *text = NULL;
	size_t length = 0;
	FILE *file = open_memstream(&text, &length);

	if (!file)
		return error_set(err, ESP_ENOMEM, "no memory for a topology");
	write_topology(region, host_share, flows, file);
	bool failed = ferror(file) != 0;
	failed = fclose(file) != 0 || failed;
	enum esp_status status = failed ? error_set(err, ESP_ENOMEM, "no memory for a topology")
	                                : topology_parse(text, length, out, err);
	free(text);
	return status;
}
