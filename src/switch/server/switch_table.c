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
	server->claimers = calloc(slots, sizeof(struct switch_host *));
	server->words = calloc((size_t)slots * server->config.words_max, sizeof(*server->words));
	if (!server->slots || !server->claimers || !server->words)
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
	free(server->claimers);
	free(server->words);
}

/* ---- hosts ---- */

static struct switch_host *host_of(struct switch_server *server, const union trains_address *address)
{
	struct switch_host *host = server->hosts;

	while (host && !trains_address_equal(&host->address, address, true))
		host = host->next;
	if (host)
		return host;
	host = calloc(1, sizeof(*host));
	if (!host)
		return NULL;
	host->address = *address;
	host->next = server->hosts;
	server->hosts = host;
	return host;
}

static void forget_hosts(struct switch_server *server)
{
	struct switch_host **at = &server->hosts;

	while (*at) {
		struct switch_host *host = *at;
		if (host->members == 0 && host->slots == 0) {
			*at = host->next;
			free(host);
		} else {
			at = &host->next;
		}
	}
}

void switch_slot_held_by(struct switch_server *server, uint64_t place, struct switch_host *host)
{
	struct switch_host **claimer = &server->claimers[place];

	assert(place < server->config.slots);
	if (*claimer) {
		(*claimer)->slots--;
		server->slots_used--;
	}
	*claimer = host;
	if (!host)
		return;
	host->slots++;
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

static struct switch_flow *flow_open(struct switch_server *server, uint64_t id, uint64_t now_ns)
{
	struct switch_flow **bucket = bucket_of(server, id), *flow = switch_flow_find(server, id);

	if (flow || server->flow_count >= SWITCH_FLOWS)
		return flow;
	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return NULL;
	*flow = (struct switch_flow){.id = id, .began_ns = now_ns, .used_ns = now_ns, .next = *bucket};
	*bucket = flow;
	server->flow_count++;
	return flow;
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

struct switch_member *switch_member_register(struct switch_server *server, uint64_t id, uint16_t number,
                                             const union trains_address *from, uint64_t now_ns)
{
	struct switch_flow *flow = number < SWITCH_MEMBERS ? flow_open(server, id, now_ns) : NULL;
	struct switch_member *member = flow ? flow->members[number] : NULL;
	struct switch_host *host = flow ? host_of(server, from) : NULL;

	if (!host)
		return NULL;
	if (!member) {
		member = calloc(1, sizeof(*member));
		if (!member)
			return NULL;
		flow->members[number] = member;
		flow->count++;
		server->member_count++;
	} else {
		member->host->members--;
	}
	member->number = number;
	member->peer.address = *from;
	member->host = host;
	member->heard_ns = now_ns;
	host->members++;
	return member;
}

/* ---- ageing ---- */

/* No member is left that could complete a number. */
static void free_slots(struct switch_server *server, uint64_t flow)
{
	for (uint32_t i = 0; i < server->config.slots; i++)
		if (server->slots[i].is_used && server->slots[i].flow == flow) {
			server->slots[i].is_used = 0;
			switch_slot_held_by(server, i, NULL);
		}
}

static void age_flow(struct switch_server *server, struct switch_flow *flow, uint64_t now_ns)
{
	for (uint32_t i = 0; i < SWITCH_MEMBERS; i++)
		if (flow->members[i] && now_ns - flow->members[i]->heard_ns > SWITCH_SILENT_NS)
			member_close(server, flow, i);
}

void switch_table_age(struct switch_server *server, uint64_t now_ns)
{
	for (uint32_t i = 0; i < SWITCH_BUCKETS; i++) {
		struct switch_flow **at = &server->flows[i];
		while (*at) {
			struct switch_flow *flow = *at;
			age_flow(server, flow, now_ns);
			if (flow->count > 0) {
				at = &flow->next;
				continue;
			}
			*at = flow->next;
			server->flow_count--;
			free_slots(server, flow->id);
			free(flow);
		}
	}
	forget_hosts(server);
}
