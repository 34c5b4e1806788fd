/*
 * tcp_forget_test.c - channels that fail one by one on a connection that lives on.
 *
 *     transport_tcp_forget_test [--seed FIRST] [--count N]
 *
 * Two ends send each other messages on several channels at once, through buffers that take only
 * parts of them, and forget channels at random moments. The memory of a forgotten channel is given
 * back at once. No byte of it is read after that and nobody is told about its messages;
 * what was sent of them arrives whole, and all other channels go on as if nothing had happened. In every second pair the
 * connection is replaced now and then, the two ends being given the new one at different times.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"
#include "sockets.h"
#include "transport/tcp/tcp.h"

#define CHANNELS 6u
#define MESSAGES 40u
#define MOST 30000u
#define LARGEST ((2u << 20) + 5) /* which takes several calls of the kernel, however much these may take at once */
#define WAITING_MOST 8u

/* A message that was pulled and has not left. */
struct held {
	uint8_t *data;
	uint32_t bytes;
};

struct channel {
	bool sends_no_more, hears_no_more; /* forgotten, as a sender and as a receiver are one */
	uint32_t pulled, sent;
	struct held held[MESSAGES];
	uint32_t begun, ended;
};

struct end {
	uint32_t number; /* 0 or 1; the peer is the other */
	struct tcp *tcp;
	struct channel channels[CHANNELS];
	uint32_t turn;
	bool ready;
	struct transport_message arriving;
	uint32_t have;
	uint8_t room[LARGEST];
};

static uint8_t byte_of(uint32_t from, uint32_t channel, uint32_t index, uint32_t at)
{
	return (uint8_t)((from * 7919 + channel * 104729 + index * 1299709 + at) * 2654435761u >> 24);
}

static uint32_t bytes_of(uint32_t from, uint32_t channel, uint32_t index)
{
	uint32_t bytes = (from * 31 + channel * 577 + index * 7211) * 2654435761u % (MOST + 1);

	if (index == MESSAGES / 2)
		return LARGEST - bytes;
	return index % 3 == 0 ? bytes % 100 : bytes;
}

static void let_go(struct held *held)
{
	if (held->data)
		memset(held->data, 0xee, held->bytes);
	free(held->data);
	held->data = NULL;
}

/* ---- what the transport calls ---- */

static bool user_next(void *user, uint32_t peer, struct transport_message *out)
{
	struct end *end = user;

	CHECK(peer == 1 - end->number);
	for (uint32_t i = 0; i < CHANNELS; i++) {
		uint32_t number = (end->turn + i) % CHANNELS;
		struct channel *channel = &end->channels[number];

		if (channel->sends_no_more || channel->pulled == MESSAGES)
			continue;
		struct held *held = &channel->held[channel->pulled];
		held->bytes = bytes_of(end->number, number, channel->pulled);
		held->data = malloc(held->bytes + 1);
		CHECK(held->data);
		for (uint32_t k = 0; k < held->bytes; k++)
			held->data[k] = byte_of(end->number, number, channel->pulled, k);
		*out = (struct transport_message){
			.channel = (uint16_t)(number * 9001),
			.index = channel->pulled++,
			.call = number + 1,
			.bytes = held->bytes,
			.data = held->data,
			.cookie = held,
		};
		end->turn = number + 1;
		return true;
	}
	return false;
}

static uint32_t user_ready(void *user)
{
	struct end *end = user;
	bool ready = end->ready;

	end->ready = false;
	return ready ? 1 - end->number : UINT32_MAX;
}

static void user_sent(void *user, uint32_t peer, uint16_t number, void *cookie)
{
	struct end *end = user;
	struct channel *channel = &end->channels[number / 9001];
	(void)peer;

	CHECK(!channel->sends_no_more);
	CHECK(cookie == &channel->held[channel->sent]);
	let_go(&channel->held[channel->sent++]);
}

static enum esp_status user_begin(void *user, uint32_t peer, const struct transport_message *message)
{
	struct end *end = user;
	uint32_t number = message->channel / 9001;
	struct channel *channel = &end->channels[number];

	CHECK(message->channel % 9001 == 0 && number < CHANNELS && message->call == number + 1);
	CHECK_U64(message->index, channel->begun);
	CHECK_U64(message->bytes, bytes_of(peer, number, message->index));
	channel->begun++;
	if (channel->hears_no_more)
		return ESP_PENDING;
	end->arriving = *message;
	end->have = 0;
	return ESP_OK;
}

static struct transport_room user_room(void *user, uint32_t peer, uint16_t number)
{
	struct end *end = user;
	(void)peer;

	CHECK(number == end->arriving.channel && !end->channels[number / 9001].hears_no_more);
	return (struct transport_room){end->room + end->have, end->arriving.bytes - end->have};
}

static void user_arrived(void *user, uint32_t peer, uint16_t number, uint32_t bytes)
{
	struct end *end = user;
	(void)peer;

	CHECK(number == end->arriving.channel && !end->channels[number / 9001].hears_no_more);
	end->have += bytes;
}

static void user_ended(void *user, uint32_t peer, uint16_t number)
{
	struct end *end = user;
	struct channel *channel = &end->channels[number / 9001];

	CHECK(!channel->hears_no_more);
	CHECK_U64(end->have, end->arriving.bytes);
	for (uint32_t k = 0; k < end->have; k++)
		CHECK(end->room[k] == byte_of(peer, number / 9001, end->arriving.index, k));
	channel->ended++;
}

static enum esp_status user_credit(void *user, uint32_t peer, const struct transport_message *message)
{
	(void)user, (void)peer, (void)message;
	return ESP_ECORRUPT; /* there are none */
}

static void user_lost(void *user, uint32_t peer, enum esp_status why)
{
	(void)user;
	CHECK_MSG(false, "peer %u was lost, status %d", peer, why);
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
	.begin = user_begin,
	.room = user_room,
	.arrived = user_arrived,
	.ended = user_ended,
	.credit = user_credit,
	.lost = user_lost,
	.failed = user_failed,
};

/* ---- the two ends ---- */

static void no_dial(void *context, uint32_t peer)
{
	(void)context, (void)peer;
}

static void end_forgets(struct end *end, uint32_t number)
{
	struct channel *channel = &end->channels[number];

	tcp_forget(end->tcp, (uint16_t)(number * 9001));
	channel->sends_no_more = channel->hears_no_more = true;
	for (uint32_t i = channel->sent; i < channel->pulled; i++)
		let_go(&channel->held[i]);
}

/* Have all that were not forgotten arrived? */
static bool is_over(const struct end *from, const struct end *to)
{
	for (uint32_t i = 0; i < CHANNELS; i++) {
		const struct channel *channel = &from->channels[i];

		if (!channel->sends_no_more &&
		    (channel->sent < MESSAGES || (!to->channels[i].hears_no_more && to->channels[i].ended < MESSAGES)))
			return false;
	}
	return true;
}

/* Ends of new connections that have been made and not yet handed over, in their order. */
struct waiting {
	int fds[WAITING_MOST];
	uint32_t count;
};

static void hand_over(struct end *end, struct waiting *waiting, bool checked)
{
	CHECK(tcp_replace(end->tcp, 1 - end->number, waiting->fds[0], checked, NULL) == ESP_OK);
	memmove(waiting->fds, waiting->fds + 1, --waiting->count * sizeof(int));
}

/* One that the other end gives up before it has it. */
static void hand_over_in_vain(struct end *end, enum socket_kind kind, bool checked)
{
	int fds[2];

	socket_pair(kind, fds);
	close(fds[0]);
	CHECK(tcp_replace(end->tcp, 1 - end->number, fds[1], checked, NULL) == ESP_OK);
}

static uint64_t replace_some(struct end ends[2], struct waiting waiting[2], enum socket_kind kind, struct rng *rng)
{
	bool makes = waiting[0].count < WAITING_MOST && waiting[1].count < WAITING_MOST && rng_chance(rng, 1, 8);
	int fds[2];

	if (makes) {
		socket_pair(kind, fds);
		for (uint32_t i = 0; i < 2; i++)
			waiting[i].fds[waiting[i].count++] = fds[i];
	}
	if (rng_chance(rng, 1, 30))
		hand_over_in_vain(&ends[rng_below(rng, 2)], kind, rng_chance(rng, 1, 2));
	for (uint32_t i = 0; i < 2; i++) {
		if (waiting[i].count > 0 && rng_chance(rng, 1, 4))
			hand_over(&ends[i], &waiting[i], rng_chance(rng, 1, 2));
	}
	return makes;
}

static void run_seed(uint64_t seed, enum socket_kind kind, uint64_t counts[4])
{
	static struct end ends[2];
	struct waiting waiting[2] = {0};
	bool moves = seed % 2 == 0;
	struct rng rng;
	int fds[2];

	rng_init(&rng, seed);
	socket_pair(kind, fds);
	for (uint32_t i = 0; i < 2; i++) {
		struct tcp_config config = {.peers = 2, .send_buffer = rng_chance(&rng, 2, 3) ? 1 : 0, .resumes = moves,
		                            .dial = no_dial};

		ends[i] = (struct end){.number = i, .ready = true};
		CHECK(tcp_open(&config, &table, &ends[i], &ends[i].tcp, NULL) == ESP_OK);
		CHECK(tcp_adopt(ends[i].tcp, 1 - i, fds[i], rng_chance(&rng, 1, 2), NULL) == ESP_OK);
	}
	uint32_t rarity = 2 + (uint32_t)rng_below(&rng, 40);
	while (!is_over(&ends[0], &ends[1]) || !is_over(&ends[1], &ends[0])) {
		tcp_poll(ends[rng_below(&rng, 2)].tcp, 0);
		if (moves)
			counts[3] += replace_some(ends, waiting, kind, &rng);
		if (rng_chance(&rng, 1, rarity)) {
			struct end *end = &ends[rng_below(&rng, 2)];
			uint32_t number = 1 + (uint32_t)rng_below(&rng, CHANNELS - 1); /* the first goes on */

			counts[0]++;
			counts[1] += !end->channels[number].sends_no_more &&
			             end->channels[number].pulled > end->channels[number].sent;
			end_forgets(end, number);
		}
	}
	for (uint32_t i = 0; i < 2; i++) {
		CHECK_U64(ends[i].channels[0].ended, MESSAGES);
		counts[2] += ends[i].channels[0].ended;
	}
	for (uint32_t i = 0; i < 2; i++) {
		while (waiting[i].count > 0)
			hand_over(&ends[i], &waiting[i], false);
		tcp_close(ends[i].tcp);
	}
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 60), counts[4] = {0};

	for (uint64_t seed = first; seed - first < count; seed++) {
		for (enum socket_kind kind = 0; kind < SOCKET_KIND_COUNT; kind++) {
			if (socket_kind_works(kind))
				run_seed(seed, kind, counts);
		}
	}
	printf("%" PRIu64 " times a channel was forgotten, %" PRIu64 " times with messages under way; %" PRIu64
	       " messages of others arrived; connections were replaced %" PRIu64 " times\n",
	       counts[0], counts[1], counts[2], counts[3]);
	CHECK(count < 20 || (counts[1] > 0 && counts[3] > 0));
	return 0;
}
