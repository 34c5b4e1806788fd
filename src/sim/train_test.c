/*
 * train_test.c - training on small loads whose times are known: a toy with and without help, and random ones.
 */
#include "sim/trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"

#define MOST 12u /* layers, workers */
#define GBPS 0.008 /* a million bytes a second */
#define RATE 1e6

/* A load in memory of its own: parameters that are sent, gradients that come back, all workers alike. */
struct toy {
	struct load_item items[MOST];
	struct load_gradient gradients[MOST];
	double layer_s[MOST], worker_factor[MOST];
	struct load load;
};

static void toy_init(struct toy *toy, uint32_t workers)
{
	*toy = (struct toy){0};
	toy->load = (struct load){.items = toy->items,
	                          .gradients = toy->gradients,
	                          .layer_s = toy->layer_s,
	                          .worker_factor = toy->worker_factor,
	                          .workers = workers,
	                          .distribution_factor = 1};
	for (uint32_t i = 0; i < MOST; i++)
		toy->worker_factor[i] = 1;
}

/* A layer that takes so long to be sent and to be computed. */
static void toy_item(struct toy *toy, double transfer_s, double forward_s)
{
	struct load *load = &toy->load;

	toy->layer_s[load->layer_count] = forward_s;
	toy->items[load->item_count] =
		(struct load_item){(uint64_t)(transfer_s * RATE + 0.5), load->layer_count, load->layer_count, load->item_count};
	load->item_count++;
	load->layer_count++;
}

static void toy_gradient(struct toy *toy, double transfer_s, double ready_s, uint32_t item)
{
	toy->gradients[toy->load.gradient_count++] =
		(struct load_gradient){(uint64_t)(transfer_s * RATE + 0.5), item, item, item, ready_s};
}

static double seconds_of(struct trial trial)
{
	struct train_result result;
	struct error err = {0};

	trial.gbps = GBPS;
	CHECK_MSG(sim_trial_run(&trial, &result, &err) == ESP_OK, "%s: %s", trial.train.mechanism->name, err.text);
	return result.iteration_s;
}

static double seconds(const struct toy *toy, const char *mechanism)
{
	return seconds_of(
		(struct trial){.train = {.load = &toy->load, .mechanism = workload_mechanism_find(mechanism), .servers = 1}});
}

static bool is_near(double a, double b)
{
	return fabs(a - b) < 1e-6 * (fabs(a) + fabs(b));
}

#define CHECK_NEAR(actual, expected) \
	do { \
		double actual_ = (actual), expected_ = (expected); \
		CHECK_MSG(is_near(actual_, expected_), "%s is %.9g, expected %.9g", #actual, actual_, expected_); \
	} while (0)

/*
 * The example of the paper's figure 2: two workers, three operations, each computes for three seconds and sends for
 * three. The distribution takes three seconds as well, so the second worker begins three seconds after the first; with
 * multicast both begin at once. Times count from the first worker's start.
 */
static void test_figure_2(void)
{
	struct toy toy;

	toy_init(&toy, 2);
	toy_item(&toy, 3, 0);
	for (uint32_t i = 0; i < 3; i++)
		toy_gradient(&toy, 3, 3 * (i + 1), 0);
	struct trial trial = {.train = {.load = &toy.load, .servers = 1, .cut_through_sums = true}};
	const double expected[] = {21, 15, 21, 12};
	for (size_t i = 0; i < 4; i++) {
		trial.train.mechanism = workload_mechanism_at(i);
		CHECK_NEAR(seconds_of(trial) - 3, expected[i]);
	}
	/* A switch that waits for whole parameters takes one transfer longer. */
	CHECK_NEAR(seconds(&toy, "aggregation") - 3, 18);
	CHECK_NEAR(seconds(&toy, "multicast+aggregation") - 3, 15);
}

/* The forward pass waits for parameters, layer by layer, and hides behind their transfer. */
static void test_forward(void)
{
	struct toy toy;

	toy_init(&toy, 1);
	toy_item(&toy, 2, 1);
	toy_item(&toy, 4, 10);
	toy_item(&toy, 1, 1);
	toy_gradient(&toy, 5, 0, 2);
	/* The first is there at 2, the second at 6, the third at 7; computed at 3, 16, 17. */
	CHECK_NEAR(seconds(&toy, "server"), 22);
	/* Without servers there is nothing to wait for; one worker has nothing to send. */
	CHECK_NEAR(seconds(&toy, "ring"), 12);
}

/*
 * Section 8.1.2: starts that lie D apart change nothing unless D > B - C, where B is a worker's backward pass with its
 * transfers and C the time until the first gradient; up to then the server's link is the bottleneck, and busy. Beyond,
 * no transfer meets another, and what is lost is the time in which the link idles.
 */
static void test_stagger(uint64_t seed)
{
	struct rng rng;
	struct toy toy;

	rng_init(&rng, seed);
	for (int round = 0; round < 40; round++) {
		uint32_t workers = 2 + (uint32_t)rng_below(&rng, MOST - 1), gradients = 1 + (uint32_t)rng_below(&rng, MOST);
		double apart = 1 + (double)rng_below(&rng, 20), first = (double)rng_below(&rng, 10), transfer = 0;

		toy_init(&toy, workers);
		toy_item(&toy, apart, 0);
		for (uint32_t i = 0; i < gradients; i++) {
			double each = 1 + (double)rng_below(&rng, 4);

			toy_gradient(&toy, each, first, 0);
			transfer += each;
		}
		double whole = first + transfer; /* B: computing and sending, with the link to oneself */
		double staggered = seconds(&toy, "server") - apart, together = seconds(&toy, "multicast") - apart;

		CHECK_NEAR(together, first + workers * transfer);
		if (apart > whole - first)
			CHECK_NEAR(staggered, (workers - 1) * apart + whole);
		else
			CHECK_NEAR(staggered, together);
	}
}

/* When each worker's first and last gradient were ready. */
struct spans {
	double first[MOST], last[MOST];
	uint32_t workers;
	const struct toy *toy;
};

static void note_span(void *user, const struct cluster_message *message, const struct train_cargo *cargo)
{
	struct spans *spans = user;

	CHECK(cargo->is_gradient == (message->from < spans->workers) && cargo->count == 1);
	CHECK_U64(message->bytes, spans->toy->items[cargo->parameter].bytes);
	if (message->from >= spans->workers)
		return;
	spans->first[message->from] = fmin(spans->first[message->from], message->ready);
	spans->last[message->from] = fmax(spans->last[message->from], message->ready);
}

/*
 * Section 9.4: with distribution in blocks only one worker computes gradients at a time, and so there is no incast,
 * where B1 + N > BN: B1 the time until the first gradient, N that of the whole model on the wire, BN that of the whole
 * backward pass.
 */
static void test_block(uint64_t seed)
{
	struct rng rng;
	struct toy toy;
	uint32_t apart = 0, mixed = 0;

	rng_init(&rng, seed);
	for (int round = 0; round < 60; round++) {
		uint32_t workers = 2 + (uint32_t)rng_below(&rng, MOST - 1), layers = 1 + (uint32_t)rng_below(&rng, MOST);
		struct spans spans = {.workers = workers, .toy = &toy};
		double model = 0, ready = (double)rng_below(&rng, 5), begin = ready;

		toy_init(&toy, workers);
		for (uint32_t i = 0; i < layers; i++)
			toy_item(&toy, 1 + (double)rng_below(&rng, 5), (double)rng_below(&rng, 3));
		for (uint32_t i = 0; i < layers; i++) {
			double transfer = (double)toy.items[layers - 1 - i].bytes / RATE;

			toy_gradient(&toy, transfer, ready, layers - 1 - i);
			model += transfer;
			/* Never just B1 + N = BN: whole numbers against halves. */
			ready += i + 1 < layers ? 0.5 + (double)rng_below(&rng, 10) * (round % 2 ? 1 : 0.1) : 0;
		}
		for (uint32_t i = 0; i < workers; i++)
			spans.first[i] = INFINITY;
		struct trial trial = {
			.train = {.load = &toy.load, .mechanism = workload_mechanism_find("server"), .servers = 1, .block = true}};
		trial.train.watch = (struct train_watch){.user = &spans, .moved = note_span};
		(void)seconds_of(trial);
		if (is_near(begin + model, ready))
			continue;
		bool follows = begin + model > ready;
		for (uint32_t i = 0; i + 1 < workers; i++)
			CHECK_MSG((spans.first[i + 1] > spans.last[i]) == follows,
			          "seed %llu round %d worker %u: B1 %g N %g BN %g, last %g, next first %g",
			          (unsigned long long)seed, round, i, begin, model, ready, spans.last[i], spans.first[i + 1]);
		apart += follows;
		mixed += !follows;
	}
	CHECK(apart > 5 && mixed > 5);
}

/* Random loads for all mechanisms. */
static void random_load(struct toy *toy, struct rng *rng, uint32_t workers)
{
	uint32_t layers = 1 + (uint32_t)rng_below(rng, MOST);
	double ready = 0;

	toy_init(toy, workers);
	for (uint32_t i = 0; i < layers; i++)
		toy_item(toy, 1 + rng_unit(rng) * 10, rng_unit(rng) * 3);
	for (uint32_t i = 0; i < layers; i++) {
		toy_gradient(toy, (double)toy->items[layers - 1 - i].bytes / RATE, ready, layers - 1 - i);
		ready += rng_unit(rng) * 4;
	}
	for (uint32_t i = 0; i < workers; i++)
		toy->worker_factor[i] = 1 + rng_unit(rng);
}

/*
 * No byte is lost nor made: what servers and workers send follows from the mechanism alone. And the time is at least
 * what the busiest link carries, and at least what the slowest worker computes.
 */
static void test_bytes(uint64_t seed)
{
	static const char *const names[] = {"server",      "aggregation", "multicast",      "multicast+aggregation",
	                                    "ring",        "ring-whole",  "ring+multicast", "halving-doubling",
	                                    "double-tree", "two-level"};
	struct rng rng;
	struct toy toy;

	rng_init(&rng, seed);
	for (int round = 0; round < 30; round++) {
		uint32_t w = 2u << rng_below(&rng, 2), servers = 1 + (uint32_t)rng_below(&rng, 3),
		         iterations = 1 + (uint32_t)rng_below(&rng, 3);
		double slowest = 0, forward = 0;

		random_load(&toy, &rng, w);
		uint64_t s = workload_load_item_bytes(&toy.load);
		const uint64_t out[] = {2 * w * s,       w * s + w * s, s + w * s,       s + w * s,       2 * (w - 1) * s,
		                        2 * (w - 1) * s, w * s,         2 * (w - 1) * s, 2 * (w - 1) * s, 2 * (w - 1) * s};
		const uint64_t in[] = {2 * w * s,       w * s + s,       w * s + w * s,   w * s + s,       2 * (w - 1) * s,
		                       2 * (w - 1) * s, 2 * (w - 1) * s, 2 * (w - 1) * s, 2 * (w - 1) * s, 2 * (w - 1) * s};
		for (uint32_t i = 0; i < toy.load.layer_count; i++)
			forward += toy.layer_s[i];
		for (uint32_t i = 0; i < w; i++)
			slowest = fmax(slowest, load_ready_s(&toy.load, i, 0, toy.load.gradient_count - 1));
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			struct trial trial = {.gbps = GBPS,
			                      .train = {.load = &toy.load,
			                                .mechanism = workload_mechanism_find(names[i]),
			                                .servers = servers,
			                                .even_split = rng_chance(&rng, 1, 2),
			                                .iterations = iterations}};
			struct train_result result;
			struct error err = {0};

			CHECK_MSG(sim_trial_run(&trial, &result, &err) == ESP_OK, "%s: %s", names[i], err.text);
			CHECK_U64(result.class_bytes[TOPOLOGY_HOST_OUT], out[i]);
			CHECK_U64(result.class_bytes[TOPOLOGY_HOST_IN], in[i]);
			CHECK(result.iteration_s >= (forward + slowest) * (1 - 1e-9));
			CHECK(result.iteration_s >= (double)out[i] / (w + servers) / RATE * (1 - 1e-9));
		}
	}
}

/* Iterations behind a barrier are alike; without it none takes longer than in the simplest case that is known. */
static void test_iterations(void)
{
	struct toy toy;

	toy_init(&toy, 2);
	toy_item(&toy, 1, 1);
	toy_item(&toy, 2, 1);
	toy_gradient(&toy, 2, 0, 1);
	toy_gradient(&toy, 1, 1, 0);
	for (size_t i = 0; workload_mechanism_at(i); i++) {
		struct trial trial = {.train = {.load = &toy.load, .mechanism = workload_mechanism_at(i), .servers = 1}};
		double once = seconds_of(trial);

		trial.train.iterations = 4;
		CHECK_NEAR(seconds_of(trial), once);
		trial.train.compute = 1e9;
		CHECK(seconds_of(trial) < once);
	}
	/*
	 * One worker, no barrier: the second layer's gradient (2 s) leaves at once, the first layer's a second later
	 * (queued until 2), so the sums are there at 2 and 3, the parameters back at 4 and 5, and both layers are computed
	 * at 7: 7 seconds around.
	 */
	toy.load.workers = 1;
	struct trial trial = {
		.train = {.load = &toy.load, .mechanism = workload_mechanism_find("server"), .servers = 1, .no_barrier = true}};
	CHECK_NEAR(seconds_of(trial), 7);
	trial.train.no_barrier = false;
	CHECK_NEAR(seconds_of(trial), 7);
}

/* When each worker's last forward pass began. */
static void note_forward(void *user, uint32_t worker, bool forward, uint32_t iteration, double from, double to)
{
	double *begins = user;

	CHECK(to >= from && iteration < 3);
	if (forward)
		begins[worker] = from;
}

/*
 * Without the barrier and without servers: results let the next forward pass begin, but not before the backward pass is
 * over.
 */
static void test_overlap(void)
{
	struct toy toy;
	double begins[3] = {0};

	toy_init(&toy, 2);
	toy_item(&toy, 1, 5);
	toy_item(&toy, 1, 5);
	toy_gradient(&toy, 1, 0, 0); /* the first layer's is ready first */
	toy_gradient(&toy, 1, 10, 1);
	struct trial trial = {
		.train = {.load = &toy.load, .mechanism = workload_mechanism_find("ring"), .no_barrier = true}};
	CHECK_NEAR(seconds_of(trial), 20);
	trial.train.no_barrier = false;
	CHECK_NEAR(seconds_of(trial), 21);
	/*
	 * Whole parameters, the first owned by worker 0 and the second by worker 1: it has the sum after two hops and is
	 * done when it has passed it on, the others a hop later. The forward pass waits for this one.
	 */
	toy_init(&toy, 3);
	toy_item(&toy, 3, 1);
	toy_item(&toy, 0.001, 0);
	toy_gradient(&toy, 0.001, 0, 1);
	toy_gradient(&toy, 3, 0, 0);
	trial = (struct trial){.train = {.load = &toy.load,
	                                 .mechanism = workload_mechanism_find("ring-whole"),
	                                 .no_barrier = true,
	                                 .iterations = 2}};
	trial.train.watch = (struct train_watch){.user = begins, .computed = note_forward};
	(void)seconds_of(trial);
	CHECK_MSG(fabs(begins[1] - 10) < 0.1 && fabs(begins[0] - 13) < 0.1 && fabs(begins[2] - 13) < 0.1,
	          "forward passes begin at %g, %g and %g", begins[0], begins[1], begins[2]);
}

/* The same numbers to the bit, twice. */
static void test_repeats(uint64_t seed)
{
	struct rng rng;
	struct toy toy;

	rng_init(&rng, seed);
	random_load(&toy, &rng, 8);
	for (size_t i = 0; workload_mechanism_at(i); i++) {
		struct trial trial = {
			.gbps = 25,
			.racks = 2,
			.oversubscribe = 2,
			.delay_s = 1e-6,
			.train = {.load = &toy.load, .mechanism = workload_mechanism_at(i), .servers = 2, .fluid = seed % 2}};
		struct train_result once, again;
		struct error err = {0};

		CHECK_MSG(sim_trial_run(&trial, &once, &err) == ESP_OK, "%s: %s", workload_mechanism_at(i)->name, err.text);
		CHECK(sim_trial_run(&trial, &again, &err) == ESP_OK);
		CHECK(once.iteration_s == again.iteration_s && once.messages == again.messages);
		for (int class = 0; class < TOPOLOGY_CLASSES; class++)
			CHECK_U64(once.class_bytes[class], again.class_bytes[class]);
	}
}

static void test_refused(void)
{
	struct toy toy;
	struct error err = {0};
	struct train_result result;

	toy_init(&toy, 2);
	toy_item(&toy, 1, 1);
	toy_gradient(&toy, 1, 0, 0);
	struct trial trial = {.gbps = 1, .train = {.load = &toy.load, .mechanism = workload_mechanism_find("server")}};
	CHECK(sim_trial_run(&trial, &result, &err) == ESP_EINVAL && strstr(err.text, "server"));
	trial.train.servers = 1;
	trial.gbps = 0;
	CHECK(sim_trial_run(&trial, &result, &err) == ESP_EINVAL && strstr(err.text, "Gbps"));
	trial.gbps = 1;
	trial.train.no_barrier = true;
	trial.train.iterations = 1;
	CHECK(sim_trial_run(&trial, &result, &err) == ESP_EINVAL && strstr(err.text, "barrier"));
	struct topology *small;
	CHECK(topology_make(&(struct topology_spec){.racks = 1, .hosts = 1, .rate_bits = 1000}, &small, &err) == ESP_OK);
	trial.train.no_barrier = false;
	trial.train.topology = small;
	CHECK(sim_trial_run(&trial, &result, &err) == ESP_EINVAL && strstr(err.text, "hosts"));
	topology_close(small);
	/* Without the barrier, a parameter whose gradient is unknown is sent with the first sum, as one that has none. */
	struct toy lost;
	toy_init(&lost, 2);
	toy_item(&lost, 1, 1);
	toy_item(&lost, 1, 1);
	toy_gradient(&lost, 1, 0, 1);
	toy_gradient(&lost, 1, 1, 0);
	trial = (struct trial){
		.gbps = GBPS,
		.train = {
			.load = &lost.load, .mechanism = workload_mechanism_find("server"), .servers = 1, .no_barrier = true}};
	CHECK(sim_trial_run(&trial, &result, &err) == ESP_OK);
	lost.gradients[0].item = LOAD_NONE;
	CHECK(sim_trial_run(&trial, &result, &err) == ESP_OK);
}

/*
 * A host for each worker and no more: the server is where the first worker is, which gets its parameters without a
 * network; so is a hub.
 */
static void test_shared_hosts(void)
{
	struct toy toy;
	struct error err = {0};
	struct train_result result;
	struct topology *small;

	toy_init(&toy, 2);
	toy_item(&toy, 1, 1);
	toy_gradient(&toy, 1, 0, 0);
	CHECK(topology_make(&(struct topology_spec){.racks = 1, .hosts = 2, .rate_bits = (uint64_t)(8 * RATE)}, &small,
	                    &err) == ESP_OK);
	struct trial trial = {
		.train = {.load = &toy.load, .mechanism = workload_mechanism_find("server"), .topology = small, .servers = 1}};
	CHECK_MSG(sim_trial_run(&trial, &result, &err) == ESP_OK, "%s", err.text);
	CHECK_NEAR(result.iteration_s, 3);
	CHECK_U64(result.class_bytes[TOPOLOGY_HOST_OUT], (uint64_t)(2 * RATE));
	trial.train.servers = 3; /* more than there are hosts */
	CHECK_MSG(sim_trial_run(&trial, &result, &err) == ESP_OK, "%s", err.text);
	trial.train.mechanism = workload_mechanism_find("hub");
	CHECK_MSG(sim_trial_run(&trial, &result, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(result.class_bytes[TOPOLOGY_HOST_OUT], (uint64_t)(2 * RATE)); /* up from one worker and down to it */
	topology_close(small);
}

/*
 * Connections share links as TCP flows do: a worker's gradients go to all servers at once, each as fast as its server
 * takes in those of all workers. So as many servers as there are take a part of the time each, with every mechanism
 * that sums or copies at them.
 */
static void test_fluid_servers(void)
{
	static const struct {
		const char *mechanism;
		double one_s;
	/* a switch passes a sum on when all of it is there */
	} cases[] = {{"server", 4 + 4}, {"multicast", 1 + 4}, {"aggregation", 4 + 2}};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct toy toy;

		toy_init(&toy, 4);
		toy_item(&toy, 1, 0);
		toy_gradient(&toy, 1, 0, 0);
		for (uint32_t servers = 1; servers <= 4; servers *= 2) {
			struct trial trial = {.train = {.load = &toy.load,
			                                .mechanism = workload_mechanism_find(cases[i].mechanism),
			                                .servers = servers,
			                                .even_split = true,
			                                .fluid = true}};
			/*
			 * Data that a switch copies or adds is bound by the links of the workers: a second, however many servers
			 * there are.
			 */
			double at_switch = strcmp(cases[i].mechanism, "server") == 0 ? 0 : 1;

			CHECK_NEAR(seconds_of(trial), at_switch + (cases[i].one_s - at_switch) / servers);
		}
	}
	/*
	 * Messages of a connection for a worker leave in the order of sending, on whichever stream: the first of many
	 * layers is there first.
	 */
	struct trial trial = {.train = {.mechanism = workload_mechanism_find("server"), .servers = 1, .fluid = true}};
	struct load_item items[200];
	struct load_gradient gradient = {1, 199, 199, 199, 0};
	double layer_s[200], factor = 1;
	for (uint32_t i = 0; i < 200; i++) {
		items[i] = (struct load_item){(uint64_t)RATE, i, i, i};
		layer_s[i] = 1;
	}
	struct load load = {.items = items,
	                    .item_count = 200,
	                    .gradients = &gradient,
	                    .gradient_count = 1,
	                    .layer_s = layer_s,
	                    .layer_count = 200,
	                    .worker_factor = &factor,
	                    .workers = 1,
	                    .distribution_factor = 1};
	trial.train.load = &load;
	CHECK_NEAR(seconds_of(trial), 201 + 1 / RATE);
}

int main(void)
{
	test_figure_2();
	test_forward();
	for (uint64_t seed = 1; seed <= 5; seed++) {
		test_stagger(seed);
		test_block(seed);
		test_bytes(seed);
		test_repeats(seed);
	}
	test_iterations();
	test_overlap();
	test_refused();
	test_shared_hosts();
	test_fluid_servers();
	return 0;
}
