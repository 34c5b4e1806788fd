#include "sim/advice.h"

#include "base/check.h"
#include "base/rng.h"

/* A run whose busiest link, of that kind, is busy sending for so long. */
static struct advice_entry entry(const char *name, double seconds, enum train_kind kind, double busy_s)
{
	const struct mechanism *mechanism = workload_mechanism_find(name);
	struct advice_entry entry = {
		.mechanism = mechanism,
		.iteration_s = seconds,
		.busiest = {
			.kind = kind, .name = "node07", .out_s = busy_s, .out_bytes = (uint64_t)(busy_s * 1.25e9), .alike = 1}};
	CHECK_MSG(mechanism, "no mechanism %s", name);
	return entry;
}

/* Ties are broken by what is needed; what is far better wins in any case. */
static void test_order(void)
{
	const struct advice_case about = {
		.workers = 8, .servers = 1, .racks = 1, .compute_s = 0.5, .gbps = 10, .oversubscribe = 1, .batch = 32};
	struct advice_entry entries[] = {
		entry("server", 5, TRAIN_SERVER, 4),       entry("multicast+aggregation", 0.98, TRAIN_WORKER, 0.4),
		entry("ring", 1.0, TRAIN_WORKER, 0.4),     entry("ring+multicast", 0.99, TRAIN_WORKER, 0.4),
		entry("butterfly", 2, TRAIN_WORKER, 1.44),
	};
	static const char *const wanted[] = {"ring", "ring+multicast", "multicast+aggregation", "butterfly", "server"};
	struct error err = {0};
	char text[ADVICE_SUMMARY];
	CHECK(sim_advice_rank(entries, 5, &about, &err) == ESP_OK);
	for (size_t i = 0; i < 5; i++) {
		CHECK_STR(entries[i].mechanism->name, wanted[i]);
		CHECK(entries[i].is_tie == (i == 1 || i == 2));
	}
	CHECK_STR(entries[0].needs, "nothing but software");
	CHECK_STR(entries[2].needs, "1 parameter server, switches that aggregate and multicast");
	CHECK_STR(entries[0].reason, "the link of worker 0 (node07) sends 0.5 GB: 0.4 s; computing takes 0.5 s");
	CHECK_STR(entries[4].reason, "the link of server 0 (node07) sends 5 GB: 4 s; computing takes 0.5 s; with ring no "
	                             "link is busy for longer than 0.4 s "
	                             "(the link of worker 0 (node07))");
	CHECK_STR(entries[3].reason, "the link of worker 0 (node07) sends 1.8 GB: 1.44 s; computing takes 0.5 s; with ring "
	                             "no link is busy for longer than "
	                             "0.4 s (the link of worker 0 (node07))");
	sim_advice_summary(entries, 5, text);
	CHECK_MSG(strncmp(text, "Use ring: 1 s an iteration. It needs nothing but software", 57) == 0, "%s", text);
	CHECK_MSG(strstr(text, "The next best, butterfly, takes 2 s: the link of worker 0 (node07) sends 1.8 GB"), "%s",
	          text);
	CHECK_MSG(strstr(text, "The best that changes the network is ring+multicast"), "%s", text);
}

static void test_reasons(void)
{
	const struct advice_case about = {
		.workers = 8, .servers = 1, .racks = 2, .compute_s = 1, .gbps = 10, .oversubscribe = 4, .batch = 32};
	struct advice_entry entries[] = {entry("ring", 1.01, TRAIN_WORKER, 0.1),
	                                 entry("halving-doubling", 9, TRAIN_WORKER, 0.1),
	                                 entry("butterfly", 5, TRAIN_SWITCH, 4), entry("server", 14, TRAIN_SERVER, 4)};
	struct error err = {0};
	entries[2].busiest.alike = 2;
	entries[3].busiest.in_turn = true;
	entries[3].busiest.in_s = 6;
	entries[3].busiest.in_bytes = UINT64_C(7500000000);
	CHECK(sim_advice_rank(entries, 4, &about, &err) == ESP_OK);
	CHECK_STR(entries[0].reason, "computing takes 1 s of it; the network hides behind that");
	CHECK_STR(entries[1].reason,
	          "each of 2 uplinks sends 5 GB: 4 s; computing takes 1 s; with ring the network hides behind computing");
	CHECK_STR(entries[2].reason, "no link is busy for most of it (the link of worker 0 (node07) for 0.1 s): messages "
	                             "wait for one another; computing takes "
	                             "1 s; with ring the network hides behind computing");
	/* Four seconds one way, six the other, one of computing: three are left. */
	CHECK_STR(entries[3].reason, "the link of server 0 (node07) sends 5 GB (4 s) and then takes in 7.5 GB (6 s); "
	                             "computing takes 1 s, and for 3 s messages "
	                             "wait for one another; with ring the network hides behind computing");
}

/* With prices, what costs nothing more wins against what is a little faster. */
static void test_money(void)
{
	struct money_prices prices;
	sim_money_paper_prices(&prices);
	const struct advice_case about = {.workers = 4,
	                                  .servers = 2,
	                                  .racks = 1,
	                                  .compute_s = 0.5,
	                                  .gbps = 25,
	                                  .oversubscribe = 1,
	                                  .batch = 32,
	                                  .prices = &prices,
	                                  .by_money = true};
	struct advice_entry entries[] = {entry("multicast+aggregation", 0.9, TRAIN_WORKER, 0.1),
	                                 entry("ring", 1.0, TRAIN_WORKER, 0.1)};
	struct error err = {0};
	CHECK(sim_advice_rank(entries, 2, &about, &err) == ESP_OK);
	CHECK_STR(entries[0].mechanism->name, "ring");
	CHECK(entries[0].extra_cost == 0 && entries[0].cost > 4 * (4117 + 4 * 699));
	/* Two servers with their network, and a switch that aggregates. */
	CHECK(entries[1].extra_cost > 2 * 4117 + 21077 && entries[1].extra_cost < 2 * (4117 + 2000) + 21077);
	CHECK(entries[1].per_1000 == 4 * 32 / 0.9 / (entries[1].cost / 1000));
	/* A hub has a price of its own. */
	prices.hub_node = 50000;
	struct advice_entry hub = entry("hub", 1.0, TRAIN_HUB, 0.1);
	CHECK(sim_advice_rank(&hub, 1, &about, &err) == ESP_OK);
	CHECK(hub.extra_cost > 50000 && hub.extra_cost < 52000);
}

/* No mechanism is lost, and none that is more than a tie better stands behind. */
static void test_any(uint64_t seed)
{
	struct rng rng;
	rng_init(&rng, seed);
	for (int round = 0; round < 300; round++) {
		struct advice_entry entries[12];
		size_t count = 0;
		const struct advice_case about = {
			.workers = 8, .servers = 2, .racks = 1, .compute_s = 0.1, .gbps = 25, .oversubscribe = 1, .batch = 1};
		struct error err = {0};
		for (; workload_mechanism_at(count); count++)
			entries[count] =
				entry(workload_mechanism_at(count)->name, 0.1 + rng_unit(&rng), TRAIN_WORKER, rng_unit(&rng));
		CHECK(sim_advice_rank(entries, count, &about, &err) == ESP_OK);
		for (size_t i = 0; i < count; i++)
			for (size_t j = i + 1; j < count; j++) {
				CHECK(entries[i].mechanism != entries[j].mechanism);
				CHECK(entries[i].iteration_s <= entries[j].iteration_s * (1 + ADVICE_TIE));
			}
	}
}

int main(int argc, char **argv)
{
	test_order();
	test_reasons();
	test_money();
	test_any(test_seed(argc, argv, 1));
	return 0;
}
