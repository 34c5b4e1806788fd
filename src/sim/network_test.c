#include "sim/network.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"

#define MOST 64

/* A transfer and what was told of it. */
struct told {
	const struct agenda *agenda;
	double headed, left, arrived;
};

static void headed(void *user, void *cookie)
{
	((struct told *)cookie)->headed = ((struct agenda *)user)->now;
}

static void left(void *user, void *cookie)
{
	((struct told *)cookie)->left = ((struct agenda *)user)->now;
}

static void arrived(void *user, void *cookie)
{
	((struct told *)cookie)->arrived = ((struct agenda *)user)->now;
}

struct rig {
	struct agenda agenda;
	struct topology *topology;
	struct network *network;
	struct told told[MOST];
	uint32_t count;
};

static void rig_open(struct rig *rig, const char *text, enum network_model model, bool cut_through)
{
	struct error err = {0};

	*rig = (struct rig){0};
	CHECK_MSG(topology_parse(text, strlen(text), &rig->topology, &err) == ESP_OK, "%s", err.text);
	struct network_config config = {rig->topology, &rig->agenda, model, cut_through, 0,
	                                &rig->agenda,  headed,       left,  arrived};
	CHECK(sim_network_open(&config, &rig->network, &err) == ESP_OK);
}

static void rig_close(struct rig *rig)
{
	sim_network_close(rig->network);
	topology_close(rig->topology);
	sim_agenda_fini(&rig->agenda);
}

static struct told *send(struct rig *rig, const char *from, const char *to, uint64_t bytes)
{
	struct told *told = &rig->told[rig->count++];

	sim_network_send(rig->network, topology_find(rig->topology, from, strlen(from)),
	                 topology_find(rig->topology, to, strlen(to)), 0, bytes, told);
	return told;
}

static void run(struct rig *rig)
{
	CHECK(sim_agenda_run(&rig->agenda, INFINITY, NULL) == ESP_OK);
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * (fabs(b) + 1);
}

/* 8 Gbit/s are a byte per nanosecond: 1e9 bytes take a second. */
#define TEXT \
	"topology 1\nswitch core\n" \
	"switch rack0 under core rate 8gbit delay 1ms\nhosts 2 under rack0 rate 8gbit delay 2ms\n" \
	"switch rack1 under core rate 8gbit delay 1ms\nhosts 2 under rack1 rate 8gbit delay 2ms\n"
#define GB UINT64_C(1000000000)

/* ---- a grain ---- */

#define FLOWS 8192u

/* When flows of many sizes end that begin one after the other; returns how often rates were computed. */
static uint64_t run_many(double grain, struct told *told)
{
	struct rig rig;
	struct rng rng;

	rig_open(&rig, TEXT, NETWORK_FLUID, false);
	sim_network_close(rig.network);
	struct network_config config = {rig.topology, &rig.agenda, NETWORK_FLUID, false,   0,
	                                &rig.agenda,  headed,      left,          arrived, .grain = grain};
	CHECK(sim_network_open(&config, &rig.network, NULL) == ESP_OK);
	rng_init(&rng, 7);
	for (uint32_t i = 0; i < FLOWS; i++) {
		uint32_t from = (uint32_t)rng_below(&rng, 4), to = (from + 1 + (uint32_t)rng_below(&rng, 3)) % 4;

		sim_network_send(rig.network, rig.topology->hosts[from], rig.topology->hosts[to], 0,
		                 1000000 + rng_below(&rng, 1000000), &told[i]);
		if (i % 64 == 0)
			CHECK(sim_agenda_run(&rig.agenda, 1e-3 * i / 64, NULL) == ESP_OK);
	}
	run(&rig);
	uint64_t solved = sim_network_stats(rig.network).solved;
	CHECK(sim_network_class_bytes(rig.network, TOPOLOGY_HOST_OUT) >
	      FLOWS * UINT64_C(1000000)); /* all of it went its way */
	rig_close(&rig);
	return solved;
}

/* Rates that are looked at less often: nearly the same, by far less work. */
static void test_grain(void)
{
	static struct told exact[FLOWS], rough[FLOWS], none[FLOWS];
	uint64_t often = run_many(0, exact), seldom = run_many(0.02, rough), as_often = run_many(1e-9, none);

	CHECK_MSG(seldom * 2 < often && as_often > seldom, "%" PRIu64 " and %" PRIu64 " times instead of %" PRIu64, seldom,
	          as_often, often);
	for (uint32_t i = 0; i < FLOWS; i++) {
		CHECK_MSG(fabs(rough[i].left / exact[i].left - 1) < 0.05, "flow %u ends at %g instead of %g", i, rough[i].left,
		          exact[i].left);
		CHECK_MSG(fabs(none[i].left / exact[i].left - 1) < 1e-6, "flow %u ends at %g instead of %g", i, none[i].left,
		          exact[i].left);
	}
}

static void test_fluid(void)
{
	struct rig rig;

	rig_open(&rig, TEXT, NETWORK_FLUID, false);
	struct told *far = send(&rig, "node00", "node02", GB), *near_by = send(&rig, "node00", "node01", GB / 2);
	struct told *other = send(&rig, "node01", "node03", GB), *self = send(&rig, "node01", "node01", GB);
	run(&rig);
	/* node00's link is shared until near_by ends; so is the uplink, by far and other, until one of them does. */
	CHECK(near(near_by->left, 1) && near(near_by->arrived, 1.004));
	CHECK(near(far->left, 2) && near(far->arrived, 2.006) && near(other->left, 2));
	CHECK(self->arrived == 0 && self->left == 0);
	CHECK(sim_network_class_bytes(rig.network, TOPOLOGY_RACK_OUT) == 2 * GB);
	CHECK(sim_network_class_bytes(rig.network, TOPOLOGY_HOST_IN) == 2 * GB + GB / 2);
	rig_close(&rig);
}

static void test_fifo(bool cut_through)
{
	struct rig rig;

	rig_open(&rig, TEXT, NETWORK_FIFO, cut_through);
	struct told *first = send(&rig, "node00", "node02", GB), *second = send(&rig, "node01", "node03", GB);
	struct told *up = send(&rig, "node02", "core", GB);
	run(&rig);
	CHECK(near(first->left, 1) && near(second->left, 1));
	/* Four links; whole messages wait at each switch, or only queue for the uplink. */
	CHECK(near(first->arrived, cut_through ? 1.006 : 4.006));
	CHECK(near(second->arrived, cut_through ? 2.006 : 5.006));
	CHECK(near(up->headed, cut_through ? 0.003 : 2.003) && near(up->arrived, cut_through ? 1.003 : 2.003));
	rig_close(&rig);
}

/* A link that gets slower, traffic of a given rate, and flows that take their share. */
static void test_weather(void)
{
	struct rig rig;

	rig_open(&rig, TEXT "at 1s node00 rate 4gbit\n", NETWORK_FLUID, false);
	struct told *slowed = send(&rig, "node00", "node01", 2 * GB);
	run(&rig);
	CHECK(near(slowed->left, 3));
	rig_close(&rig);

	rig_open(&rig, TEXT "from 1s to 2s node02 > node01 rate 6gbit\n", NETWORK_FLUID, false);
	struct told *crossed = send(&rig, "node00", "node01", 2 * GB);
	run(&rig);
	CHECK(near(crossed->left, 2.75));
	rig_close(&rig);

	rig_open(&rig, TEXT "from 1s to 2s node02 > node01 flows 3\n", NETWORK_FLUID, false);
	struct told *shared = send(&rig, "node00", "node01", 2 * GB);
	run(&rig);
	CHECK(near(shared->left, 2.75));
	rig_close(&rig);

	rig_open(&rig, TEXT "from 0 node02 > node01 rate 6gbit\n", NETWORK_FIFO, true);
	CHECK(sim_agenda_run(&rig.agenda, 0, NULL) == ESP_OK);
	struct told *queued = send(&rig, "node00", "node01", GB);
	run(&rig);
	CHECK(near(queued->left, 1) && near(queued->arrived, 4.004));
	rig_close(&rig);

	struct rig refused = {0};
	struct error err = {0};
	const char text[] = TEXT "from 0 node02 > node01 flows 1\n";
	CHECK(topology_parse(text, strlen(text), &refused.topology, &err) == ESP_OK);
	struct network_config config = {.topology = refused.topology, .agenda = &refused.agenda, .model = NETWORK_FIFO};
	CHECK(sim_network_open(&config, &refused.network, &err) == ESP_EINVAL);
	topology_close(refused.topology);
}

/* Headers cost what they are: a payload of 1448 bytes in 1538 on the wire. */
static void test_headers(void)
{
	struct rig rig;

	rig_open(&rig, TEXT, NETWORK_FLUID, false);
	sim_network_close(rig.network);
	struct network_config config = {rig.topology, &rig.agenda, NETWORK_FLUID, false,  1500,
	                                &rig.agenda,  headed,      left,          arrived};
	CHECK(sim_network_open(&config, &rig.network, NULL) == ESP_OK);
	struct told *told = send(&rig, "node00", "node01", 1448000000);
	run(&rig);
	CHECK(near(told->left, 1.538) && sim_network_class_bytes(rig.network, TOPOLOGY_HOST_OUT) == 1448000000);
	rig_close(&rig);
}

/* No link carries more than it can, whatever is sent when; and the same seed is the same run. */
static void test_random(uint64_t seed, enum network_model model)
{
	double ended[2] = {0, 0};

	for (int again = 0; again < 2; again++) {
		struct rig rig;
		struct rng rng;
		double total = 0;

		rng_init(&rng, seed);
		rig_open(&rig, TEXT, model, rng_chance(&rng, 1, 2));
		for (uint32_t i = 0; i < MOST; i++) {
			uint32_t from = (uint32_t)rng_below(&rng, 4), to = (uint32_t)rng_below(&rng, 4);
			uint64_t bytes = rng_below(&rng, GB);

			CHECK(sim_agenda_run(&rig.agenda, rig.agenda.now + rng_unit(&rng), NULL) == ESP_OK);
			sim_network_send(rig.network, rig.topology->hosts[from], rig.topology->hosts[to], 0, bytes,
			                 &rig.told[rig.count++]);
			total += from == to ? 0 : (double)bytes;
		}
		run(&rig);
		for (uint32_t l = 0; l < rig.topology->link_count; l++)
			CHECK((double)sim_network_link_bytes(rig.network, l) <= rig.agenda.now * 1e9 * (1 + 1e-9));
		CHECK((double)sim_network_class_bytes(rig.network, TOPOLOGY_HOST_IN) == total);
		CHECK((double)sim_network_class_bytes(rig.network, TOPOLOGY_HOST_OUT) == total);
		ended[again] = rig.agenda.now;
		rig_close(&rig);
	}
	CHECK(ended[0] == ended[1]);
}

int main(void)
{
	test_fluid();
	test_grain();
	test_fifo(true);
	test_fifo(false);
	test_weather();
	test_headers();
	for (uint64_t seed = 1; seed <= 50; seed++) {
		test_random(seed, NETWORK_FLUID);
		test_random(seed, NETWORK_FIFO);
	}
	return 0;
}
