/* lane_user.c - the functions that a transport calls: to which stream a message belongs, and which one sends next. */
#include <stdlib.h>

#include "engine/lane_state.h"

/* ---- turns ---- */

static bool is_queued(const struct stream *stream, uint32_t place)
{
	return stream->queued && stream->queued[place / 64] >> place % 64 & 1;
}

static struct turn *turn_get(struct lane *lane)
{
	struct turn *turn = lane->turn_free;

	if (!turn)
		return malloc(sizeof(*turn));
	lane->turn_free = turn->next;
	return turn;
}

static void turn_put(struct lane *lane, struct turn *turn)
{
	turn->next = lane->turn_free;
	lane->turn_free = turn;
}

static void peer_push(struct lane_peer *peer, struct turn *turn)
{
	turn->next = NULL;
	if (peer->first)
		peer->last->next = turn;
	else
		peer->first = turn;
	peer->last = turn;
}

static struct port *port_of(struct lane *lane, uint32_t peer)
{
	return &lane->ports[lane->port_of ? lane->port_of[peer] : 0];
}

static void port_push(struct port *port, struct lane_peer *peer)
{
	if (peer->ready)
		return;
	peer->ready = true;
	peer->next_ready = NULL;
	if (port->first)
		port->last->next_ready = peer;
	else
		port->first = peer;
	port->last = peer;
}

/* The stream has something for the node at this place: it waits for its turn there. False: no memory. */
static bool turn_add(struct stream *stream, uint32_t place)
{
	struct lane *lane = stream->lane;
	uint32_t number = members_peer(&stream->members, place);
	struct lane_peer *peer = &lane->peers[number];

	if (!is_queued(stream, place)) {
		if (!stream->queued)
			stream->queued = calloc((stream->members.count + UINT64_C(63)) / 64, sizeof(uint64_t));
		struct turn *turn = stream->queued ? turn_get(lane) : NULL;
		if (!turn)
			return false;
		*turn = (struct turn){.stream = stream, .place = place};
		stream->queued[place / 64] |= UINT64_C(1) << place % 64;
		peer_push(peer, turn);
	}
	port_push(port_of(lane, number), peer);
	return true;
}

static void turn_end(struct lane *lane, struct turn *turn)
{
	turn->stream->queued[turn->place / 64] &= ~(UINT64_C(1) << turn->place % 64);
	turn_put(lane, turn);
}

/* Asks the streams that were stirred what has become ready. */
static void collect_stirred(struct lane *lane)
{
	struct stream *stream;
	uint32_t place;

	while ((stream = lane_list_take(lane, STIRRED)) != NULL) {
		while ((place = exec_ready(stream->exec)) != UINT32_MAX) {
			if (!turn_add(stream, place))
				lane_stream_fail(stream, PLAN_NONE, ESP_ENOMEM);
		}
	}
}

static inline void collect(struct lane *lane)
{
	if (lane->first_in[STIRRED])
		collect_stirred(lane);
}

static void peer_remove(struct lane_peer *peer, const struct stream *stream)
{
	struct turn *before = NULL, *turn = peer->first;

	while (turn->stream != stream) {
		before = turn;
		turn = turn->next;
	}
	if (before)
		before->next = turn->next;
	else
		peer->first = turn->next;
	if (peer->last == turn)
		peer->last = before;
	turn_end(stream->lane, turn);
}

void lane_turns_drop(struct stream *stream)
{
	uint32_t words = (uint32_t)((stream->members.count + UINT64_C(63)) / 64);

	for (uint32_t i = 0; stream->queued && i < words; i++) {
		while (stream->queued[i]) {
			uint32_t place = i * 64 + (uint32_t)__builtin_ctzll(stream->queued[i]);

			peer_remove(&stream->lane->peers[members_peer(&stream->members, place)], stream);
		}
	}
}

/* ---- sending ---- */

/* Streams take turns, so that a large call does not keep a small one from being sent. */
static bool user_next(void *user, uint32_t number, struct transport_message *out)
{
	struct lane *lane = ((struct port *)user)->lane;
	struct lane_peer *peer = &lane->peers[number];
	struct turn *turn;

	collect(lane);
	while ((turn = peer->first) != NULL) {
		struct stream *stream = turn->stream;

		peer->first = turn->next;
		if (exec_next(stream->exec, turn->place, out)) {
			out->channel = stream->channel;
			peer_push(peer, turn);
			if (has_failed(stream->exec))
				lane_stream_stir(stream);
			return true;
		}
		turn_end(lane, turn);
	}
	return false;
}

static uint32_t user_ready(void *user)
{
	struct port *port = user;
	struct lane *lane = port->lane;

	collect(lane);
	while (port->first) {
		struct lane_peer *peer = port->first;

		port->first = peer->next_ready;
		peer->ready = false;
		if (peer->first) /* has not been asked to the end in the meantime */
			return (uint32_t)(peer - lane->peers);
	}
	return UINT32_MAX;
}

static void user_sent(void *user, uint32_t peer, uint16_t channel, void *cookie)
{
	(void)peer;
	struct lane *lane = ((struct port *)user)->lane;
	struct stream *stream = stream_find(lane, channel);

	if (!stream || !cookie) /* credits have none */
		return;
	exec_sent(stream->exec, cookie);
	lane_stream_stir(stream);
}

/* ---- receiving ---- */

#define AWAITED_RUNS 2u /* whose messages are looked through, each time that nothing has come */

/* Where more is under way, messages of several peers are as good. */
static uint32_t awaited_peer(const struct lane *lane)
{
	const struct stream *stream = lane->unfinished == 1 ? stream_find(lane, lane->started) : NULL;
	struct exec_wait wait;

	if (!stream || stream->exec->active > AWAITED_RUNS || !exec_waits(stream->exec, &wait) || wait.sends)
		return PLAN_NONE;
	return members_peer(&stream->members, wait.peer);
}

static uint32_t user_awaits(void *user)
{
	struct lane *lane = ((struct port *)user)->lane;
	uint32_t peer = awaited_peer(lane);

	return peer != PLAN_NONE && port_of(lane, peer) == user ? peer : PLAN_NONE;
}

/* The stream that a message from this peer is of, and the peer's place in it; NULL: it is not wanted. */
static struct stream *stream_of(void *user, uint32_t peer, uint16_t channel, uint32_t *out_place)
{
	struct stream *stream = stream_find(((struct port *)user)->lane, channel);

	if (!stream)
		return NULL;
	*out_place = lane_members_place(&stream->members, peer);
	return *out_place == PLAN_NONE ? NULL : stream;
}

/* A status that fails the stream is not the connection's fault. */
static enum esp_status answer(struct stream *stream, enum esp_status status)
{
	lane_stream_stir(stream);
	return has_failed(stream->exec) ? ESP_PENDING : status;
}

static enum esp_status user_begin(void *user, uint32_t peer, const struct transport_message *message)
{
	uint32_t place;
	struct stream *stream = stream_of(user, peer, message->channel, &place);

	return stream ? answer(stream, exec_begin(stream->exec, place, message)) : ESP_PENDING;
}

static struct transport_room user_room(void *user, uint32_t peer, uint16_t channel)
{
	uint32_t place;
	struct stream *stream = stream_of(user, peer, channel, &place);

	/* Closed while a message was on its way: transports were to forget it. */
	return stream ? exec_room(stream->exec, place) : (struct transport_room){NULL, UINT32_MAX};
}

static void user_arrived(void *user, uint32_t peer, uint16_t channel, uint32_t bytes)
{
	uint32_t place;
	struct stream *stream = stream_of(user, peer, channel, &place);

	if (stream)
		exec_arrived(stream->exec, place, bytes);
}

static void user_ended(void *user, uint32_t peer, uint16_t channel)
{
	uint32_t place;
	struct stream *stream = stream_of(user, peer, channel, &place);

	if (!stream)
		return;
	exec_ended(stream->exec, place);
	lane_stream_stir(stream);
}

static enum esp_status user_take(void *user, uint32_t peer, const struct transport_message *message)
{
	uint32_t place;
	struct stream *stream = stream_of(user, peer, message->channel, &place);

	return stream ? answer(stream, exec_take(stream->exec, place, message)) : ESP_PENDING;
}

static enum esp_status user_offer(void *user, uint32_t peer, const struct transport_message *message)
{
	uint32_t place;
	struct stream *stream = stream_of(user, peer, message->channel, &place);

	return stream ? answer(stream, exec_offer(stream->exec, place, message)) : ESP_PENDING;
}

static uint32_t user_consumed(void *user, uint32_t peer, uint16_t channel)
{
	uint32_t place;
	struct stream *stream = stream_of(user, peer, channel, &place);

	return stream ? exec_consumed(stream->exec, place) : 0;
}

static enum esp_status user_credit(void *user, uint32_t peer, const struct transport_message *message)
{
	uint32_t place;
	struct stream *stream = stream_of(user, peer, message->channel, &place);

	if (!stream || has_failed(stream->exec))
		return ESP_OK;
	enum esp_status status = answer(stream, exec_credit(stream->exec, place, message));
	return status == ESP_PENDING ? ESP_OK : status;
}

/* ---- failure ---- */

static void user_lost(void *user, uint32_t number, enum esp_status why)
{
	struct lane *lane = ((struct port *)user)->lane;

	lane->lost_count += !lane->peers[number].lost;
	lane->peers[number].lost = true;
	for (struct stream *stream = lane_first_stream(lane); stream; stream = lane_next_stream(stream)) {
		if (lane_members_place(&stream->members, number) != PLAN_NONE)
			lane_stream_fail(stream, number, why);
	}
}

static enum esp_status user_failed(void *user)
{
	return ((struct port *)user)->lane->failure.status;
}

const struct transport_user lane_user = {
	.next = user_next,
	.ready = user_ready,
	.sent = user_sent,
	.awaits = user_awaits,
	.begin = user_begin,
	.room = user_room,
	.arrived = user_arrived,
	.ended = user_ended,
	.take = user_take,
	.offer = user_offer,
	.consumed = user_consumed,
	.credit = user_credit,
	.lost = user_lost,
	.failed = user_failed,
};
