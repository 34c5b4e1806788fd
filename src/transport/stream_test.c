/*
 * stream_test.c - frames over a stream that is cut anywhere, and bytes that are no frames.
 */
#include "transport/stream.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"

#define BODY 300u
#define LARGE 4096u /* messages of so much are shifted to where they stand in memory */
#define ROOM (LARGE + BODY + FRAME_SHIFTS)

/* A user that sends a list of messages, and keeps what it is sent. */
struct user {
	uint32_t to_send, sent;
	uint32_t extra; /* bytes more in each message with a body */
	uint32_t offset; /* of bodies, from the beginning of a cache line */
	_Alignas(FRAME_SHIFTS) uint8_t body[ROOM];
	uint8_t received[ROOM];
	uint32_t have, begun, credits, complete;
	uint32_t drop_one_in; /* of so many messages, one is not wanted; 0: none */
	uint32_t dropped, taken;
	struct transport_message last;
};

static bool user_next(void *context, uint32_t peer, struct transport_message *out)
{
	struct user *user = context;
	(void)peer;

	if (user->sent == user->to_send)
		return false;
	*out = (struct transport_message){
		.is_credit = user->sent % 3 == 2,
		.channel = (uint16_t)(user->sent * 7),
		.index = user->sent,
		.ack = user->sent + 100,
		.call = user->sent * 1000003u,
		.bytes = user->sent % 3 == 2 ? 0 : user->extra + user->sent * 31 % BODY,
		.data = user->body + user->offset,
	};
	user->sent++;
	return true;
}

static enum esp_status user_begin(void *context, uint32_t peer, const struct transport_message *message)
{
	struct user *user = context;
	(void)peer;

	user->begun++;
	user->have = 0;
	user->last = *message;
	if (message->bytes >= user->extra + BODY)
		return ESP_ECORRUPT;
	CHECK_U64(message->shift, message->bytes < LARGE ? 0 : user->offset);
	CHECK_U64(message->call, message->index * 1000003u);
	bool unwanted = user->drop_one_in && message->index % user->drop_one_in == 0;
	user->dropped += unwanted;
	return unwanted ? ESP_PENDING : ESP_OK;
}

static struct transport_room user_room(void *context, uint32_t peer, uint16_t channel)
{
	struct user *user = context;
	(void)peer;

	CHECK_U64(channel, user->last.channel);
	/* more than is to come: the reader limits it */
	return (struct transport_room){user->received + user->have, ROOM - user->have};
}

static void user_arrived(void *context, uint32_t peer, uint16_t channel, uint32_t bytes)
{
	struct user *user = context;
	(void)peer, (void)channel;

	user->have += bytes;
	CHECK(user->have <= user->last.bytes);
}

static void user_ended(void *context, uint32_t peer, uint16_t channel)
{
	struct user *user = context;
	(void)peer;

	CHECK_U64(channel, user->last.channel);
	CHECK_U64(user->have, user->last.bytes);
	CHECK(memcmp(user->received, user->body + user->offset, user->have) == 0);
	user->complete++;
}

static enum esp_status user_credit(void *context, uint32_t peer, const struct transport_message *message)
{
	struct user *user = context;
	(void)peer;

	CHECK(message->is_credit);
	CHECK_U64(message->call, 0);
	user->credits++;
	user->last = *message;
	return ESP_OK;
}

/* A whole message: as if it had come byte by byte. */
static enum esp_status user_take(void *context, uint32_t peer, const struct transport_message *message)
{
	struct user *user = context;
	enum esp_status status = user_begin(context, peer, message);

	CHECK_U64((uintptr_t)message->data % TRANSPORT_ALIGN, 0);
	if (status != ESP_OK)
		return status;
	memcpy(user->received, message->data, message->bytes);
	user_arrived(context, peer, message->channel, message->bytes);
	user_ended(context, peer, message->channel);
	user->taken++;
	return ESP_OK;
}

static const struct transport_user table_that_takes = {.next = user_next,
                                                       .begin = user_begin,
                                                       .room = user_room,
                                                       .arrived = user_arrived,
                                                       .ended = user_ended,
                                                       .take = user_take,
                                                       .credit = user_credit};
static const struct transport_user table = {.next = user_next,
                                            .begin = user_begin,
                                            .room = user_room,
                                            .arrived = user_arrived,
                                            .ended = user_ended,
                                            .credit = user_credit};

/* Moves up to `most` bytes from the writer to the reader. */
static bool move(struct stream_writer *writer, struct user *from, struct stream_reader *reader, struct user *to,
                 uint32_t most)
{
	struct stream_bytes pending[STREAM_SPANS];

	if (stream_pending(writer, &table, from, 1, pending) == 0)
		return false;
	struct transport_room room = stream_room(reader, &table, to, 0);
	uint32_t bytes = pending[0].bytes < room.bytes ? pending[0].bytes : room.bytes;
	if (bytes > most)
		bytes = most;
	if (room.at)
		memcpy(room.at, pending[0].at, bytes);
	stream_left(writer, bytes);
	CHECK(stream_arrived(reader, &table, to, 0, bytes) == ESP_OK);
	return true;
}

/* Some send what is shifted, and some what is not. */
static struct user draw_sender(struct rng *rng)
{
	struct user from = {.to_send = 50,
	                    .extra = (uint32_t)rng_below(rng, 3) * LARGE / 2,
	                    .offset = (uint32_t)rng_below(rng, FRAME_SHIFTS)};

	for (uint32_t k = 0; k < ROOM; k++)
		from.body[k] = (uint8_t)rng_next(rng);
	return from;
}

static struct user receiver_of(const struct user *from)
{
	struct user to = {.extra = from->extra, .offset = from->offset};

	memcpy(to.body, from->body, ROOM);
	return to;
}

static void cut_anywhere(struct rng *rng)
{
	for (int i = 0; i < 300; i++) {
		struct user from = draw_sender(rng), to = receiver_of(&from);
		struct stream_writer writer = {.checked = i % 2};
		struct stream_reader reader = {0};
		uint32_t most = 1 + (uint32_t)rng_below(rng, 100);

		to.drop_one_in = (uint32_t)i % 4;
		while (move(&writer, &from, &reader, &to, 1 + (uint32_t)rng_below(rng, most)))
			;
		CHECK_U64(to.begun, 34);
		CHECK_U64(to.complete, 34 - to.dropped);
		CHECK((to.dropped > 0) == (to.drop_one_in > 0));
		CHECK_U64(to.credits, 16);
		CHECK_U64(to.last.index, 49);
		CHECK_U64(to.last.ack, 149);
	}
}

/*
 * All that a user sends, as it lies in a stream: some messages put together by the writer, of which some leave in part
 * first. Returns how many bytes.
 */
static uint32_t flatten(struct rng *rng, struct user *from, bool checked, uint8_t *out)
{
	struct stream_writer writer = {.checked = checked};
	struct stream_bytes pending[STREAM_SPANS];
	uint32_t bytes = 0;

	for (;;) {
		uint32_t part = 0, room = (uint32_t)rng_below(rng, 2) * (uint32_t)rng_below(rng, 600);
		enum stream_whole whole = stream_pending_whole(&writer, &table, from, 1, out + bytes, room, &part);

		if (whole == STREAM_NONE)
			return bytes;
		if (whole == STREAM_WHOLE) {
			CHECK(part <= room && part % FRAME_STEP == 0);
			if (rng_chance(rng, 1, 4))
				part = 1 + (uint32_t)rng_below(rng, part);
		} else {
			CHECK(stream_pending(&writer, &table, from, 1, pending) > 0);
			part = pending[0].bytes;
			memcpy(out + bytes, pending[0].at, part);
		}
		bytes += part;
		stream_left(&writer, part);
	}
}

#define FLAT (50u * (ROOM + 2 * FRAME_STEP))

/*
 * Bytes in pieces of any length, from anywhere, arrive as they do one by one, also where whole messages lie in a piece.
 */
static void fed_in_pieces(struct rng *rng)
{
	static _Alignas(FRAME_SHIFTS) uint8_t stream[FLAT], piece[FLAT + TRANSPORT_ALIGN];
	uint32_t taken = 0, not_taken = 0;

	for (int i = 0; i < 300; i++) {
		struct user from = draw_sender(rng), to = receiver_of(&from);
		struct stream_reader reader = {0};
		uint32_t bytes = flatten(rng, &from, i % 2, stream), most = 1 + (uint32_t)rng_below(rng, i % 3 ? 2000 : FLAT);

		to.drop_one_in = (uint32_t)i % 4;
		for (uint32_t at = 0, part; at < bytes; at += part) {
			uint8_t *place = piece + (i % 5 == 0 ? rng_below(rng, TRANSPORT_ALIGN) : 0);

			part = 1 + (uint32_t)rng_below(rng, most);
			if (i % 4 > 0) /* mostly what is read ends where a message does */
				part += frame_filling(part);
			part = part < bytes - at ? part : bytes - at;
			memcpy(place, stream + at, part);
			CHECK(stream_feed(&reader, &table_that_takes, &to, 0, place, part) == ESP_OK);
		}
		CHECK_U64(to.begun, 34);
		CHECK_U64(to.complete, 34 - to.dropped);
		CHECK_U64(to.credits, 16);
		CHECK_U64(to.last.ack, 149);
		taken += to.taken;
		not_taken += to.complete - to.taken;
	}
	CHECK(taken > 500 && not_taken > 500);
}

/* One message that came in two pieces, and credits in between, keep none of those behind it from being taken whole. */
static void taken_after_others(struct rng *rng)
{
	static _Alignas(FRAME_SHIFTS) uint8_t stream[FLAT];
	struct user from = {.to_send = 50, .extra = 5}, to = receiver_of(&from);
	struct stream_reader reader = {0};
	uint32_t bytes = flatten(rng, &from, false, stream);

	CHECK(stream_feed(&reader, &table_that_takes, &to, 0, stream, 5) == ESP_OK);
	CHECK(stream_feed(&reader, &table_that_takes, &to, 0, stream + 5, bytes - 5) == ESP_OK);
	CHECK_U64(to.complete, 34);
	CHECK_U64(to.taken, 33);
}

/*
 * Wherever a bit is turned in a stream whose data is checked, nothing comes to its user that was not sent, and no
 * message behind it does.
 */
static void fed_with_damage(struct rng *rng)
{
	static _Alignas(FRAME_SHIFTS) uint8_t stream[FLAT], rest[FLAT];

	for (int i = 0; i < 4000; i++) {
		struct user from = draw_sender(rng);
		from.to_send = 20;
		from.offset = 0; /* of the bytes that a user gets, none is believed before it was compared: see user_ended() */
		struct user to = receiver_of(&from);
		struct stream_reader reader = {0};
		uint32_t bytes = flatten(rng, &from, true, stream), at = (uint32_t)rng_below(rng, bytes - FRAME_BYTES);

		stream[at] ^= (uint8_t)(1u << rng_below(rng, 8));
		/* Pieces take another way, and bytes behind a cut may lie there whole. */
		enum esp_status status = ESP_OK;
		for (uint32_t done = 0, part; status == ESP_OK && done < bytes; done += part) {
			part = (1 + (uint32_t)rng_below(rng, 8)) * FRAME_STEP;
			part = part < bytes - done ? part : bytes - done;
			memcpy(rest, stream + done, part);
			status = stream_feed(&reader, &table_that_takes, &to, 0, rest, part);
		}
		CHECK(status == ESP_ECORRUPT);
		CHECK(to.complete + to.credits < 20);
	}
}

static void not_frames(void)
{
	struct user user = {0};
	struct stream_reader reader = {0};
	struct transport_room room = stream_room(&reader, &table, &user, 0);

	CHECK_U64(room.bytes, FRAME_BYTES);
	memcpy(room.at, "GET / HTTP/1.1\r\nHost: example\r\n", FRAME_BYTES);
	CHECK(stream_arrived(&reader, &table, &user, 0, FRAME_BYTES) == ESP_ECORRUPT);
	/* A message that the user refuses is refused. */
	struct frame frame = {.type = FRAME_DATA, .bytes = UINT32_MAX};
	reader = (struct stream_reader){0};
	frame_encode(&frame, stream_room(&reader, &table, &user, 0).at);
	CHECK(stream_arrived(&reader, &table, &user, 0, FRAME_BYTES) == ESP_ECORRUPT);
}

/* A turned bit in the data is noticed before anything is told to have ended. */
static void corrupt_data(void)
{
	struct user from = {.to_send = 2}, to = {0}; /* the second message has a body */
	struct stream_writer writer = {.checked = true};
	struct stream_reader reader = {0};
	struct stream_bytes pending[STREAM_SPANS];

	while (to.begun < 2)
		CHECK(move(&writer, &from, &reader, &to, BODY));
	CHECK_U64(to.complete, 1);
	CHECK(stream_pending(&writer, &table, &from, 1, pending) == 2 &&
	      pending[1].bytes == frame_filling(pending[0].bytes));
	uint8_t *at = stream_room(&reader, &table, &to, 0).at;
	memcpy(at, pending[0].at, pending[0].bytes);
	at[5] ^= 4;
	CHECK(stream_arrived(&reader, &table, &to, 0, pending[0].bytes) == ESP_ECORRUPT);
	CHECK_U64(to.complete, 1);
}

/*
 * Whatever their sizes, messages begin at multiples of FRAME_STEP, and a stream may end wherever the data of one has:
 * what fills it up is not waited for. If it is not zeros, nothing that follows is believed.
 */
static void filled_up(void)
{
	struct user from = {.to_send = 50}, to = {0};
	struct stream_writer writer = {0};
	struct stream_reader reader = {0};
	struct stream_bytes pending[STREAM_SPANS];
	uint64_t moved = 0, fillings = 0;

	while (stream_pending(&writer, &table, &from, 1, pending) > 0) {
		bool begins = writer.done == 0,
		     fills = pending[0].at != writer.header + writer.done && pending[0].at != from.body + to.have;

		CHECK(!begins || moved % FRAME_STEP == 0);
		CHECK(stream_is_between(&reader) == (begins || fills));
		moved++;
		fillings += fills;
		CHECK(move(&writer, &from, &reader, &to, 1));
	}
	CHECK(moved % FRAME_STEP == 0 && fillings > 0 && stream_is_between(&reader));
	CHECK_U64(to.last.index, 49);

	struct frame frame = {.type = FRAME_DATA, .bytes = 1};
	reader = (struct stream_reader){0};
	frame_encode(&frame, stream_room(&reader, &table, &to, 0).at);
	CHECK(stream_arrived(&reader, &table, &to, 0, FRAME_BYTES) == ESP_OK);
	to.body[0] = *(uint8_t *)stream_room(&reader, &table, &to, 0).at = 7;
	CHECK(stream_arrived(&reader, &table, &to, 0, 1) == ESP_OK);
	struct transport_room room = stream_room(&reader, &table, &to, 0);
	CHECK_U64(room.bytes, FRAME_STEP - 1 + FRAME_BYTES);
	memset(room.at, 0, room.bytes);
	frame_encode(&(struct frame){.type = FRAME_CREDIT}, (uint8_t *)room.at + FRAME_STEP - 1);
	((uint8_t *)room.at)[FRAME_STEP - 2] = 1;
	CHECK(stream_arrived(&reader, &table, &to, 0, room.bytes) == ESP_ECORRUPT);
}

/*
 * Every byte of a large message has the place within a step of the stream that it has in memory. The bytes before it
 * are zeros, or the message is refused.
 */
static void in_step(void)
{
	for (uint32_t offset = 0; offset < FRAME_SHIFTS; offset++) {
		struct user from = {.to_send = 5, .extra = LARGE, .offset = offset}, to = {.extra = LARGE, .offset = offset};
		struct stream_writer writer = {0};
		struct stream_reader reader = {0};
		struct stream_bytes pending[STREAM_SPANS];

		for (uint64_t moved = 0; stream_pending(&writer, &table, &from, 1, pending) > 0; moved++) {
			if (pending[0].at == from.body + offset + to.have && reader.body_left > 0 && reader.shift_left == 0)
				CHECK_U64(moved % FRAME_STEP, (uintptr_t)pending[0].at % FRAME_STEP);
			CHECK(move(&writer, &from, &reader, &to, 1));
		}
		CHECK_U64(to.complete, 4);
	}
	struct user to = {.extra = LARGE, .offset = 9};
	struct stream_reader reader = {0};
	frame_encode(&(struct frame){.type = FRAME_DATA, .bytes = LARGE, .shift = 9},
	             stream_room(&reader, &table, &to, 0).at);
	CHECK(stream_arrived(&reader, &table, &to, 0, FRAME_BYTES) == ESP_OK && !stream_is_between(&reader));
	struct transport_room room = stream_room(&reader, &table, &to, 0);
	CHECK_U64(room.bytes, 9);
	memcpy(room.at, "\0\0\0\0\0\0\0\0\1", 9);
	CHECK(stream_arrived(&reader, &table, &to, 0, 9) == ESP_ECORRUPT);
}

/*
 * A channel is forgotten at a random byte, by the sender, by the receiver, or by both. Its memory
 * is overwritten at once; whatever was sent after it arrives as it should.
 */
static void forgotten(struct rng *rng)
{
	uint32_t completed = 0;

	for (int i = 0; i < 2000; i++) {
		struct user from = draw_sender(rng), to = receiver_of(&from);
		struct stream_writer writer = {.checked = i % 2};
		struct stream_reader reader = {0};
		uint32_t moves = 1 + (uint32_t)rng_below(rng, from.extra ? 600 : 60), who = 1 + (uint32_t)rng_below(rng, 3);

		while (moves-- > 0 && move(&writer, &from, &reader, &to, 1 + (uint32_t)rng_below(rng, 50)))
			;
		uint16_t channel = writer.message.channel;
		bool was_busy = writer.busy, had_begun = writer.done > 0;
		uint32_t ended = to.complete;
		if (who & 1) {
			CHECK(stream_writer_forget(&writer, channel));
			CHECK(writer.busy == (was_busy && had_begun));
			completed += writer.busy;
			memset(from.body, 0, ROOM); /* not read any more; put back for the next messages */
		}
		if (who & 2)
			stream_reader_forget(&reader, channel);
		while (writer.busy)
			CHECK(move(&writer, &from, &reader, &to, 1 + (uint32_t)rng_below(rng, 50)));
		CHECK(!writer.copy && !writer.forgotten);
		if (who & 2 && reader.dropping)
			CHECK_U64(to.complete, ended);
		memcpy(from.body, to.body, ROOM);
		while (move(&writer, &from, &reader, &to, 1 + (uint32_t)rng_below(rng, 50)))
			;
		CHECK_U64(to.last.index, 49);
		stream_writer_fini(&writer);
	}
	CHECK(completed > 100);
	/* Pulled, and not begun: it is gone. */
	struct user from = {.to_send = 2};
	struct stream_writer writer = {0};
	struct stream_bytes pending[STREAM_SPANS];
	CHECK(stream_pending(&writer, &table, &from, 1, pending) > 0);
	CHECK(stream_writer_forget(&writer, 99) && writer.busy);
	CHECK(stream_writer_forget(&writer, writer.message.channel) && !writer.busy);
	CHECK(stream_pending(&writer, &table, &from, 1, pending) == 3);
	CHECK_U64(writer.message.index, 1);
	/* One that is not completed leaves nothing behind. */
	CHECK(stream_left(&writer, 1) == STREAM_GOES_ON);
	CHECK(stream_writer_forget(&writer, writer.message.channel) && writer.copy);
	stream_writer_fini(&writer);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	cut_anywhere(&rng);
	fed_in_pieces(&rng);
	taken_after_others(&rng);
	fed_with_damage(&rng);
	not_frames();
	corrupt_data();
	filled_up();
	in_step();
	forgotten(&rng);
	return 0;
}
