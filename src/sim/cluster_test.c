/*
 * cluster_test.c - plans run in virtual time take as long, and move as many bytes, as can be worked out by hand.
 */
#include "sim/cluster.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"
#include "plan/check.h"
#include "plan/text.h"

#define RATE_BITS UINT64_C(8000000000) /* a byte takes a nanosecond */
#define RATE 1e9
#define NODES_MOST 200u

/* A run and its outcome. */
struct trial {
	const char *planner;
	struct plan_spec spec;
	uint32_t racks;
	enum network_model model;
	enum cluster_order order;
	bool cut_through_sums;
	uint32_t active_chunks, credits;
	uint64_t delay_ns; /* of a host's link */
	uint64_t rate_bits;
	bool is_read; /* the plan is printed, and what was read of that is run */

	double time;
	uint32_t done;
	uint64_t digest; /* of all messages and their times */
	uint64_t host_out, host_in, rack_out, rack_in;
	struct cluster_stats stats;
	struct plan_report report;
};

static struct agenda now; /* of the trial that runs */

static void on_done(void *user, uint32_t stream, uint32_t member, void *cookie)
{
	struct trial *trial = user;

	CHECK(stream == 0 && cookie == trial && member < NODES_MOST);
	trial->done++;
	trial->time = now.now; /* acknowledgements may come later */
}

static void mix(uint64_t *digest, const void *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		*digest = (*digest ^ ((const uint8_t *)data)[i]) * UINT64_C(1099511628211);
}

static void on_message(void *user, const struct cluster_message *message)
{
	struct trial *trial = user;

	CHECK(message->ready <= message->begun && message->begun <= message->left && message->left <= message->arrived);
	mix(&trial->digest, &message->from, sizeof(message->from));
	mix(&trial->digest, &message->to, sizeof(message->to));
	mix(&trial->digest, &message->chunk, sizeof(message->chunk));
	mix(&trial->digest, &message->arrived, sizeof(message->arrived));
}

/* Workers and servers on hosts, each where its group is; switches where they are. */
static void place_nodes(const struct plan *plan, const struct topology *topology, uint32_t *place)
{
	uint32_t machines = plan->nodes - plan->switches, rack_at[NODES_MOST] = {0};

	CHECK(plan->nodes <= NODES_MOST && topology_place(topology, machines, false, place, NULL) == ESP_OK);
	for (uint32_t i = 0; i < machines; i++)
		rack_at[plan->group_of && plan->group_count > 1 ? plan->group_of[i] : 0] = topology_rack(topology, place[i]);
	for (uint32_t i = machines; i < plan->nodes; i++)
		place[i] = plan->switches > 1 && i + 1 == plan->nodes ? topology_root(topology)
		                                                       : rack_at[plan->switches > 1 ? i - machines : 0];
}

/* The plan as it is after it was written and read. */
static struct plan *through_text(struct plan *plan)
{
	char *text;
	size_t length;
	struct plan *read;
	struct error err = {0};
	FILE *file = open_memstream(&text, &length);

	CHECK(file && plan_print(plan, file, &err) == ESP_OK && fclose(file) == 0);
	CHECK_MSG(plan_parse(text, length, &read, &err) == ESP_OK, "%s", err.text);
	plan_close(plan);
	free(text);
	return read;
}

static void run(struct trial *trial)
{
	uint32_t place[NODES_MOST], workers = trial->spec.chunks.workers, racks = trial->racks ? trial->racks : 1;
	uint32_t group_of[NODES_MOST];
	struct topology *topology;
	struct cluster *cluster;
	struct plan *plan;
	struct error err = {0};

	for (uint32_t i = 0; i < workers; i++) /* equal racks */
		group_of[i] = i / (workers / racks);
	trial->spec.group_of = trial->racks ? group_of : NULL;
	CHECK_MSG(plan_open(plan_planner_find(trial->planner), &trial->spec, &plan, &err) == ESP_OK, "%s", err.text);
	if (trial->is_read)
		plan = through_text(plan);
	CHECK(plan_check(plan, NULL, &trial->report, NULL, &err) == ESP_OK);
	struct topology_spec spec = {.racks = racks, .hosts = plan->nodes - plan->switches, .delay_ns = trial->delay_ns,
	                             .rate_bits = trial->rate_bits ? trial->rate_bits : RATE_BITS};
	CHECK_MSG(topology_make(&spec, &topology, &err) == ESP_OK, "%s", err.text);
	place_nodes(plan, topology, place);
	struct cluster_config config = {
		.agenda = &now, .topology = topology, .place = place, .nodes = plan->nodes, .model = trial->model,
		.cut_through = true, .cut_through_sums = trial->cut_through_sums, .order = trial->order,
		.active_chunks = trial->active_chunks, .credits = trial->credits, .user = trial, .done = on_done,
		.message = on_message,
	};
	CHECK_MSG(sim_cluster_open(&config, &cluster, &err) == ESP_OK, "%s", err.text);
	trial->done = 0;
	trial->digest = 1;
	CHECK(sim_cluster_stream(cluster, NULL, plan->nodes, &err) == 0);
	CHECK_MSG(sim_cluster_start_all(cluster, 0, plan, trial, &err) == ESP_OK, "%s", err.text);
	CHECK(sim_agenda_run(&now, INFINITY, &err) == ESP_OK);
	CHECK_MSG(sim_cluster_quiet(cluster, &err) == ESP_OK, "%s: %s", trial->planner, err.text);
	CHECK_U64(trial->done, plan->nodes);
	trial->stats = sim_cluster_stats(cluster);
	trial->host_out = sim_network_class_bytes(sim_cluster_network(cluster), TOPOLOGY_HOST_OUT);
	trial->host_in = sim_network_class_bytes(sim_cluster_network(cluster), TOPOLOGY_HOST_IN);
	trial->rack_out = sim_network_class_bytes(sim_cluster_network(cluster), TOPOLOGY_RACK_OUT);
	trial->rack_in = sim_network_class_bytes(sim_cluster_network(cluster), TOPOLOGY_RACK_IN);
	sim_cluster_close(cluster);
	plan_close(plan);
	topology_close(topology);
	sim_agenda_fini(&now);
}

static struct trial allreduce(const char *planner, uint32_t workers, uint64_t bytes, uint64_t chunk_bytes)
{
	return (struct trial){
		.planner = planner,
		.spec =
			{.chunks = {.collective = PLAN_ALLREDUCE, .workers = workers, .bytes = bytes, .chunk_bytes = chunk_bytes}},
	};
}

static void expect(const char *planner, enum network_model model, uint32_t workers, uint32_t servers, uint64_t bytes,
                   uint64_t chunk_bytes, bool cut_through_sums, double seconds)
{
	struct trial trial = allreduce(planner, workers, bytes, chunk_bytes);

	trial.model = model;
	trial.spec.servers = servers;
	trial.cut_through_sums = cut_through_sums;
	trial.active_chunks = 256;
	run(&trial);
	CHECK_MSG(fabs(trial.time - seconds) <= 1e-9 * seconds,
	          "%s of %u workers, %u servers, %" PRIu64 " bytes, model %d: %.12g s, not %.12g", planner, workers,
	          servers, bytes, (int)model, trial.time, seconds);
}

/* The same, one message at a time per NIC: connections that share it would delay those that others wait for. */
static void expect_in_order(const char *planner, enum network_model model, uint32_t workers, uint64_t bytes,
                            uint64_t chunk_bytes, double seconds)
{
	struct trial trial = allreduce(planner, workers, bytes, chunk_bytes);

	trial.model = model;
	trial.order = CLUSTER_READY;
	run(&trial);
	CHECK_MSG(fabs(trial.time - seconds) <= 1e-9 * seconds, "%s of %u workers, %" PRIu64 " bytes: %.12g s, not %.12g",
	          planner, workers, bytes, trial.time, seconds);
}

/* W workers, S bytes, B bytes per second, on one switch. */
static void test_closed_forms(struct rng *rng)
{
	for (int i = 0; i < 60; i++) {
		uint32_t w = 2 + (uint32_t)rng_below(rng, 40), k = 1 + (uint32_t)rng_below(rng, 5), power = 1u << k;
		uint64_t s = 1000 + rng_below(rng, 1u << 20);
		enum network_model model = i % 2 ? NETWORK_FIFO : NETWORK_FLUID;
		double t = (double)s / RATE; /* a share; the buffer has one for each worker where they are spread */

		expect("ring", model, w, 0, s * w, s, false, 2 * (w - 1) * t);
		expect("flat", NETWORK_FLUID, w, 0, s * w, s, false, 2 * (w - 1) * t);
		expect_in_order("halving-doubling", model, power, s * power, s, 2 * (power - 1) * t);
		expect("central", model, w, 0, s, 0, false, 2 * (w - 1) * t);
		expect("central", model, w, 1, s, 0, false, 2 * w * t);
		expect("central", NETWORK_FLUID, w, 4, 4 * s, s, false, 2 * (w > 4 ? w : 4) * t);
		expect("butterfly", model, power, 0, s, 0, false, k * t);
		expect("exchange", model, w, 0, s, 0, false, (w - 1) * t);
		expect("switch-copy", model, w, 1, s, 0, false, (w + 1) * t);
		expect("switch-sum", model, w, 1, s, 0, false, (w + 2) * t);
		expect("switch-sum", model, w, 1, s, 0, true, (w + 1) * t);
		expect("switch", model, w, 1, s, 0, false, 3 * t);
		expect("switch", model, w, 1, s, 0, true, 2 * t);
		expect("ring-switch", model, w, 0, s * w, s, false, 2 * (w - 1) * t);
	}
}

/*
 * Bytes on the wire are those that the checker counts; each message leaves and arrives, and its bytes pass each link of
 * its path once.
 */
static void test_bytes(struct rng *rng)
{
	for (int i = 0; i < 400; i++) {
		uint32_t racks = 1 + (uint32_t)rng_below(rng, 4), w = racks * (1 + (uint32_t)rng_below(rng, 8)), planners = 0;

		while (plan_planner(planners))
			planners++;
		struct trial trial = allreduce(plan_planner_name(plan_planner((unsigned)rng_below(rng, planners))), w,
		                               1 + rng_below(rng, 1u << 20), 1 + rng_below(rng, 1u << 17));
		trial.racks = racks;
		trial.spec.chunks.collective = (enum plan_collective)rng_below(rng, PLAN_BARRIER);
		trial.spec.chunks.root = (uint32_t)rng_below(rng, w);
		trial.spec.servers = (uint32_t)rng_below(rng, 3);
		trial.model = rng_chance(rng, 1, 2) ? NETWORK_FIFO : NETWORK_FLUID;
		trial.order = (enum cluster_order)rng_below(rng, 3);
		trial.cut_through_sums = rng_chance(rng, 1, 2);
		trial.active_chunks = 1 + (uint32_t)rng_below(rng, 20);
		trial.credits = 1 + (uint32_t)rng_below(rng, 20);
		trial.delay_ns = rng_below(rng, 3) * 1000;
		run(&trial);
		CHECK_U64(trial.stats.messages, trial.report.messages);
		CHECK_U64(trial.stats.bytes, trial.report.wire_bytes);
		CHECK(trial.host_out <= trial.stats.bytes && trial.host_in <= trial.stats.bytes);
		if (!plan_planner_has_extra(plan_planner_find(trial.planner))) {
			CHECK_U64(trial.host_out, trial.stats.bytes);
			CHECK_U64(trial.host_in, trial.stats.bytes);
			CHECK_U64(trial.rack_out, trial.rack_in);
		}
		double first = trial.time;
		uint64_t digest = trial.digest;
		run(&trial);
		CHECK(trial.time == first && trial.digest == digest); /* to the bit */
	}
}

/* Where links are so fast that only delays count, a plan takes its rounds. */
static void test_rounds(struct rng *rng)
{
	for (int i = 0; i < 100; i++) {
		uint32_t w = 1 + (uint32_t)rng_below(rng, 24), planners = 0;

		while (plan_planner(planners))
			planners++;
		const struct planner *planner = plan_planner((unsigned)rng_below(rng, planners));
		struct trial trial = allreduce(plan_planner_name(planner), w, w, 1);
		trial.racks = 1; /* one group */
		trial.delay_ns = 500000000;
		trial.rate_bits = UINT64_C(1000000000000000);
		trial.active_chunks = 64;
		trial.model = i % 2 ? NETWORK_FIFO : NETWORK_FLUID;
		run(&trial);
		/* Between hosts it is two links; to and from a switch one. */
		double most = trial.report.rounds, least = plan_planner_has_extra(planner) ? most / 2 : most;
		CHECK_MSG(trial.time >= least - 1e-6 && trial.time <= most + 1e-6, "%s of %u: %g s for %u rounds",
		          trial.planner, w, trial.time, trial.report.rounds);
	}
}

/*
 * In many small groups, too, all masters have something to do: with a window of 16 messages it takes little longer than
 * what hosts must send.
 */
static void test_many_groups(void)
{
	static const char *const planners[] = {"two-level", "three-level"};

	for (size_t i = 0; i < sizeof(planners) / sizeof(planners[0]); i++) {
		struct trial trial = allreduce(planners[i], 64, 128 << 16, 1 << 16);

		trial.racks = 32;
		trial.credits = 16;
		trial.active_chunks = 64;
		trial.order = CLUSTER_SHARED;
		run(&trial);
		double least = 2.0 * (128 << 16) / RATE;
		CHECK_MSG(trial.time < 1.5 * least, "%s: %g s, at least %g", planners[i], trial.time, least);
	}
}

/* Flat has something to sum for all, however few chunks may be in flight. */
static void test_few_in_flight(void)
{
	struct trial trial = allreduce("flat", 64, 64000, 1000);

	trial.active_chunks = 8;
	run(&trial);
	double least = 2 * 63 * 1000.0 / RATE;
	CHECK_MSG(trial.time < 1.01 * least, "%g s, at least %g", trial.time, least);
}

/* Messages take a host's links in turn: two links, half the time. */
static void test_nics(void)
{
	struct plan_spec spec = {
		.chunks = {.collective = PLAN_ALLREDUCE, .workers = 4, .bytes = 16000, .chunk_bytes = 1000}};
	struct agenda agenda = {0};
	double seconds[2];

	for (uint32_t nics = 1; nics <= 2; nics++) {
		for (int model = NETWORK_FLUID; model <= NETWORK_FIFO; model++) {
			struct topology_spec network = {.racks = 1, .hosts = 4, .rate_bits = RATE_BITS, .nics = nics};
			struct topology *topology;
			struct cluster *cluster;
			struct plan *plan;
			uint32_t place[4];

			CHECK(plan_open(plan_planner_find("central"), &spec, &plan, NULL) == ESP_OK);
			CHECK(topology_make(&network, &topology, NULL) == ESP_OK);
			CHECK(topology_place(topology, 4, false, place, NULL) == ESP_OK);
			struct cluster_config config = {.agenda = &agenda,
			                                .topology = topology,
			                                .place = place,
			                                .nodes = 4,
			                                .model = (enum network_model)model,
			                                .cut_through = true,
			                                .order = CLUSTER_READY};
			CHECK(sim_cluster_open(&config, &cluster, NULL) == ESP_OK);
			CHECK(sim_cluster_stream(cluster, NULL, 4, NULL) == 0);
			CHECK(sim_cluster_start_all(cluster, 0, plan, NULL, NULL) == ESP_OK);
			CHECK(sim_agenda_run(&agenda, INFINITY, NULL) == ESP_OK && sim_cluster_quiet(cluster, NULL) == ESP_OK);
			seconds[nics - 1] = agenda.now;
			if (nics == 2)
				CHECK(seconds[1] < 0.6 * seconds[0]);
			sim_cluster_close(cluster);
			plan_close(plan);
			topology_close(topology);
			sim_agenda_fini(&agenda);
		}
	}
}

/* ---- several calls, each node in its own time ---- */

struct toy {
	struct cluster *cluster;
	struct agenda *agenda;
	const struct plan *plan;
	uint32_t streams[3];
	double last; /* when the server had its last sum */
};

struct gradient {
	struct toy *toy;
	uint32_t worker, layer;
};

static void toy_done(void *user, uint32_t stream, uint32_t member, void *cookie)
{
	struct toy *toy = user;
	(void)stream, (void)cookie;

	if (member == 2)
		toy->last = toy->agenda->now;
}

static void toy_start(void *user)
{
	struct gradient *gradient = user;
	struct toy *toy = gradient->toy;

	CHECK(sim_cluster_start(toy->cluster, toy->streams[gradient->layer], gradient->worker, toy->plan, NULL, NULL) ==
	      ESP_OK);
}

/*
 * The operator paper's figure 2: two workers, three layers, each three seconds to compute and three to send; node 2 is
 * the server. The second worker starts later by `stagger`.
 */
static double toy_seconds(bool aggregates, double stagger, bool cut_through_sums)
{
	struct plan_spec spec = {.chunks = {.collective = PLAN_REDUCE, .workers = 3, .root = 2, .bytes = 3000000}};
	struct topology_spec network = {.racks = 1, .hosts = 3, .rate_bits = 8000000};
	struct gradient gradients[6];
	struct agenda agenda = {0};
	struct topology *topology;
	struct plan *plan;
	struct toy toy = {.agenda = &agenda};
	uint32_t place[4];

	CHECK(plan_open(plan_planner_find(aggregates ? "switch-sum" : "central"), &spec, &plan, NULL) == ESP_OK);
	CHECK(topology_make(&network, &topology, NULL) == ESP_OK);
	CHECK(topology_place(topology, 3, false, place, NULL) == ESP_OK);
	place[3] = topology_root(topology);
	struct cluster_config config = {
		.agenda = &agenda, .topology = topology, .place = place, .nodes = plan->nodes, .model = NETWORK_FIFO,
		.cut_through = true, .cut_through_sums = cut_through_sums, .user = &toy, .done = toy_done,
	};
	CHECK(sim_cluster_open(&config, &toy.cluster, NULL) == ESP_OK);
	toy.plan = plan;
	for (uint32_t layer = 0; layer < 3; layer++) {
		toy.streams[layer] = sim_cluster_stream(toy.cluster, NULL, plan->nodes, NULL);
		for (uint32_t node = 2; node < plan->nodes; node++)
			CHECK(sim_cluster_start(toy.cluster, toy.streams[layer], node, plan, NULL, NULL) == ESP_OK);
		for (uint32_t worker = 0; worker < 2; worker++) {
			gradients[layer * 2 + worker] = (struct gradient){&toy, worker, layer};
			sim_agenda_at(&agenda, 3 * (layer + 1) + worker * stagger, toy_start, &gradients[layer * 2 + worker]);
		}
	}
	CHECK(sim_agenda_run(&agenda, INFINITY, NULL) == ESP_OK);
	CHECK(sim_cluster_quiet(toy.cluster, NULL) == ESP_OK);
	sim_cluster_close(toy.cluster);
	plan_close(plan);
	topology_close(topology);
	sim_agenda_fini(&agenda);
	return toy.last;
}

static void test_toy(void)
{
	CHECK(toy_seconds(false, 0, false) == 21 && toy_seconds(false, 3, false) == 21);
	CHECK(toy_seconds(true, 0, true) == 12 && toy_seconds(true, 3, true) == 15);
	/* when the switch waits for all of a message */
	CHECK(toy_seconds(true, 0, false) == 15 && toy_seconds(true, 3, false) == 18);
}

/* A member that never starts is named. */
static void test_waiting(void)
{
	struct plan_spec spec = {.chunks = {.collective = PLAN_ALLREDUCE, .workers = 3, .bytes = 3000}};
	struct topology_spec network = {.racks = 1, .hosts = 3, .rate_bits = RATE_BITS};
	struct agenda agenda = {0};
	struct topology *topology;
	struct cluster *cluster;
	struct plan *plan;
	struct error err = {0};
	uint32_t place[3];

	CHECK(plan_open(plan_planner_find("ring"), &spec, &plan, NULL) == ESP_OK);
	CHECK(topology_make(&network, &topology, NULL) == ESP_OK);
	CHECK(topology_place(topology, 3, false, place, NULL) == ESP_OK);
	struct cluster_config config = {.agenda = &agenda, .topology = topology, .place = place, .nodes = 3};
	CHECK(sim_cluster_open(&config, &cluster, NULL) == ESP_OK);
	uint32_t members[] = {2, 0, 1}, wrong[] = {0, 3};
	CHECK(sim_cluster_stream(cluster, wrong, 2, &err) == UINT32_MAX && strstr(err.text, "node 3"));
	CHECK(sim_cluster_stream(cluster, members, 3, NULL) == 0);
	CHECK(sim_cluster_start(cluster, 0, 0, plan, NULL, NULL) == ESP_OK);
	CHECK(sim_cluster_start(cluster, 0, 1, plan, NULL, NULL) == ESP_OK);
	CHECK(sim_cluster_start(cluster, 0, 3, plan, NULL, &err) == ESP_EINVAL);
	CHECK(sim_agenda_run(&agenda, INFINITY, NULL) == ESP_OK);
	CHECK(sim_cluster_quiet(cluster, &err) == ESP_ESTATE);
	CHECK_MSG(strstr(err.text, "waits for node 1"), "%s", err.text);
	CHECK(sim_cluster_start(cluster, 0, 2, plan, NULL, NULL) == ESP_OK);
	CHECK(sim_agenda_run(&agenda, INFINITY, NULL) == ESP_OK);
	CHECK(sim_cluster_quiet(cluster, &err) == ESP_OK);
	sim_cluster_close(cluster);
	plan_close(plan);
	topology_close(topology);
	sim_agenda_fini(&agenda);
}

/* A plan that was read sends the same messages at the same times as the planner's own, whichever planner that is. */
static void test_read_plans(struct rng *rng, const char *planner)
{
	for (unsigned i = 0; i < 12; i++) {
		uint32_t racks = 1 + (uint32_t)rng_below(rng, 5), workers = racks * (1 + (uint32_t)rng_below(rng, 8));
		struct trial made = allreduce(planner, workers, 4096 * (1 + rng_below(rng, 120)), 4096);

		if (i % 3 == 0)
			made.spec.chunks.collective = i % 2 ? PLAN_ALLGATHER : PLAN_REDUCE_SCATTER;
		made.racks = racks;
		made.order = i % 2 ? CLUSTER_READY : CLUSTER_SHARED;
		made.delay_ns = 1000;
		made.active_chunks = 1 + (uint32_t)rng_below(rng, 16);
		made.credits = 1 + (uint32_t)rng_below(rng, 16);
		made.spec.lap_chunks = (uint32_t)rng_below(rng, 6);
		struct trial read = made;
		read.is_read = true;
		run(&made);
		run(&read);
		CHECK_MSG(made.time == read.time && made.digest == read.digest && made.stats.messages == read.stats.messages,
		          "%s of %u workers in %u racks: made %.12g s, read %.12g", planner, workers, racks, made.time,
		          read.time);
	}
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	test_toy();
	test_waiting();
	test_many_groups();
	test_few_in_flight();
	test_nics();
	test_closed_forms(&rng);
	test_bytes(&rng);
	test_rounds(&rng);
	for (unsigned i = 0; plan_planner(i); i++)
		test_read_plans(&rng, plan_planner_name(plan_planner(i)));
	return 0;
}
