#include "tune/fine.h"

#include <string.h>

#define NS_PER_SECOND UINT64_C(1000000000)
#define WHOLE UINT64_C(1000000) /* resolution of normalised parts */
#define SPREAD_LEAST 20u        /* a spread counts as at least the largest load over this */
#define STREAK_MOST 10u         /* 512 masters in one step: more than there are */
#define NO_NODE UINT32_MAX

typedef unsigned __int128 wide;

static uint64_t time_ns(const struct tune_view *view, uint32_t node, uint64_t bytes)
{
	wide time = (wide)bytes * NS_PER_SECOND / view->rates[node] + view->at[node].rtt_ns;

	return time > UINT64_MAX / WHOLE ? UINT64_MAX / WHOLE : (uint64_t)time;
}

void tune_blame(const struct tune_view *view, uint32_t *out)
{
	uint64_t longest = 1, most = 0, least = UINT64_MAX;

	for (uint32_t i = 0; i < view->nodes; i++) {
		uint64_t time = time_ns(view, i, view->bytes[i]), bytes = view->bytes[i];

		longest = time > longest ? time : longest;
		most = bytes > most ? bytes : most;
		least = bytes < least ? bytes : least;
	}
	uint64_t spread = most - least > most / SPREAD_LEAST ? most - least : most / SPREAD_LEAST;

	for (uint32_t i = 0; i < view->nodes; i++) {
		uint64_t time = (uint64_t)((wide)time_ns(view, i, view->bytes[i]) * WHOLE / longest);
		uint64_t load = spread > 0 ? (uint64_t)((wide)(view->bytes[i] - least) * WHOLE / spread) : 0;
		uint64_t blame = (TUNE_BETA * load + TUNE_GAMMA * time) * 1000 / (TUNE_BETA + TUNE_GAMMA) / WHOLE;

		out[i] = blame > 0 ? (uint32_t)blame : 1;
	}
}

/* A slot that the node is global, or local and not global, master of; NO_NODE: there is none. */
static uint32_t find_slot(const struct plan_masters *masters, uint32_t node, bool global)
{
	uint32_t group = masters->group_of[node];

	for (uint32_t s = 0; s < masters->slots; s++) {
		if (plan_masters_local(masters, group, s) == node && (masters->global_group[s] == group) == global)
			return s;
	}
	return NO_NODE;
}

/* The least blamed node that can take from this node; NO_NODE: it has nothing, or none can. */
static uint32_t find_taker(const struct plan_masters *masters, uint32_t giver, const uint32_t *blame, bool has_global)
{
	bool anywhere = masters->groups > 2 && has_global;
	uint32_t best = NO_NODE;

	for (uint32_t i = 0; i < masters->workers; i++) {
		if (i == giver || (!anywhere && masters->group_of[i] != masters->group_of[giver]))
			continue;
		if (best == NO_NODE || blame[i] < blame[best])
			best = i;
	}
	return best;
}

struct pair {
	uint32_t giver, taker;
};

/* Two nodes that move the same are left so, unless one of them is clearly slower. */
static uint64_t epsilon_of(const struct tune_view *view, uint32_t one, uint32_t other)
{
	uint64_t more = view->bytes[one], less = view->bytes[other];

	if (more < less) {
		more = view->bytes[other];
		less = view->bytes[one];
	}
	return more - less < more / SPREAD_LEAST / 2 ? TUNE_EPSILON_EVEN_PERCENT : TUNE_EPSILON_PERCENT;
}

/* The worst node, of those not tried, that a master is to be moved from, and the node that takes it. */
static struct pair find_pair(const struct plan_masters *masters, const struct tune_view *view, const uint32_t *blame,
                             const bool *tried)
{
	struct pair pair = {NO_NODE, NO_NODE};

	for (uint32_t i = 0; i < masters->workers; i++) {
		if (tried[i] || (pair.giver != NO_NODE && blame[i] <= blame[pair.giver]))
			continue;
		bool has_global = find_slot(masters, i, true) != NO_NODE;

		if (!has_global && find_slot(masters, i, false) == NO_NODE)
			continue;
		uint32_t taker = find_taker(masters, i, blame, has_global);

		if (taker != NO_NODE && (uint64_t)blame[i] * 100 > (uint64_t)blame[taker] * epsilon_of(view, i, taker))
			pair = (struct pair){i, taker};
	}
	return pair;
}

/* Bytes of one chunk's worth of load, as the sample has it. */
static uint64_t unit_of(const struct plan_masters *masters, const struct tune_view *view)
{
	wide bytes = 0, load = 0;

	for (uint32_t i = 0; i < view->nodes; i++) {
		bytes += view->bytes[i];
		load += plan_masters_load(masters, i);
	}
	return load > 0 ? (uint64_t)(bytes / load) : 0;
}

/* The change by a move, in chunks: for giver, taker, and the former master of the slot in the taker's group. */
struct change {
	uint32_t slot, bystander;
	uint64_t giver_less, taker_more, bystander_less;
};

static bool consider(const struct plan_masters *masters, struct pair pair, struct change *out)
{
	uint32_t here = masters->group_of[pair.giver], there = masters->group_of[pair.taker];
	uint64_t extra = masters->groups > 2 ? masters->groups - 2 : 0; /* of a global master, beside its group's members */
	uint32_t slot = find_slot(masters, pair.giver, true);
	bool is_global = slot != NO_NODE;

	if (!is_global)
		slot = find_slot(masters, pair.giver, false);
	if (slot == NO_NODE || (here != there && !is_global))
		return false;
	*out = (struct change){.slot = slot, .bystander = NO_NODE};
	if (here == there) {
		out->giver_less = out->taker_more = masters->group_size[here] - 1 + (is_global ? extra : 0);
		return true;
	}
	uint32_t before = plan_masters_local(masters, there, slot);
	out->giver_less = extra;
	out->taker_more = extra + (before == pair.taker ? 0 : masters->group_size[there] - 1);
	if (before != pair.taker) {
		out->bystander = before;
		out->bystander_less = masters->group_size[there] - 1;
	}
	return true;
}

static void take_off(uint64_t *bytes, uint64_t less)
{
	*bytes -= less < *bytes ? less : *bytes;
}

/* True: one master sits elsewhere now. */
static bool move_one(struct plan_masters *masters, struct tune_view *view, struct pair pair, uint64_t unit,
                     struct tune_move *out)
{
	struct change change;

	if (!consider(masters, pair, &change) || change.giver_less == 0)
		return false;
	uint64_t after = time_ns(view, pair.taker, view->bytes[pair.taker] + change.taker_more * unit);
	if (after >= time_ns(view, pair.giver, view->bytes[pair.giver]))
		return false;
	take_off(&view->bytes[pair.giver], change.giver_less * unit);
	view->bytes[pair.taker] += change.taker_more * unit;
	if (change.bystander != NO_NODE)
		take_off(&view->bytes[change.bystander], change.bystander_less * unit);

	uint32_t there = masters->group_of[pair.taker];
	bool was_global = masters->global_group[change.slot] == masters->group_of[pair.giver];
	masters->local_master[(uint64_t)there * masters->slots + change.slot] = pair.taker;
	if (was_global)
		masters->global_group[change.slot] = there;
	out->moved++;
	out->global += was_global;
	return true;
}

/* One master, between the first pair for which that can be. */
static bool move_worst(struct plan_masters *masters, struct tune_view *view, uint64_t unit, const uint32_t *blame,
                       bool *tried, struct tune_move *out)
{
	struct pair pair;

	memset(tried, 0, view->nodes * sizeof(*tried));
	while ((pair = find_pair(masters, view, blame, tried)).giver != NO_NODE) {
		uint32_t from_blame = blame[pair.giver], to_blame = blame[pair.taker];

		tried[pair.giver] = true;
		if (move_one(masters, view, pair, unit, out)) {
			out->from = pair.giver;
			out->to = pair.taker;
			out->from_blame = from_blame;
			out->to_blame = to_blame;
			return true;
		}
	}
	return false;
}

void tune_fine_step(struct tune_fine *fine, struct plan_masters *masters, const struct tune_sample *sample,
                    const uint64_t *rates, struct tune_scratch *scratch, struct tune_move *out)
{
	struct tune_view view = {scratch->bytes, rates, sample->at, sample->nodes};

	*out = (struct tune_move){.from = NO_NODE, .to = NO_NODE};
	for (uint32_t i = 0; i < view.nodes; i++) {
		const struct tune_node *node = &sample->at[i];

		view.bytes[i] = node->sent_bytes > node->received_bytes ? node->sent_bytes : node->received_bytes;
	}
	uint64_t unit = unit_of(masters, &view);
	tune_blame(&view, scratch->blame);
	if (unit == 0 || !move_worst(masters, &view, unit, scratch->blame, scratch->tried, out)) {
		fine->streak = 0;
		return;
	}
	bool is_same = fine->streak > 0 && (fine->worst == out->from || fine->best == out->to);
	fine->streak = is_same ? fine->streak + 1 : 1;
	fine->streak = fine->streak > STREAK_MOST ? STREAK_MOST : fine->streak;
	fine->worst = out->from;
	fine->best = out->to;
	for (uint32_t i = 1; i < 1u << (fine->streak - 1); i++) {
		struct tune_move first = *out;

		tune_blame(&view, scratch->blame);
		if (!move_worst(masters, &view, unit, scratch->blame, scratch->tried, out))
			return;
		out->from = first.from; /* the first move is reported */
		out->to = first.to;
		out->from_blame = first.from_blame;
		out->to_blame = first.to_blame;
	}
}
