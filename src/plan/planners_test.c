/*
 * planners_test.c - every planner for every collective and size passes the checker, with the
 * costs that its description promises.
 */
#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"
#include "plan/check.h"
#include "plan/plan.h"

#define BLOCK_BYTES 4096u

static uint32_t log2_down(uint32_t n)
{
	uint32_t rounds = 0;

	while (2u << rounds <= n)
		rounds++;
	return rounds;
}

static struct plan *open_plan(const char *planner, const struct plan_spec *spec)
{
	struct plan *plan;
	struct error err;

	CHECK_MSG(plan_open(plan_planner_find(planner), spec, &plan, &err) == ESP_OK, "%s: %s", planner, err.text);
	return plan;
}

static struct plan_report check_plan(const struct plan *plan)
{
	struct plan_report report;
	struct error err;

	CHECK_MSG(plan_check(plan, NULL, &report, NULL, &err) == ESP_OK, "%s %s of %u nodes: %s",
	          plan_planner_name(plan->planner), plan_collective_name(plan->chunks.collective), plan->workers, err.text);
	return report;
}

/* An allreduce of n chunks of 64 bytes on n nodes in groups of group_nodes. */
static struct plan_report served_cost(const char *planner, uint32_t n, uint32_t group_nodes, uint32_t servers)
{
	uint32_t *group_of = calloc(n, sizeof(*group_of));
	struct plan_spec spec = {
		.chunks = {.collective = PLAN_ALLREDUCE, .workers = n, .bytes = 64 * n, .chunk_bytes = 64, .align = 4},
		.group_of = group_nodes ? group_of : NULL,
		.servers = servers,
	};

	CHECK(group_of);
	for (uint32_t i = 0; group_nodes && i < n; i++)
		group_of[i] = i / group_nodes;
	struct plan *plan = open_plan(planner, &spec);
	struct plan_report report = check_plan(plan);
	plan_close(plan);
	free(group_of);
	return report;
}

static struct plan_report allreduce_cost(const char *planner, uint32_t n, uint32_t group_nodes, bool leaves,
                                         uint32_t fanout)
{
	uint32_t *group_of = calloc(n, sizeof(*group_of));
	struct plan_spec spec = {
		.chunks = {.collective = PLAN_ALLREDUCE, .workers = n, .bytes = 64 * n, .chunk_bytes = 64, .align = 4},
		.group_of = group_of,
		.leaves = leaves,
		.fanout = fanout,
	};

	CHECK(group_of);
	for (uint32_t i = 0; i < n; i++)
		group_of[i] = i / group_nodes;
	struct plan *plan = open_plan(planner, &spec);
	struct plan_report report = check_plan(plan);
	CHECK_U64(report.chunks, n);
	plan_close(plan);
	free(group_of);
	return report;
}

/* The counts that the planners' descriptions promise, in units of the buffer S. */
static void costs(void)
{
	for (uint32_t n = 2; n <= 40; n++) {
		uint64_t s = 64 * n, least = 2 * (n - 1) * s;
		uint32_t log = log2_down(n);
		bool is_power = (n & (n - 1)) == 0;
		struct plan_report ring = allreduce_cost("ring", n, 1, false, 0);
		struct plan_report halving = allreduce_cost("halving-doubling", n, 1, false, 0);
		struct plan_report butterfly = allreduce_cost("butterfly", n, 1, false, 0);
		struct plan_report exchange = allreduce_cost("exchange", n, 1, false, 0);
		struct plan_report flat = allreduce_cost("flat", n, 1, false, 0);
		struct plan_report tree = allreduce_cost("tree", n, 1, false, 2);
		struct plan_report pair = allreduce_cost("double-tree", n, 1, false, 0);
		struct plan_report twin = allreduce_cost("twin", n, 1, false, 0);

		CHECK_U64(ring.rounds, 2 * (n - 1));
		CHECK_U64(ring.wire_bytes, least);
		CHECK_U64(ring.busiest_bytes, 2 * least / n); /* all nodes alike */
		CHECK_U64(halving.rounds, 2 * log + (is_power ? 0 : 2));
		CHECK_U64(halving.wire_bytes, least);
		/* The odd nodes come in before and go out after, but not all others wait for them. */
		CHECK(is_power ? butterfly.rounds == log : butterfly.rounds > log && butterfly.rounds <= log + 2);
		if (is_power)
			CHECK_U64(butterfly.wire_bytes, n * log * s);
		CHECK_U64(exchange.rounds, 1);
		CHECK_U64(exchange.wire_bytes, n * (n - 1) * s);
		CHECK_U64(exchange.busiest_bytes, 2 * (n - 1) * s); /* all nodes alike */
		CHECK_U64(flat.rounds, 2);
		CHECK_U64(flat.wire_bytes, least);
		CHECK_U64(flat.busiest_bytes, 2 * least / n);
		CHECK_U64(tree.wire_bytes, least);
		CHECK_U64(tree.rounds, 2 * log2_down(n));
		CHECK_U64(pair.wire_bytes, least);
		CHECK(pair.rounds <= 2 * (log + 1));
		/* No node is inner in both trees: it never has more than one chunk's four in and out, and another's two. */
		CHECK(pair.busiest_bytes <= tree.busiest_bytes);
		CHECK_U64(twin.wire_bytes, least);
		CHECK_U64(twin.rounds, n < 4 ? n - 1 : 3); /* a hub without a star waits for no other */
		CHECK_U64(twin.busiest_bytes, 2 * ((n + 1) / 2) * s); /* in and out: half of the others, and the other hub */
	}
	for (uint32_t racks = 1; racks <= 5; racks++) {
		for (uint32_t per_rack = 1; per_rack <= 5; per_rack++) {
			uint32_t n = racks * per_rack;
			struct plan_report two = allreduce_cost("two-level", n, per_rack, false, 0);

			CHECK_U64(two.wire_bytes, 2 * (n - 1) * 64 * n);
			CHECK_U64(two.cross_bytes, 2 * (racks - 1) * 64 * n);
			CHECK_U64(two.rounds, (racks > 1 ? 2 : 0) + (per_rack > 1 ? 2 : 0));
		}
	}
	/* The tree that PLink counts: all workers are leaves. */
	struct plan_report leaves = allreduce_cost("tree", 27, 9, true, 3);
	CHECK_U64(leaves.rounds, 6);
	CHECK_U64(leaves.wire_bytes, 2 * (27 + 9 + 3) * 64 * 27);
}

/* Switches and hubs: how often a chunk passes a link, in units of the buffer S. */
static void costs_of_extra_nodes(void)
{
	for (uint32_t n = 1; n <= 20; n++) {
		uint64_t s = 64 * n;

		for (uint32_t servers = 1; servers <= 3; servers++) {
			struct plan_report central = served_cost("central", n, 0, servers),
			                   both = served_cost("switch", n, 0, servers);
			struct plan_report sum = served_cost("switch-sum", n, 0, servers),
			                   copy = served_cost("switch-copy", n, 0, servers);

			CHECK(central.rounds == 2 && both.rounds == 4 && sum.rounds == 3 && copy.rounds == 3);
			CHECK_U64(central.wire_bytes, 2 * n * s);
			CHECK_U64(both.wire_bytes, (2 * n + 2) * s); /* each worker's link once each way, and the server's */
			CHECK_U64(sum.wire_bytes, (2 * n + 1) * s);
			CHECK_U64(copy.wire_bytes, (2 * n + 1) * s);
		}
		if (n < 2)
			continue;
		struct plan_report ring = served_cost("ring-switch", n, 0, 0);
		CHECK(ring.rounds == n - 1 + 2);
		CHECK_U64(ring.wire_bytes, (n - 1 + n) * s);
	}
	for (uint32_t racks = 2; racks <= 5; racks++) {
		for (uint32_t per_rack = 1; per_rack <= 5; per_rack++) {
			uint32_t n = racks * per_rack;
			uint64_t s = 64 * n;
			struct plan_report hub = served_cost("hub", n, per_rack, 0), both = served_cost("switch", n, per_rack, 1);

			CHECK(hub.rounds == 4 && both.rounds == 8);
			CHECK_U64(hub.wire_bytes, (2 * n + 2 * (racks - 1)) * s);
			CHECK_U64(hub.cross_bytes, 2 * (racks - 1) * s);
			CHECK_U64(both.wire_bytes, (2 * n + 2 + 2 * racks) * s); /* and each group's uplink */
			CHECK_U64(both.cross_bytes, 2 * (racks - 1) * s);
		}
	}
}

/* Exchange takes one round, whatever is asked of it, and adds as flat and central do. */
static void one_round(void)
{
	for (uint32_t i = 0; i < 24 * PLAN_COLLECTIVE_COUNT * 2; i++) {
		enum plan_collective collective = (enum plan_collective)(i / 2 % PLAN_COLLECTIVE_COUNT);
		uint32_t n = 1 + i / 2 / PLAN_COLLECTIVE_COUNT;
		struct plan_spec spec = {
			.chunks = {
				.collective = collective,
				.workers = n,
				.root = n / 2,
				.bytes = collective == PLAN_BARRIER ? 0 : 400,
				.chunk_bytes = 200,
			},
			.in_place = i % 2,
		};

		if (collective == PLAN_ALLTOALL && spec.in_place)
			continue;
		struct plan *exchange = open_plan("exchange", &spec), *flat = open_plan("flat", &spec);
		struct plan *central = open_plan("central", &spec);
		struct plan_report report = check_plan(exchange);

		CHECK_U64(report.rounds, n > 1);
		CHECK_U64(report.order, check_plan(flat).order);
		CHECK_U64(report.order, check_plan(central).order);
		plan_close(exchange);
		plan_close(flat);
		plan_close(central);
	}
}

static void shuffle(struct rng *rng, uint32_t *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		list[i] = i;
	for (uint32_t i = count; i > 1; i--) {
		uint32_t other = (uint32_t)rng_below(rng, i), kept = list[i - 1];

		list[i - 1] = list[other];
		list[other] = kept;
	}
}

/* Everything else, at random, with what can vary varied. */
static void any_plan(struct rng *rng)
{
	unsigned planner_count = 0;
	uint64_t counts[24 * 24];
	uint32_t group_of[24], order[24], zone_of[24];

	while (plan_planner(planner_count))
		planner_count++;
	for (int i = 0; i < 20000; i++) {
		const struct planner *planner = plan_planner((unsigned)rng_below(rng, planner_count));
		uint32_t n = 1 + (uint32_t)rng_below(rng, 24), groups = 1 + (uint32_t)rng_below(rng, n);
		enum plan_collective collective = (enum plan_collective)rng_below(rng, PLAN_COLLECTIVE_COUNT);
		bool one = collective == PLAN_ALLREDUCE || collective == PLAN_BROADCAST || collective == PLAN_REDUCE;

		if (collective == PLAN_ALLTOALL && n > 8)
			n = 8, groups = 1;
		for (uint32_t k = 0; k < n; k++)
			group_of[k] = k < groups ? groups - 1 - k : (uint32_t)rng_below(rng, groups);
		for (uint32_t k = 0; k < n * n; k++)
			counts[k] = rng_chance(rng, 1, 3) ? 0 : rng_below(rng, 3000);
		struct plan_spec spec = {
			.chunks = {
				.collective = collective,
				.workers = n,
				.root = (uint32_t)rng_below(rng, n),
				.bytes = collective == PLAN_BARRIER ? 0 : rng_below(rng, BLOCK_BYTES),
				.counts = collective == PLAN_BARRIER || one || rng_chance(rng, 1, 2) ? NULL : counts,
				.chunk_bytes = rng_below(rng, 2000),
				.align = (uint32_t)rng_below(rng, 9),
			},
			.in_place = collective != PLAN_ALLTOALL && rng_chance(rng, 1, 2),
			.group_of = group_of,
			.fanout = (uint32_t)rng_below(rng, 6),
			.servers = (uint32_t)rng_below(rng, 4),
			.leaves = rng_chance(rng, 1, 3),
		};
		uint32_t zones = 1 + (uint32_t)rng_below(rng, groups);
		for (uint32_t k = 0; k < groups; k++)
			zone_of[k] = k < zones ? zones - 1 - k : (uint32_t)rng_below(rng, zones);
		if (rng_chance(rng, 1, 2))
			spec.zone_of = zone_of;
		shuffle(rng, order, n);
		if (!plan_planner_needs_groups(planner) && !plan_planner_has_extra(planner) && rng_chance(rng, 1, 2))
			spec.order = order;
		if (spec.leaves && spec.fanout == 1)
			spec.fanout = 2;
		struct plan *plan = open_plan(plan_planner_name(planner), &spec);
		check_plan(plan);
		plan_close(plan);
	}
}

/*
 * Three levels: what leaves a host, and what leaves a rack, is what two levels by hosts and by racks let out. Without
 * zones it is two levels, added up in the same order.
 */
static void three_levels(void)
{
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t racks = 1 + i % 4, hosts = 1 + i / 4 % 4, each = 1 + i / 16, n = racks * hosts * each;
		uint32_t host_of[64], rack_of[64], zone_of[16];
		struct plan_spec spec = {
			.chunks = {.collective = PLAN_ALLREDUCE, .workers = n, .bytes = 64 * n, .chunk_bytes = 64, .align = 4},
			.group_of = host_of,
		};

		for (uint32_t k = 0; k < n; k++) {
			host_of[k] = k % (racks * hosts);
			rack_of[k] = host_of[k] % racks;
		}
		for (uint32_t k = 0; k < racks * hosts; k++)
			zone_of[k] = k % racks;
		struct plan *by_hosts = open_plan("two-level", &spec), *plain = open_plan("three-level", &spec);
		spec.zone_of = zone_of;
		struct plan *three = open_plan("three-level", &spec);
		struct plan_report report = check_plan(three);

		CHECK_U64(check_plan(plain).order, check_plan(by_hosts).order);
		CHECK_U64(report.wire_bytes, 2 * (n - 1) * 64 * n);
		CHECK_U64(report.cross_bytes, 2 * (racks * hosts - 1) * 64 * n);
		CHECK_U64(report.rounds, 2 * ((racks > 1) + (hosts > 1) + (each > 1)));
		uint64_t cross = 0; /* messages between racks */
		struct plan_row row = {0};
		for (uint64_t at = 0; at < (uint64_t)n * three->chunks.chunk_count; at++) {
			uint32_t node = (uint32_t)(at % n);

			CHECK(plan_row(three, node, at / n, &row) == ESP_OK);
			for (uint32_t s = 0; s < row.count; s++)
				cross += row.steps[s].verb == PLAN_SEND && rack_of[node] != rack_of[row.steps[s].node];
		}
		CHECK_U64(cross, 2 * (racks - 1) * n);
		plan_row_fini(&row);
		plan_close(by_hosts);
		plan_close(plain);
		plan_close(three);
	}
}

/*
 * In the order of their groups, a ring leaves each group once, and halving-doubling crosses as seldom as two levels do.
 */
static void order_by_groups(struct rng *rng)
{
	for (int i = 0; i < 200; i++) {
		uint32_t racks = 1u << rng_below(rng, 3), per_rack = 1u << rng_below(rng, 3), n = racks * per_rack;
		uint32_t seats[64], group_of[64] = {0}, order[64], at = 0;
		struct plan_spec spec = {
			.chunks = {.collective = PLAN_ALLREDUCE, .workers = n, .bytes = 64 * n, .chunk_bytes = 64, .align = 4},
			.in_place = i % 2,
			.group_of = group_of,
		};

		shuffle(rng, seats, n);
		for (uint32_t k = 0; k < n; k++)
			group_of[seats[k]] = k / per_rack;
		for (uint32_t g = 0; g < racks; g++) {
			for (uint32_t k = 0; k < n; k++) {
				if (group_of[k] == g)
					order[at++] = k;
			}
		}
		struct plan *two = open_plan("two-level", &spec);
		spec.order = order;
		struct plan *ring = open_plan("ring", &spec), *halving = open_plan("halving-doubling", &spec);
		struct plan_report around = check_plan(ring), halved = check_plan(halving);

		CHECK_U64(around.wire_bytes, 2 * (n - 1) * 64 * n);
		CHECK_U64(around.rounds, 2 * (n - 1));
		/* n chunks; each passes all links but one, twice, and the one that it leaves out is another for each */
		if (racks > 1)
			CHECK_U64(around.cross_bytes, 2 * racks * (n - 1) * 64);
		CHECK_U64(halved.cross_bytes, check_plan(two).cross_bytes);
		plan_close(two);
		plan_close(ring);
		plan_close(halving);
	}
}

/* The pieces of a plan cover every buffer once and are no longer than asked. */
static void pieces(struct rng *rng)
{
	for (int i = 0; i < 3000; i++) {
		uint32_t n = 1 + (uint32_t)rng_below(rng, 9), align = 1u << rng_below(rng, 4);
		enum plan_collective collective = (enum plan_collective)rng_below(rng, PLAN_BARRIER);
		struct chunks_spec spec = {
			.collective = collective,
			.workers = n,
			.root = (uint32_t)rng_below(rng, n),
			.bytes = rng_below(rng, 600) * align,
			.chunk_bytes = 8 + rng_below(rng, 100),
			.align = align,
		};
		struct chunks chunks;

		CHECK(plan_chunks_init(&chunks, &spec, NULL) == ESP_OK);
		for (uint32_t node = 0; node < n; node++) {
			uint64_t covered = 0;

			for (uint64_t c = 0; c < chunks.chunk_count; c++) {
				struct plan_piece piece = plan_chunks_piece(&chunks, c);

				CHECK(piece.bytes > 0 && piece.bytes <= spec.chunk_bytes);
				CHECK(piece.in_at % align == 0 && piece.out_at % align == 0);
				if (piece_wants(&chunks, &piece, node))
					covered += piece.bytes;
				CHECK(!piece_wants(&chunks, &piece, node) ||
				      piece.out_at + piece.bytes <= plan_chunks_output_bytes(&chunks, node));
			}
			CHECK_U64(covered, plan_chunks_output_bytes(&chunks, node));
		}
		plan_chunks_fini(&chunks);
	}
}

/* plan_next_chunk() skips only chunks without steps, and skips all of those in an all-to-all. */
static void skipping(void)
{
	static const enum plan_collective collectives[] = {PLAN_GATHER, PLAN_SCATTER, PLAN_ALLTOALL, PLAN_ALLREDUCE};
	struct plan_row row = {0};

	for (unsigned i = 0; i < 8; i++) {
		struct plan_spec spec = {
			.chunks = {.collective = collectives[i / 2], .workers = 7, .root = 3, .bytes = 100, .chunk_bytes = 40},
		};
		struct plan *plan = open_plan(i % 2 ? "exchange" : "flat", &spec);

		for (uint32_t node = 0; node < 7; node++) {
			for (uint64_t c = 0, next = 0; c <= plan->chunks.chunk_count; c++) {
				if (c == next && c < plan->chunks.chunk_count) {
					next = plan_next_chunk(plan, node, c);
					if (next == c)
						next++;
					else
						c--;
					continue;
				}
				if (c == plan->chunks.chunk_count)
					break;
				CHECK(plan_row(plan, node, c, &row) == ESP_OK);
				CHECK_U64(row.count, 0);
			}
		}
		plan_close(plan);
	}
	plan_row_fini(&row);
}

static void refuse(const char *planner, struct plan_spec spec, const char *why)
{
	struct plan *plan = NULL;
	struct error err;

	CHECK(plan_open(plan_planner_find(planner), &spec, &plan, &err) == ESP_EINVAL);
	CHECK_MSG(strstr(err.text, why), "\"%s\" does not say \"%s\"", err.text, why);
}

static void refusals(void)
{
	static const uint32_t gap[] = {0, 2, 2}, far[] = {0, 1, 9};
	struct plan_spec spec = {.chunks = {.collective = PLAN_ALLREDUCE, .workers = 3, .bytes = 12}};
	struct plan_spec bad = spec;

	bad.chunks.workers = 0;
	refuse("ring", bad, "0 nodes");
	bad = spec, bad.chunks.root = 3;
	refuse("ring", bad, "root 3");
	refuse("two-level", spec, "group of each node");
	bad = spec, bad.group_of = gap;
	refuse("two-level", bad, "group 1");
	bad.group_of = far;
	refuse("flat", bad, "group 9");
	bad = spec, bad.in_place = true, bad.chunks.collective = PLAN_ALLTOALL;
	refuse("flat", bad, "in place");
	bad = spec, bad.leaves = true, bad.fanout = 1;
	refuse("tree", bad, "fan-out");
	bad = spec, bad.chunks.bytes = UINT64_MAX;
	refuse("tree", bad, "too many");
	bad = spec, bad.chunks.collective = PLAN_BARRIER;
	refuse("tree", bad, "barrier");
	static const uint32_t twice[] = {0, 1, 1}, beyond[] = {0, 1, 3}, good[] = {2, 0, 1}, groups[] = {0, 0, 1};
	bad = spec, bad.order = twice;
	refuse("ring", bad, "node 1 is in the order twice");
	bad.order = beyond;
	refuse("ring", bad, "the order has node 3");
	bad.order = good, bad.group_of = groups;
	refuse("two-level", bad, "takes no order");
	CHECK(!plan_planner_find("rings"));
}

/* Masters move where the order of addition allows it, and nowhere else. */
static void moving(void)
{
	static const uint32_t groups[] = {0, 1, 0, 1, 1};
	struct plan_spec spec = {
		.chunks = {.collective = PLAN_ALLREDUCE, .workers = 5, .bytes = 400, .chunk_bytes = 40},
		.group_of = groups,
	};
	struct plan *flat = open_plan("flat", &spec), *ring = open_plan("ring", &spec),
				*two = open_plan("two-level", &spec);
	struct plan *exchange = open_plan("exchange", &spec);

	CHECK(plan_move_owner(flat, 3, 4) == ESP_OK);
	CHECK(plan_move_owner(flat, 10, 4) == ESP_EINVAL);
	CHECK(plan_move_owner(flat, 3, 5) == ESP_EINVAL);
	CHECK(plan_move_owner(ring, 3, 4) == ESP_EINVAL);
	CHECK(plan_move_owner(exchange, 3, 4) == ESP_EINVAL);
	CHECK(plan_move_owner(two, 3, 4) == ESP_EINVAL);
	CHECK(plan_move_local(two, 3, 1, 4) == ESP_OK);
	CHECK(plan_move_local(two, 3, 0, 4) == ESP_EINVAL);
	CHECK(plan_move_global(two, 3, 1) == ESP_OK);
	CHECK(plan_move_global(two, 3, 2) == ESP_EINVAL);
	plan_close(flat);
	plan_close(ring);
	plan_close(two);
	plan_close(exchange);
}

/* Wherever the masters are moved, the order of addition stays: the checker's digest of it says so. */
static void moving_keeps_the_order(struct rng *rng)
{
	static const char *const planners[] = {"flat", "halving-doubling", "two-level"};

	for (int i = 0; i < 300; i++) {
		uint32_t n = 1 + (uint32_t)rng_below(rng, 20), group_of[20], seats[20];
		struct plan_spec spec = {
			.chunks = {.collective = PLAN_ALLREDUCE, .workers = n, .bytes = 400, .chunk_bytes = 40},
			.in_place = i % 2,
			.group_of = group_of,
		};

		for (uint32_t k = 0; k < n; k++)
			group_of[k] = k == 0 ? 0 : (uint32_t)rng_below(rng, group_of[k - 1] + 2) % (k + 1);
		for (uint32_t k = 1, most = 0; k < n; k++) /* without gaps */
			most = group_of[k] > most ? (group_of[k] = most + 1) : most;
		shuffle(rng, seats, n);
		if (i % 3 != 2 && i % 5 < 2)
			spec.order = seats;
		struct plan *plan = open_plan(planners[i % 3], &spec);
		uint64_t order = check_plan(plan).order;

		for (uint64_t c = 0; c < plan->chunks.chunk_count; c++) {
			uint32_t node = (uint32_t)rng_below(rng, n), group = (uint32_t)rng_below(rng, plan->group_count);
			bool is_two_level = i % 3 == 2;

			CHECK(plan_move_owner(plan, c, node) == (is_two_level ? ESP_EINVAL : ESP_OK));
			CHECK(plan_move_local(plan, c, group_of[node], node) == (is_two_level ? ESP_OK : ESP_EINVAL));
			CHECK(plan_move_global(plan, c, group) == (is_two_level ? ESP_OK : ESP_EINVAL));
		}
		CHECK_U64(check_plan(plan).order, order);
		plan_close(plan);
	}
}

/*
 * Around a ring every link has as many messages of one turn as of any other, so what is numbered by turns is sent by
 * turns: a window need not hold more than what is on its way.
 */
static void full_rounds(void)
{
	for (uint32_t n = 2; n <= 20; n++) {
		struct plan_spec spec = {
			.chunks = {
				.collective = PLAN_ALLREDUCE, .workers = n, .bytes = 64 * 12 * n, .chunk_bytes = 64, .align = 4}};
		struct plan *plan = open_plan("ring", &spec);
		uint32_t lap = plan_lap(plan), turns = 2 * (n - 1);
		uint32_t *count = calloc((size_t)n * turns, sizeof(*count));
		struct plan_row row = {0};

		CHECK(count);
		CHECK_U64(lap, 4 * n);
		for (uint64_t i = 0; i < (uint64_t)lap * n; i++) {
			uint32_t node = (uint32_t)(i % n), nth = 0;

			CHECK(plan_row(plan, node, lap + i / n, &row) == ESP_OK); /* its second lap */
			for (uint32_t s = 0; s < row.count; s++) {
				if (row.steps[s].verb != PLAN_SEND)
					continue;
				uint32_t turn = plan_turn(plan, lap + i / n, node, row.steps[s].node, nth++);
				CHECK(turn < turns);
				count[node * turns + turn]++;
			}
		}
		for (uint32_t i = 0; i < n * turns; i++)
			CHECK_U64(count[i], lap / n);
		plan_row_fini(&row);
		free(count);
		plan_close(plan);
	}
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	costs();
	costs_of_extra_nodes();
	one_round();
	pieces(&rng);
	skipping();
	refusals();
	moving();
	moving_keeps_the_order(&rng);
	order_by_groups(&rng);
	three_levels();
	full_rounds();
	any_plan(&rng);
	return 0;
}
