/*
 * From readings to plans: unambiguous groups are found; times match the links; every balanced grouping is tried
 * once; speed and best on small cases, the same each time.
 */
#include "studies/discover_find.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "network/discover/quality.h"
#include "studies/discover_best.h"
#include "studies/discover_speed.h"

/* Racks of four hosts, all used. */
static struct region_spec racks_of_four(uint32_t racks)
{
	struct region_spec spec = region_defaults();

	for (unsigned level = REGION_DATACENTER; level < REGION_RACK; level++)
		spec.count[level] = 1;
	spec.count[REGION_RACK] = racks;
	spec.count[REGION_HOST] = 4;
	spec.machines = 4 * racks;
	spec.allocation = REGION_SPREAD;
	return spec;
}

static void test_found(void)
{
	const struct region_spec spec = racks_of_four(4);
	const struct find_config config = {.noise = READING_QUIET, .bytes = 100000000};
	struct discover_case made;
	struct discovered found;
	struct grouping racks;
	struct error err = {0};

	for (uint64_t seed = 1; seed <= 3; seed++) {
		CHECK(discover_open(&made, &spec, seed, seed, &err) == ESP_OK);
		CHECK_MSG(find_groups(&made, &config, seed, &found, &err) == ESP_OK, "%s", err.text);
		CHECK(region_grouping(&made.region, REGION_RACK, &racks, &err) == ESP_OK);
		CHECK_MSG(grouping_equal(&found.root, &racks), "seed %llu: adjusted mutual information %g",
		          (unsigned long long)seed, discover_quality_ami(&found.root, &racks));
		CHECK_U64(found.chosen.nodes, 16);
		grouping_fini(&racks);
		discovered_fini(&found);
		discover_close(&made);
	}
	discovered_fini(&(struct discovered){0});
}

/*
 * Uplinks with one host's rate: two-level by racks is bound by hosts or uplinks, flat by the traffic between
 * racks; both bounds hold, and are nearly reached.
 */
static void test_seconds(void)
{
	const struct region_spec spec = racks_of_four(2);
	const uint64_t bytes = 8 << 20;
	const struct once_load load = {bytes, 64 << 10};
	struct discover_case made;
	struct topology *topology;
	struct grouping racks;
	struct error err = {0};
	double flat, by_racks;

	CHECK(discover_open(&made, &spec, 1, 1, &err) == ESP_OK);
	CHECK(region_topology(&made.region, NULL, NULL, &topology, &err) == ESP_OK);
	CHECK(region_grouping(&made.region, REGION_RACK, &racks, &err) == ESP_OK);
	CHECK(find_seconds(topology, NULL, &load, &flat, &err) == ESP_OK);
	CHECK(find_seconds(topology, racks.group_of, &load, &by_racks, &err) == ESP_OK);
	/*
	 * Flat: each host sums an eighth of the buffer, half of its peers are in the other rack. 4 hosts x 4 peers
	 * x S/8, both ways.
	 */
	double crossing = 4 * 4 * (double)bytes / 8 * 2 / spec.host_rate;
	CHECK_MSG(flat >= crossing * 0.999 && flat < crossing * 1.1, "flat takes %g s, at least %g", flat, crossing);
	/*
	 * Two-level: a rack sends its sum of one half and the total of the other: S. Hosts send 7/4 S and more: the
	 * hosts bind.
	 */
	CHECK_MSG(by_racks >= 1.5 * (double)bytes / spec.host_rate && by_racks < flat / 1.5,
	          "by racks it takes %g s, flat %g", by_racks, flat);
	grouping_fini(&racks);
	topology_close(topology);
	discover_close(&made);
}

/* ---- all balanced groupings ---- */

struct tally {
	uint32_t nodes, groups, count;
	uint32_t seen[20000][BEST_MACHINES_MOST];
};

static enum esp_status count_one(void *user, const uint32_t *group_of)
{
	struct tally *tally = user;
	uint32_t size[BEST_MACHINES_MOST] = {0}, first = 0;

	for (uint32_t i = 0; i < tally->nodes; i++) {
		CHECK(group_of[i] <= first && group_of[i] < tally->groups); /* numbered in the order of their first members */
		first += group_of[i] == first;
		size[group_of[i]]++;
	}
	CHECK_U64(first, tally->groups);
	for (uint32_t i = 0; i < tally->groups; i++)
		CHECK(size[i] >= tally->nodes / tally->groups && size[i] <= tally->nodes / tally->groups + 1);
	memcpy(tally->seen[tally->count++], group_of, tally->nodes * sizeof(*group_of));
	return ESP_OK;
}

static enum esp_status stop(void *user, const uint32_t *group_of)
{
	(void)user, (void)group_of;
	return ESP_ELIMIT;
}

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(uint32_t) * BEST_MACHINES_MOST);
}

static void test_each(void)
{
	/* nodes!, divided by the orders within groups and among groups of one size. */
	static const struct { uint32_t nodes, groups, count; } known[] = {
		{4, 2, 3}, {8, 2, 35}, {8, 3, 280}, {8, 4, 105}, {8, 5, 420}, {8, 6, 210}, {8, 7, 28}, {8, 8, 1}, {8, 1, 1},
		    {9, 3, 280}, {10, 4, 6300}, {7, 3, 105}};
	static struct tally tally;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		memset(&tally, 0, sizeof tally);
		tally.nodes = known[i].nodes;
		tally.groups = known[i].groups;
		CHECK(best_each(known[i].nodes, known[i].groups, count_one, &tally) == ESP_OK);
		CHECK_U64(tally.count, known[i].count);
		qsort(tally.seen, tally.count, sizeof(tally.seen[0]), by_bytes);
		for (uint32_t k = 1; k < tally.count; k++)
			CHECK(by_bytes(tally.seen[k - 1], tally.seen[k]) != 0);
	}
	CHECK(best_each(8, 2, stop, NULL) == ESP_ELIMIT);
	CHECK(best_each(0, 1, count_one, &tally) == ESP_EINVAL &&
	      best_each(BEST_MACHINES_MOST + 1, 2, count_one, &tally) == ESP_EINVAL);
	CHECK(best_each(4, 5, count_one, &tally) == ESP_EINVAL && best_each(4, 0, count_one, &tally) == ESP_EINVAL);
}

static void test_best(void)
{
	struct best_config config = {.spec = racks_of_four(2), .find = {.noise = READING_QUIET, .bytes = 4 << 20},
	                             .load = {4 << 20, 128 << 10}, .seed = 4};
	struct best_result result = {0}, again = {0};
	struct error err = {0};

	config.spec.machines = 6; /* of eight hosts */
	CHECK_MSG(best_run(&config, &result, &err) == ESP_OK, "%s", err.text);
	CHECK(best_run(&config, &again, &err) == ESP_OK && test_same_bits(&result, &again, sizeof result));
	CHECK_U64(result.groupings, 1 + 10 + 15 + 45 + 15); /* flat; 2, 3, 4, 5 groups */
	CHECK(result.best <= result.flat && result.best <= result.median && result.median <= result.worst);
	CHECK(result.beaten >= 0 && result.beaten <= 1 && result.chosen > 0 && result.root > 0 && result.truth > 0);
	config.spec.machines = BEST_MACHINES_MOST + 1;
	CHECK(best_run(&config, &result, &err) == ESP_EINVAL);
}

/* ---- speed ---- */

static void test_percentiles(void)
{
	const double values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

	CHECK(speed_percentile(values, 10, 50) == 5 && speed_percentile(values, 10, 95) == 10 &&
	      speed_percentile(values, 10, 0) == 1);
	CHECK(speed_percentile(values, 10, 90) == 9 && speed_percentile(values, 1, 95) == 1);
}

static void test_speed(void)
{
	struct speed_config config = {.spec = racks_of_four(3), .find = {.noise = READING_QUIET, .bytes = 4 << 20},
	                              .load = {4 << 20, 128 << 10}, .seed = 1, .runs = 3};
	struct speed_result result, again;
	struct error err = {0};

	CHECK_MSG(speed_run(&config, &result, &err) == ESP_OK, "%s", err.text);
	CHECK(speed_run(&config, &again, &err) == ESP_OK &&
	      test_same_bits(result.seconds, again.seconds, sizeof(double) * 3 * SPEED_WAYS));
	/* Several at a time: the same bits. */
	config.at_once = 3;
	speed_fini(&again);
	CHECK(speed_run(&config, &again, &err) == ESP_OK &&
	      test_same_bits(result.seconds, again.seconds, sizeof(double) * 3 * SPEED_WAYS));
	CHECK(test_same_bits(result.groups, again.groups, sizeof(result.groups)) &&
	      test_same_bits(result.summary, again.summary, sizeof(result.summary)));
	CHECK(result.groups[SPEED_TRUTH] == 3 && result.ami[SPEED_TRUTH] == 1 && isnan(result.ami[SPEED_FLAT]));
	CHECK(result.groups[SPEED_ROOT] == 3 && result.ami[SPEED_ROOT] > result.ami[SPEED_RANDOM]);
	CHECK(result.summary[SPEED_ROOT].mean < result.summary[SPEED_RANDOM].mean);
	for (unsigned way = 0; way < SPEED_WAYS; way++) {
		const struct speed_summary *it = &result.summary[way];

		CHECK(it->least > 0 && it->least <= it->p50 && it->p50 <= it->p95 && it->p95 <= it->most &&
		      it->mean >= it->least && it->mean <= it->most);
	}
	/* New traffic each run. */
	CHECK(result.seconds[0] != result.seconds[1]);
	speed_fini(&result);
	speed_fini(&again);
}

int main(void)
{
	test_found();
	test_seconds();
	test_each();
	test_best();
	test_percentiles();
	test_speed();
	return 0;
}
