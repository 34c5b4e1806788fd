#include "inproc/inproc.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inproc/network.h"

void inproc_no_memory(void)
{
	fputs("loop: out of memory\n", stderr);
	abort();
}

void inproc_schedule(struct inproc *loop, uint64_t time, void (*act)(void *, void *), void *subject, void *detail)
{
	inproc_must(events_add(&loop->events, (struct event){.time = time, .act = act, .subject = subject, .detail = detail}));
}

uint64_t inproc_delay(struct inproc *loop)
{
	return rng_below(&loop->rng, loop->config.delay_ns + 1);
}

struct inproc_end *inproc_endpoint(struct inproc *loop, uint32_t node, uint32_t lane)
{
	return &loop->endpoints[(uint64_t)node * loop->config.lanes + lane];
}

/* ---- endpoints ---- */

const _Atomic uint32_t *endpoint_revocation(struct inproc_end *endpoint, uint16_t channel)
{
	struct revocation *at = endpoint->revocations;

	while (at && (at->over || at->channel != channel))
		at = at->next;
	if (!at) {
		at = calloc(1, sizeof(*at));
		inproc_must(at != NULL);
		at->channel = channel;
		at->next = endpoint->revocations;
		endpoint->revocations = at;
	}
	return &at->flag;
}

/* The other end has closed. */
static void closing_is_seen(void *subject, void *detail)
{
	const struct inproc_end *closed = detail;

	endpoint_lose(subject, closed->node, ESP_EPEER);
}

/* The user has failed: its connections close, and those at their other ends see that after a while. */
static void endpoint_close(struct inproc_end *endpoint)
{
	struct inproc *loop = endpoint->loop;

	endpoint->severed = true;
	for (struct revocation *at = endpoint->revocations; at; at = at->next)
		at->flag = 1;
	for (uint32_t i = 0; i < loop->table_size; i++) {
		for (struct link *link = loop->table[i]; link; link = link->next) {
			if (link->from == endpoint || link->to == endpoint)
				inproc_schedule(loop, loop->now + inproc_delay(loop), closing_is_seen,
				              link->from == endpoint ? link->to : link->from, endpoint);
		}
	}
}

void endpoint_lose(struct inproc_end *endpoint, uint32_t peer, enum esp_status why)
{
	struct inproc *loop = endpoint->loop;

	if (endpoint->dead || endpoint->severed || !endpoint->user || (endpoint->lost && endpoint->lost[peer]))
		return;
	if (!endpoint->lost) {
		endpoint->lost = calloc(loop->config.nodes, sizeof(bool));
		inproc_must(endpoint->lost != NULL);
	}
	endpoint->lost[peer] = true;
	inproc_schedule(loop, loop->now + inproc_delay(loop), closing_is_seen, inproc_endpoint(loop, peer, endpoint->lane),
	              endpoint);
	endpoint->user->lost(endpoint->context, peer, why);
}

void endpoint_drain(struct inproc_end *endpoint)
{
	struct inproc *loop = endpoint->loop;
	uint32_t peer;

	if (endpoint->dead || endpoint->severed || !endpoint->user)
		return;
	if (endpoint->user->failed(endpoint->context) != ESP_OK) {
		endpoint_close(endpoint);
		return;
	}
	while ((peer = endpoint->user->ready(endpoint->context)) != UINT32_MAX)
		link_pump(link_get(loop, endpoint, inproc_endpoint(loop, peer, endpoint->lane)));
	for (struct link **at = &endpoint->shared; *at;) {
		struct link *link = *at;

		link_settle(link);
		if (link->offers) {
			at = &link->next_shared;
		} else {
			*at = link->next_shared;
			link->in_shared = false;
		}
	}
}

static void endpoint_fini(struct inproc_end *endpoint)
{
	while (endpoint->revocations) {
		struct revocation *revocation = endpoint->revocations;

		endpoint->revocations = revocation->next;
		free(revocation);
	}
	free(endpoint->lost);
}

/* ---- the network ---- */

enum esp_status inproc_open(const struct inproc_config *config, struct inproc **out, struct error *err)
{
	struct inproc *loop = calloc(1, sizeof(*loop));

	if (loop)
		loop->endpoints = calloc((size_t)config->nodes * config->lanes, sizeof(*loop->endpoints));
	if (!loop || !loop->endpoints) {
		free(loop);
		return error_set(err, ESP_ENOMEM, "no memory for a network of %u nodes", config->nodes);
	}
	loop->config = *config;
	rng_init(&loop->rng, config->seed);
	for (uint32_t node = 0; node < config->nodes; node++) {
		for (uint32_t lane = 0; lane < config->lanes; lane++) {
			inproc_endpoint(loop, node, lane)->loop = loop;
			inproc_endpoint(loop, node, lane)->node = node;
			inproc_endpoint(loop, node, lane)->lane = lane;
		}
	}
	*out = loop;
	return ESP_OK;
}

void inproc_close(struct inproc *loop)
{
	struct event event;

	if (!loop)
		return;
	while (events_take(&loop->events, &event))
		link_event_drop(&event);
	free(loop->events.heap);
	for (uint32_t i = 0; i < loop->table_size; i++) {
		while (loop->table[i]) {
			struct link *link = loop->table[i];

			loop->table[i] = link->next;
			link_close(link);
		}
	}
	for (size_t i = 0; i < (size_t)loop->config.nodes * loop->config.lanes; i++)
		endpoint_fini(&loop->endpoints[i]);
	free(loop->table);
	free(loop->endpoints);
	free(loop);
}

void inproc_attach(struct inproc *loop, uint32_t node, uint32_t lane, const struct transport_user *user, void *context)
{
	struct inproc_end *endpoint = inproc_endpoint(loop, node, lane);

	endpoint->user = user;
	endpoint->context = context;
}

void inproc_poke(struct inproc *loop, uint32_t node, uint32_t lane)
{
	endpoint_drain(inproc_endpoint(loop, node, lane));
}

void inproc_forget(struct inproc *loop, uint32_t node, uint32_t lane, uint16_t channel)
{
	struct inproc_end *endpoint = inproc_endpoint(loop, node, lane);

	for (struct revocation *at = endpoint->revocations; at; at = at->next) {
		if (at->channel == channel && !at->over) {
			at->over = true;
			at->flag = 1;
		}
	}
	for (uint32_t i = 0; i < loop->table_size; i++) {
		for (struct link *link = loop->table[i]; link; link = link->next) {
			if (link->from == endpoint || link->to == endpoint)
				link_forget(link, endpoint, channel);
		}
	}
	for (uint64_t i = 0; i < loop->events.count; i++)
		link_event_forget(&loop->events.heap[i], endpoint, channel);
}

static void timer_fires(void *subject, void *detail)
{
	void (*act)(void *);

	memcpy(&act, &subject, sizeof(act));
	act(detail);
}

void inproc_after(struct inproc *loop, uint64_t delay_ns, void (*act)(void *context), void *context)
{
	void *subject;

	static_assert(sizeof(subject) == sizeof(act), "a function fits into a pointer");
	memcpy(&subject, &act, sizeof(subject));
	inproc_schedule(loop, loop->now + delay_ns, timer_fires, subject, context);
}

static void loss_is_told(void *subject, void *detail)
{
	endpoint_lose(subject, (uint32_t)(uintptr_t)detail, ESP_EPEER);
}

void inproc_kill(struct inproc *loop, uint32_t node)
{
	for (uint32_t other = 0; other < loop->config.nodes; other++) {
		for (uint32_t lane = 0; lane < loop->config.lanes; lane++) {
			struct inproc_end *endpoint = inproc_endpoint(loop, other, lane);

			if (other == node)
				endpoint->dead = true;
			else if (endpoint->user)
				inproc_schedule(loop, loop->now + inproc_delay(loop), loss_is_told, endpoint,
				              (void *)(uintptr_t)node);
		}
	}
}

bool inproc_turn(struct inproc *loop)
{
	struct event event;

	if (!events_take(&loop->events, &event))
		return false;
	loop->now = event.time;
	loop->event_count++;
	event.act(event.subject, event.detail);
	return true;
}

uint64_t inproc_now(const struct inproc *loop)
{
	return loop->now;
}

uint64_t inproc_events(const struct inproc *loop)
{
	return loop->event_count;
}
