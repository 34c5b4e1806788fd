#include "node/net/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"

#define RAIL_ATTEMPTS 3u /* on its rail; then a connection tries the peer's other addresses */

/* ---- rails ---- */

/* The rails found so far. */
struct search {
	const struct roster *roster;
	uint8_t *address_of; /* by rank, RAILS_MOST each */
	uint8_t *taken;      /* by rank: bit set of interfaces that belong to a rail */
	uint32_t count;
};

static bool is_free(const struct search *search, uint32_t rank, const struct node_address *address)
{
	return address->interface < NODE_ADDRESSES && !(search->taken[rank] & 1u << address->interface);
}

static uint8_t *address_slot(const struct search *search, uint32_t rank)
{
	return &search->address_of[rank * RAILS_MOST + search->count];
}

static void add_rail(struct search *search)
{
	for (uint32_t i = 0; i < search->roster->size; i++) {
		const struct node_info *info = &search->roster->nodes[i];
		search->taken[i] = (uint8_t)(search->taken[i] | 1u << info->addresses[*address_slot(search, i)].interface);
	}
	search->count++;
}

/* Finds for every rank a free address in the network of `like`, which is the leader's. */
static bool match_network(const struct search *search, const struct node_address *like)
{
	for (uint32_t i = 0; i < search->roster->size; i++) {
		const struct node_info *info = &search->roster->nodes[i];
		uint32_t at = 0;
		while (at < info->address_count && !(is_free(search, i, &info->addresses[at]) &&
		                                     node_address_same_network(like, &info->addresses[at])))
			at++;
		if (at == info->address_count)
			return false;
		*address_slot(search, i) = (uint8_t)at;
	}
	return true;
}

/* Finds for every rank its next free address of that family. */
static bool match_order(const struct search *search, enum node_family family)
{
	for (uint32_t i = 0; i < search->roster->size; i++) {
		const struct node_info *info = &search->roster->nodes[i];
		uint32_t at = 0;
		while (at < info->address_count &&
		       !(is_free(search, i, &info->addresses[at]) && info->addresses[at].family == family))
			at++;
		if (at == info->address_count)
			return false;
		*address_slot(search, i) = (uint8_t)at;
	}
	return true;
}

static void find_rails(struct search *search, uint32_t wanted)
{
	uint32_t most = wanted && wanted < RAILS_MOST ? wanted : RAILS_MOST;
	const struct node_info *leader = &search->roster->nodes[0];
	for (uint32_t at = 0; at < leader->address_count && search->count < most; at++)
		if (is_free(search, 0, &leader->addresses[at]) && match_network(search, &leader->addresses[at]))
			add_rail(search);
	while (wanted > 1 && search->count < most && (match_order(search, NODE_IPV4) || match_order(search, NODE_IPV6)))
		add_rail(search);
}

enum esp_status rails_find(const struct roster *roster, uint32_t wanted, struct rails *out)
{
	*out = (struct rails){.count = 1};
	if (roster->hosts < 2 || wanted == 1)
		return ESP_OK;
	struct search search = {roster, calloc(roster->size, RAILS_MOST), calloc(roster->size, 1), 0};
	if (!search.address_of || !search.taken) {
		free(search.address_of);
		free(search.taken);
		return ESP_ENOMEM;
	}
	find_rails(&search, wanted);
	free(search.taken);
	if (search.count > 1)
		*out = (struct rails){search.count, search.address_of};
	else
		free(search.address_of);
	return ESP_OK;
}

void rails_fini(struct rails *rails)
{
	free(rails->address_of);
	*rails = (struct rails){0};
}

const struct node_address *rails_address(const struct rails *rails, const struct roster *roster, uint32_t rank,
                                         uint32_t rail)
{
	uint8_t at = rails->address_of ? rails->address_of[rank * RAILS_MOST + rail] : 0;
	return &roster->nodes[rank].addresses[at];
}

/* ---- weights ---- */

void rails_weigh(const uint64_t *rates, uint32_t count, uint32_t *out_weights)
{
	uint64_t most = 0;
	for (uint32_t i = 0; i < count; i++)
		most = rates[i] > most ? rates[i] : most;
	for (uint32_t i = 0; i < count; i++) {
		unsigned __int128 scaled = (unsigned __int128)rates[i] * RAIL_WEIGHT_MOST;
		uint32_t weight = most ? (uint32_t)((scaled + most / 2) / most) : 0;
		out_weights[i] = weight < RAIL_WEIGHT_LEAST ? 0 : weight;
	}
}

enum esp_status rails_parse_weights(const char *text, uint32_t count, uint32_t *out_weights, struct error *err)
{
	char shown[QUOTE_TEXT];
	uint64_t weights[RAILS_MOST], sum = 0;
	uint32_t found = 0;
	const char *at = text;
	for (;;) {
		size_t length = strcspn(at, ":");
		uint64_t weight = 0;
		if (found == RAILS_MOST || !number_parse_u64(at, length, &weight) || weight > 1000000)
			return error_set(err, ESP_EINVAL,
			                 "rail_weights is a list of at most %u numbers from 0 to 1000000, as in 5:1, not %s",
			                 RAILS_MOST, quote(text, strlen(text), shown));
		weights[found++] = weight;
		sum += weight;
		at += length;
		if (*at == '\0')
			break;
		at++;
	}
	if (found != count)
		return error_set(err, ESP_EINVAL,
		                 "rail_weights names %u interface%s, but %u %s used together: see ESP_LOG=info", found,
		                 found == 1 ? "" : "s", count, count == 1 ? "is" : "are");
	if (sum == 0)
		return error_set(err, ESP_EINVAL, "rail_weights must not all be 0");
	for (uint32_t i = 0; i < count; i++)
		out_weights[i] = (uint32_t)weights[i];
	return ESP_OK;
}

/* ---- one connection ---- */

/* The index of interface n modulo their number; 0: there are none. */
static uint32_t nth_interface(const struct interfaces *own, uint32_t n)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < own->count; i++)
		if (own->list[i].address.interface >= count)
			count = own->list[i].address.interface + 1u;
	for (uint32_t i = 0; i < own->count; i++)
		if (own->list[i].address.interface == n % count)
			return own->list[i].index;
	return 0;
}

static void bind_to_rail(const struct rails *rails, const struct roster *roster, const struct interfaces *own,
                         uint32_t self, uint32_t rail, struct route *out)
{
	const struct interface *interface = interfaces_find(own, rails_address(rails, roster, self, rail));
	if (!interface)
		return;
	out->has_source = true;
	out->source = interface->address;
	out->scope = interface->index;
	/*
	 * With two interfaces in one network the kernel would use one for both. Routed networks follow the kernel's
	 * routes.
	 */
	if (node_address_same_network(&interface->address, &out->to))
		memcpy(out->device, interface->name, sizeof(out->device));
}

bool route_find(const struct rails *rails, const struct roster *roster, const struct interfaces *own, uint32_t self,
                uint32_t rank, uint32_t rail, uint32_t attempt, struct route *out)
{
	const struct node_info *info = &roster->nodes[rank];
	struct route route = {0};
	if (info->address_count == 0)
		return false;
	if (rail != ROUTE_ANY && rails->count > 1 && attempt < RAIL_ATTEMPTS) {
		route.to = *rails_address(rails, roster, rank, rail);
		bind_to_rail(rails, roster, own, self, rail, &route);
	} else {
		route.to = info->addresses[attempt % info->address_count];
		if (node_address_is_link_local(&route.to))
			route.scope = nth_interface(own, attempt / info->address_count);
	}
	*out = route;
	return true;
}

const char *route_text(const struct route *route, uint16_t port, const struct interfaces *own, char text[ROUTE_TEXT])
{
	char address[NODE_ADDRESS_TEXT];
	const struct interface *interface = route->has_source ? interfaces_find(own, &route->source) : NULL;
	snprintf(text, ROUTE_TEXT, "%s port %u%s%s", node_address_text(&route->to, address), port,
	         interface ? " through " : "", interface ? interface->name : "");
	return text;
}
