#include "tools/lab/lab.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

static struct lab_config config_of(uint32_t racks, uint32_t hosts, uint32_t rails)
{
	struct lab_config config = {.name = "test", .racks = racks, .hosts = hosts, .rails = rails, .oversubscribe = 4,
	                            .mtu = 1500, .seed = 1};
	for (uint32_t rail = 0; rail < rails && rail < LAB_RAILS_MAX; rail++)
		config.rate[rail] = UINT64_C(1000000000) / (rail + 1);
	return config;
}

static struct lab *make(const struct lab_config *config)
{
	struct error err;
	CHECK_MSG(lab_config_check(config, &err) == ESP_OK, "%s", err.text);
	struct lab *lab = malloc(lab_bytes(config));
	CHECK(lab);
	lab_init(lab, config);
	CHECK(lab_is_valid(lab, lab_bytes(config)));
	CHECK(!lab_is_valid(lab, lab_bytes(config) - 1));
	return lab;
}

static void test_bad_configs(void)
{
	struct error err;
	struct lab_config good = config_of(2, 2, 1), bad;
	CHECK(lab_config_check(&good, &err) == ESP_OK);
#define REFUSED(change) (bad = good, bad.change, CHECK_MSG(lab_config_check(&bad, &err) != ESP_OK, #change))
	REFUSED(racks = 0);
	REFUSED(hosts = 0);
	REFUSED(hosts = LAB_PORTS_MAX + 1);
	REFUSED(rails = 0);
	REFUSED(rails = LAB_RAILS_MAX + 1);
	REFUSED(oversubscribe = 0);
	REFUSED(oversubscribe = -1);
	REFUSED(oversubscribe = (double)NAN);
	REFUSED(mtu = 100);
	REFUSED(mtu = 70000);
	REFUSED(rate[0] = 0);
	REFUSED(name[0] = '\0');
	REFUSED(name[1] = '/');
	REFUSED(congestion[0] = ';');
	bad = good;
	bad.racks = bad.hosts = 1000;
	CHECK(lab_config_check(&bad, &err) == ESP_ELIMIT);
	bad = good;
	memset(bad.name, 'a', sizeof(bad.name));
	CHECK(lab_config_check(&bad, &err) == ESP_EINVAL);
	bad = good;
	bad.ipv6 = true;
	bad.mtu = 1000;
	CHECK(lab_config_check(&bad, &err) == ESP_EINVAL);
#undef REFUSED
}

/* Each name and each address is unique; both ends of every link are devices that no other link has. */
static void check_unique(const struct lab *lab)
{
	uint8_t seen[LAB_RAILS_MAX][LAB_HOSTS_MAX + 1] = {{0}};
	for (uint32_t i = 0; i < lab->host_count; i++) {
		const struct lab_host *host = lab_host(lab, i);
		CHECK_U64(lab_find_space(lab, host->name), i);
		for (uint32_t rail = 0; rail < lab->config.rails; rail++) {
			CHECK(host->number[rail] >= 1 && host->number[rail] <= lab->host_count);
			CHECK(!seen[rail][host->number[rail]]++);
		}
	}
	for (uint32_t i = 0; i < lab->link_count; i++) {
		struct lab_end near = lab_near_end(lab, i), far = lab_far_end(lab, i);
		CHECK(near.space < lab_space_count(lab) && far.space < lab_space_count(lab) && near.space != far.space);
		CHECK(strlen(near.device) < 13 && strlen(far.device) < 13); /* room for "-r" within the kernel's 15 bytes */
		for (uint32_t k = 0; k < i; k++) {
			struct lab_end other_near = lab_near_end(lab, k), other_far = lab_far_end(lab, k);
			CHECK(near.space != other_near.space || strcmp(near.device, other_near.device) != 0);
			CHECK(far.space != other_far.space || strcmp(far.device, other_far.device) != 0);
			CHECK(near.space != other_far.space || strcmp(near.device, other_far.device) != 0);
		}
	}
}

static void test_random_labs(struct rng *rng)
{
	for (int i = 0; i < 60; i++) {
		struct lab_config config = config_of(1 + (uint32_t)rng_below(rng, 9), 1 + (uint32_t)rng_below(rng, 9),
		                                     1 + (uint32_t)rng_below(rng, LAB_RAILS_MAX));
		config.seed = rng_next(rng);
		config.ipv6 = rng_chance(rng, 1, 2);
		struct lab *lab = make(&config), *again = make(&config);
		CHECK(memcmp(lab, again, lab->bytes) == 0); /* one seed, one lab */
		check_unique(lab);
		free(lab);
		free(again);
	}
}

/* Host 0 of rack 0 gets every name equally often: names tell nothing about places. */
static void test_names_tell_nothing(void)
{
	uint32_t counts[8] = {0}, addresses[8] = {0};
	struct lab_config config = config_of(2, 4, 1);
	for (config.seed = 0; config.seed < 8000; config.seed++) {
		struct lab *lab = make(&config);
		const struct lab_host *host = lab_host(lab, 0);
		counts[host->name[4] - '0']++;
		addresses[host->number[0] - 1]++;
		free(lab);
	}
	for (int i = 0; i < 8; i++)
		CHECK_MSG(counts[i] > 850 && counts[i] < 1150 && addresses[i] > 850 && addresses[i] < 1150, "%d: %u, %u", i,
		          counts[i], addresses[i]);
}

/* A switch of sums at a rack's bridge has an address that no host has; a host that runs it has a faster link. */
static void test_switch_place(void)
{
	char text[LAB_ADDRESS_TEXT], other[LAB_ADDRESS_TEXT];
	struct lab_config config = config_of(2, 3, 1);
	struct error err;
	struct lab *lab = make(&config);

	CHECK(lab_place_switch(lab, &err) == ESP_OK && lab->through == LAB_NOBODY);
	snprintf(lab->config.through, sizeof(lab->config.through), "rack1");
	CHECK(lab_place_switch(lab, &err) == ESP_OK);
	CHECK_U64(lab->through, lab_rack_space(lab, 1));
	lab_bridge_address(lab, text);
	for (uint32_t host = 0; host < lab->host_count; host++)
		CHECK(strcmp(lab_address(lab, host, 0, other), text) != 0);
	snprintf(lab->config.through, sizeof(lab->config.through), "rack1/2");
	lab->config.through_links = 4;
	uint64_t rate = lab_link(lab, lab_host_link(lab, 5, 0))->made.rate;
	CHECK(lab_place_switch(lab, &err) == ESP_OK);
	CHECK_U64(lab->through, 5);
	CHECK_U64(lab_link(lab, lab_host_link(lab, 5, 0))->made.rate, 4 * rate);
	CHECK_U64(lab_link(lab, lab_host_link(lab, 5, 0))->set.rate, 4 * rate);
	for (int i = 0; i < 2; i++) {
		snprintf(lab->config.through, sizeof(lab->config.through), "%s", i ? "core" : "rack1/3");
		CHECK(lab_place_switch(lab, &err) == ESP_EINVAL);
	}
	free(lab);
}

static void test_rates_and_texts(void)
{
	char text[LAB_ADDRESS_TEXT], name[LAB_HOST_TEXT];
	struct lab_config config = config_of(4, 4, 2);
	struct lab *lab = make(&config);
	CHECK_U64(lab_link(lab, lab_uplink(lab, 3, 0))->set.rate, 1000000000);
	CHECK_U64(lab_link(lab, lab_uplink(lab, 3, 1))->set.rate, 500000000);
	CHECK_U64(lab_link(lab, lab_host_link(lab, 3, 1))->set.rate, 500000000);
	CHECK_STR(lab_near_end(lab, lab_host_link(lab, 6, 1)).device, "h2e1");
	CHECK_STR(lab_far_end(lab, lab_host_link(lab, 6, 1)).device, "e1");
	CHECK_STR(lab_near_end(lab, lab_uplink(lab, 2, 0)).device, "rack2e0");
	CHECK_STR(lab_far_end(lab, lab_uplink(lab, 2, 0)).device, "up0");
	CHECK_STR(lab_space_name(lab, lab_core_space(lab), name), "core");
	CHECK_STR(lab_space_name(lab, lab_rack_space(lab, 3), name), "rack3");
	CHECK_U64(lab_find_space(lab, "rack1/2"), 6);
	CHECK_U64(lab_find_space(lab, "rack1/4"), LAB_NOBODY);
	CHECK_U64(lab_find_space(lab, "rack4"), LAB_NOBODY);
	CHECK(strncmp(lab_address(lab, 0, 1, text), "10.81.0.", 8) == 0);
	free(lab);
}

static void test_targets(void)
{
	static const struct {
		const char *target;
		uint32_t count;
	} good[] = {{"all", 32},     {"racks", 8},     {"rack1", 2},     {"rack1:e1", 1}, {"rack1/2", 2},
	            {"rack1/2:e0", 1}, {"all:e1", 16}, {"racks:e0", 4}};
	static const char *const bad[] = {"", "al", "rack4", "rack1/4", "rack1:e2", "rack1:x", "rack1:", "core", "node",
	                                  "/"};
	struct lab_config config = config_of(4, 4, 2);
	struct lab *lab = make(&config);
	uint32_t links[64], count;
	struct error err;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CHECK_MSG(lab_targets(lab, good[i].target, links, &count, &err) == ESP_OK, "%s: %s", good[i].target, err.text);
		CHECK_U64(count, good[i].count);
	}
	CHECK(lab_targets(lab, lab_host(lab, 5)->name, links, &count, &err) == ESP_OK && count == 2);
	CHECK_U64(links[0], lab_host_link(lab, 5, 0));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_MSG(lab_targets(lab, bad[i], links, &count, &err) == ESP_EINVAL, "'%s' was taken", bad[i]);
	/* For a switch that exists the error names the target to use instead. */
	CHECK(lab_targets(lab, "core", links, &count, &err) == ESP_EINVAL && strstr(err.text, "racks is all of them"));
	free(lab);
}

static void test_one_rack(void)
{
	struct lab_config config = config_of(1, 3, 1);
	struct lab *lab = make(&config);
	uint32_t links[8], count;
	struct error err;
	CHECK_U64(lab->link_count, 3);
	CHECK_U64(lab_space_count(lab), 4);
	CHECK(lab_targets(lab, "racks", links, &count, &err) == ESP_EINVAL);
	CHECK(lab_targets(lab, "rack0", links, &count, &err) == ESP_EINVAL);
	check_unique(lab);
	free(lab);
}

/* Every placement uses every host once. */
static void test_places(struct rng *rng)
{
	for (int i = 0; i < 50; i++) {
		struct lab_config config = config_of(1 + (uint32_t)rng_below(rng, 6), 1 + (uint32_t)rng_below(rng, 6), 1);
		struct lab *lab = make(&config);
		uint32_t hosts[36], seen[36] = {0};
		for (int place = LAB_CONTIGUOUS; place <= LAB_RANDOM; place++) {
			lab_place(lab, (enum lab_place)place, rng_next(rng), hosts);
			for (uint32_t rank = 0; rank < lab->host_count; rank++) {
				CHECK(hosts[rank] < lab->host_count);
				CHECK_U64(seen[hosts[rank]]++, (uint64_t)place);
				if (place == LAB_INTERLEAVED)
					CHECK_U64(lab_host(lab, hosts[rank])->rack, rank % config.racks);
				if (place == LAB_CONTIGUOUS)
					CHECK_U64(lab_host(lab, hosts[rank])->rack, rank / config.hosts);
			}
		}
		free(lab);
	}
}

int main(int argc, char **argv)
{
	struct rng rng;
	rng_init(&rng, test_seed(argc, argv, 1));
	test_bad_configs();
	test_random_labs(&rng);
	test_names_tell_nothing();
	test_rates_and_texts();
	test_switch_place();
	test_targets();
	test_one_rack();
	test_places(&rng);
	return 0;
}
