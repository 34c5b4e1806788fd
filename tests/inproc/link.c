/*
 * link.c - one direction between two lanes: fragments of a stream, or offers of memory.
 */
#include <stdlib.h>
#include <string.h>

#include "inproc/network.h"

/* A piece of the stream under way. */
struct fragment {
	uint32_t bytes;
	uint8_t corrupt;     /* bits of its first byte that are turned over                    */
	bool ends;           /* its message ends with it: late links report sent() then        */
	bool forgotten;      /* the sender is not told any more                                */
	bool is_whole;       /* a message, from its head to what fills it up, in copy          */
	uint16_t channel;
	void *cookie;
	const uint8_t *data; /* the sender's memory, or copy; NULL: no memory behind it        */
	uint8_t *copy;       /* NULL: there is none                                            */
};

static void fragment_free(struct fragment *fragment)
{
	free(fragment->copy);
	free(fragment);
}

static void fragment_copy(struct fragment *fragment)
{
	fragment->copy = malloc(fragment->bytes);
	inproc_must(fragment->copy != NULL);
	memcpy(fragment->copy, fragment->data, fragment->bytes);
	fragment->data = fragment->copy;
}

/* ---- the table of links ---- */

static uint32_t link_slot(const struct inproc *loop, const struct inproc_end *from, const struct inproc_end *to)
{
	uint64_t key = (uint64_t)(from - loop->endpoints) << 32 | (uint64_t)(to - loop->endpoints);

	key *= UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(key >> 32) & (loop->table_size - 1);
}

static void table_grow(struct inproc *loop)
{
	uint32_t old_size = loop->table_size;
	struct link **old = loop->table;

	loop->table_size = old_size ? old_size * 2 : 256;
	loop->table = calloc(loop->table_size, sizeof(struct link *));
	inproc_must(loop->table != NULL);
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
static enum inproc_carry draw_carry(const struct inproc *loop, const struct inproc_end *from, const struct inproc_end *to)
{
	if (loop->config.carry != INPROC_MIXED)
		return loop->config.carry;
	uint32_t low = from->node < to->node ? from->node : to->node, high = from->node ^ to->node ^ low;
	struct rng rng;
	rng_init(&rng, loop->config.seed ^ ((uint64_t)low << 32 | high));
	return (enum inproc_carry)rng_below(&rng, INPROC_MIXED);
}

struct link *link_get(struct inproc *loop, struct inproc_end *from, struct inproc_end *to)
{
	if (loop->link_count >= loop->table_size)
		table_grow(loop);
	uint32_t at = link_slot(loop, from, to);
	for (struct link *link = loop->table[at]; link; link = link->next) {
		if (link->from == from && link->to == to)
			return link;
	}
	struct link *link = calloc(1, sizeof(*link));
	inproc_must(link != NULL);
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

void link_close(struct link *link)
{
	while (link->offers) {
		struct offer *offer = link->offers;

		link->offers = offer->next;
		free(offer);
	}
	stream_writer_fini(&link->writer);
	free(link);
}

static bool has_lost(const struct inproc_end *endpoint, uint32_t peer)
{
	return endpoint->dead || endpoint->severed || (endpoint->lost && endpoint->lost[peer]);
}

static bool is_cut(const struct link *link)
{
	return link->broken || has_lost(link->from, link->to->node) || has_lost(link->to, link->from->node);
}

static uint64_t arrival_time(struct link *link)
{
	uint64_t time = link->loop->now + inproc_delay(link->loop);

	if (time < link->last_arrival)
		time = link->last_arrival; /* in order */
	link->last_arrival = time;
	link->in_flight++;
	return time;
}

/* A message cannot be: this end gives up; the other sees the connection close. */
static void link_break(struct link *link, enum esp_status why)
{
	link->broken = true;
	endpoint_lose(link->to, link->from->node, why);
}

/* ---- fragments ---- */

static void put_whole(struct link *link, const struct fragment *fragment)
{
	fragment->copy[0] ^= fragment->corrupt;
	enum esp_status status = stream_feed(&link->reader, link->to->user, link->to->context, link->from->node, fragment->copy, fragment->bytes);

	if (status != ESP_OK)
		link_break(link, status);
}

static void put_bytes(struct link *link, const struct fragment *fragment)
{
	const struct transport_user *user = link->to->user;
	uint32_t from = link->from->node, done = 0;

	if (fragment->is_whole) {
		put_whole(link, fragment);
		return;
	}
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
	struct inproc_end *from = link->from;

	link->in_flight--;
	if (!is_cut(link)) {
		put_bytes(link, fragment);
		if (fragment->ends && !fragment->forgotten && !is_cut(link))
			from->user->sent(from->context, link->to->node, fragment->channel, fragment->cookie);
		link_pump(link);
		endpoint_drain(link->to);
		endpoint_drain(from);
	}
	fragment_free(fragment);
}

static uint32_t draw_length(struct inproc *loop, uint32_t pending)
{
	uint32_t most = loop->config.fragment_most;

	if (most == 0 || pending <= 1)
		return pending;
	uint32_t length = 1 + (uint32_t)rng_below(&loop->rng, most);
	return length < pending ? length : pending;
}

#define WHOLE_MOST 16384u /* bytes of a message that comes as small ones do through a socket */

/* A small message in one piece, where messages are not cut and what was sent is copied. False: it is another one. */
static bool fragment_fill(struct fragment *fragment, const struct link *link, const struct stream_bytes *pending, unsigned count)
{
	uint32_t bytes = 0;

	for (unsigned i = 0; i < count; i++) {
		if (!pending[i].at || pending[i].bytes > WHOLE_MOST)
			return false;
		bytes += pending[i].bytes;
	}
	if (link->carry != INPROC_COPY || link->loop->config.fragment_most != 0 || link->writer.done > 0)
		return false;
	fragment->copy = malloc(bytes);
	inproc_must(fragment->copy != NULL);
	for (unsigned i = 0; i < count; fragment->bytes += pending[i++].bytes)
		memcpy(fragment->copy + fragment->bytes, pending[i].at, pending[i].bytes);
	fragment->data = fragment->copy;
	fragment->is_whole = true;
	return true;
}

/* Sends the next fragment of the stream; false: nothing to send. */
static bool send_fragment(struct link *link)
{
	struct stream_bytes pending[STREAM_SPANS];
	struct inproc_end *from = link->from;
	unsigned count = stream_pending(&link->writer, from->user, from->context, link->to->node, pending);

	if (count == 0)
		return false;
	struct fragment *fragment = calloc(1, sizeof(*fragment));
	inproc_must(fragment != NULL);
	if (!fragment_fill(fragment, link, pending, count)) {
		fragment->bytes = draw_length(link->loop, pending[0].bytes);
		fragment->data = pending[0].at;
	}
	fragment->channel = link->writer.message.channel;
	fragment->cookie = link->writer.message.cookie;
	if (link->loop->config.corrupt_one_in && rng_chance(&link->loop->rng, 1, link->loop->config.corrupt_one_in))
		fragment->corrupt = (uint8_t)(1u << rng_below(&link->loop->rng, 8));
	/* What is the writer's memory is copied on late links too. */
	bool is_writers = link->writer.done < link->writer.header_bytes || link->writer.forgotten;
	if (fragment->data && !fragment->copy && (is_writers || link->carry == INPROC_COPY))
		fragment_copy(fragment);
	enum stream_progress progress = stream_left(&link->writer, fragment->bytes);
	fragment->ends = progress == STREAM_SENT && link->carry == INPROC_LATE;
	inproc_schedule(link->loop, arrival_time(link), fragment_arrives, link, fragment);
	if (progress == STREAM_SENT && link->carry == INPROC_COPY)
		from->user->sent(from->context, link->to->node, fragment->channel, fragment->cookie);
	return true;
}

/* ---- shared memory ---- */

static void offer_sent(void *subject, void *detail)
{
	struct link *link = subject;
	struct offer *offer = detail;
	struct inproc_end *from = link->from;

	if (!offer->forgotten && !is_cut(link)) {
		from->user->sent(from->context, link->to->node, offer->message.channel, offer->message.cookie);
		endpoint_drain(from);
	}
	free(offer);
}

/* Nobody reads it any more: its sender gets to know after a while. */
static void offer_ends(struct link *link, struct offer *offer)
{
	inproc_schedule(link->loop, link->loop->now + inproc_delay(link->loop), offer_sent, link, offer);
}

void link_settle(struct link *link)
{
	struct inproc_end *to = link->to;

	for (struct offer **at = &link->offers; *at && !is_cut(link);) {
		struct offer *offer = *at;
		uint32_t done = to->user->consumed(to->context, link->from->node, offer->message.channel);

		if ((int32_t)(offer->message.index - done) < 0) {
			*at = offer->next;
			offer_ends(link, offer);
		} else {
			at = &offer->next;
		}
	}
}

static enum esp_status take_offer(struct link *link, struct offer *offer)
{
	struct inproc_end *to = link->to;
	enum esp_status status = to->user->offer(to->context, link->from->node, &offer->message);

	if (status == ESP_PENDING) {
		offer_ends(link, offer);
		return ESP_OK;
	}
	offer->next = link->offers;
	link->offers = offer;
	if (!link->in_shared) {
		link->in_shared = true;
		link->next_shared = to->shared;
		to->shared = link;
	}
	return status;
}

static void offer_arrives(void *subject, void *detail)
{
	struct link *link = subject;
	struct offer *offer = detail;
	enum esp_status status;

	link->in_flight--;
	if (is_cut(link)) {
		free(offer);
		return;
	}
	if (offer->message.is_credit) {
		status = link->to->user->credit(link->to->context, link->from->node, &offer->message);
		free(offer);
	} else {
		status = take_offer(link, offer);
	}
	if (status != ESP_OK)
		link_break(link, status);
	link_pump(link);
	endpoint_drain(link->to);
}

static bool send_offer(struct link *link)
{
	struct inproc_end *from = link->from;
	struct transport_message message = {0};

	if (!from->user->next(from->context, link->to->node, &message))
		return false;
	struct offer *offer = calloc(1, sizeof(*offer));
	inproc_must(offer != NULL);
	offer->message = message;
	offer->message.content = 0; /* the sender's business, as the cookie is */
	offer->message.reply = NULL; /* nobody stores here */
	offer->message.revoked = endpoint_revocation(from, message.channel);
	inproc_schedule(link->loop, arrival_time(link), offer_arrives, link, offer);
	return true;
}

void link_pump(struct link *link)
{
	uint32_t most = link->loop->config.flight_most;

	while (!is_cut(link) && (most == 0 || link->in_flight < most)) {
		if (link->carry == INPROC_SHARE ? !send_offer(link) : !send_fragment(link))
			return;
	}
}

/* ---- forgetting ---- */

void link_forget(struct link *link, const struct inproc_end *endpoint, uint16_t channel)
{
	if (link->from == endpoint)
		inproc_must(stream_writer_forget(&link->writer, channel));
	if (link->to == endpoint)
		stream_reader_forget(&link->reader, channel);
	for (struct offer **at = &link->offers; *at;) {
		struct offer *offer = *at;

		if (offer->message.channel == channel && link->from == endpoint)
			offer->forgotten = true;
		if (offer->message.channel == channel && link->to == endpoint) {
			*at = offer->next;
			offer_ends(link, offer);
		} else {
			at = &offer->next;
		}
	}
}

void link_event_forget(const struct event *event, const struct inproc_end *endpoint, uint16_t channel)
{
	struct link *link = event->subject;

	if (event->act == fragment_arrives && link->from == endpoint) {
		struct fragment *fragment = event->detail;

		if (fragment->channel != channel)
			return;
		fragment->forgotten = true;
		if (fragment->data && !fragment->copy)
			fragment_copy(fragment);
	} else if ((event->act == offer_arrives || event->act == offer_sent) && link->from == endpoint) {
		struct offer *offer = event->detail;

		offer->forgotten |= offer->message.channel == channel;
	}
}

void link_event_drop(const struct event *event)
{
	if (event->act == fragment_arrives)
		fragment_free(event->detail);
	else if (event->act == offer_arrives || event->act == offer_sent)
		free(event->detail);
}
