/*
 * tuner_test.c - Autotune on simulated networks: a host slows down to 40 % and recovers; noise alone moves little.
 *
 *     tuner_test [--seed FIRST] [--count N]
 *
 * A node takes as long as its link needs for what it sends; a window as long as its slowest node. Measurements scatter,
 * and a node that is not the bottleneck seems slower than it is, by as much as a fifth, as its peers keep it waiting.
 * As in the runtime, a decision is made of the window before the last: the measurements of a window are exchanged
 * during the next one.
 */
#include "tune/tuner.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

#define NODES 16u
#define UNIT 100000.0

struct network {
	struct tuner tuner;
	struct plan_masters used; /* the masters of the window that is measured */
	double rates[NODES];
	double noise;
	struct rng rng;
	struct tune_node measured[NODES], pending[NODES];
	bool has_pending;
	double time;
	struct tune_report report;
};

static void network_open(struct network *network, const uint32_t *group_of, uint32_t workers, double noise,
                         uint64_t seed)
{
	struct error err;

	*network = (struct network){.noise = noise};
	CHECK_MSG(tuner_init(&network->tuner, group_of, workers, &err) == ESP_OK, "%s", err.text);
	CHECK(plan_masters_copy(&network->used, &network->tuner.masters) == ESP_OK);
	rng_init(&network->rng, seed);
	for (uint32_t i = 0; i < workers; i++)
		network->rates[i] = 12.5e6;
}

static void network_close(struct network *network)
{
	tuner_fini(&network->tuner);
	plan_masters_fini(&network->used);
}

static double scatter(struct network *network)
{
	return 1 + network->noise * (2 * rng_unit(&network->rng) - 1);
}

static double longest(const struct plan_masters *masters, const double *rates)
{
	double most = 0;

	for (uint32_t i = 0; i < masters->workers; i++)
		most = fmax(most, (double)plan_masters_load(masters, i) * UNIT / rates[i]);
	return most;
}

static void measure(struct network *network)
{
	const struct plan_masters *masters = &network->used;

	network->time = longest(masters, network->rates);
	for (uint32_t i = 0; i < masters->workers; i++) {
		double bytes = (double)plan_masters_load(masters, i) * UNIT, busy = bytes / network->rates[i] / network->time;
		double seems = network->rates[i] * (busy > 0.95 ? 1 : 1 - 0.2 * rng_unit(&network->rng)) * scatter(network);

		network->measured[i] = (struct tune_node){
			.sent_bytes = (uint64_t)bytes, .received_bytes = (uint64_t)bytes,
			.send_rate = (uint64_t)seems, .receive_rate = (uint64_t)(seems * 1.05),
			.cross_rate = (uint64_t)(seems / masters->group_size[masters->group_of[i]]),
			.rtt_ns = 200000, .time_ns = (uint64_t)(network->time * scatter(network) * 1e9),
		};
	}
}

/* One window. */
static void step(struct network *network)
{
	struct tune_sample sample = {network->used.workers, network->pending};

	/* At its beginning the exchange of the window before the last is over. */
	network->report.act = TUNE_NOTHING;
	if (network->has_pending && tuner_step(&network->tuner, &sample, &network->report))
		CHECK(plan_masters_copy(&network->used, &network->tuner.masters) == ESP_OK);
	memcpy(network->pending, network->measured, sizeof(network->pending));
	network->has_pending = network->time > 0;
	measure(network);
}

static double imbalance(const struct plan_masters *masters)
{
	uint64_t most = 0, least = UINT64_MAX;

	for (uint32_t i = 0; i < masters->workers; i++) {
		uint64_t load = plan_masters_load(masters, i);

		most = load > most ? load : most;
		least = load < least ? load : least;
	}
	return (double)most / (double)least;
}

struct layout {
	uint32_t workers, group_of[NODES];
	double gain; /* least gain by tuning with a host at 40 % */
};

static const struct layout layouts[] = {
	{8, {0, 0, 0, 0, 1, 1, 1, 1}, 1.27},
	{8, {0, 1, 0, 1, 0, 1, 0, 1}, 1.27},
	{9, {0, 0, 0, 1, 1, 1, 2, 2, 2}, 1.27},
	{16, {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}, 1.27},
	{8, {0}, 1.27}, /* one group: flat aggregation, as in the paper's figure */
};

static void explain(const struct network *network, unsigned window)
{
	char text[TUNE_TEXT];

	if (network->report.act != TUNE_NOTHING)
		printf("  window %u: %s\n", window, tuner_explain(&network->report, text));
}

/* Figure 10. Returns in how many windows after the trigger throughput was back. */
static void test_slow_host(uint64_t seed, bool talks)
{
	const struct layout *layout = &layouts[seed % (sizeof(layouts) / sizeof(layouts[0]))];
	struct network network;
	struct plan_masters even = {0};
	unsigned trigger = 0;

	network_open(&network, layout->group_of, layout->workers, 0.04, seed);
	CHECK(plan_masters_copy(&even, &network.used) == ESP_OK);
	uint32_t slow = (uint32_t)rng_below(&network.rng, layout->workers);
	for (unsigned i = 0; i < 10; i++) {
		step(&network);
		CHECK_MSG(network.report.act != TUNE_QUICK, "seed %" PRIu64 ": a trigger without a reason", seed);
	}
	double good = longest(&even, network.rates);
	network.rates[slow] *= 0.4;
	double untuned = longest(&even, network.rates), tuned = 0;
	for (unsigned i = 0; i < 20; i++) {
		step(&network);
		if (talks)
			explain(&network, i);
		trigger = trigger == 0 && network.report.act == TUNE_QUICK ? i + 1 : trigger;
		if (trigger && i + 1 >= trigger + 2)
			CHECK_MSG(untuned / network.time > layout->gain, "seed %" PRIu64 ": %g times as fast", seed,
			          untuned / network.time);
		tuned = network.time;
	}
	CHECK_MSG(trigger > 0 && trigger <= 4, "seed %" PRIu64 ": triggered after %u windows", seed, trigger);
	network.rates[slow] /= 0.4;
	unsigned balanced = 0;
	for (unsigned i = 0; i < 25; i++) {
		step(&network);
		if (talks)
			explain(&network, i);
		balanced = imbalance(&network.used) < 1.05 ? balanced ? balanced : i + 1 : 0;
	}
	CHECK_MSG(balanced > 0, "seed %" PRIu64 ": still %g times the bytes", seed, imbalance(&network.used));
	CHECK_MSG(network.time < good * 1.05, "seed %" PRIu64 ": %g instead of %g", seed, network.time, good);
	if (talks)
		printf("triggered after %u windows, %.2f times as fast as untuned, balanced %u windows after recovery\n",
		       trigger, untuned / tuned, balanced);
	network_close(&network);
	plan_masters_fini(&even);
}

/* Noise of 10 % on everything: masters are hardly ever dealt anew, and time stays what it was. */
static void test_noise(uint64_t seed)
{
	const struct layout *layout = &layouts[seed % (sizeof(layouts) / sizeof(layouts[0]))];
	struct network network;
	unsigned quick = 0;
	double sum = 0;

	network_open(&network, layout->group_of, layout->workers, 0.10, seed);
	double good = longest(&network.used, network.rates);
	for (unsigned i = 0; i < 300; i++) {
		step(&network);
		quick += network.report.act == TUNE_QUICK;
		sum += network.time / 300;
	}
	CHECK_MSG(quick <= 3, "seed %" PRIu64 ": dealt anew %u times", seed, quick);
	CHECK_MSG(sum < good * 1.05, "seed %" PRIu64 ": %g times as long", seed, sum / good);
	network_close(&network);
}

/* The whole network slower, or a window with nothing in it: nothing to be moved. */
static void test_nothing_to_do(void)
{
	struct network network;

	network_open(&network, layouts[0].group_of, 8, 0, 1);
	for (unsigned i = 0; i < 30; i++) {
		if (i == 10) {
			for (uint32_t k = 0; k < 8; k++)
				network.rates[k] /= 3;
		}
		step(&network);
		CHECK(network.report.act == TUNE_NOTHING);
	}
	memset(network.pending, 0, sizeof(network.pending));
	struct tune_sample empty = {8, network.pending};
	CHECK(!tuner_step(&network.tuner, &empty, &network.report));
	network_close(&network);
}

/* Two tuners that are given the same samples have the same masters: what all of it rests on. */
static void test_alike(uint64_t seed)
{
	struct network a, b;

	network_open(&a, layouts[3].group_of, 16, 0.1, seed);
	network_open(&b, layouts[3].group_of, 16, 0.1, seed);
	for (unsigned i = 0; i < 60; i++) {
		if (i % 9 == 8)
			a.rates[i % 16] = b.rates[i % 16] = 12.5e6 * (i % 2 ? 0.3 : 1);
		step(&a);
		step(&b);
		CHECK(plan_masters_same(&a.used, &b.used));
	}
	network_close(&a);
	network_close(&b);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 300);

	test_nothing_to_do();
	for (uint64_t seed = first; seed - first < count; seed++) {
		test_slow_host(seed, seed - first < 5);
		test_noise(seed);
	}
	test_alike(first);
	return 0;
}
