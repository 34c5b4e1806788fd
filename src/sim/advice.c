#include "sim/advice.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOW_MOST_GBPS 25 /* the slow network of the prices */

/* ---- what a mechanism needs ---- */

static bool sums_in_switch(const struct mechanism *mechanism)
{
	return mechanism->uses_switch && strcmp(mechanism->sum, "switch-sum") == 0;
}

static bool copies_in_switch(const struct mechanism *mechanism)
{
	return mechanism->uses_switch && ((mechanism->spread && strcmp(mechanism->spread, "switch-copy") == 0) ||
	                                  strcmp(mechanism->sum, "ring-switch") == 0);
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

/* The work that it asks of a cluster's operator, where no price tells: changes in the network weigh most. */
static int burden(const struct mechanism *mechanism)
{
	return 4 * sums_in_switch(mechanism) + 2 * copies_in_switch(mechanism) +
	       (mechanism->spread != NULL || mechanism->uses_hubs);
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
	entry->cost = about->workers * (prices->scenarios[0].worker + prices->gpus * prices->scenarios[0].gpu + share) +
	              entry->extra_cost;
	entry->per_1000 = about->workers * (double)about->batch / entry->iteration_s / (entry->cost / 1000);
}

/* ---- why it takes so long ---- */

#define LINK_TEXT 96

/* "the link of server 0 (node32)", "each of 32 workers' links", "the uplink of rack1" */
static const char *whose(const struct train_link *link, char text[LINK_TEXT])
{
	static const char *const kinds[] = {"worker", "server", "hub"};
	if (link->kind == TRAIN_SWITCH && link->alike > 1)
		snprintf(text, LINK_TEXT, "each of %" PRIu32 " uplinks", link->alike);
	else if (link->kind == TRAIN_SWITCH)
		snprintf(text, LINK_TEXT, "the uplink of %s", link->name);
	else if (link->alike > 1)
		snprintf(text, LINK_TEXT, "each of %" PRIu32 " %ss' links", link->alike, kinds[link->kind]);
	else
		snprintf(text, LINK_TEXT, "the link of %s %" PRIu32 " (%s)", kinds[link->kind], link->number, link->name);
	return text;
}

static bool is_compute_bound(const struct advice_entry *entry, const struct advice_case *about)
{
	return entry->iteration_s <= (1 + ADVICE_TIE) * about->compute_s;
}

/* The load of a link: both ways where one follows the other, otherwise the busier one. */
static int say_load(const struct train_link *link, char *text, size_t room)
{
	char name[LINK_TEXT];
	bool is_out = link->out_s >= link->in_s;
	whose(link, name);
	if (!link->in_turn)
		return snprintf(text, room, "%s %s %.4g GB: %.4g s", name, is_out ? "sends" : "takes in",
		                (double)(is_out ? link->out_bytes : link->in_bytes) / 1e9, is_out ? link->out_s : link->in_s);
	if (link->kind == TRAIN_WORKER)
		return snprintf(text, room, "%s takes in %.4g GB (%.4g s) and then sends %.4g GB (%.4g s)", name,
		                (double)link->in_bytes / 1e9, link->in_s, (double)link->out_bytes / 1e9, link->out_s);
	return snprintf(text, room, "%s sends %.4g GB (%.4g s) and then takes in %.4g GB (%.4g s)", name,
	                (double)link->out_bytes / 1e9, link->out_s, (double)link->in_bytes / 1e9, link->in_s);
}

static void say_reason(struct advice_entry *entry, const struct advice_case *about)
{
	char name[LINK_TEXT];
	double busy = train_link_busy_s(&entry->busiest), over = entry->iteration_s - about->compute_s, rest = over - busy;
	if (is_compute_bound(entry, about)) {
		snprintf(entry->reason, sizeof entry->reason, "computing takes %.4g s of it; the network hides behind that",
		         about->compute_s);
		return;
	}
	if (busy < 0.5 * over) {
		snprintf(
			entry->reason, sizeof entry->reason,
			"no link is busy for most of it (%s for %.4g s): messages wait for one another; computing takes %.4g s",
			whose(&entry->busiest, name), busy, about->compute_s);
		return;
	}
	size_t used = (size_t)say_load(&entry->busiest, entry->reason, sizeof entry->reason);
	used += (size_t)snprintf(entry->reason + used, sizeof entry->reason - used, "; computing takes %.4g s",
	                         about->compute_s);
	if (rest > 0.1 * entry->iteration_s && used < sizeof entry->reason)
		snprintf(entry->reason + used, sizeof entry->reason - used, ", and for %.4g s messages wait for one another",
		         rest);
}

/* Why it is behind the best: what that one is spared. */
static void say_against(struct advice_entry *entry, const struct advice_entry *best, const struct advice_case *about)
{
	size_t used = strlen(entry->reason);
	char name[LINK_TEXT];
	if (is_compute_bound(best, about))
		snprintf(entry->reason + used, sizeof entry->reason - used, "; with %s the network hides behind computing",
		         best->mechanism->name);
	else
		snprintf(entry->reason + used, sizeof entry->reason - used,
		         "; with %s no link is busy for longer than %.4g s (%s)", best->mechanism->name,
		         train_link_busy_s(&best->busiest), whose(&best->busiest, name));
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

/* Mechanisms within a tie of the best that is left, the least needy first; then on with the rest. */
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

enum esp_status sim_advice_rank(struct advice_entry *entries, size_t count, const struct advice_case *about,
                                struct error *err)
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
		list[i] = (struct scored){*entry, score(entry, about), about->prices ? entry->extra_cost : 0,
		                          burden(entry->mechanism)};
		if (!(list[i].score > 0)) {
			free(list);
			return error_set(err, ESP_EINVAL, "with these prices and times nothing can be compared");
		}
	}
	qsort(list, count, sizeof(*list), by_score);
	sort_ties(list, count);
	for (size_t i = 0; i < count; i++) {
		entries[i] = list[i].entry;
		if (entries[i].iteration_s > entries[0].iteration_s * (1 + ADVICE_TIE))
			say_against(&entries[i], &entries[0], about);
	}
	free(list);
	return ESP_OK;
}

__attribute__((format(printf, 2, 3)))
static void add(char text[ADVICE_SUMMARY], const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;
	va_start(args, format);
	vsnprintf(text + used, ADVICE_SUMMARY - used, format, args);
	va_end(args);
}

const char *sim_advice_summary(const struct advice_entry *entries, size_t count, char text[ADVICE_SUMMARY])
{
	const struct advice_entry *best = &entries[0], *next = NULL, *other = NULL;
	text[0] = '\0';
	add(text, "Use %s: %.4g s an iteration. It needs %s; %s.", best->mechanism->name, best->iteration_s, best->needs,
	    best->reason);
	/* The first that is no tie. */
	for (size_t i = 1; i < count && !next; i++)
		next = entries[i].is_tie ? NULL : &entries[i];
	if (next)
		add(text, " The next best, %s, takes %.4g s: %s.", next->mechanism->name, next->iteration_s, next->reason);
	/* The best that would change the network, if this one does not. */
	for (size_t i = 1; i < count && burden(best->mechanism) < 2 && !other; i++)
		other = burden(entries[i].mechanism) >= 2 ? &entries[i] : NULL;
	if (other)
		add(text, " The best that changes the network is %s, at %.4g s: not worth %s.", other->mechanism->name,
		    other->iteration_s, other->needs);
	return text;
}
