/*
 * share_test.c - shares against a solver that looks at everything, on small random networks that change all the time.
 */
#include "sim/share.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"

#define LINKS 12u
#define FLOWS 40u

/*
 * The definition, as slowly as can be: raise the rates of all flows together by the most that no link is overfull;
 * those on a full link stay as they are.
 */
static void brute(const struct share *share, struct share_flow *const *flows, uint32_t count, double *out)
{
	bool fixed[FLOWS] = {0};

	memset(out, 0, count * sizeof(*out));
	for (;;) {
		double step = INFINITY, left[LINKS];
		uint32_t open[LINKS] = {0}, moving = 0;

		for (uint32_t l = 0; l < share->link_count; l++)
			left[l] = share->links[l].capacity;
		for (uint32_t f = 0; f < count; f++) {
			moving += !fixed[f];
			for (uint32_t h = 0; h < flows[f]->hops; h++) {
				left[flows[f]->link[h]] -= out[f];
				open[flows[f]->link[h]] += !fixed[f];
			}
		}
		if (moving == 0)
			return;
		for (uint32_t l = 0; l < share->link_count; l++) {
			if (open[l] && left[l] / open[l] < step)
				step = left[l] / open[l];
		}
		for (uint32_t f = 0; f < count; f++)
			out[f] += fixed[f] ? 0 : step;
		for (uint32_t f = 0; f < count; f++) {
			for (uint32_t h = 0; h < flows[f]->hops && !fixed[f]; h++) {
				uint32_t l = flows[f]->link[h];

				fixed[f] = left[l] - open[l] * step <= 1e-9 * share->links[l].capacity;
			}
		}
	}
}

static uint32_t told;

static void count_changes(void *user, struct share_flow *flow, double before)
{
	(void)user;
	CHECK(flow->rate != before);
	told++;
}

static void draw_path(struct rng *rng, struct share_flow *flow)
{
	flow->hops = 1 + (uint32_t)rng_below(rng, 4);
	for (uint32_t i = 0; i < flow->hops; i++) {
		bool is_new;

		do {
			flow->link[i] = (uint32_t)rng_below(rng, LINKS);
			is_new = true;
			for (uint32_t k = 0; k < i; k++)
				is_new = is_new && flow->link[k] != flow->link[i];
		} while (!is_new);
	}
}

static void run_seed(uint64_t seed)
{
	struct share_flow flows[FLOWS], *live[FLOWS];
	double expected[FLOWS];
	uint32_t count = 0;
	struct share share;
	struct rng rng;

	rng_init(&rng, seed);
	CHECK(sim_share_init(&share, LINKS, NULL) == ESP_OK);
	for (uint32_t l = 0; l < LINKS; l++)
		sim_share_set_capacity(&share, l, (double)(1 + rng_below(&rng, seed % 2 ? 4 : 1000)));
	for (uint32_t i = 0; i < FLOWS; i++)
		live[i] = &flows[i];
	for (uint32_t turn = 0; turn < 60; turn++) {
		for (uint64_t changes = 1 + rng_below(&rng, 4); changes > 0; changes--) {
			if (count < FLOWS && (count == 0 || rng_chance(&rng, 11, 20))) {
				draw_path(&rng, live[count]);
				sim_share_add(&share, live[count++]);
			} else if (rng_chance(&rng, 3, 4)) {
				uint32_t gone = (uint32_t)rng_below(&rng, count);
				struct share_flow *flow = live[gone];

				sim_share_remove(&share, flow);
				live[gone] = live[--count];
				live[count] = flow;
			} else {
				sim_share_set_capacity(&share, (uint32_t)rng_below(&rng, LINKS), (double)(1 + rng_below(&rng, 1000)));
			}
			if (count == 0)
				break;
		}
		sim_share_solve(&share, count_changes, NULL);
		brute(&share, live, count, expected);
		for (uint32_t f = 0; f < count; f++)
			CHECK_MSG(fabs(live[f]->rate - expected[f]) <= 1e-6 * expected[f],
			          "seed %" PRIu64 ", turn %u: flow %u has %.9g, not %.9g", seed, turn, f, live[f]->rate,
			          expected[f]);
	}
	sim_share_fini(&share);
}

/* Two pairs of hosts that share no link: what happens to one is not looked at for the other. */
static void test_untouched(void)
{
	struct share_flow here = {.hops = 2, .link = {0, 1}}, there = {.hops = 2, .link = {2, 3}},
	                  more = {.hops = 2, .link = {0, 4}};
	struct share share;

	CHECK(sim_share_init(&share, 5, NULL) == ESP_OK);
	for (uint32_t l = 0; l < 5; l++)
		sim_share_set_capacity(&share, l, 10);
	sim_share_add(&share, &here);
	sim_share_add(&share, &there);
	told = 0;
	sim_share_solve(&share, count_changes, NULL);
	CHECK(told == 2 && here.rate == 10 && there.rate == 10);
	sim_share_add(&share, &more);
	told = 0;
	uint64_t seen = share.flows_seen;
	sim_share_solve(&share, count_changes, NULL);
	CHECK(told == 2 && here.rate == 5 && more.rate == 5 && share.flows_seen - seen <= 8);
	sim_share_fini(&share);
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 2 && strcmp(argv[1], "--seed") == 0 ? strtoull(argv[2], NULL, 10) : 1;

	test_untouched();
	for (uint64_t seed = first; seed < first + (argc > 2 ? 1 : 500); seed++)
		run_seed(seed);
	return 0;
}
