#include "hub/control/msg_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"

static const uint8_t session[HANDSHAKE_KEY_BYTES] = "a key that only two ends have";

struct pair {
	struct msg_stream *hub, *worker;
};

static struct pair open_pair(void)
{
	struct pair pair = {calloc(1, sizeof(*pair.hub)), calloc(1, sizeof(*pair.worker))};

	CHECK(pair.hub && pair.worker);
	msg_stream_init(pair.hub, session, true);
	msg_stream_init(pair.worker, session, false);
	return pair;
}

static void close_pair(struct pair pair)
{
	msg_stream_fini(pair.hub);
	msg_stream_fini(pair.worker);
	free(pair.hub);
	free(pair.worker);
}

static void put_ask(struct msg_stream *stream, uint32_t tensor)
{
	CHECK(msg_stream_put(stream, &(struct hub_msg){.type = HUB_MSG_ASK, .ask = tensor}) == ESP_OK);
}

/* Moves at most `most` bytes. */
static size_t move(struct msg_stream *from, struct msg_stream *to, size_t most)
{
	const uint8_t *bytes;
	uint8_t *at;
	size_t n = msg_stream_output(from, &bytes), room = msg_stream_room(to, &at);

	n = n < most ? n : most;
	n = n < room ? n : room;
	if (n == 0)
		return 0;
	memcpy(at, bytes, n);
	msg_stream_sent(from, n);
	msg_stream_arrived(to, n);
	return n;
}

/* Messages arrive whole and in order, however the bytes are cut. */
static void cuts(struct rng *rng)
{
	for (unsigned trial = 0; trial < 200; trial++) {
		struct pair pair = open_pair();
		uint32_t put = 0, taken = 0;
		struct hub_msg msg;

		while (taken < 50) {
			while (put < 50 && rng_chance(rng, 1, 2))
				put_ask(pair.worker, put++);
			move(pair.worker, pair.hub, 1 + rng_below(rng, 100));
			while (msg_stream_take(pair.hub, &msg) == ESP_OK) {
				CHECK(msg.type == HUB_MSG_ASK);
				CHECK_U64(msg.ask, taken++);
			}
		}
		close_pair(pair);
	}
}

/* The receiver's status after this end has taken what the other put. */
static enum esp_status take(struct msg_stream *from, struct msg_stream *to)
{
	struct hub_msg msg;
	enum esp_status status = ESP_PENDING;

	while (status == ESP_PENDING && move(from, to, SIZE_MAX) > 0)
		status = msg_stream_take(to, &msg);
	return status;
}

/* A message that is changed, repeated, left out, reflected or of another session is refused. */
static void forgeries(void)
{
	uint8_t copy[512], other[HANDSHAKE_KEY_BYTES] = "another key";
	const uint8_t *bytes;
	struct hub_msg msg;
	uint8_t *at;

	struct pair pair = open_pair();
	put_ask(pair.worker, 1);
	size_t n = msg_stream_output(pair.worker, &bytes);
	CHECK(n < sizeof(copy));
	memcpy(copy, bytes, n);
	CHECK(take(pair.worker, pair.hub) == ESP_OK);
	CHECK(msg_stream_room(pair.hub, &at) >= n); /* repeated */
	memcpy(at, copy, n);
	msg_stream_arrived(pair.hub, n);
	CHECK(msg_stream_take(pair.hub, &msg) == ESP_ECORRUPT);
	close_pair(pair);

	pair = open_pair(); /* the tag */
	put_ask(pair.worker, 1);
	n = msg_stream_output(pair.worker, &bytes);
	((uint8_t *)(uintptr_t)bytes)[n - 1] ^= 1;
	CHECK(take(pair.worker, pair.hub) == ESP_ECORRUPT);
	close_pair(pair);

	pair = open_pair(); /* left out */
	put_ask(pair.worker, 1);
	msg_stream_sent(pair.worker, msg_stream_output(pair.worker, &bytes));
	put_ask(pair.worker, 2);
	CHECK(take(pair.worker, pair.hub) == ESP_ECORRUPT);
	close_pair(pair);

	pair = open_pair(); /* reflected */
	put_ask(pair.worker, 1);
	CHECK(take(pair.worker, pair.worker) == ESP_ECORRUPT);
	close_pair(pair);

	pair = open_pair();
	msg_stream_init(pair.worker, other, false);
	put_ask(pair.worker, 1);
	CHECK(take(pair.worker, pair.hub) == ESP_ECORRUPT);
	close_pair(pair);
}

/* A ticket's key arrives as it was put, and is not in the bytes between. */
static void hidden_keys(void)
{
	struct hub_msg msg = {.type = HUB_MSG_TICKET, .ticket = {.job = 7, .key = "the key of the job, 32 bytes ..."}};
	struct hub_msg back;
	struct pair pair = open_pair();
	const uint8_t *bytes;

	CHECK(msg_stream_put(pair.hub, &msg) == ESP_OK);
	size_t n = msg_stream_output(pair.hub, &bytes);
	CHECK(!memmem(bytes, n, msg.ticket.key, 8));
	move(pair.hub, pair.worker, SIZE_MAX);
	CHECK(msg_stream_take(pair.worker, &back) == ESP_OK && back.type == HUB_MSG_TICKET && back.ticket.job == 7);
	CHECK(memcmp(back.ticket.key, msg.ticket.key, HUB_KEY_BYTES) == 0);
	close_pair(pair);
}

/* A peer that takes nothing costs a bounded amount of memory. */
static void unsent(void)
{
	struct pair pair = open_pair();
	const uint8_t *bytes;
	enum esp_status status = ESP_OK;

	while (status == ESP_OK)
		status = msg_stream_put(pair.hub, &(struct hub_msg){.type = HUB_MSG_WHY, .why = {.status = ESP_EPEER}});
	CHECK(status == ESP_ELIMIT);
	CHECK(msg_stream_output(pair.hub, &bytes) <= MSG_STREAM_UNSENT_MOST);
	close_pair(pair);
}

int main(void)
{
	struct rng rng;

	rng_init(&rng, 1);
	cuts(&rng);
	forgeries();
	hidden_keys();
	unsent();
	return 0;
}
