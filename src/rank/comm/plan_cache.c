#include "rank/comm/plan_cache.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/lane.h"
#include "plan/masters.h"
#include "plan/rows.h"

#define ROWS_NODES_MOST 16u /* of a plan whose rows are kept, those of all nodes */
#define LINE 64u /* chunks begin at multiples of a cache line */

/*
 * Up to which size few hops count most, then few messages, then few rounds; beyond, few bytes. Measured between sockets
 * of one machine, where every message costs its core, with `espalier bench --transport tcp --plan`
 * (docs/results/core.md); between machines bytes count earlier.
 */
#define FEW_HOPS 4096u
#define FEW_HOPS_MEMBERS 16u
#define FEW_MESSAGES (64u << 10)
#define FEW_ROUNDS (1u << 20)
#define FEW_MESSAGES_WITHIN (4u << 20)

/*
 * Of each rank around a ring between machines (plan/planner/ring.c has laps of as many), and the size below which they
 * are not cut. Two are enough if four would be small: every message has a header and ends with a short packet, which
 * shows where links are the limit (16 ranks with 1 MiB on emulated racks: 81.6 to 82.0 ms in two chunks of 32 KiB, 82.3
 * to 82.4 in four of 16).
 */
#define RING_CHUNKS 4u
#define RING_CHUNK_FAIR (32u << 10)
#define LEVEL_CHUNKS 8u /* between levels; see choose_part_of_share() */
#define RING_CHUNK_LEAST (16u << 10)

#define FEW_SUMMED 8u

#define WINDOW_BYTES (1u << 20)
#define WINDOW_LEAST 4u
#define WINDOW_LEAST_LENT 8u

/* Bytes that pay for waking another thread. */
#define LANE_BYTES (256u << 10)

/* ---- the choice ---- */

/* Is each chunk summed somewhere and then handed out, so that it pays to spread owners over all? */
static bool has_owners(enum plan_collective collective)
{
	return collective == PLAN_ALLREDUCE || collective == PLAN_BARRIER || collective == PLAN_REDUCE_SCATTER ||
	       collective == PLAN_REDUCE;
}

/*
 * A ring of large chunks moves most bytes in a second: a rank has two neighbours, so the kernel's buffers and the
 * ranks' turns on the cores are few. It pays when every rank has a chunk to begin with.
 */
static bool fills_ring(const struct layout *layout, uint64_t bytes)
{
	return bytes / PLAN_CACHE_CHUNK_MOST >= layout->members;
}

/*
 * On one machine a message costs its core and a hop next to nothing. If ranks share cores all of it adds up: few
 * messages, and not all at one rank. If they do not, all can send at a time: eight ranks on 16 cores take 29 us for 4
 * bytes by butterfly, 33 by twin, 50 by central, and 102 us for 64 KiB by butterfly, 135 by tree.
 */
static const struct planner *choose_sum_between_sockets(const struct layout *layout, uint64_t bytes)
{
	bool are_few = layout->members <= FEW_HOPS_MEMBERS;

	if (are_few && layout->one_machine && layout->has_cores && bytes <= FEW_MESSAGES)
		return &planner_butterfly;
	if (are_few && bytes <= FEW_HOPS)
		return layout->one_machine ? &planner_twin : &planner_central;
	if (bytes <= (layout->one_machine ? FEW_MESSAGES_WITHIN : FEW_MESSAGES))
		return &planner_tree;
	return bytes <= FEW_ROUNDS ? &planner_halving_doubling : fills_ring(layout, bytes) ? &planner_ring : &planner_flat;
}

static const struct planner *choose_between_sockets(const struct layout *layout, const struct call *call,
                                                    uint64_t bytes)
{
	bool is_small = bytes <= (layout->one_machine ? FEW_MESSAGES_WITHIN : FEW_MESSAGES);

	switch (call->collective) {
	case PLAN_ALLREDUCE:
	case PLAN_BARRIER:
		return choose_sum_between_sockets(layout, bytes);
	case PLAN_BROADCAST:
	case PLAN_REDUCE:
		return is_small ? &planner_tree : &planner_double_tree;
	case PLAN_ALLGATHER:
	case PLAN_REDUCE_SCATTER:
		return bytes >= PLAN_CACHE_CHUNK_MOST && !call->counts ? &planner_ring : &planner_flat;
	default:
		return &planner_flat;
	}
}

static const struct planner *choose(const struct layout *layout, const struct call *call, uint64_t bytes)
{
	if (layout->hosts == 1)
		return has_owners(call->collective) ? &planner_flat : &planner_exchange;
	if (layout->hosts < layout->members)
		return &planner_two_level; /* inside of each host first */
	return choose_between_sockets(layout, call, bytes);
}

/* Does the planner give every member a share of the chunks to sum, or to hand out? */
static bool spreads_owners(const struct planner *planner)
{
	return planner == &planner_ring || planner == &planner_halving_doubling || planner == &planner_flat ||
	       planner == &planner_two_level || planner == &planner_three_level;
}

/* Does a rank have few neighbours in its plans, however many members there are? */
static bool has_few_neighbours(const struct planner *planner)
{
	return planner == &planner_ring || planner == &planner_tree || planner == &planner_double_tree;
}

static uint64_t fair_chunk(const struct layout *layout, uint64_t neighbours, uint64_t most)
{
	uint64_t fair = layout->buffer_bytes / layout->credits / neighbours / LINE * LINE;

	return fair >= most ? most : fair < CHUNK_LEAST ? CHUNK_LEAST : fair;
}

uint64_t comm_plan_cache_fair_chunk(const struct layout *layout, uint64_t neighbours)
{
	return fair_chunk(layout, neighbours, layout->chunk_bytes);
}

/*
 * Through memory eight ranks with 100 MiB take 0.8 times as long in chunks of 256 KiB as of 64 (two cores, either kind
 * of memory). Not where it ends with the sums, as in a reduce-scatter: there malloc'd memory takes 1.4 times as long.
 * Nor with more ranks, as the caches of a core must hold a chunk of each: sixteen with a core each take 1.3 times as
 * long.
 */
static bool sums_in_memory(const struct layout *layout, const struct call *call)
{
	return layout->hosts == 1 && layout->members <= FEW_SUMMED && call->collective == PLAN_ALLREDUCE;
}

/*
 * Between sockets a chunk of 256 KiB costs fewer turns on the cores and calls of the kernel than four of 64 KiB (1.5
 * times as fast around a ring of eight ranks); between machines there should be enough of them to fill all links at a
 * time.
 */
static uint64_t choose_chunk_most(const struct layout *layout, const struct call *call, const struct planner *planner,
                                  uint64_t bytes)
{
	/* Hosts, as shared memory has slots of its own; and what comes from the root comes from one. */
	bool has_one_source = call->collective == PLAN_SCATTER || call->collective == PLAN_BROADCAST;
	uint64_t neighbours = layout->hosts > 1 && !has_one_source ? layout->hosts - 1 : 1;

	if (layout->chunk_is_set)
		return layout->chunk_bytes;
	if (sums_in_memory(layout, call)) /* where slots run short, copies are made: even one neighbour's must find room */
		return fair_chunk(layout, 1, layout->slot_bytes);
	if (has_few_neighbours(planner) && layout->hosts == layout->members &&
	    (layout->one_machine || bytes >= UINT64_C(16) * PLAN_CACHE_CHUNK_MOST))
		return PLAN_CACHE_CHUNK_MOST;
	/* Every neighbour may send its credits ahead, and all that must find room. */
	return comm_plan_cache_fair_chunk(layout, neighbours);
}

static uint64_t part_around_ring(uint64_t share)
{
	uint64_t most = share / 2 < RING_CHUNK_FAIR ? share / 2 : RING_CHUNK_FAIR;

	return share / RING_CHUNKS < most ? most : share / RING_CHUNKS;
}

/*
 * Between machines a chunk's way to the next rank takes time in which the link must have others to carry: each rank has
 * several, unless they would be tiny. Within one, ranks take turns on the cores, and large chunks mean fewer turns. So
 * too between the levels of a hierarchy, where uplinks idle while hosts add up and the other way round: in the
 * simulator 16 ranks in four racks take 10 to 15 % less for 1 MiB in four chunks each than in one. Only a topology says
 * that it is a hierarchy of the network. Halves of those chunks fill the switches' queues less, as there all hosts of a
 * rack send to one at a time: on emulated racks 16 ranks with 4 MiB lose two thirds as many packets, and take 5 to 10 %
 * less.
 */
static uint64_t choose_part_of_share(const struct layout *layout, const struct planner *planner, uint64_t share)
{
	bool is_ring = planner == &planner_ring,
	     has_levels = planner == &planner_two_level || planner == &planner_three_level;
	uint64_t part = is_ring ? part_around_ring(share) : share / LEVEL_CHUNKS;

	if (layout->one_machine || !(is_ring || (has_levels && layout->topology)) || share <= RING_CHUNK_LEAST)
		return share;
	return part < RING_CHUNK_LEAST ? RING_CHUNK_LEAST : part;
}

/* Small enough that each rank has a share, and that a sum is still in a cache when it is read. */
static uint64_t choose_chunk(const struct layout *layout, const struct call *call, const struct planner *planner,
                             uint64_t bytes)
{
	bool is_vector =
		call->collective == PLAN_ALLREDUCE || call->collective == PLAN_REDUCE || call->collective == PLAN_BROADCAST;
	uint64_t share = bytes, most = choose_chunk_most(layout, call, planner, bytes);

	uint64_t owners = sums_in_memory(layout, call) ? (uint64_t)layout->members * layout->lanes : layout->members;

	if (is_vector && spreads_owners(planner))
		share = bytes / owners + (bytes % owners != 0);
	if (!layout->chunk_is_set)
		share = choose_part_of_share(layout, planner, share);
	share = (share + LINE - 1) / LINE * LINE;
	return share > most || share == 0 ? most : share;
}

/*
 * Through memory nothing has to be hidden but the ranks' turns on the cores, and what is under way should stay in the
 * caches until it is read: eight ranks with windows of 4 MiB take 1.6 times as long as with 1 MiB (malloc'd memory, 100
 * MiB). Memory that is lent needs no room for copies there: with 2 MiB 0.85 times as long as with 1.
 */
static uint32_t choose_window(uint64_t chunk_bytes, uint32_t least)
{
	uint64_t chunks = WINDOW_BYTES / chunk_bytes;

	return chunks < least ? least : (uint32_t)chunks;
}

/* ---- by what the network is ---- */

#define COMPARED 4u /* ways that are told of; each in less than a quarter of PLAN_CACHE_COMPARED_TEXT */

struct request {
	const struct layout *layout;
	const struct call *call;
	uint64_t bytes;
};

static uint64_t chunk_by_way(void *context, const struct tune_way *way)
{
	const struct request *request = context;

	return choose_chunk(request->layout, request->call, way->planner, request->bytes);
}

/* Is there a choice, and something to base it on? Blocks of different sizes are left to what needs no ring. */
static bool has_choice(const struct plan_cache *plans, const struct layout *layout, const struct call *call)
{
	return plans && layout->topology && layout->hosts > 1 && !layout->one_machine && !call->counts;
}

/* The fastest of the wished ways, if it is faster than *least, or *out is NULL. */
static void look_for_way(const struct tune_menu *menu, struct tune_wish wish, const struct request *request,
                         const struct tune_way **out, double *least)
{
	enum plan_collective collective = request->call->collective;
	bool has_blocks = collective == PLAN_ALLGATHER || collective == PLAN_REDUCE_SCATTER;
	uint64_t bytes = has_blocks ? request->bytes * request->layout->members : request->bytes;
	double seconds;
	const struct tune_way *way = tune_choose(menu, wish, bytes, chunk_by_way, (void *)(uintptr_t)request, &seconds);

	if (way && (!*out || seconds < *least)) {
		*out = way;
		*least = seconds;
	}
}

/* *out NULL: the network has no say. */
static enum esp_status choose_way(struct plan_cache *plans, const struct request *request, const struct tune_way **out,
                                  struct failure *failure)
{
	const struct layout *layout = request->layout;
	enum plan_collective collective = request->call->collective;
	const struct planner *only = request->call->planner;
	bool is_shared = !only && layout->hosts < layout->members;
	bool spares = !only && layout->by_masters && collective == PLAN_ALLREDUCE && request->bytes > PLAN_CACHE_BY_MASTERS;
	struct error err;
	double least = 0;

	*out = NULL;
	if (!has_choice(plans, layout, request->call))
		return ESP_OK;
	struct tune_network network = {.nodes = layout->members, .topology = layout->topology, .place = layout->place};
	if (!plans->menus[collective] && tune_menu_open(&network, collective, &plans->menus[collective], &err) != ESP_OK)
		return rank_failure_set(failure, err.status, -1, "%s", err.text);
	const struct tune_menu *menu = plans->menus[collective];
	if (is_shared) { /* with several ranks on a host, inside of each host first */
		look_for_way(menu, (struct tune_wish){&planner_two_level, NULL}, request, out, &least);
		look_for_way(menu, (struct tune_wish){&planner_three_level, NULL}, request, out, &least);
		return ESP_OK;
	}
	/* masters can be on fast hosts: the groups that have masters, not other groups without */
	if (spares && layout->masters)
		look_for_way(menu, (struct tune_wish){&planner_two_level, layout->masters->group_of}, request, out, &least);
	if (!*out)
		look_for_way(menu, (struct tune_wish){spares ? &planner_two_level : only, NULL}, request, out, &least);
	return ESP_OK;
}

const uint32_t *comm_plan_cache_groups(struct plan_cache *plans, const struct layout *layout, const struct call *call,
                                       uint64_t bytes)
{
	struct layout with_masters = *layout;
	struct call free_call = *call;
	const struct tune_way *way;
	struct failure failure;

	with_masters.by_masters = true;
	free_call.planner = NULL;
	if (choose_way(plans, &(struct request){&with_masters, &free_call, bytes}, &way, &failure) != ESP_OK || !way)
		return NULL;
	return way->group_of;
}

/* ---- making and keeping ---- */

static void planned_free(struct planned *planned)
{
	if (!planned)
		return;
	plan_close(planned->plan);
	plan_rows_close(planned->rows);
	free(planned->lane_of);
	free(planned);
}

void comm_plan_cache_put(struct planned *planned)
{
	if (planned && atomic_fetch_sub(&planned->references, 1) == 1)
		planned_free(planned);
}

void comm_plan_cache_fini(struct plan_cache *plans)
{
	for (uint32_t i = 0; i < PLAN_CACHE_KEPT; i++) {
		comm_plan_cache_put(plans->kept[i]);
		plans->kept[i] = NULL;
	}
	for (uint32_t i = 0; i < PLAN_COLLECTIVE_COUNT; i++) {
		tune_menu_close(plans->menus[i]);
		plans->menus[i] = NULL;
	}
}

/* The version of the layout that a plan of this planner depends on. */
static uint64_t version_for(const struct layout *layout, const struct planner *planner)
{
	return plan_planner_needs_groups(planner) ? layout->masters_version : layout->choice_version;
}

static bool is_for(const struct planned *kept, const struct planned *wanted)
{
	return kept->collective == wanted->collective && kept->planner == wanted->planner && kept->way == wanted->way &&
	       kept->root == wanted->root && kept->align == wanted->align && kept->bytes == wanted->bytes &&
	       kept->chunk_bytes == wanted->chunk_bytes && kept->in_place == wanted->in_place &&
	       kept->masters_version == wanted->masters_version;
}

bool comm_plan_cache_is_stale(const struct layout *layout, const struct planned *planned)
{
	return planned->masters_version != version_for(layout, planned->planner);
}

static enum esp_status assign_lanes(struct planned *planned, uint32_t lanes, const uint64_t *weights)
{
	uint64_t chunks = planned->plan->chunks.chunk_count, worth = 1 + chunks * planned->chunk_bytes / LANE_BYTES;

	planned->lanes = worth < lanes ? (uint32_t)worth : lanes;
	if (chunks < planned->lanes)
		planned->lanes = (uint32_t)chunks;
	if (planned->lanes < 2)
		return ESP_OK;
	planned->lane_of = malloc(chunks);
	return planned->lane_of ? lanes_assign(planned->plan, planned->lanes, weights, planned->lane_of) : ESP_ENOMEM;
}

/* In a small call, to work out one's row takes longer than to run it. Without memory it is worked out all the same. */
static void keep_rows(struct planned *planned)
{
	struct plan *plan = planned->plan;
	struct error err;

	if (plan->chunks.chunk_count != 1 || plan->nodes > ROWS_NODES_MOST ||
	    plan_rows_open(plan, &planned->rows, &err) != ESP_OK)
		return;
	if (!plan_rows_share(plan, planned->rows)) { /* as that of blocks of different sizes */
		plan_rows_close(planned->rows);
		planned->rows = NULL;
	}
}

static uint64_t *counts_in_bytes(const struct call *call, uint32_t members)
{
	uint64_t blocks = call->collective == PLAN_ALLTOALL ? (uint64_t)members * members : members;
	assert(blocks > 0);
	uint64_t *bytes = calloc(blocks, sizeof(*bytes));

	for (uint64_t i = 0; bytes && i < blocks; i++)
		bytes[i] = call->counts[i] * call->element_bytes;
	return bytes;
}

/*
 * Ranks that share a core have what they send each other in its cache, and a ring's hops are large. Trees take twice as
 * long if they are ordered so: their hops are few and wait for each other, and on two cores sender and receiver can be
 * at it at the same time.
 */
static const uint32_t *choose_order(const struct planned *planned, const struct layout *layout)
{
	if (planned->way)
		return planned->way->order;
	return planned->planner == &planner_ring ? layout->core_order : NULL;
}

static enum esp_status make(struct planned *planned, const struct layout *layout, const struct call *call,
                            struct failure *failure)
{
	uint64_t *counts = call->counts ? counts_in_bytes(call, layout->members) : NULL;
	struct error err;

	if (call->counts && !counts)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a plan");
	struct plan_spec spec = {
		.chunks =
			{
				.collective = planned->collective,
				.workers = layout->members,
				.root = planned->root,
				.bytes = planned->bytes,
				.counts = counts,
				.chunk_bytes = planned->chunk_bytes,
				.align = planned->align,
			},
		.in_place = planned->in_place,
		.lap_chunks = layout->one_machine ? 1 : RING_CHUNKS,
		.group_of = planned->way                                  ? planned->way->group_of
	                : plan_planner_needs_groups(planned->planner) ? layout->host_of
	                                                              : NULL,
		.order = choose_order(planned, layout),
		.zone_of = planned->way ? planned->way->zone_of : NULL,
	};
	/* The topology may have several levels of groups; masters are those of one of them. */
	if (spec.group_of && layout->masters && plan_masters_are_of(layout->masters, spec.group_of, layout->members))
		spec.masters = layout->masters;
	enum esp_status status = plan_open(planned->planner, &spec, &planned->plan, &err);
	free(counts);
	if (status != ESP_OK)
		return rank_failure_set(failure, status, -1, "%s", err.text);
	if (assign_lanes(planned, layout->lanes, layout->lane_weights) != ESP_OK)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a plan");
	return ESP_OK;
}

const char *comm_planned_describe(const struct planned *planned, char text[PLANNED_TEXT])
{
	const struct plan *plan = planned->plan;
	const char *name = plan_planner_name(planned->planner);

	if (plan->order)
		snprintf(text, PLANNED_TEXT, "%s, in the order of the %s", name, planned->way ? "topology" : "cores");
	else if (plan->zone_count > 0)
		snprintf(text, PLANNED_TEXT, "%s, %u groups in %u zones", name, plan->group_count, plan->zone_count);
	else if (plan->group_count > 0)
		snprintf(text, PLANNED_TEXT, "%s, %u groups", name, plan->group_count);
	else
		snprintf(text, PLANNED_TEXT, "%s", name);
	return text;
}

/* As comm_planned_describe() would say it of the plan. */
static int describe_way(const struct tune_way *way, char *text, size_t size)
{
	const char *name = plan_planner_name(way->planner);

	if (way->order)
		return snprintf(text, size, "%s, in the order of the topology", name);
	if (way->groups > 0)
		return snprintf(text, size, "%s, %u groups", name, way->groups);
	return snprintf(text, size, "%s", name);
}

const char *comm_plan_cache_compare(struct plan_cache *plans, const struct layout *layout, const struct call *call,
                                    uint64_t bytes, char text[PLAN_CACHE_COMPARED_TEXT])
{
	const struct request request = {layout, call, bytes};
	const struct planner *const inside[] = {&planner_two_level, &planner_three_level};
	struct tune_offer offers[COMPARED];
	uint32_t count = 0;
	size_t used = 0;

	text[0] = '\0';
	if (!has_choice(plans, layout, call) || !plans->menus[call->collective] || call->planner || layout->by_masters ||
	    call->collective != PLAN_ALLREDUCE)
		return text;
	const struct tune_menu *menu = plans->menus[call->collective];
	void *context = (void *)(uintptr_t)&request;
	if (layout->hosts == layout->members)
		count = tune_compare(menu, (struct tune_wish){0}, bytes, chunk_by_way, context, offers, 0, COMPARED);
	for (uint32_t i = 0; i < 2 && layout->hosts < layout->members; i++)
		count = tune_compare(menu, (struct tune_wish){inside[i], NULL}, bytes, chunk_by_way, context, offers, count,
		                     COMPARED);
	for (uint32_t i = 0; i < count; i++) {
		used += (size_t)snprintf(text + used, PLAN_CACHE_COMPARED_TEXT - used, "%s", i ? "; " : "");
		used += (size_t)describe_way(offers[i].way, text + used, PLAN_CACHE_COMPARED_TEXT - used);
		used += (size_t)snprintf(text + used, PLAN_CACHE_COMPARED_TEXT - used, ": %.3g s", offers[i].seconds);
	}
	return text;
}

/* In place of one that is free or, else, of the one that was used least recently. */
static void keep(struct plan_cache *plans, struct planned *planned)
{
	uint32_t place = 0;

	for (uint32_t i = 0; i < PLAN_CACHE_KEPT; i++) {
		if (!plans->kept[i]) {
			place = i;
			break;
		}
		if (plans->kept[i]->used < plans->kept[place]->used)
			place = i;
	}
	comm_plan_cache_put(plans->kept[place]);
	plans->kept[place] = planned;
	atomic_fetch_add(&planned->references, 1);
}

enum esp_status comm_plan_cache_get(struct plan_cache *plans, const struct layout *layout, const struct call *call,
                                    uint64_t bytes, bool in_place, struct planned **out, struct failure *failure)
{
	const struct tune_way *way;
	enum esp_status status = choose_way(plans, &(struct request){layout, call, bytes}, &way, failure);

	if (status != ESP_OK)
		return status;
	const struct planner *planner = way           ? way->planner
	                                : call->planner ? call->planner
	                                                : choose(layout, call, bytes);
	uint64_t chunk_bytes = choose_chunk(layout, call, planner, bytes);
	struct planned wanted = {
		.window = layout->hosts == 1 ? choose_window(chunk_bytes, WINDOW_LEAST) : 0,
		.window_lent = layout->hosts == 1 ? choose_window(chunk_bytes, WINDOW_LEAST_LENT) : 0,
		.collective = call->collective,
		.planner = planner,
		.way = way,
		.root = call->root,
		.align = LINE,
		.bytes = bytes,
		.chunk_bytes = chunk_bytes,
		.in_place = in_place,
		.masters_version = version_for(layout, planner),
		.used = plans ? ++plans->calls : 0,
	};

	for (uint32_t i = 0; plans && i < PLAN_CACHE_KEPT && !call->counts; i++) {
		struct planned *kept = plans->kept[i];

		if (kept && is_for(kept, &wanted)) {
			atomic_fetch_add(&kept->references, 1);
			kept->used = wanted.used;
			*out = kept;
			return ESP_OK;
		}
	}
	struct planned *planned = malloc(sizeof(*planned));
	if (!planned)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a plan");
	*planned = wanted;
	atomic_init(&planned->references, 1);
	status = make(planned, layout, call, failure);
	if (status != ESP_OK) {
		planned_free(planned);
		return status;
	}
	if (plans && !call->counts) {
		keep_rows(planned);
		keep(plans, planned);
	}
	*out = planned;
	return ESP_OK;
}
