/*
 * shm_rig.h - ranks of one host in one process, with users that send lists of messages; for x_test.c files only.
 *
 * What a user gets it keeps, and consumes when the test says so: consumed() is a number that
 * the test sets. The data of each message is a pattern of its channel and index, or of its content.
 */
#ifndef TESTS_SUPPORT_SHM_RIG_H
#define TESTS_SUPPORT_SHM_RIG_H

#include <poll.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"
#include "transport/shm/shm_state.h"

#define RIG_RANKS 3u
#define RIG_NUMBER 10u /* what the user calls the first; shows where numbers are mixed up */
#define RIG_CHANNELS 8u
#define RIG_QUEUE 4096u
#define RIG_SLOT_BYTES 20000u /* more than what is handed over for: shm_receive.c */

/* What was offered on a channel by a peer, and what of it counts as consumed. */
struct rig_inbox {
	uint32_t count;     /* offers                        */
	uint32_t consumed;  /* the answer                    */
	uint32_t pulled;    /* by all, before the last offer */
	uint32_t sent;      /* to all, and known to be consumed, before it */
	struct transport_message last;
	void *replies[8];   /* of messages with such numbers */
};

struct rig_user {
	uint32_t self;
	struct transport_message queue[RIG_RANKS][RIG_QUEUE];
	uint32_t queued[RIG_RANKS], pulled[RIG_RANKS];
	bool ready[RIG_RANKS];
	uint32_t sent[RIG_RANKS];
	void *sent_last;
	struct rig_inbox inbox[RIG_RANKS][RIG_CHANNELS];
	uint32_t credits[RIG_RANKS], ack_last;
	enum esp_status answer; /* to offers and credits          */
	bool consumes;          /* at once                        */
	bool fails_next;        /* when it is asked for a message */
	uint64_t sum;           /* of all bytes that were offered */
	uint32_t lost[RIG_RANKS];
	enum esp_status why;
	enum esp_status failed;
};

struct rig_rank {
	struct segment *segment;
	struct segment_view *views[RIG_RANKS];
	struct shm *shm;
	struct rig_user user;
};

struct rig {
	struct rig_rank ranks[RIG_RANKS];
};

/* ---- what a transport calls ---- */

static uint32_t rig_local(uint32_t number)
{
	CHECK(number >= RIG_NUMBER && number < RIG_NUMBER + RIG_RANKS);
	return number - RIG_NUMBER;
}

static struct rig_user *rig_asked(void *context, uint32_t number)
{
	struct rig_user *user = context;

	CHECK(user->failed == ESP_OK); /* nothing is asked of one who has failed */
	CHECK_U64(user->lost[rig_local(number)], 0);
	return user;
}

static bool rig_next(void *context, uint32_t number, struct transport_message *out)
{
	uint32_t to = rig_local(number);
	struct rig_user *user = rig_asked(context, number);

	if (user->pulled[to] == user->queued[to])
		return false;
	*out = user->queue[to][user->pulled[to]++ % RIG_QUEUE];
	if (user->fails_next)
		user->failed = ESP_ENOMEM;
	return true;
}

static uint32_t rig_ready(void *context)
{
	struct rig_user *user = context;

	for (uint32_t i = 0; i < RIG_RANKS; i++) {
		if (user->ready[i]) {
			user->ready[i] = false;
			return RIG_NUMBER + i;
		}
	}
	return UINT32_MAX;
}

static void rig_sent(void *context, uint32_t number, uint16_t channel, void *cookie)
{
	struct rig_user *user = rig_asked(context, number);
	(void)channel;

	user->sent[rig_local(number)]++;
	user->sent_last = cookie;
}

static enum esp_status rig_offer(void *context, uint32_t number, const struct transport_message *message)
{
	struct rig_user *user = rig_asked(context, number);

	CHECK(message->revoked && !message->data == message->is_stored && message->channel < RIG_CHANNELS);
	if (user->answer != ESP_OK)
		return user->answer;
	for (uint32_t i = 0; i < message->bytes && message->data; i++)
		user->sum += ((const uint8_t *)message->data)[i];
	struct rig_inbox *inbox = &user->inbox[rig_local(number)][message->channel];
	inbox->count++;
	inbox->last = *message;
	if (message->index < sizeof(inbox->replies) / sizeof(inbox->replies[0]))
		inbox->replies[message->index] = message->reply;
	inbox->pulled = inbox->sent = 0;
	for (uint32_t i = 0; i < RIG_RANKS; i++) {
		inbox->pulled += user->pulled[i];
		inbox->sent += user->sent[i];
	}
	if (user->consumes)
		inbox->consumed = message->index + 1;
	return ESP_OK;
}

static uint32_t rig_consumed(void *context, uint32_t number, uint16_t channel)
{
	return rig_asked(context, number)->inbox[rig_local(number)][channel].consumed;
}

static enum esp_status rig_credit(void *context, uint32_t number, const struct transport_message *message)
{
	struct rig_user *user = rig_asked(context, number);

	CHECK(message->is_credit);
	user->credits[rig_local(number)]++;
	user->ack_last = message->ack;
	return user->answer;
}

static void rig_lost(void *context, uint32_t number, enum esp_status why)
{
	struct rig_user *user = rig_asked(context, number);

	user->lost[rig_local(number)]++;
	user->why = why;
}

static enum esp_status rig_failed(void *context)
{
	const struct rig_user *user = context;

	return user->failed;
}

static const struct transport_user rig_table = {
	.next = rig_next,
	.ready = rig_ready,
	.sent = rig_sent,
	.offer = rig_offer,
	.consumed = rig_consumed,
	.credit = rig_credit,
	.lost = rig_lost,
	.failed = rig_failed,
};

/* ---- ranks ---- */

static void rig_open_rank(struct rig *rig, uint32_t self, uint32_t slots)
{
	struct rig_rank *rank = &rig->ranks[self];
	struct segment_config config = {
		.lanes = 2,
		.peers = RIG_RANKS,
		.self = self,
		.slot_bytes = RIG_SLOT_BYTES,
		.slots = slots,
		.small_shm_bytes = 64,
		.heap_bytes = 16u << 20,
		.is_open = true,
	};
	uint32_t numbers[RIG_RANKS];
	struct error err;

	for (uint32_t i = 0; i < RIG_RANKS; i++)
		numbers[i] = RIG_NUMBER + i;
	CHECK_MSG(shm_segment_open(&config, &rank->segment, &err) == ESP_OK, "segment: %s", err.text);
	struct shm_config shm_config = {
		.segment = rank->segment,
		.lane = 1,
		.peers = RIG_NUMBER + RIG_RANKS,
		.peer_of = numbers,
	};
	rank->user.self = self;
	CHECK_MSG(shm_open_lane(&shm_config, &rig_table, &rank->user, &rank->shm, &err) == ESP_OK, "lane: %s", err.text);
}

static void rig_adopt(struct rig *rig, uint32_t self, uint32_t peer, bool borrows)
{
	struct rig_rank *rank = &rig->ranks[self], *of = &rig->ranks[peer];

	if (borrows)
		CHECK(shm_segment_view_borrow(rank->segment, peer, of->segment, &rank->views[peer], NULL) == ESP_OK);
	else
		CHECK(shm_segment_view_open(rank->segment, peer, dup(shm_segment_descriptor(of->segment)), &rank->views[peer],
		                            NULL) == ESP_OK);
	shm_adopt(rank->shm, peer, rank->views[peer], dup(shm_descriptor(of->shm)));
}

/* borrows: one mapping for all, so that a race would show. */
__attribute__((unused))
static struct rig *rig_open(uint32_t slots, bool borrows)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	CHECK(rig);
	for (uint32_t i = 0; i < RIG_RANKS; i++)
		rig_open_rank(rig, i, slots);
	for (uint32_t i = 0; i < RIG_RANKS; i++) {
		for (uint32_t k = 0; k < RIG_RANKS; k++) {
			if (i != k)
				rig_adopt(rig, i, k, borrows);
		}
	}
	return rig;
}

__attribute__((unused))
static void rig_close(struct rig *rig)
{
	for (uint32_t i = 0; i < RIG_RANKS; i++)
		shm_close(rig->ranks[i].shm);
	for (uint32_t i = 0; i < RIG_RANKS; i++) {
		for (uint32_t k = 0; k < RIG_RANKS; k++)
			shm_segment_view_close(rig->ranks[i].views[k]);
	}
	for (uint32_t i = 0; i < RIG_RANKS; i++)
		shm_segment_close(rig->ranks[i].segment);
	free(rig);
}

/* ---- messages ---- */

static uint8_t rig_byte(uint32_t seed, uint32_t at)
{
	return (uint8_t)((seed * 167u + at) * 31u >> 3);
}

__attribute__((unused))
static void rig_fill(void *memory, uint32_t bytes, uint32_t seed)
{
	for (uint32_t i = 0; i < bytes; i++)
		((uint8_t *)memory)[i] = rig_byte(seed, i);
}

__attribute__((unused))
static bool rig_holds(const void *memory, uint32_t bytes, uint32_t seed)
{
	for (uint32_t i = 0; i < bytes; i++) {
		if (((const uint8_t *)memory)[i] != rig_byte(seed, i))
			return false;
	}
	return true;
}

__attribute__((unused))
static void rig_send(struct rig_rank *rank, uint32_t to, struct transport_message message)
{
	struct rig_user *user = &rank->user;

	CHECK(user->queued[to] - user->pulled[to] < RIG_QUEUE);
	user->queue[to][user->queued[to]++ % RIG_QUEUE] = message;
	user->ready[to] = true;
}

/* Polls all until nothing moves. */
__attribute__((unused))
static void rig_run(struct rig *rig)
{
	for (unsigned moved = 1; moved > 0;) {
		moved = 0;
		for (uint32_t i = 0; i < RIG_RANKS; i++)
			moved += rig->ranks[i].shm ? shm_poll(rig->ranks[i].shm) : 0;
	}
}

__attribute__((unused))
static bool rig_is_readable(const struct shm *shm, int timeout_ms)
{
	struct pollfd poll_fd = {.fd = shm_descriptor(shm), .events = POLLIN};

	return poll(&poll_fd, 1, timeout_ms) == 1;
}

#endif
