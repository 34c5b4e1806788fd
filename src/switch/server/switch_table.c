/*
 * switch_table.c - flows, members, their hosts, and the slots that these hold.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "switch/server/switch_state.h"

enum esp_status switch_table_open(struct switch_server *server, struct error *err)
{
	uint32_t slots = server->config.slots;

	server->slots = calloc(slots, sizeof(*server->slots));
	server->claims = calloc(slots, sizeof(*server->claims));
	server->words = calloc((size_t)slots * server->config.words_max, sizeof(*server->words));
	if (!server->slots || !server->claims || !server->words)
		return error_set(err, ESP_ENOMEM, "no memory for %u aggregators of %u words", slots, server->config.words_max);
	return ESP_OK;
}

static void close_flow(struct switch_flow *flow)
{
	for (uint32_t i = 0; i < SWITCH_MEMBERS; i++)
		free(flow->members[i]);
	free(flow);
}

void switch_table_close(struct switch_server *server)
{
	for (uint32_t i = 0; i < SWITCH_BUCKETS; i++)
		while (server->flows[i]) {
			struct switch_flow *flow = server->flows[i];
			server->flows[i] = flow->next;
			close_flow(flow);
		}
	while (server->hosts) {
		struct switch_host *host = server->hosts;
		server->hosts = host->next;
		free(host);
	}
	free(server->slots);
	free(server->claims);
	free(server->words);
}

/* ---- hosts ---- */

static struct switch_host *host_of(struct switch_server *server, const union trains_address *address)
{
	union trains_address whose = *address;
	struct switch_host *host = server->hosts;

	/* A host has as many addresses below its prefix as it likes. */
	if (whose.any.sa_family == AF_INET6)
		memset(&whose.v6.sin6_addr.s6_addr[8], 0, 8);
	while (host && !trains_address_equal(&host->address, &whose, true))
		host = host->next;
	if (host)
		return host;
	host = calloc(1, sizeof(*host));
	if (!host)
		return NULL;
	host->address = whose;
	host->next = server->hosts;
	server->hosts = host;
	return host;
}

static void forget_hosts(struct switch_server *server)
{
	struct switch_host **at = &server->hosts;

	while (*at) {
		struct switch_host *host = *at;
		if (host->members == 0 && host->slots == 0 && host->flows == 0) {
			*at = host->next;
			free(host);
		} else {
			at = &host->next;
		}
	}
}

void switch_slot_held_by(struct switch_server *server, uint64_t place, struct switch_host *host,
                         struct switch_flow *flow)
{
	struct switch_claim *claim = &server->claims[place];

	assert(place < server->config.slots && !host == !flow);
	if (claim->host) {
		claim->host->slots--;
		claim->flow->slots--;
		server->slots_used--;
	}
	*claim = (struct switch_claim){host, flow};
	if (!host)
		return;
	host->slots++;
	flow->slots++;
	server->slots_used++;
	if (server->slots_used > server->slots_peak)
		server->slots_peak = server->slots_used;
}

/* ---- flows and members ---- */

static struct switch_flow **bucket_of(const struct switch_server *server, uint64_t id)
{
	uint64_t mixed = (id ^ (id >> 32)) * UINT64_C(0x9e3779b97f4a7c15);
	return (struct switch_flow **)(uintptr_t)&server->flows[(mixed >> 32) % SWITCH_BUCKETS];
}

struct switch_flow *switch_flow_find(const struct switch_server *server, uint64_t id)
{
	struct switch_flow *flow = *bucket_of(server, id);

	while (flow && flow->id != id)
		flow = flow->next;
	return flow;
}

struct switch_member *switch_member_at(const struct switch_flow *flow, const union trains_address *from)
{
	for (uint32_t i = 0; i < SWITCH_MEMBERS; i++)
		if (flow->members[i] && trains_address_equal(&flow->members[i]->peer.address, from, false))
			return flow->members[i];
	return NULL;
}

static enum atp_refusal flow_open(struct switch_server *server, uint64_t id, struct switch_host *opener,
                                  uint64_t now_ns, struct switch_flow **out)
{
	struct switch_flow **bucket = bucket_of(server, id);

	*out = switch_flow_find(server, id);
	if (*out)
		return ATP_REFUSED_NOT;
	if (server->flow_count >= SWITCH_FLOWS)
		return ATP_REFUSED_FULL;
	if (opener->flows >= server->config.flow_quota)
		return ATP_REFUSED_QUOTA;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return ATP_REFUSED_FULL;
	**out = (struct switch_flow){.id = id, .opener = opener, .began_ns = now_ns, .used_ns = now_ns, .next = *bucket};
	*bucket = *out;
	server->flow_count++;
	opener->flows++;
	return ATP_REFUSED_NOT;
}

static void member_close(struct switch_server *server, struct switch_flow *flow, uint32_t number)
{
	struct switch_member *member = flow->members[number];

	member->host->members--;
	flow->members[number] = NULL;
	flow->count--;
	server->member_count--;
	free(member);
}

/* NULL: no memory. */
static struct switch_member *member_of(struct switch_server *server, struct switch_flow *flow, uint16_t number)
{
	struct switch_member *member = flow->members[number];

	if (member)
		return member;
	member = calloc(1, sizeof(*member));
	if (!member)
		return NULL;
	member->number = number;
	flow->members[number] = member;
	flow->count++;
	server->member_count++;
	return member;
}

enum atp_refusal switch_member_register(struct switch_server *server, uint64_t id, uint16_t number,
                                        const union trains_address *from, uint64_t now_ns)
{
	struct switch_host *host = number < SWITCH_MEMBERS ? host_of(server, from) : NULL;
	struct switch_flow *flow;

	if (!host)
		return ATP_REFUSED_FULL;
	enum atp_refusal refusal = flow_open(server, id, host, now_ns, &flow);
	if (refusal != ATP_REFUSED_NOT)
		return refusal;
	/* One address as many members would have each result sent to it as many times. */
	const struct switch_member *other = switch_member_at(flow, from);
	if (other && other->number != number)
		return ATP_REFUSED_NUMBER;
	struct switch_member *member = member_of(server, flow, number);
	if (!member)
		return ATP_REFUSED_FULL; /* a flow without members is forgotten soon */
	if (member->host)
		member->host->members--;
	member->peer.address = *from;
	member->host = host;
	member->heard_ns = now_ns;
	host->members++;
	return ATP_REFUSED_NOT;
}

/* ---- ageing ---- */

/*
 * No member is left that could complete the number, or a switch that is to be taken out waits for the slot: members do
 * without it by now, so nothing else would free it.
 */
static bool is_left_over(const struct switch_server *server, uint32_t place, uint64_t now_ns)
{
	const struct switch_flow *flow = server->claims[place].flow;
	const struct step_limits limits = {.age_ns = server->config.age_ns};

	return flow && (flow->count == 0 || (server->is_draining && step_is_old(&server->slots[place], &limits, now_ns)));
}

static void free_slots(struct switch_server *server, uint64_t now_ns)
{
	for (uint32_t i = 0; i < server->config.slots; i++)
		if (is_left_over(server, i, now_ns)) {
			server->slots[i].is_used = 0;
			switch_slot_held_by(server, i, NULL, NULL);
		}
}

/* Has any flow none left? */
static bool age_members(struct switch_server *server, uint64_t now_ns)
{
	bool any = false;

	for (uint32_t i = 0; i < SWITCH_BUCKETS; i++)
		for (struct switch_flow *flow = server->flows[i]; flow; flow = flow->next) {
			for (uint32_t k = 0; k < SWITCH_MEMBERS; k++)
				if (flow->members[k] && now_ns - flow->members[k]->heard_ns > SWITCH_SILENT_NS)
					member_close(server, flow, k);
			any = any || flow->count == 0;
		}
	return any;
}

static void forget_flows(struct switch_server *server)
{
	for (uint32_t i = 0; i < SWITCH_BUCKETS; i++) {
		struct switch_flow **at = &server->flows[i];
		while (*at) {
			struct switch_flow *flow = *at;
			if (flow->count > 0) {
				at = &flow->next;
				continue;
			}
			*at = flow->next;
			server->flow_count--;
			flow->opener->flows--;
			free(flow);
		}
	}
}

void switch_table_age(struct switch_server *server, uint64_t now_ns)
{
	bool has_dead = age_members(server, now_ns);

	if (has_dead || (server->is_draining && server->slots_used > 0))
		free_slots(server, now_ns); /* one pass for all */
	if (has_dead)
		forget_flows(server);
	forget_hosts(server);
}
