#include "sim/fabric/fabric_flows.h"

#include <assert.h>
#include <math.h>

#include "base/clock.h"

#define THROUGH 0.5 /* bytes: less is rounding */

void fabric_flows_init(struct fabric_flows *flows, uint32_t links)
{
	assert(links <= FABRIC_LINKS_MOST);
	*flows = (struct fabric_flows){.links = links};
}

void fabric_flows_set_rate(struct fabric_flows *flows, uint32_t link, double rate)
{
	assert(link < flows->links && rate >= 0);
	flows->is_dirty |= flows->rates[link] != rate;
	flows->rates[link] = rate;
}

uint32_t fabric_flows_start(struct fabric_flows *flows, const uint32_t *links, uint32_t count, uint64_t bytes,
                            double cap, uint64_t cookie)
{
	uint32_t at = 0;

	assert(count >= 1 && count <= FABRIC_PATH_MOST);
	while (at < FABRIC_FLOWS_MOST && flows->flow[at].is_open)
		at++;
	assert(at < FABRIC_FLOWS_MOST);
	struct fabric_flow *flow = &flows->flow[at];
	flow->is_open = true;
	flow->left = (double)bytes;
	flow->cap = cap;
	flow->cookie = cookie;
	flow->number = ++flows->started;
	flow->count = count;
	for (uint32_t i = 0; i < count; i++)
		flow->links[i] = links[i];
	flows->open++;
	flows->is_dirty = true;
	return at;
}

static void close_flow(struct fabric_flows *flows, struct fabric_flow *flow)
{
	flow->is_open = false;
	flows->open--;
	flows->is_dirty = true;
}

void fabric_flows_stop(struct fabric_flows *flows, uint64_t cookie)
{
	for (uint32_t i = 0; i < FABRIC_FLOWS_MOST; i++) {
		if (flows->flow[i].is_open && flows->flow[i].cookie == cookie)
			close_flow(flows, &flows->flow[i]);
	}
}

/* ---- rates: progressive filling ---- */

struct filling {
	double left[FABRIC_LINKS_MOST];
	uint32_t users[FABRIC_LINKS_MOST];
	bool is_set[FABRIC_FLOWS_MOST];
	uint32_t open;
};

static void give(struct filling *filling, struct fabric_flow *flow, uint32_t number, double rate)
{
	flow->rate = rate;
	filling->is_set[number] = true;
	filling->open--;
	for (uint32_t i = 0; i < flow->count; i++) {
		filling->left[flow->links[i]] = fmax(filling->left[flow->links[i]] - rate, 0);
		filling->users[flow->links[i]]--;
	}
}

/* The least that a link has for each of its flows. */
static double least_share(const struct fabric_flows *flows, const struct filling *filling, uint32_t *out_link)
{
	double least = INFINITY;

	for (uint32_t link = 0; link < flows->links; link++) {
		double share = filling->users[link] > 0 ? filling->left[link] / filling->users[link] : INFINITY;

		if (share < least) {
			least = share;
			*out_link = link;
		}
	}
	return least;
}

static bool uses(const struct fabric_flow *flow, uint32_t link)
{
	for (uint32_t i = 0; i < flow->count; i++) {
		if (flow->links[i] == link)
			return true;
	}
	return false;
}

/* Flows whose caps are below what any link has for them get these; without any, the fullest link shares out. */
static void fill_once(struct fabric_flows *flows, struct filling *filling)
{
	uint32_t link = 0;
	double share = least_share(flows, filling, &link);
	bool is_capped = false;

	for (uint32_t i = 0; i < FABRIC_FLOWS_MOST; i++) {
		struct fabric_flow *flow = &flows->flow[i];

		if (!flow->is_open || filling->is_set[i] || flow->cap <= 0 || flow->cap > share)
			continue;
		give(filling, flow, i, flow->cap);
		is_capped = true;
	}
	for (uint32_t i = 0; !is_capped && i < FABRIC_FLOWS_MOST; i++) {
		if (flows->flow[i].is_open && !filling->is_set[i] && uses(&flows->flow[i], link))
			give(filling, &flows->flow[i], i, share);
	}
}

/* The open flow without a rate that started first. */
static uint32_t find_first(const struct fabric_flows *flows, const struct filling *filling)
{
	uint32_t first = FABRIC_FLOWS_MOST;

	for (uint32_t i = 0; i < FABRIC_FLOWS_MOST; i++) {
		const struct fabric_flow *flow = &flows->flow[i];

		if (flow->is_open && !filling->is_set[i] &&
		    (first == FABRIC_FLOWS_MOST || flow->number < flows->flow[first].number))
			first = i;
	}
	return first;
}

/* The first one gets all that its links have left. */
static void fill_first(struct fabric_flows *flows, struct filling *filling)
{
	uint32_t number = find_first(flows, filling);

	assert(number < FABRIC_FLOWS_MOST);
	struct fabric_flow *flow = &flows->flow[number];
	double rate = flow->cap > 0 ? flow->cap : INFINITY;
	for (uint32_t i = 0; i < flow->count; i++)
		rate = fmin(rate, filling->left[flow->links[i]]);
	give(filling, flow, number, rate);
}

static void solve(struct fabric_flows *flows)
{
	struct filling filling = {.open = flows->open};

	for (uint32_t link = 0; link < flows->links; link++)
		filling.left[link] = flows->rates[link];
	for (uint32_t i = 0; i < FABRIC_FLOWS_MOST; i++) {
		for (uint32_t j = 0; flows->flow[i].is_open && j < flows->flow[i].count; j++)
			filling.users[flows->flow[i].links[j]]++;
	}
	while (filling.open > 0 && flows->has_turns)
		fill_first(flows, &filling);
	while (filling.open > 0)
		fill_once(flows, &filling);
	flows->is_dirty = false;
}

/* ---- time ---- */

uint64_t fabric_flows_due(struct fabric_flows *flows)
{
	double least = INFINITY;

	if (flows->is_dirty)
		solve(flows);
	for (uint32_t i = 0; i < FABRIC_FLOWS_MOST; i++) {
		const struct fabric_flow *flow = &flows->flow[i];

		if (flow->is_open && flow->left < THROUGH)
			return flows->now;
		if (flow->is_open && flow->rate > 0)
			least = fmin(least, flow->left / flow->rate);
	}
	return least < 1e9 ? flows->now + (uint64_t)ceil(least * (double)NS_PER_S) : UINT64_MAX;
}

void fabric_flows_advance(struct fabric_flows *flows, uint64_t now)
{
	assert(now >= flows->now);
	if (flows->is_dirty)
		solve(flows);
	for (uint32_t i = 0; i < FABRIC_FLOWS_MOST; i++) {
		struct fabric_flow *flow = &flows->flow[i];

		if (flow->is_open)
			flow->left -= flow->rate * (double)(now - flows->now) / (double)NS_PER_S;
	}
	flows->now = now;
}

bool fabric_flows_ended(struct fabric_flows *flows, uint64_t *out_cookie)
{
	for (uint32_t i = 0; i < FABRIC_FLOWS_MOST; i++) {
		if (!flows->flow[i].is_open || flows->flow[i].left >= THROUGH)
			continue;
		*out_cookie = flows->flow[i].cookie;
		close_flow(flows, &flows->flow[i]);
		return true;
	}
	return false;
}
