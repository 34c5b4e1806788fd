/*
 * Synthetic regions: the requested counts, at most one machine per host, paths that go up and down, uplinks
 * that add up, and the same region from the same seed.
 */
#include "studies/region.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

static struct region_spec spec_of(uint32_t datacenters, uint32_t clusters, uint32_t rows, uint32_t racks,
                                  uint32_t hosts, uint32_t machines, enum region_allocation allocation)
{
	struct region_spec spec = region_defaults();

	spec.count[REGION_DATACENTER] = datacenters;
	spec.count[REGION_CLUSTER] = clusters;
	spec.count[REGION_ROW] = rows;
	spec.count[REGION_RACK] = racks;
	spec.count[REGION_HOST] = hosts;
	spec.machines = machines;
	spec.allocation = allocation;
	return spec;
}

static void make(struct region *region, const struct region_spec *spec, uint64_t seed)
{
	struct error err = {0};

	CHECK_MSG(region_init(region, spec, seed, &err) == ESP_OK, "%s", err.text);
}

static bool is_near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b));
}

static uint32_t place_of(const struct region *region, uint32_t machine, enum region_level level)
{
	return region->truth.place[(size_t)machine * region->truth.levels + level];
}

static void check_places(const struct region *region)
{
	uint32_t taken[1 << 10] = {0};

	for (uint32_t i = 0; i < region->spec.machines; i++) {
		uint32_t at = region->rack_of[i];

		CHECK(region->switches[at].level == REGION_RACK);
		CHECK(place_of(region, i, REGION_RACK) < region->spec.count[REGION_RACK]);
		CHECK(++taken[place_of(region, i, REGION_RACK)] <= region->spec.count[REGION_HOST]);
		for (uint32_t level = REGION_RACK; level > REGION_WHOLE; level--, at = region->switches[at].parent) {
			CHECK_U64(region->switches[at].level, level);
			CHECK_U64(region->switches[at].number, place_of(region, i, (enum region_level)level));
			CHECK(region->switches[at].parent < at);
		}
		CHECK_U64(at, 0);
	}
}

/*
 * As many links up as down; a common prefix of k levels leaves out k switches on each side; the way back is
 * mirrored.
 */
static void check_way(const struct region *region, uint32_t a, uint32_t b)
{
	uint32_t there[REGION_WAY_MOST], back[REGION_WAY_MOST];
	uint32_t count = region_way(region, a, b, there), common = racks_common(&region->truth, a, b);

	CHECK_U64(count, 2 * (REGION_HOST - common));
	CHECK_U64(region_way(region, b, a, back), count);
	for (uint32_t i = 0; i < count; i++) {
		CHECK_U64(there[i] % 2, i >= count / 2);
		CHECK_U64(there[i] ^ 1, back[count - 1 - i]);
	}
	for (uint32_t i = 1; i < count / 2; i++)
		CHECK_U64(region->switches[there[i - 1] / 2].parent, there[i] / 2);
	CHECK(is_near(region_round_trip(region, a, b), region_round_trip(region, b, a)));
}

static void check_region(const struct region_spec *spec, uint64_t seed)
{
	struct region region, again;

	make(&region, spec, seed);
	make(&again, spec, seed);
	check_places(&region);
	for (uint32_t a = 0; a < spec->machines; a++) {
		CHECK_U64(region.rack_of[a], again.rack_of[a]);
		for (uint32_t b = 0; b < spec->machines; b += 3)
			check_way(&region, a, b);
	}
	for (unsigned level = REGION_DATACENTER; level <= REGION_RACK; level++)
		CHECK(region_held(&region, (enum region_level)level) <= spec->count[level]);
	region_fini(&region);
	region_fini(&again);
}

static void test_any(uint64_t seed)
{
	struct rng rng;

	rng_init(&rng, seed);
	for (int i = 0; i < 200; i++) {
		uint32_t datacenters = 1 + (uint32_t)rng_below(&rng, 3), clusters = datacenters + (uint32_t)rng_below(&rng, 5);
		uint32_t rows = clusters + (uint32_t)rng_below(&rng, 12), racks = rows + (uint32_t)rng_below(&rng, 40);
		uint32_t hosts = 1 + (uint32_t)rng_below(&rng, 20), room = racks * hosts < 100 ? racks * hosts : 100;
		const struct region_spec spec = spec_of(datacenters, clusters, rows, racks, hosts,
		                                        room < 2 ? 2 : 2 + (uint32_t)rng_below(&rng, room - 1),
		                                        rng_chance(&rng, 1, 2) ? REGION_PACKED : REGION_SPREAD);

		if (spec.machines <= racks * hosts)
			check_region(&spec, rng_next(&rng));
	}
}

/* Delays of a round trip by level, as documented in docs/discovery-sim.md. */
static void test_round_trips(void)
{
	const struct region_spec spec = spec_of(2, 4, 8, 16, 4, 64, REGION_SPREAD); /* every host is used */
	const double expected[REGION_HOST + 1] = {[1] = 650e-6, [2] = 50e-6, [3] = 30e-6, [4] = 22e-6, [5] = 16e-6};
	struct region region;
	uint32_t seen = 0;

	make(&region, &spec, 1);
	for (uint32_t i = 1; i < 64; i++) {
		uint32_t common = racks_common(&region.truth, 0, i);

		CHECK_MSG(is_near(region_round_trip(&region, 0, i), expected[common]), "%u levels in common: %g s", common,
		          region_round_trip(&region, 0, i));
		seen |= 1u << common;
	}
	CHECK_U64(seen, 0x3e);
	region_fini(&region);
}

/*
 * 16 racks of 4 hosts: uplinks of a rack 1 host rate, a row 2 racks / 2, a cluster 2 rows / 1.5, a datacenter 2
 * clusters / 2.
 */
static void test_uplinks(void)
{
	const struct region_spec spec = spec_of(2, 4, 8, 16, 4, 20, REGION_SPREAD);
	const double rates[REGION_LEVELS] = {[REGION_RACK] = 1, [REGION_ROW] = 1, [REGION_CLUSTER] = 2 / 1.5,
	                                     [REGION_DATACENTER] = 2 / 1.5};
	struct region region;

	make(&region, &spec, 7);
	for (uint32_t i = 1; i < region.switch_count; i++)
		CHECK(is_near(region.switches[i].rate, rates[region.switches[i].level] * spec.host_rate));
	region_fini(&region);
}

static void test_topology(void)
{
	const struct region_spec spec = spec_of(2, 7, 15, 100, 20, 64, REGION_SPREAD);
	struct region region;
	struct topology *topology;
	struct error err = {0};
	uint32_t flows[2 * (1 + 64 * 4)] = {0}, links[TOPOLOGY_HOPS_MAX];
	double share[64];

	make(&region, &spec, 3);
	for (uint32_t i = 0; i < 64; i++)
		share[i] = i == 5 ? 0.5 : 1;
	flows[2 * region.rack_of[9]] = 4;
	flows[2 * region.rack_of[9] + 1] = 3;
	CHECK_MSG(region_topology(&region, share, flows, &topology, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(topology->host_count, 64);
	CHECK_U64(topology->vertex_count, 64 + region.switch_count);
	CHECK_U64(topology->background_count, 2);
	CHECK_U64(topology->backgrounds[0].flows, 4);
	CHECK_U64(topology->backgrounds[1].flows, 3);
	CHECK_U64(topology->backgrounds[0].source, topology_rack(topology, topology->hosts[9]));
	CHECK_U64(topology->backgrounds[1].target, topology_rack(topology, topology->hosts[9]));
	for (uint32_t i = 1; i < 64; i++) {
		uint32_t count = topology_path(topology, topology->hosts[0], topology->hosts[i], 0, links);

		CHECK(is_near(2 * topology_delay(topology, links, count), region_round_trip(&region, 0, i)));
		CHECK(is_near(topology->links[links[count - 1]].rate, spec.host_rate * share[i]));
	}
	topology_close(topology);
	region_fini(&region);
}

static void test_grouping(void)
{
	const struct region_spec spec = spec_of(1, 2, 4, 40, 20, 64, REGION_PACKED);
	struct region region;
	struct grouping racks, rows;
	struct error err = {0};

	make(&region, &spec, 5);
	CHECK(region_grouping(&region, REGION_RACK, &racks, &err) == ESP_OK &&
	      region_grouping(&region, REGION_ROW, &rows, &err) == ESP_OK);
	CHECK_U64(racks.count, region_held(&region, REGION_RACK));
	CHECK_U64(rows.count, region_held(&region, REGION_ROW));
	for (uint32_t a = 0; a < 64; a++) {
		for (uint32_t b = 0; b < a; b++)
			CHECK_U64(racks.group_of[a] == racks.group_of[b], region.rack_of[a] == region.rack_of[b]);
	}
	/* Packed machines are in few racks of unequal sizes, and their numbers tell nothing about their racks. */
	CHECK(racks.count <= 25 && racks.count >= 6);
	grouping_fini(&racks);
	grouping_fini(&rows);
	region_fini(&region);
}

static void test_refused(void)
{
	const struct region_spec wrong[] = {
		spec_of(2, 1, 4, 8, 4, 8, REGION_SPREAD),      /* a datacenter without a cluster */
		spec_of(0, 1, 4, 8, 4, 8, REGION_SPREAD),
		spec_of(1, 1, 1, 2, 4, 9, REGION_SPREAD),      /* no room */
		spec_of(1, 1, 1, 2, 4, 1, REGION_SPREAD),      /* a single machine */
		spec_of(1, 1, 1, 2, 0, 2, REGION_SPREAD),
		spec_of(1, 1, 1, 1 << 20, 4, 8, REGION_SPREAD),
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct region region;
		struct error err = {0};

		CHECK_MSG(region_init(&region, &wrong[i], 1, &err) != ESP_OK && err.text[0], "case %zu was taken", i);
		region_fini(&region);
	}
}

int main(int argc, char **argv)
{
	test_any(test_seed(argc, argv, 1));
	test_round_trips();
	test_uplinks();
	test_topology();
	test_grouping();
	test_refused();
	return 0;
}
