#include "transport/loop/loop.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "transport/loop/events.h"
#include "transport/stream.h"

/* A lane of a node. */
struct endpoint {
	struct loop *loop;
	uint32_t node, lane;
	const struct transport_user *user;
	void *context;
	bool dead;    /* the node is gone                                              */
	bool severed; /* its user has failed: nothing of its memory is read any more   */
	_Atomic uint32_t revoked; /* the same, for those who read what it offered       */
	struct link *shared; /* links into here with offers under way */
};

/* A message that the receiver may still be reading. */
struct offer {
	struct offer *next;
	struct transport_message message;
};

/* One direction between two lanes. */
struct link {
	struct loop *loop;
	struct endpoint *from, *to;
	enum loop_carry carry;
	struct stream_writer writer;
	struct stream_reader reader;
	uint64_t last_arrival;
	uint32_t in_flight;
	bool broken;
	struct offer *offers;
	bool in_shared;
	struct link *next_shared;
	struct link *next; /* in the loop's table */
};

/* A piece of the stream under way. */
struct fragment {
	uint32_t bytes;
	uint8_t corrupt;        /* bits of its first byte that are turned over */
	bool ends;              /* its message ends with it: late links report sent() then */
	uint16_t channel;
	void *cookie;
	const uint8_t *data;    /* NULL: no memory behind it */
	uint8_t copy[];
};

struct loop {
	struct loop_config config;
	struct rng rng;
	uint64_t now, event_count;
	struct events events;
	struct endpoint *endpoints; /* by node, then lane */
	struct link **table;
	uint32_t table_size, link_count;
};

static void must(bool had_memory)
{
	/* A test transport: running out of memory ends the run, loudly. */
	if (!had_memory) {
		fputs("loop: out of memory\n", stderr);
		abort();
	}
}

static void schedule(struct loop *loop, uint64_t time, void (*act)(void *, void *), void *subject, void *detail)
{
	must(events_add(&loop->events, (struct event){.time = time, .act = act, .subject = subject, .detail = detail}));
}

static uint64_t some_delay(struct loop *loop)
{
	return rng_below(&loop->rng, loop->config.delay_ns + 1);
}

/* ---- links ---- */

static struct endpoint *endpoint_at(struct loop *loop, uint32_t node, uint32_t lane)
{
	return &loop->endpoints[(uint64_t)node * loop->config.lanes + lane];
}

static uint32_t link_slot(const struct loop *loop, const struct endpoint *from, const struct endpoint *to)
{
	uint64_t key = (uint64_t)(from - loop->endpoints) << 32 | (uint64_t)(to - loop->endpoints);

	key *= UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(key >> 32) & (loop->table_size - 1);
}

static void table_grow(struct loop *loop)
{
	uint32_t old_size = loop->table_size;
	struct link **old = loop->table;

	loop->table_size = old_size ? old_size * 2 : 256;
	loop->table = calloc(loop->table_size, sizeof(struct link *));
	must(loop->table != NULL);
	for (uint32_t i = 0; i < old_size; i++) {
		while (old[i]) {
			struct link *link = old[i];
			uint32_t at = link_slot(loop, link->from, link->to);

			old[i] = link->next;
			link->next = loop->table[at];
			loop->table[at] = link;
		}
	}
	free(old);
}

/* Both directions of a pair carry alike; the draw must not depend on which is made first. */
static enum loop_carry draw_carry(const struct loop *loop, const struct endpoint *from, const struct endpoint *to)
{
	if (loop->config.carry != LOOP_MIXED)
		return loop->config.carry;
	uint32_t low = from->node < to->node ? from->node : to->node, high = from->node ^ to->node ^ low;
	struct rng rng;
	rng_init(&rng, loop->config.seed ^ ((uint64_t)low << 32 | high));
	return (enum loop_carry)rng_below(&rng, LOOP_MIXED);
}

static struct link *link_get(struct loop *loop, struct endpoint *from, struct endpoint *to)
{
	if (loop->link_count >= loop->table_size)
		table_grow(loop);
	uint32_t at = link_slot(loop, from, to);
	for (struct link *link = loop->table[at]; link; link = link->next) {
		if (link->from == from && link->to == to)
			return link;
	}
	struct link *link = calloc(1, sizeof(*link));
	must(link != NULL);
	link->loop = loop;
	link->from = from;
	link->to = to;
	link->carry = draw_carry(loop, from, to);
	link->writer.checked = loop->config.checked;
	link->next = loop->table[at];
	loop->table[at] = link;
	loop->link_count++;
	return link;
}

static bool is_cut(const struct link *link)
{
	return link->broken || link->from->dead || link->to->dead || link->from->severed || link->to->severed;
}

static uint64_t arrival_time(struct link *link)
{
	struct loop *loop = link->loop;
	uint64_t time = loop->now + some_delay(loop);

	if (time < link->last_arrival)
		time = link->last_arrival; /* in order */
	link->last_arrival = time;
	link->in_flight++;
	return time;
}

/* ---- moving ---- */

static void drain(struct endpoint *endpoint, struct loop *loop);
static void pump(struct link *link);

static void closing_is_seen(void *subject, void *detail);

/* The user has failed: its connections close, and those at their other ends see that after a while. */
static void close_endpoint(struct loop *loop, struct endpoint *endpoint)
{
	if (endpoint->dead || endpoint->severed)
		return;
	endpoint->severed = true;
	endpoint->revoked = 1;
	for (uint32_t i = 0; i < loop->table_size; i++) {
		for (struct link *link = loop->table[i]; link; link = link->next) {
			if (link->from == endpoint || link->to == endpoint)
				schedule(loop, loop->now + some_delay(loop), closing_is_seen,
				         link->from == endpoint ? link->to : link->from, endpoint);
		}
	}
}

/* The endpoint's user is told that a peer is lost, and fails. */
static void tell_loss(struct loop *loop, struct endpoint *endpoint, uint32_t peer, enum esp_status why)
{
	if (endpoint->dead || endpoint->severed)
		return;
	/* Its memory is not read any more before its caller can know. */
	close_endpoint(loop, endpoint);
	endpoint->user->lost(endpoint->context, peer, why);
}

static void closing_is_seen(void *subject, void *detail)
{
	struct endpoint *closed = detail, *endpoint = subject;

	tell_loss(endpoint->loop, endpoint, closed->node, ESP_EPEER);
}

/* A message cannot be: this end gives up; the other sees the connection close. */
static void link_break(struct link *link, enum esp_status why)
{
	link->broken = true;
	tell_loss(link->loop, link->to, link->from->node, why);
}

static void put_bytes(struct link *link, const struct fragment *fragment)
{
	const struct transport_user *user = link->to->user;
	uint32_t from = link->from->node, done = 0;

	while (done < fragment->bytes) {
		struct transport_room room = stream_room(&link->reader, user, link->to->context, from);
		uint32_t bytes = fragment->bytes - done < room.bytes ? fragment->bytes - done : room.bytes;

		if (room.at && fragment->data)
			memcpy(room.at, fragment->data + done, bytes);
		if (room.at && fragment->corrupt && done == 0)
			*(uint8_t *)room.at ^= fragment->corrupt;
		done += bytes;
		enum esp_status status = stream_arrived(&link->reader, user, link->to->context, from, bytes);
		if (status != ESP_OK) {
			link_break(link, status);
			return;
		}
	}
}

static void fragment_arrives(void *subject, void *detail)
{
	struct link *link = subject;
	struct fragment *fragment = detail;
	struct endpoint *from = link->from;

	link->in_flight--;
	if (!is_cut(link)) {
		put_bytes(link, fragment);
		if (fragment->ends && !is_cut(link))
			from->user->sent(from->context, link->to->node, fragment->channel, fragment->cookie);
		pump(link);
		drain(link->to, link->loop);
		drain(from, link->loop);
	}
	free(fragment);
}

static uint32_t draw_length(struct loop *loop, uint32_t pending)
{
	uint32_t most = loop->config.fragment_most;

	if (most == 0 || pending <= 1)
		return pending;
	uint32_t length = 1 + (uint32_t)rng_below(&loop->rng, most);
	return length < pending ? length : pending;
}

/* Sends the next fragment of the stream; false: nothing to send. */
static bool send_fragment(struct link *link)
{
	struct stream_bytes pending[2];
	struct endpoint *from = link->from;

	if (stream_pending(&link->writer, from->user, from->context, link->to->node, pending) == 0)
		return false;
	uint32_t bytes = draw_length(link->loop, pending[0].bytes);
	/* The header's memory is the writer's, so it is copied on late links too. */
	bool in_header = link->writer.done < FRAME_BYTES;
	bool copies = pending[0].at && (in_header || link->carry == LOOP_COPY);
	struct fragment *fragment = calloc(1, sizeof(*fragment) + (copies ? bytes : 0));
	must(fragment != NULL);
	fragment->bytes = bytes;
	fragment->data = pending[0].at;
	if (link->loop->config.corrupt_one_in && rng_chance(&link->loop->rng, 1, link->loop->config.corrupt_one_in))
		fragment->corrupt = (uint8_t)(1u << rng_below(&link->loop->rng, 8));
	if (copies) {
		memcpy(fragment->copy, pending[0].at, bytes);
		fragment->data = fragment->copy;
	}
	struct transport_message message = link->writer.message;
	bool ends = stream_left(&link->writer, bytes);
	fragment->channel = message.channel;
	fragment->cookie = message.cookie;
	fragment->ends = ends && link->carry == LOOP_LATE;
	schedule(link->loop, arrival_time(link), fragment_arrives, link, fragment);
	if (ends && link->carry == LOOP_COPY)
		from->user->sent(from->context, link->to->node, message.channel, message.cookie);
	return true;
}

/* ---- shared memory ---- */

static void offer_sent(void *subject, void *detail)
{
	struct link *link = subject;
	struct offer *offer = detail;
	struct endpoint *from = link->from;

	if (!is_cut(link)) {
		from->user->sent(from->context, link->to->node, offer->message.channel, offer->message.cookie);
		drain(from, link->loop);
	}
	free(offer);
}

/* Which of the offers under way have been consumed? Their senders get to know after a while. */
static void settle_offers(struct link *link)
{
	struct endpoint *to = link->to;

	for (struct offer **at = &link->offers; *at;) {
		struct offer *offer = *at;
		uint32_t done = to->user->consumed(to->context, link->from->node, offer->message.channel);

		if ((int32_t)(offer->message.index - done) < 0) {
			*at = offer->next;
			schedule(link->loop, link->loop->now + some_delay(link->loop), offer_sent, link, offer);
		} else {
			at = &offer->next;
		}
	}
}

static void offer_arrives(void *subject, void *detail)
{
	struct link *link = subject;
	struct offer *offer = detail;
	struct endpoint *to = link->to;
	uint32_t from = link->from->node;

	link->in_flight--;
	if (is_cut(link)) {
		free(offer);
		return;
	}
	enum esp_status status;
	if (offer->message.is_credit) {
		status = to->user->credit(to->context, from, &offer->message);
		free(offer);
	} else {
		offer->next = link->offers;
		link->offers = offer;
		if (!link->in_shared) {
			link->in_shared = true;
			link->next_shared = to->shared;
			to->shared = link;
		}
		status = to->user->offer(to->context, from, &offer->message);
	}
	if (status != ESP_OK)
		link_break(link, status);
	pump(link);
	drain(to, link->loop);
}

static bool send_offer(struct link *link)
{
	struct endpoint *from = link->from;
	struct transport_message message = {0};

	if (!from->user->next(from->context, link->to->node, &message))
		return false;
	struct offer *offer = calloc(1, sizeof(*offer));
	must(offer != NULL);
	offer->message = message;
	offer->message.revoked = &from->revoked;
	schedule(link->loop, arrival_time(link), offer_arrives, link, offer);
	return true;
}

/* ---- */

static void pump(struct link *link)
{
	uint32_t most = link->loop->config.flight_most;

	while (!is_cut(link) && (most == 0 || link->in_flight < most)) {
		if (link->carry == LOOP_SHARE ? !send_offer(link) : !send_fragment(link))
			return;
	}
}

/* Sends whatever the endpoint has become ready to send, and settles what it has consumed. */
static void drain(struct endpoint *endpoint, struct loop *loop)
{
	uint32_t peer;

	if (endpoint->dead || endpoint->severed || !endpoint->user)
		return;
	if (endpoint->user->failed(endpoint->context) != ESP_OK) {
		close_endpoint(loop, endpoint);
		return;
	}
	while ((peer = endpoint->user->ready(endpoint->context)) != UINT32_MAX)
		pump(link_get(loop, endpoint, endpoint_at(loop, peer, endpoint->lane)));
	for (struct link **at = &endpoint->shared; *at;) {
		struct link *link = *at;

		settle_offers(link);
		if (link->offers) {
			at = &link->next_shared;
		} else {
			*at = link->next_shared;
			link->in_shared = false;
		}
	}
}

/* ---- the network ---- */

enum esp_status loop_open(const struct loop_config *config, struct loop **out, struct error *err)
{
	struct loop *loop = calloc(1, sizeof(*loop));

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
			endpoint_at(loop, node, lane)->loop = loop;
			endpoint_at(loop, node, lane)->node = node;
			endpoint_at(loop, node, lane)->lane = lane;
		}
	}
	*out = loop;
	return ESP_OK;
}

static void link_close(struct link *link)
{
	while (link->offers) {
		struct offer *offer = link->offers;

		link->offers = offer->next;
		free(offer);
	}
	free(link);
}

void loop_close(struct loop *loop)
{
	struct event event;

	if (!loop)
		return;
	while (events_take(&loop->events, &event)) {
		if (event.act == fragment_arrives || event.act == offer_arrives || event.act == offer_sent)
			free(event.detail);
	}
	free(loop->events.heap);
	for (uint32_t i = 0; i < loop->table_size; i++) {
		while (loop->table[i]) {
			struct link *link = loop->table[i];

			loop->table[i] = link->next;
			link_close(link);
		}
	}
	free(loop->table);
	free(loop->endpoints);
	free(loop);
}

void loop_attach(struct loop *loop, uint32_t node, uint32_t lane, const struct transport_user *user, void *context)
{
	struct endpoint *endpoint = endpoint_at(loop, node, lane);

	endpoint->user = user;
	endpoint->context = context;
}

void loop_poke(struct loop *loop, uint32_t node, uint32_t lane)
{
	drain(endpoint_at(loop, node, lane), loop);
}


static void timer_fires(void *subject, void *detail)
{
	void (*act)(void *);

	memcpy(&act, &subject, sizeof(act));
	act(detail);
}

void loop_after(struct loop *loop, uint64_t delay_ns, void (*act)(void *context), void *context)
{
	void *subject;

	static_assert(sizeof(subject) == sizeof(act), "a function fits into a pointer");
	memcpy(&subject, &act, sizeof(subject));
	schedule(loop, loop->now + delay_ns, timer_fires, subject, context);
}

static void loss_is_told(void *subject, void *detail)
{
	struct endpoint *endpoint = subject;

	tell_loss(endpoint->loop, endpoint, (uint32_t)(uintptr_t)detail, ESP_EPEER);
}

void loop_kill(struct loop *loop, uint32_t node)
{
	for (uint32_t other = 0; other < loop->config.nodes; other++) {
		for (uint32_t lane = 0; lane < loop->config.lanes; lane++) {
			struct endpoint *endpoint = endpoint_at(loop, other, lane);

			if (other == node)
				endpoint->dead = true;
			else if (endpoint->user)
				schedule(loop, loop->now + some_delay(loop), loss_is_told, endpoint,
				         (void *)(uintptr_t)node);
		}
	}
}

bool loop_turn(struct loop *loop)
{
	struct event event;

	if (!events_take(&loop->events, &event))
		return false;
	loop->now = event.time;
	loop->event_count++;
	event.act(event.subject, event.detail);
	return true;
}

uint64_t loop_now(const struct loop *loop)
{
	return loop->now;
}

uint64_t loop_events(const struct loop *loop)
{
	return loop->event_count;
}
