/*
 * lane_faults_test.c - a lane that receives a broadcast from a bare socket: cut at every byte, and with
 * every number in its frames at its limits. It ends with the right data or with an error.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "hearer.h"
#include "sockets.h"
#include "transport/tcp/tcp.h"
#include "wire/crc32c.h"
#include "wire/frame.h"

#define POLL_NS INT64_C(10000000000)

struct rig {
	struct hearer hearer;
	struct tcp *tcp;
	int fd;
};

static void no_dial(void *context, uint32_t peer)
{
	(void)context, (void)peer;
}

/* Node 1 receives what node 0, the root, sends. */
static void rig_open(struct rig *rig, enum socket_kind kind)
{
	struct tcp_config tcp_config = {.peers = 2, .dial = no_dial};
	int fds[2];

	*rig = (struct rig){0};
	hearer_open(&rig->hearer);
	CHECK(tcp_open(&tcp_config, &lane_user, lane_port(rig->hearer.lane, 0), &rig->tcp, NULL) == ESP_OK);
	socket_pair(kind, fds);
	CHECK(tcp_adopt(rig->tcp, 0, fds[0], true, NULL) == ESP_OK);
	rig->fd = fds[1];
}

static void rig_close(struct rig *rig)
{
	tcp_close(rig->tcp);
	hearer_close(&rig->hearer);
}

/* How the call ends. */
static enum esp_status outcome(struct rig *rig, uint32_t *out_culprit)
{
	struct lane_failure failure = {.why.node = PLAN_NONE};
	struct exec_done done;

	while (!lane_take_done(rig->hearer.lane, &done))
		CHECK(tcp_poll(rig->tcp, POLL_NS) > 0);
	while (lane_take_failure(rig->hearer.lane, &failure) && failure.channel != 0)
		;
	*out_culprit = failure.why.node;
	return done.status;
}

/* A chunk on the wire, filled up. */
#define CHUNK_FRAME (FRAME_BYTES + (CHUNK + FRAME_STEP - 1) / FRAME_STEP * FRAME_STEP)

static uint32_t make_frame(struct frame frame, const uint8_t *data, uint8_t *out)
{
	frame.flags |= FRAME_CHECKED;
	frame.data_crc = crc32c(0, data, frame.bytes);
	frame_encode(&frame, out);
	memcpy(out + FRAME_BYTES, data, frame.bytes);
	memset(out + FRAME_BYTES + frame.bytes, 0, frame_filling(frame.bytes));
	return FRAME_BYTES + frame.bytes + frame_filling(frame.bytes);
}

/* Chunks come last first, which is allowed: they are told by their numbers. */
static uint32_t make_stream(const uint8_t *data, uint8_t *out)
{
	uint32_t bytes = 0;

	for (uint32_t i = CHUNKS; i-- > 0;) {
		struct frame frame = {.type = FRAME_DATA, .index = i, .call = CALL, .bytes = CHUNK};

		bytes += make_frame(frame, data + i * CHUNK, out + bytes);
	}
	return bytes;
}

static void cut_everywhere(enum socket_kind kind)
{
	uint8_t data[CHUNK * CHUNKS], stream[CHUNK_FRAME * CHUNKS];

	hearer_fill(data);
	uint32_t bytes = make_stream(data, stream);
	uint32_t data_end = bytes - frame_filling(CHUNK);
	for (uint32_t at = 0; at <= bytes; at++) {
		struct rig rig;

		rig_open(&rig, kind);
		CHECK(socket_write(rig.fd, stream, at));
		close(rig.fd);
		uint32_t culprit;
		enum esp_status status = outcome(&rig, &culprit);
		CHECK_MSG((status == ESP_OK) == (at >= data_end), "cut at byte %u: status %d", at, status);
		if (status == ESP_OK) {
			CHECK(memcmp(rig.hearer.out, data, sizeof(data)) == 0);
		} else {
			CHECK(status == ESP_EPEER || status == ESP_ELINK);
			CHECK_U64(culprit, 0);
		}
		rig_close(&rig);
	}
}

/* How a call ends that is sent this frame, and nothing after it. */
static enum esp_status expected(const struct frame *frame)
{
	bool is_frame = (frame->type == FRAME_DATA || frame->type == FRAME_CREDIT) && frame->flags <= FRAME_CHECKED;

	if (frame->type == FRAME_CREDIT)
		is_frame = is_frame && frame->index == 0 && frame->call == 0 && frame->bytes == 0 && frame->flags == 0;
	if (!is_frame)
		return ESP_ECORRUPT;
	if (frame->channel > 1) /* nobody wants it: read and dropped, as far as it goes */
		return frame->type == FRAME_CREDIT || frame->bytes == 0 ? ESP_EPEER : ESP_ELINK;
	if (frame->ack != 0)
		return ESP_ECORRUPT;
	if (frame->type == FRAME_CREDIT)
		return ESP_EPEER;
	if (frame->index >= CREDITS || frame->bytes > SLOT)
		return ESP_ECORRUPT;
	if (frame->channel == 0 && frame->index < CHUNKS && (frame->call != CALL || frame->bytes != CHUNK))
		return ESP_EMISMATCH;
	return frame->bytes == 0 ? ESP_EPEER : ESP_ELINK; /* it could be, but not all of it is there */
}

/* One frame, then the end. */
static void try_frame(enum socket_kind kind, struct frame frame)
{
	struct rig rig;
	uint8_t bytes[FRAME_BYTES];
	uint32_t culprit;

	rig_open(&rig, kind);
	frame_encode(&frame, bytes);
	(void)socket_write(rig.fd, bytes, sizeof(bytes));
	close(rig.fd);
	enum esp_status status = outcome(&rig, &culprit);
	CHECK_MSG(status == expected(&frame) && culprit == 0,
	          "type %u, flags %u, channel %u, index %u, ack %u, call %u, bytes %u: status %d", frame.type, frame.flags,
	          frame.channel, frame.index, frame.ack, frame.call, frame.bytes, status);
	rig_close(&rig);
}

static void numbers_at_limits(enum socket_kind kind)
{
	static const uint32_t values[] = {0, 1, 2, 3, 4, CHUNK - 1, CHUNK + 1, SLOT, SLOT + 1, 0x7fff, 0xffff, 0x7fffffff,
	                                  0x80000000, UINT32_MAX};
	const struct frame good = {.type = FRAME_DATA, .call = CALL, .bytes = CHUNK};

	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct frame frame = good;

		frame.type = (uint8_t)values[i];
		try_frame(kind, frame);
		frame = good;
		frame.flags = (uint8_t)values[i];
		try_frame(kind, frame);
		frame = good;
		frame.channel = (uint16_t)values[i];
		try_frame(kind, frame);
		frame = good;
		frame.index = values[i];
		try_frame(kind, frame);
		frame = good;
		frame.ack = values[i];
		try_frame(kind, frame);
		frame = good;
		frame.call = values[i];
		try_frame(kind, frame);
		frame = good;
		frame.bytes = values[i];
		try_frame(kind, frame);
	}
	try_frame(kind, (struct frame){.type = FRAME_CREDIT, .ack = 1});
	try_frame(kind, (struct frame){.type = FRAME_CREDIT, .bytes = 8});
}

/* The same message twice. */
static void repeated(enum socket_kind kind)
{
	struct rig rig;
	uint32_t culprit;
	uint8_t data[CHUNK] = {1}, bytes[2 * CHUNK_FRAME];
	struct frame frame = {.type = FRAME_DATA, .index = 1, .call = CALL, .bytes = CHUNK};
	uint32_t count = make_frame(frame, data, bytes);

	count += make_frame(frame, data, bytes + count);
	rig_open(&rig, kind);
	CHECK(socket_write(rig.fd, bytes, count));
	CHECK(outcome(&rig, &culprit) == ESP_ECORRUPT && culprit == 0);
	close(rig.fd);
	rig_close(&rig);
}

/* A message of another call, of another size, or on a channel that is not open, before all others: the connection lives on. */
static void innocent_connection(enum socket_kind kind)
{
	static const struct frame strays[] = {
		{.type = FRAME_DATA, .channel = 1, .index = 0, .call = CALL + 1, .bytes = CHUNK},
		{.type = FRAME_DATA, .channel = 1, .index = 0, .call = CALL, .bytes = CHUNK - 1},
		{.type = FRAME_DATA, .channel = 9, .index = 77, .ack = 99, .bytes = SLOT + 500},
		{.type = FRAME_DATA, .channel = 9},
		{.type = FRAME_CREDIT, .channel = 9, .ack = 99},
	};
	uint8_t data[CHUNK * CHUNKS], junk[1024] = {0}, bytes[FRAME_BYTES + sizeof(junk) + CHUNK_FRAME * CHUNKS];

	hearer_fill(data);
	for (unsigned i = 0; i < sizeof(strays) / sizeof(strays[0]); i++) {
		struct lane_failure failure;
		struct rig rig;
		uint32_t culprit;

		rig_open(&rig, kind);
		hearer_start_other(&rig.hearer, junk);
		frame_encode(&strays[i], bytes);
		uint32_t filled = strays[i].bytes + frame_filling(strays[i].bytes), count = FRAME_BYTES + filled;
		memcpy(bytes + FRAME_BYTES, junk, filled);
		count += make_stream(data, bytes + count);
		for (uint32_t done = 0; done < count; done += 7) { /* piece by piece */
			CHECK(socket_write(rig.fd, bytes + done, count - done < 7 ? count - done : 7));
			tcp_poll(rig.tcp, 0);
		}
		bool fails = strays[i].channel == 1;
		while (lane_unfinished(rig.hearer.lane) > (fails ? 0 : 1)) {
			struct exec_done done;

			if (!lane_take_done(rig.hearer.lane, &done))
				CHECK(tcp_poll(rig.tcp, POLL_NS) > 0);
			else
				CHECK(done.status == ESP_OK || (fails && done.status == ESP_EMISMATCH));
		}
		CHECK(memcmp(rig.hearer.out, data, sizeof(data)) == 0);
		CHECK(lane_take_failure(rig.hearer.lane, &failure) == fails);
		CHECK(!fails || (failure.channel == 1 && failure.why.node == 0 && failure.why.call == 0));
		close(rig.fd);
		if (!fails) {
			enum esp_status status = outcome(&rig, &culprit);

			CHECK(culprit == 0 && (status == ESP_EPEER || status == ESP_ELINK)); /* a credit may be under way */
		}
		rig_close(&rig);
	}
}

int main(void)
{
	for (enum socket_kind kind = 0; kind < SOCKET_KIND_COUNT; kind++) {
		if (!socket_kind_works(kind))
			continue;
		cut_everywhere(kind);
		numbers_at_limits(kind);
		repeated(kind);
		innocent_connection(kind);
	}
	return 0;
}
