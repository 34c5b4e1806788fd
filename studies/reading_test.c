/*
 * Readings: every pair meets once, no machine is in two pairs of a round; without noise latency is the sum of
 * the delays; noise only adds, more at higher levels; bandwidth is the max-min share, at most a host's rate;
 * the same from the same seed.
 */
#include "studies/reading.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "network/discover/quality.h"
#include "studies/discover.h"

static void test_tournament(void)
{
	for (uint32_t machines = 2; machines < 40; machines++) {
		uint8_t met[40][40] = {{0}};

		for (uint32_t round = 0; round < reading_rounds(machines); round++) {
			bool busy[41] = {false};

			for (uint32_t pair = 0; pair < reading_pairs(machines); pair++) {
				uint32_t a, b;

				if (!reading_pair(machines, round, pair, &a, &b))
					continue;
				CHECK(a != b && !busy[a] && !busy[b]);
				busy[a] = busy[b] = true;
				met[a][b]++, met[b][a]++;
			}
		}
		for (uint32_t a = 0; a < machines; a++) {
			for (uint32_t b = 0; b < machines; b++)
				CHECK_U64(met[a][b], a != b);
		}
	}
}

struct fixture {
	struct discover_case made;
	struct matrix read;
};

static void take(struct fixture *it, const char *setting, enum reading_noise noise, double level, uint64_t seed)
{
	const struct region_spec spec = discover_spec(discover_setting_find(setting));
	struct error err = {0};

	CHECK_MSG(discover_open(&it->made, &spec, seed, seed, &err) == ESP_OK, "%s", err.text);
	CHECK(reading_latency(&it->made.region, &it->made.crowd, noise, level, seed, &it->read, &err) == ESP_OK);
	CHECK_MSG(matrix_check(&it->read, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(matrix_known(&it->read), (uint64_t)spec.machines * (spec.machines - 1) / 2);
}

static void release(struct fixture *it)
{
	matrix_fini(&it->read);
	discover_close(&it->made);
}

static void test_quiet(void)
{
	static const enum reading_noise noises[] = {READING_QUIET, READING_CLOUD, READING_OUTLIERS};

	for (size_t n = 0; n < 3; n++) {
		struct fixture it;

		take(&it, "datacenter", noises[n], n == 0 ? 5 : 0, 3); /* QUIET ignores the level */
		for (uint32_t a = 0; a < 64; a++) {
			for (uint32_t b = 0; b < a; b++)
				CHECK(matrix_get(&it.read, a, b) == region_round_trip(&it.made.region, a, b));
		}
		CHECK(discover_quality_paia(&it.read, &it.made.region.truth, NULL) == 1);
		release(&it);
	}
}

static void test_noise(void)
{
	for (unsigned noise = 0; noise < READING_NOISES; noise++) {
		double paia[3];

		if (noise == READING_QUIET)
			continue;
		for (int i = 0; i < 3; i++) {
			struct fixture it, again;
			const double level = i == 0 ? 0.01 : i == 1 ? 2 : 8;

			take(&it, "datacenter", (enum reading_noise)noise, level, 9);
			take(&again, "datacenter", (enum reading_noise)noise, level, 9);
			CHECK(test_same_bits(it.read.at, again.read.at, sizeof(double) * 64 * 64));
			for (uint32_t a = 0; a < 64; a++) {
				for (uint32_t b = 0; b < a; b++)
					CHECK(matrix_get(&it.read, a, b) >= region_round_trip(&it.made.region, a, b));
			}
			paia[i] = discover_quality_paia(&it.read, &it.made.region.truth, NULL);
			release(&it);
			release(&again);
		}
		CHECK_MSG(paia[0] > paia[1] && paia[1] > paia[2], "%s: %g, %g, %g",
		          reading_noise_name((enum reading_noise)noise), paia[0], paia[1], paia[2]);
		CHECK_MSG(paia[2] > 0.4, "%s is worse than guessing: %g", reading_noise_name((enum reading_noise)noise),
		          paia[2]);
	}
	CHECK(reading_noise_name(READING_NOISES) == NULL);
}

/* Start-up costs are fixed for the run: a triple of readings without them is the sum of the delays. */
static void test_startup(void)
{
	struct fixture it;

	take(&it, "datacenter", READING_STARTUP, 3, 4);
	for (uint32_t a = 2; a < 64; a++) {
		double mine = matrix_get(&it.read, 0, a) - region_round_trip(&it.made.region, 0, a);
		double other = matrix_get(&it.read, 1, a) - region_round_trip(&it.made.region, 1, a);
		double both = matrix_get(&it.read, 0, 1) - region_round_trip(&it.made.region, 0, 1);

		CHECK(mine > 0 && other > 0 && both > 0);
		if (a > 2) {
			double before = matrix_get(&it.read, 0, a - 1) - region_round_trip(&it.made.region, 0, a - 1);
			double before_other = matrix_get(&it.read, 1, a - 1) - region_round_trip(&it.made.region, 1, a - 1);

			CHECK(fabs((mine - other) - (before - before_other)) < 1e-12);
		}
	}
	release(&it);
}

/*
 * The uplink of a hot rack is hot in every round: a pair reads 4 us for each of its ends in one, unless they
 * share it.
 */
static void test_hot(void)
{
	struct fixture it;
	const double each = 3 * 4e-6;
	uint32_t ends[3] = {0};

	take(&it, "datacenter", READING_HOT, 3, 4);
	for (uint32_t a = 0; a < 64; a++) {
		for (uint32_t b = 0; b < a; b++) {
			double hot = (matrix_get(&it.read, a, b) - region_round_trip(&it.made.region, a, b)) / each;
			uint32_t count = (uint32_t)lround(hot);

			CHECK_MSG(fabs(hot - count) < 1e-6 && count <= 2, "%g hot ends", hot);
			CHECK(count == 0 || it.made.region.rack_of[a] != it.made.region.rack_of[b]);
			ends[count]++;
		}
	}
	CHECK(ends[0] > 0 && ends[1] > 0 && ends[2] > 0);
	release(&it);
}

static void test_bandwidth(void)
{
	const struct region_spec spec = discover_spec(discover_setting_find("job"));
	struct discover_case made;
	struct matrix read, again;
	struct error err = {0};
	double fastest = 0, slowest = INFINITY;

	CHECK(discover_open(&made, &spec, 2, 2, &err) == ESP_OK);
	CHECK(reading_bandwidth(&made.region, &made.crowd, 2, &read, &err) == ESP_OK);
	CHECK(reading_bandwidth(&made.region, &made.crowd, 2, &again, &err) == ESP_OK);
	CHECK(test_same_bits(read.at, again.at, sizeof(double) * 64 * 64));
	CHECK_MSG(matrix_check(&read, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(matrix_known(&read), 64 * 63 / 2);
	for (uint32_t a = 0; a < 64; a++) {
		for (uint32_t b = 0; b < a; b++) {
			double rate = 1 / matrix_get(&read, a, b);

			CHECK(rate < spec.host_rate * exp(0.15 * 6)); /* six standard deviations of the measurement */
			fastest = rate > fastest ? rate : fastest;
			slowest = rate < slowest ? rate : slowest;
		}
	}
	CHECK(fastest > 2 * slowest); /* figure 2 */
	matrix_fini(&read);
	matrix_fini(&again);
	discover_close(&made);
}

/* In one rack without other traffic, every pair has its hosts' whole links, in the last round as in the first. */
static void test_undisturbed(void)
{
	struct region_spec spec = discover_spec(discover_setting_find("corner"));
	struct discover_case made;
	struct matrix read;
	struct error err = {0};
	uint32_t far = 0;

	spec.count[REGION_RACK] = 1;
	spec.count[REGION_HOST] = spec.machines = 16;
	CHECK(discover_open(&made, &spec, 1, 1, &err) == ESP_OK);
	crowd_clear_hosts(&made.crowd);
	CHECK(reading_bandwidth(&made.region, &made.crowd, 1, &read, &err) == ESP_OK);
	for (uint32_t a = 0; a < 16; a++) {
		for (uint32_t b = 0; b < a; b++)
			/* three standard deviations of the measurement */
			far += fabs(log(matrix_get(&read, a, b) * spec.host_rate)) > 0.45;
	}
	CHECK_MSG(far <= 6, "%u of 120 readings are off", far); /* one in fifty has an outlier in one of its directions */
	matrix_fini(&read);
	discover_close(&made);
}

int main(void)
{
	test_tournament();
	test_quiet();
	test_noise();
	test_startup();
	test_hot();
	test_bandwidth();
	test_undisturbed();
	return 0;
}
