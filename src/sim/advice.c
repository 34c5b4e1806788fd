#include "sim/advice.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOW_MOST_GBPS 25 /* what the prices call the slow network */

/* ---- what a mechanism needs ---- */

static bool sums_in_switch(const struct mechanism *mechanism)
{
	return mechanism->uses_switch && strcmp(mechanism->sum, "switch-sum") == 0;
}

static bool copies_in_switch(const struct mechanism *mechanism)
{
	return mechanism->uses_switch && ((mechanism->spread && strcmp(mechanism->spread, "switch-copy") == 0) || strcmp(mechanism->sum, "ring-switch") == 0);
}

static void say_needs(struct advice_entry *entry, const struct advice_case *about)
{
	const struct mechanism *mechanism = entry->mechanism;
	char hosts[96] = "";
	const char *network = "";
	if (mechanism->spread)
		snprintf(hosts, sizeof hosts, "%" PRIu32 " parameter server%s", about->servers, about->servers == 1 ? "" : "s");
	else if (mechanism->uses_hubs)
		snprintf(hosts, sizeof hosts, "a hub in every rack");
	if (sums_in_switch(mechanism) && copies_in_switch(mechanism))
		network = "switches that aggregate and multicast";
	else if (sums_in_switch(mechanism))
		network = "switches that aggregate";
	else if (copies_in_switch(mechanism))
		network = "switches that multicast";
	snprintf(entry->needs, sizeof entry->needs, "%s%s%s", hosts, hosts[0] && network[0] ? ", " : "", network);
	if (!entry->needs[0])
		snprintf(entry->needs, sizeof entry->needs, "nothing but software");
}

/* How much it asks of whoever runs the cluster, where no price tells: changes in the network weigh most. */
static int burden(const struct mechanism *mechanism)
{
	return 4 * sums_in_switch(mechanism) + 2 * copies_in_switch(mechanism) + (mechanism->spread != NULL || mechanism->uses_hubs);
}

/* ---- money ---- */

static double network_share(const struct money_prices *prices, const struct advice_case *about)
{
	const struct money_network *network = about->gbps > SLOW_MOST_GBPS ? &prices->fast : &prices->slow;
	double port = prices->switch_price / prices->switch_ports / network->hosts_per_port;
	return network->nic + port + network->cable + (4 * port + 2 * network->cable) / about->oversubscribe;
}

static void say_cost(struct advice_entry *entry, const struct advice_case *about)
{
	const struct money_prices *prices = about->prices;
	const struct mechanism *mechanism = entry->mechanism;
	double share = network_share(prices, about), switches = about->racks > 1 ? about->racks + 1 : 1;
	double hosts = mechanism->spread    ? about->servers * (prices->server_node + share)
	               : mechanism->uses_hubs ? about->racks * (prices->hub_node + share)
	                                      : 0;
	entry->extra_cost = hosts + switches * (sums_in_switch(mechanism) ? prices->aggregation : 0) +
	                    switches * (copies_in_switch(mechanism) ? prices->multicast : 0);
	entry->cost = about->workers * (prices->scenarios[0].worker + prices->gpus * prices->scenarios[0].gpu + share) + entry->extra_cost;
	entry->per_1000 = about->workers * (double)about->batch / entry->iteration_s / (entry->cost / 1000);
}

/* ---- why it takes so long ---- */

struct link {
	const char *whose, *way;
	double bytes, gbps;
};

static double link_s(const struct link *link)
{
	return link->gbps > 0 ? link->bytes * 8e-9 / link->gbps : 0;
}

/* The link that is busy the longest; by bytes where rates differ. */
static struct link busiest(const struct advice_entry *entry, const struct advice_case *about)
{
	const struct link links[] = {
		{"a worker", "out", (double)entry->worker.out, about->gbps}, {"a worker", "in", (double)entry->worker.in, about->gbps},
		{"a server", "out", (double)entry->server.out, about->server_gbps}, {"a server", "in", (double)entry->server.in, about->server_gbps},
		{"a hub", "out", (double)entry->hub.out, about->server_gbps},       {"a hub", "in", (double)entry->hub.in, about->server_gbps},
		{"a rack", "up or down", entry->uplink_bytes, about->uplink_gbps},
	};
	struct link most = links[0];
	for (size_t i = 1; i < sizeof links / sizeof links[0]; i++)
		if (about->gbps > 0 ? link_s(&links[i]) > link_s(&most) : links[i].bytes > most.bytes)
			most = links[i];
	return most;
}

static void say_reason(struct advice_entry *entry, const struct advice_case *about)
{
	struct link link = busiest(entry, about);
	double over = entry->iteration_s - about->compute_s, busy = link_s(&link);
	if (entry->iteration_s <= (1 + ADVICE_TIE) * about->compute_s)
		snprintf(entry->reason, sizeof entry->reason, "computing takes %.4g s of it; the network hides behind that", about->compute_s);
	else if (busy == 0)
		snprintf(entry->reason, sizeof entry->reason, "computing takes %.4g s of it; most bytes, %.4g GB, go through the link of %s (%s)", about->compute_s,
		         link.bytes / 1e9, link.whose, link.way);
	else if (busy >= 0.5 * over)
		snprintf(entry->reason, sizeof entry->reason, "the link of %s carries %.4g GB %s: %.4g s; computing takes %.4g s", link.whose, link.bytes / 1e9, link.way,
		         busy, about->compute_s);
	else
		snprintf(entry->reason, sizeof entry->reason, "no link is busy for most of it (%s's for %.4g s): messages wait for one another; computing takes %.4g s",
		         link.whose, busy, about->compute_s);
}

/* ---- the order ---- */

static double score(const struct advice_entry *entry, const struct advice_case *about)
{
	return about->by_money ? 1 / entry->per_1000 : entry->iteration_s;
}

/* qsort() has no room for the case. */
struct scored {
	struct advice_entry entry;
	double score, extra;
	int burden;
};

static int by_score(const void *a, const void *b)
{
	const struct scored *x = a, *y = b;
	return x->score < y->score ? -1 : x->score > y->score;
}

static int by_burden(const void *a, const void *b)
{
	const struct scored *x = a, *y = b;
	if (x->extra != y->extra)
		return x->extra < y->extra ? -1 : 1;
	return x->burden != y->burden ? x->burden - y->burden : by_score(a, b);
}

/* Those within a tie of the best that is left, the least needy first; then on with the rest. */
static void sort_ties(struct scored *list, size_t count)
{
	for (size_t from = 0, to; from < count; from = to) {
		for (to = from + 1; to < count && list[to].score <= list[from].score * (1 + ADVICE_TIE);)
			to++;
		qsort(&list[from], to - from, sizeof(*list), by_burden);
		for (size_t i = from; i < to; i++)
			list[i].entry.is_tie = i > from;
	}
}

enum esp_status advice_rank(struct advice_entry *entries, size_t count, const struct advice_case *about, struct error *err)
{
	struct scored *list = calloc(count + 1, sizeof(*list));
	if (!list)
		return error_set(err, ESP_ENOMEM, "no memory for advice");
	for (size_t i = 0; i < count; i++) {
		struct advice_entry *entry = &entries[i];
		say_needs(entry, about);
		say_reason(entry, about);
		if (about->prices)
			say_cost(entry, about);
		list[i] = (struct scored){*entry, score(entry, about), about->prices ? entry->extra_cost : 0, burden(entry->mechanism)};
		if (!(list[i].score > 0)) {
			free(list);
			return error_set(err, ESP_EINVAL, "with these prices and times nothing can be compared");
		}
	}
	qsort(list, count, sizeof(*list), by_score);
	sort_ties(list, count);
	for (size_t i = 0; i < count; i++)
		entries[i] = list[i].entry;
	free(list);
	return ESP_OK;
}

const char *advice_summary(const struct advice_entry *entries, size_t count, char text[ADVICE_SUMMARY])
{
	const struct advice_entry *best = &entries[0], *other = NULL;
	size_t used = (size_t)snprintf(text, ADVICE_SUMMARY, "Use %s: %.4g s an iteration. It needs %s; %s.", best->mechanism->name, best->iteration_s,
	                               best->needs, best->reason);
	/* What would change the network, if this one does not. */
	for (size_t i = 1; i < count && burden(best->mechanism) < 2 && !other; i++)
		other = burden(entries[i].mechanism) >= 2 ? &entries[i] : NULL;
	if (other && used < ADVICE_SUMMARY)
		snprintf(text + used, ADVICE_SUMMARY - used, " The best that changes the network is %s, at %.4g s: not worth %s.", other->mechanism->name,
		         other->iteration_s, other->needs);
	return text;
}
