/*
 * shm_traffic_test.c - ranks on threads of their own send each other whatever they are allowed to.
 *
 *     shm_traffic_test [--seed FIRST] [--count N]
 *
 * Every rank sends so many messages to every other on every channel, within a window that moves when messages are
 * acknowledged, lowest number first or in any order; from its own memory or from the segment, now and then the same to
 * both. It consumes what it gets when it likes, in any order within the window. A rank that has nothing to do sleeps;
 * one that is not woken ends the test. When a rank is through it forgets the channels, at once and not when the others
 * are; then all begin anew, with the same channel numbers. Memory is overwritten as soon as it is given back.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"
#include "transport/shm/shm.h"

#define RANKS 3u
#define CHANNELS 3u
#define WINDOW 8u
#define BYTES_MOST 20000u /* more than what is handed over for: shm_receive.c */
#define BYTES_OFTEN 3000u
#define ROUNDS 3u
#define HANG_MS 60000

/* One channel with one peer. */
struct link {
	uint32_t to_send, to_receive; /* messages of this round */
	uint32_t acked;
	uint64_t pulled_bits;         /* from acked on */
	struct transport_message parked[WINDOW]; /* by index; call is the pattern's seed */
	uint8_t state[WINDOW];        /* 0 nothing, 1 parked, 2 consumed */
	uint32_t received, consumed, told;
};

/* Memory of messages, on loan to the transport. */
struct loan {
	uint8_t *memory;
	uint32_t users, seed, bytes;
	uint64_t content;
};

struct rank {
	uint32_t self;
	struct rng rng;
	struct segment *segment;
	struct segment_view *views[RANKS];
	struct shm *shm;
	struct link links[RANKS][CHANNELS];
	struct loan *twin[RANKS][CHANNELS]; /* memory that the other peer got, and this one gets too */
	bool ready[RANKS];
	uint32_t on_loan;
	uint64_t contents;
	uint32_t first;  /* number of the first message of the round */
	uint32_t messages;
	pthread_t thread;
	pthread_barrier_t *barrier;
	uint64_t sleeps, parked;
};

static uint8_t byte_of(uint32_t seed, uint32_t at)
{
	return (uint8_t)((seed + at) * 2654435761u >> 24);
}

/* ---- sending ---- */

static struct loan *loan_make(struct rank *rank)
{
	struct loan *loan = malloc(sizeof(*loan));
	uint32_t bytes = rng_chance(&rank->rng, 1, 10)
	                     ? 0
	                     : (uint32_t)rng_below(&rank->rng, rng_chance(&rank->rng, 1, 8) ? BYTES_MOST : BYTES_OFTEN);

	CHECK(loan);
	*loan = (struct loan){.seed = (uint32_t)rng_next(&rank->rng), .bytes = bytes, .content = ++rank->contents};
	loan->memory = rng_chance(&rank->rng, 1, 2) ? shm_segment_alloc(rank->segment, bytes) : malloc(bytes + 1);
	CHECK(loan->memory);
	for (uint32_t i = 0; i < bytes; i++)
		loan->memory[i] = byte_of(loan->seed, i);
	return loan;
}

static void loan_return(struct rank *rank, struct loan *loan)
{
	if (--loan->users > 0)
		return;
	memset(loan->memory, 0x5a, loan->bytes);
	if (shm_segment_owns(rank->segment, loan->memory, loan->bytes))
		shm_segment_free(rank->segment, loan->memory);
	else
		free(loan->memory);
	free(loan);
	rank->on_loan--;
}

static uint32_t other_of(const struct rank *rank, uint32_t peer)
{
	return RANKS - rank->self - peer;
}

static bool may_pull(const struct link *link)
{
	uint64_t all = (UINT64_C(1) << WINDOW) - 1;
	uint32_t left = link->to_send - link->acked;

	if (left < WINDOW)
		all = (UINT64_C(1) << left) - 1;
	return (link->pulled_bits & all) != all;
}

/* A number in the window that was not pulled yet: mostly the lowest. */
static uint32_t choose(struct rank *rank, struct link *link)
{
	for (uint32_t tries = rng_chance(&rank->rng, 3, 4) ? 0 : 5; tries > 0; tries--) {
		uint32_t i = (uint32_t)rng_below(&rank->rng, WINDOW);

		if (link->acked + i < link->to_send && !(link->pulled_bits >> i & 1))
			return i;
	}
	uint32_t i = 0;
	while (link->pulled_bits >> i & 1)
		i++;
	return i;
}

/* New, or what the other peer was sent. */
static struct loan *loan_for(struct rank *rank, uint32_t peer, uint16_t channel)
{
	struct loan *loan = rank->twin[peer][channel];
	uint32_t other = other_of(rank, peer);

	rank->twin[peer][channel] = NULL;
	if (loan)
		return loan;
	loan = loan_make(rank);
	loan->users = 1;
	rank->on_loan++;
	if (!rank->twin[other][channel] && may_pull(&rank->links[other][channel])) {
		rank->twin[other][channel] = loan;
		loan->users = 2;
	}
	return loan;
}

static struct transport_message make_message(struct rank *rank, uint32_t peer, uint16_t channel)
{
	struct link *link = &rank->links[peer][channel];
	struct loan *loan = loan_for(rank, peer, channel);
	uint32_t i = choose(rank, link);

	link->pulled_bits |= UINT64_C(1) << i;
	return (struct transport_message){
		.channel = channel,
		.index = rank->first + link->acked + i,
		.call = loan->seed,
		.bytes = loan->bytes,
		.data = loan->memory,
		.cookie = loan,
		.content = rng_chance(&rank->rng, 1, 8) ? 0 : loan->content,
	};
}

static bool user_next(void *user, uint32_t peer, struct transport_message *out)
{
	struct rank *rank = user;
	uint32_t start = (uint32_t)rng_below(&rank->rng, CHANNELS);

	for (uint32_t k = 0; k < CHANNELS; k++) {
		uint16_t channel = (uint16_t)((start + k) % CHANNELS);
		struct link *link = &rank->links[peer][channel];
		bool owes = link->told != link->consumed;

		if (!owes && !may_pull(link))
			continue;
		link->told = link->consumed;
		if (owes && (!may_pull(link) || rng_chance(&rank->rng, 1, 8)))
			*out = (struct transport_message){.is_credit = true, .channel = channel};
		else
			*out = make_message(rank, peer, channel);
		out->ack = rank->first + link->consumed;
		return true;
	}
	return false;
}

static uint32_t user_ready(void *user)
{
	struct rank *rank = user;

	for (uint32_t peer = 0; peer < RANKS; peer++) {
		if (rank->ready[peer]) {
			rank->ready[peer] = false;
			return peer;
		}
	}
	return UINT32_MAX;
}

static void user_sent(void *user, uint32_t peer, uint16_t channel, void *cookie)
{
	(void)peer, (void)channel;
	loan_return(user, cookie);
}

static void acknowledge(struct rank *rank, uint32_t peer, uint16_t channel, uint32_t ack)
{
	struct link *link = &rank->links[peer][channel];

	rank->ready[peer] |= link->acked != ack - rank->first;
	while (link->acked != ack - rank->first) {
		CHECK(link->pulled_bits & 1);
		link->pulled_bits >>= 1;
		link->acked++;
	}
}

/* ---- receiving ---- */

static enum esp_status user_offer(void *user, uint32_t peer, const struct transport_message *message)
{
	struct rank *rank = user;
	struct link *link = &rank->links[peer][message->channel];
	uint32_t index = message->index - rank->first;

	CHECK(index - link->consumed < WINDOW && index < link->to_receive);
	acknowledge(rank, peer, message->channel, message->ack);
	CHECK(link->state[index % WINDOW] == 0);
	link->state[index % WINDOW] = 1;
	link->parked[index % WINDOW] = *message;
	link->received++;
	rank->parked++;
	return ESP_OK;
}

static void consume(struct link *link, uint32_t at)
{
	const struct transport_message *message = &link->parked[at];
	const uint8_t *data = message->data;

	for (uint32_t i = 0; i < message->bytes; i++)
		CHECK_MSG(data[i] == byte_of(message->call, i), "message %u of %u bytes: byte %u is wrong", message->index,
		          message->bytes, i);
	CHECK(atomic_load(message->revoked) == 0);
	link->state[at] = 2;
	while (link->state[link->consumed % WINDOW] == 2)
		link->state[link->consumed++ % WINDOW] = 0;
}

/* Some of what is parked, or all of it; false: there was none. */
static bool consume_some(struct rank *rank)
{
	bool some = false, all = rng_chance(&rank->rng, 1, 3);

	for (uint32_t peer = 0; peer < RANKS; peer++) {
		for (uint32_t channel = 0; channel < CHANNELS; channel++) {
			struct link *link = &rank->links[peer][channel];

			for (uint32_t i = 0; i < WINDOW; i++) {
				if (link->state[i] != 1)
					continue;
				some = true;
				if (all || rng_chance(&rank->rng, 1, 4)) {
					consume(link, i);
					rank->ready[peer] = true;
				}
			}
		}
	}
	return some;
}

static uint32_t user_consumed(void *user, uint32_t peer, uint16_t channel)
{
	const struct rank *rank = user;

	return rank->first + rank->links[peer][channel].consumed;
}

static enum esp_status user_credit(void *user, uint32_t peer, const struct transport_message *message)
{
	struct rank *rank = user;

	acknowledge(rank, peer, message->channel, message->ack);
	return ESP_OK;
}

static void user_lost(void *user, uint32_t peer, enum esp_status why)
{
	const struct rank *rank = user;

	check_fail(__FILE__, __LINE__, "rank %u lost %u: %d", rank->self, peer, why);
}

static enum esp_status user_failed(void *user)
{
	(void)user;
	return ESP_OK;
}

static const struct transport_user table = {
	.next = user_next,
	.ready = user_ready,
	.sent = user_sent,
	.offer = user_offer,
	.consumed = user_consumed,
	.credit = user_credit,
	.lost = user_lost,
	.failed = user_failed,
};

/* ---- a rank's thread ---- */

/* Is everything through, in both directions, and all memory back? */
static bool is_through(const struct rank *rank)
{
	for (uint32_t peer = 0; peer < RANKS; peer++) {
		for (uint32_t channel = 0; peer != rank->self && channel < CHANNELS; channel++) {
			const struct link *link = &rank->links[peer][channel];

			if (link->consumed != link->to_receive || link->told != link->consumed ||
			    link->acked + (uint32_t)__builtin_popcountll(link->pulled_bits) != link->to_send)
				return false;
		}
	}
	return rank->on_loan == 0;
}

static void sleep_until_woken(struct rank *rank)
{
	struct pollfd fd = {.fd = shm_descriptor(rank->shm), .events = POLLIN};

	if (!shm_doze(rank->shm))
		return;
	rank->sleeps++;
	CHECK_MSG(poll(&fd, 1, HANG_MS) == 1, "rank %u was not woken", rank->self);
	shm_rouse(rank->shm);
}

static void run_round(struct rank *rank, uint32_t first)
{
	rank->first = first;
	memset(rank->links, 0, sizeof(rank->links));
	for (uint32_t peer = 0; peer < RANKS; peer++) {
		rank->ready[peer] = peer != rank->self;
		for (uint32_t channel = 0; peer != rank->self && channel < CHANNELS; channel++)
			rank->links[peer][channel].to_send = rank->links[peer][channel].to_receive = rank->messages;
	}
	while (!is_through(rank)) {
		unsigned moved = shm_poll(rank->shm);
		bool parked = consume_some(rank);

		if (moved == 0 && !parked)
			sleep_until_woken(rank);
	}
	for (uint16_t channel = 0; channel < CHANNELS; channel++)
		shm_forget(rank->shm, channel);
}

static void *rank_main(void *context)
{
	static const uint32_t firsts[ROUNDS] = {0, UINT32_MAX - 50, 0};
	struct rank *rank = context;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		run_round(rank, firsts[round]);
		pthread_barrier_wait(rank->barrier);
	}
	return NULL;
}

/* ---- a seed ---- */

static void rank_open(struct rank *rank, uint32_t slots)
{
	static const uint32_t numbers[RANKS] = {0, 1, 2};
	struct segment_config config = {
		.lanes = 1,
		.peers = RANKS,
		.self = rank->self,
		.slot_bytes = BYTES_MOST,
		.slots = slots,
		.small_shm_bytes = 64,
		.heap_bytes = 16u << 20,
	};

	CHECK(shm_segment_open(&config, &rank->segment, NULL) == ESP_OK);
	struct shm_config shm_config = {.segment = rank->segment, .peers = RANKS, .peer_of = numbers};
	CHECK(shm_open_lane(&shm_config, &table, rank, &rank->shm, NULL) == ESP_OK);
}

static void adopt(struct rank *rank, uint32_t peer, const struct rank *of, bool borrows)
{
	if (borrows)
		CHECK(shm_segment_view_borrow(rank->segment, peer, of->segment, &rank->views[peer], NULL) == ESP_OK);
	else
		CHECK(shm_segment_view_open(rank->segment, peer, dup(shm_segment_descriptor(of->segment)), &rank->views[peer],
		                            NULL) == ESP_OK);
	shm_adopt(rank->shm, peer, rank->views[peer], dup(shm_descriptor(of->shm)));
}

static void run_seed(uint64_t seed, uint64_t *sleeps, uint64_t *messages)
{
	static struct rank ranks[RANKS];
	pthread_barrier_t barrier;
	struct rng rng;

	memset(ranks, 0, sizeof(ranks));
	rng_init(&rng, seed);
	uint32_t slots = 1 + (uint32_t)rng_below(&rng, 50); /* a window of each needs 48 */
	uint32_t count = 1 + (uint32_t)rng_below(&rng, 200);
	bool borrows = rng_chance(&rng, 1, 2); /* one address for all, so that a race would show */
	CHECK(pthread_barrier_init(&barrier, NULL, RANKS) == 0);
	for (uint32_t i = 0; i < RANKS; i++) {
		ranks[i].self = i;
		ranks[i].messages = count;
		ranks[i].barrier = &barrier;
		rng_init(&ranks[i].rng, rng_next(&rng));
		rank_open(&ranks[i], slots);
	}
	for (uint32_t i = 0; i < RANKS * RANKS; i++) {
		if (i / RANKS != i % RANKS)
			adopt(&ranks[i / RANKS], i % RANKS, &ranks[i % RANKS], borrows);
	}
	for (uint32_t i = 0; i < RANKS; i++)
		CHECK(pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]) == 0);
	for (uint32_t i = 0; i < RANKS; i++)
		CHECK(pthread_join(ranks[i].thread, NULL) == 0);
	for (uint32_t i = 0; i < RANKS; i++) {
		struct shm_stats stats = shm_stats(ranks[i].shm);

		CHECK_U64(stats.messages_sent, (RANKS - 1) * CHANNELS * ROUNDS * count);
		CHECK_U64(stats.messages_received, stats.messages_sent);
		CHECK(stats.slots_most <= slots || stats.slots_most <= 2 * RANKS);
		*sleeps += ranks[i].sleeps;
		*messages += stats.messages_sent;
		shm_close(ranks[i].shm);
	}
	for (uint32_t i = 0; i < RANKS * RANKS; i++)
		shm_segment_view_close(ranks[i / RANKS].views[i % RANKS]);
	for (uint32_t i = 0; i < RANKS; i++)
		shm_segment_close(ranks[i].segment);
	pthread_barrier_destroy(&barrier);
}

/* ---- to and fro ---- */

/*
 * One message goes back and forth, and the waiting side sleeps at once: this looks for a wake that is missed if a flag
 * is raised just when the other side does not check it.
 */
struct player {
	struct segment *segment;
	struct segment_view *view;
	struct shm *shm;
	uint32_t to_send, told, pulled, received, rounds;
	pthread_t thread;
};

static bool player_next(void *user, uint32_t peer, struct transport_message *out)
{
	struct player *player = user;
	(void)peer;

	if (player->pulled == player->to_send)
		return false;
	*out = (struct transport_message){.index = player->pulled++};
	return true;
}

static uint32_t player_ready(void *user)
{
	struct player *player = user;
	bool changed = player->to_send != player->told;

	player->told = player->to_send;
	return changed ? 0 : UINT32_MAX;
}

static void player_sent(void *user, uint32_t peer, uint16_t channel, void *cookie)
{
	(void)user, (void)peer, (void)channel, (void)cookie;
}

static enum esp_status player_offer(void *user, uint32_t peer, const struct transport_message *message)
{
	struct player *player = user;
	(void)peer;

	CHECK_U64(message->index, player->received);
	player->received++;
	return ESP_OK;
}

static const struct transport_user player_table = {
	.next = player_next,
	.ready = player_ready,
	.sent = player_sent,
	.offer = player_offer,
	.lost = user_lost,
	.failed = user_failed,
};

static void *player_main(void *context)
{
	struct player *player = context;
	struct pollfd fd = {.fd = shm_descriptor(player->shm), .events = POLLIN};
	uint32_t answers = player->to_send; /* 1: we begin */

	while (player->received < player->rounds) {
		bool moved = shm_poll(player->shm) > 0;

		/* Until about the time when the other answers. */
		for (volatile uint32_t wait = player->received * 2654435761u >> 22; !moved && wait > 0; wait--)
			;
		if (!moved && shm_doze(player->shm)) {
			CHECK_MSG(poll(&fd, 1, HANG_MS) == 1, "a player was not woken");
			shm_rouse(player->shm);
		}
		player->to_send = player->received + answers;
	}
	shm_poll(player->shm);
	return NULL;
}

static void player_open(struct player *player, uint32_t self, uint32_t rounds)
{
	static const uint32_t numbers[2] = {0, 0}; /* each calls the other 0 */
	struct segment_config config = {
		.lanes = 1, .peers = 2, .self = self, .slot_bytes = 64, .slots = 1, .small_shm_bytes = 64};

	*player = (struct player){.rounds = rounds, .to_send = self == 0};
	CHECK(shm_segment_open(&config, &player->segment, NULL) == ESP_OK);
	struct shm_config shm_config = {.segment = player->segment, .peers = 1, .peer_of = numbers};
	CHECK(shm_open_lane(&shm_config, &player_table, player, &player->shm, NULL) == ESP_OK);
}

static void play(uint32_t rounds)
{
	struct player players[2];

	for (uint32_t i = 0; i < 2; i++)
		player_open(&players[i], i, rounds);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK(shm_segment_view_borrow(players[i].segment, 1 - i, players[1 - i].segment, &players[i].view, NULL) ==
		      ESP_OK);
		shm_adopt(players[i].shm, 1 - i, players[i].view, dup(shm_descriptor(players[1 - i].shm)));
	}
	for (uint32_t i = 0; i < 2; i++)
		CHECK(pthread_create(&players[i].thread, NULL, player_main, &players[i]) == 0);
	for (uint32_t i = 0; i < 2; i++)
		CHECK(pthread_join(players[i].thread, NULL) == 0);
	for (uint32_t i = 0; i < 2; i++) {
		shm_close(players[i].shm);
		shm_segment_view_close(players[i].view);
	}
	for (uint32_t i = 0; i < 2; i++)
		shm_segment_close(players[i].segment);
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 60);
	uint64_t sleeps = 0, messages = 0;

	for (uint64_t seed = first; seed - first < count; seed++) {
		printf("seed %" PRIu64 "\n", seed);
		run_seed(seed, &sleeps, &messages);
	}
	play(20000);
	printf("%" PRIu64 " messages, %" PRIu64 " sleeps\n", messages, sleeps);
	CHECK(sleeps > 0);
	return 0;
}
