/*
 * Settings and calibration: the settings have the paper's numbers, calibration reaches its target with raw
 * readings only and is the same each time; accuracy and agreement on small cases with known results.
 */
#include "studies/discover.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "studies/discover_accuracy.h"
#include "studies/discover_agreement.h"

static struct region_spec spec_of(const char *setting)
{
	return discover_spec(discover_setting_find(setting));
}

static void test_settings(void)
{
	struct error err = {0};

	for (size_t i = 0; discover_setting_at(i); i++) {
		const struct region_spec spec = discover_spec(discover_setting_at(i));
		struct discover_case made;

		CHECK(discover_setting_find(discover_setting_at(i)->name) == discover_setting_at(i));
		CHECK_MSG(discover_open(&made, &spec, 1, 2, &err) == ESP_OK, "%s", err.text);
		discover_close(&made);
	}
	CHECK(discover_setting_find("nowhere") == NULL);
	CHECK_U64(discover_root(64), 8);
	CHECK_U64(discover_root(8), 3);
	CHECK_U64(discover_root(1), 1);
	discover_close(&(struct discover_case){0});
}

/*
 * Section 5.5: 64 machines in 2 datacenters, 7 clusters, 15 rows, 61 racks; 75.2 thousand triplets in one
 * datacenter.
 */
static void test_shape(void)
{
	const struct accuracy_config region = {.spec = spec_of("region"), .noise = READING_QUIET,
	                                       .embed = {.dimensions = 2, .restarts = 1, .steps = 1}, .seed = 1,
	                                       .count = 20};
	struct accuracy_config datacenter = region;
	struct accuracy_result result;
	struct error err = {0};

	CHECK(accuracy_run(&region, &result, &err) == ESP_OK);
	CHECK(result.held[REGION_DATACENTER] == 2 && result.held[REGION_CLUSTER] == 7 &&
	      fabs(result.held[REGION_ROW] - 15) < 0.5 && fabs(result.held[REGION_RACK] - 61) < 1);
	CHECK(result.raw.mean == 1 && result.raw.least == 1 && result.raw.most == 1);
	datacenter.spec = spec_of("datacenter");
	CHECK(accuracy_run(&datacenter, &result, &err) == ESP_OK);
	CHECK_MSG(fabs(result.triplets - 75200) < 1000, "%g triplets", result.triplets);
}

static void test_calibration(void)
{
	const struct region_spec spec = spec_of("datacenter");
	double level, paia, again, same;
	struct error err = {0};

	CHECK(discover_calibrate(&spec, READING_CLOUD, 0.9, 1, 4, &level, &paia, &err) == ESP_OK);
	CHECK_MSG(fabs(paia - 0.9) < 1e-3 && level > 0 && level < DISCOVER_LEVEL_MOST, "%g at level %g", paia, level);
	CHECK(discover_raw(&spec, READING_CLOUD, level, 1, 4, &again, &err) == ESP_OK && again == paia);
	CHECK(discover_calibrate(&spec, READING_CLOUD, 0.9, 1, 4, &same, &paia, &err) == ESP_OK && same == level);
	/* A target that is out of reach gives the highest level; without noise the level is 0. */
	CHECK(discover_calibrate(&spec, READING_HOT, 0.3, 1, 4, &level, &paia, &err) == ESP_OK &&
	      level == DISCOVER_LEVEL_MOST && paia > 0.3);
	CHECK(discover_calibrate(&spec, READING_QUIET, 0.5, 1, 4, &level, &paia, &err) == ESP_OK && level == 0 &&
	      paia == 1);
}

/* An embedding averages out the jitter of single pairs; the same case gives the same numbers. */
static void test_accuracy(void)
{
	const struct accuracy_config config = {.spec = spec_of("datacenter"), .noise = READING_JITTER, .level = 8,
	                                       .seed = 3, .count = 2};
	struct accuracy_result one = {0}, two = {0};
	struct error err = {0};

	CHECK(accuracy_run(&config, &one, &err) == ESP_OK && accuracy_run(&config, &two, &err) == ESP_OK);
	CHECK(test_same_bits(&one, &two, sizeof one));
	CHECK_MSG(one.alpha1.mean > one.raw.mean && one.alpha2.mean > one.raw.mean, "raw %g, embedded %g and %g",
	          one.raw.mean, one.alpha1.mean, one.alpha2.mean);
	CHECK_U64(one.alpha1_won, 2);
	CHECK(one.raw.least <= one.raw.mean && one.raw.mean <= one.raw.most);
}

/* Machines of two datacenters, root of n groups: without noise all runs agree, with each other and with the truth. */
static void test_agreement(void)
{
	struct agreement_config config = {.spec = spec_of("region"), .noise = READING_QUIET, .elasticity = 2, .seed = 1,
	                                  .runs = 4};
	struct agreement_result result = {0}, again = {0};
	struct error err = {0};

	/* Four racks in one row, four machines in each. */
	config.spec.count[REGION_DATACENTER] = config.spec.count[REGION_CLUSTER] = config.spec.count[REGION_ROW] = 1;
	config.spec.count[REGION_RACK] = config.spec.count[REGION_HOST] = 4;
	config.spec.machines = 16;
	CHECK(agreement_run(&config, &result, &err) == ESP_OK);
	CHECK_U64(result.groups, 4);
	for (int i = 0; i < 2; i++)
		CHECK_MSG(result.between[i] > 0.9 && result.truth[i] > 0.9, "alpha %d: %g between runs, %g with the racks",
		          i + 1, result.between[i], result.truth[i]);
	config.fresh = true;
	config.noise = READING_CLOUD;
	config.level = 12;
	CHECK(agreement_run(&config, &result, &err) == ESP_OK && agreement_run(&config, &again, &err) == ESP_OK);
	CHECK(test_same_bits(&result, &again, sizeof result));
	CHECK(result.between[0] < 0.9);
}

int main(void)
{
	test_settings();
	test_shape();
	test_calibration();
	test_accuracy();
	test_agreement();
	return 0;
}
