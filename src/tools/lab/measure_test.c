/* The list of measurements and of background flows: the pure part of both. */
#include "tools/lab/measure.h"

#include "base/check.h"
#include "base/rng.h"
#include "tools/lab/background.h"

static struct lab *make(uint32_t racks, uint32_t hosts, uint32_t rails, double oversubscribe)
{
	struct lab_config config = {.name = "test", .racks = racks, .hosts = hosts, .rails = rails,
	                            .rate = {1000000000, 200000000}, .oversubscribe = oversubscribe, .mtu = 1500,
	                            .seed = 1};
	struct error err;
	CHECK(lab_config_check(&config, &err) == ESP_OK);
	struct lab *lab = malloc(lab_bytes(&config));
	CHECK(lab);
	lab_init(lab, &config);
	return lab;
}

static void test_plan(void)
{
	struct measure list[64];
	struct lab *lab = make(4, 4, 2, 4);
	CHECK_U64(lab_measure_plan(lab, false, list, 64), 4);
	CHECK(list[0].class == MEASURE_HOST && list[0].asked_bits == 1000000000 && list[0].from / 4 == list[0].to / 4);
	CHECK(list[1].class == MEASURE_UPLINK && list[1].asked_bits == 1000000000);
	CHECK(list[2].class == MEASURE_HOST && list[2].rail == 1 && list[2].asked_bits == 200000000);
	CHECK_U64(lab_measure_plan(lab, true, list, 64), 2 * (16 + 4));
	CHECK_U64(lab_measure_plan(lab, true, NULL, 0), 2 * (16 + 4));
	/* The current settings count, and links that cannot be measured are left out. */
	lab_link(lab, lab_host_link(lab, 0, 0))->set.rate = 50000000;
	lab_link(lab, lab_host_link(lab, 0, 0))->set.faults[LAB_TO].delay_ns = 5000000;
	lab_measure_plan(lab, false, list, 64);
	CHECK(list[0].asked_bits == 50000000 && list[0].asked_rtt_ns == 5000000);
	lab_link(lab, lab_host_link(lab, 0, 0))->set.faults[LAB_TO].cut = true;
	lab_measure_plan(lab, false, list, 64);
	CHECK(list[0].class == MEASURE_HOST && list[0].from == 1);
	CHECK(list[1].class == MEASURE_UPLINK && list[1].from == 1); /* rack 0 has an unreachable host */
	free(lab);
	lab = make(1, 1, 1, 1);
	CHECK_U64(lab_measure_plan(lab, true, list, 64), 0);
	free(lab);
}

/* An uplink that is faster than its hosts together is expected to carry their sum. */
static void test_wide_uplink(void)
{
	struct measure list[8];
	struct lab *lab = make(2, 3, 1, 0.5);
	CHECK_U64(lab_measure_plan(lab, false, list, 8), 2);
	CHECK_U64(list[1].asked_bits, UINT64_C(3000000000));
	free(lab);
}

static void test_verdict(void)
{
	struct measure measure = {.asked_bits = 1000, .bits = 951, .tries = 1};
	CHECK(lab_measure_is_right(&measure));
	measure.bits = 949;
	CHECK(!lab_measure_is_right(&measure));
	measure.bits = 1051;
	CHECK(!lab_measure_is_right(&measure));
	measure.bits = 1000;
	measure.rtt_ns = 123456;
	CHECK(lab_measure_is_right(&measure)); /* no delay is set */
	measure.asked_rtt_ns = 100000;
	CHECK(!lab_measure_is_right(&measure));
	measure.rtt_ns = 104000;
	CHECK(lab_measure_is_right(&measure));
	measure.tries = 0;
	CHECK(!lab_measure_is_right(&measure));
}

/* Flows begin at the right host and lead to another rack, or at least to another host. */
static void test_background(struct rng *rng)
{
	struct background_flow flows[256];
	for (int i = 0; i < 100; i++) {
		uint32_t racks = 1 + (uint32_t)rng_below(rng, 4), hosts = 1 + (uint32_t)rng_below(rng, 4);
		struct lab *lab = make(racks, hosts, 1, 1);
		uint32_t link = (uint32_t)rng_below(rng, lab->link_count), wanted = (uint32_t)rng_below(rng, 20);
		lab_link(lab, link)->set.background = wanted;
		size_t count = lab_background_flows(lab, flows, 256);
		CHECK_U64(count, racks * hosts == 1 ? 0 : wanted);
		for (size_t k = 0; k < count; k++) {
			const struct lab_link *whose = lab_link(lab, flows[k].link);
			CHECK(flows[k].link == link && flows[k].to < lab->host_count && flows[k].to != flows[k].from);
			CHECK(whose->host == LAB_NOBODY ? flows[k].from / hosts == whose->rack : flows[k].from == whose->host);
			CHECK(racks == 1 || flows[k].to / hosts != flows[k].from / hosts);
		}
		free(lab);
	}
}

int main(int argc, char **argv)
{
	struct rng rng;
	rng_init(&rng, test_seed(argc, argv, 1));
	test_plan();
	test_wide_uplink();
	test_verdict();
	test_background(&rng);
	return 0;
}
