/*
 * lane_faults_test.c - a lane that receives a broadcast from a bare socket: cut at every byte, and with
 * every number in its frames at its limits. It ends with the right data or with an error.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "engine/lane.h"
#include "sockets.h"
#include "transport/tcp/tcp.h"
#include "wire/crc32c.h"
#include "wire/frame.h"

#define CHUNK 60u
#define CHUNKS 3u
#define CREDITS 4u
#define SLOT 100u
#define POLL_NS INT64_C(10000000000)

struct rig {
	struct plan *plan;
	struct lane *lane;
	struct tcp *tcp;
	int fd;
	uint8_t out[CHUNK * CHUNKS];
};

static void no_dial(void *context, uint32_t peer)
{
	(void)context, (void)peer;
}

/* Node 1 receives what node 0, the root, sends. */
static void rig_open(struct rig *rig, enum socket_kind kind)
{
	struct plan_spec spec = {
		.chunks = {
			.collective = PLAN_BROADCAST,
			.workers = 2,
			.bytes = CHUNK * CHUNKS,
			.chunk_bytes = CHUNK,
			.align = 1,
		},
	};
	struct lane_config config = {
		.streams = 2,
		.exec = {.node = 1, .credits = CREDITS, .active_chunks = 8, .slot_bytes = SLOT},
	};
	struct tcp_config tcp_config = {.peers = 2, .dial = no_dial};
	int fds[2];

	*rig = (struct rig){0};
	CHECK(plan_open(plan_planner_find("flat"), &spec, &rig->plan, NULL) == ESP_OK);
	CHECK(lane_open(&config, &rig->lane, NULL) == ESP_OK);
	struct exec_call call = {.plan = rig->plan, .out = rig->out, .type = ESP_BYTES};
	CHECK(lane_start(rig->lane, 0, &call, NULL) == ESP_OK);
	CHECK(tcp_open(&tcp_config, &lane_user, rig->lane, &rig->tcp, NULL) == ESP_OK);
	socket_pair(kind, fds);
	CHECK(tcp_adopt(rig->tcp, 0, fds[0], true, NULL) == ESP_OK);
	rig->fd = fds[1];
}

static void rig_close(struct rig *rig)
{
	tcp_close(rig->tcp);
	lane_close(rig->lane);
	plan_close(rig->plan);
}

/* How the call ends. */
static enum esp_status outcome(struct rig *rig)
{
	struct exec_done done;

	while (!lane_take_done(rig->lane, &done))
		CHECK(tcp_poll(rig->tcp, POLL_NS) > 0);
	return done.status;
}

static uint32_t make_frame(struct frame frame, const uint8_t *data, uint8_t *out)
{
	frame.flags |= FRAME_CHECKED;
	frame.data_crc = crc32c(0, data, frame.bytes);
	frame_encode(&frame, out);
	memcpy(out + FRAME_BYTES, data, frame.bytes);
	return FRAME_BYTES + frame.bytes;
}

/* Chunks come last first, which is allowed: they are told by their numbers. */
static uint32_t make_stream(const uint8_t *data, uint8_t *out)
{
	uint32_t bytes = 0;

	for (uint32_t i = CHUNKS; i-- > 0;) {
		struct frame frame = {.type = FRAME_DATA, .index = i, .bytes = CHUNK};

		bytes += make_frame(frame, data + i * CHUNK, out + bytes);
	}
	return bytes;
}

static void cut_everywhere(enum socket_kind kind)
{
	uint8_t data[CHUNK * CHUNKS], stream[(FRAME_BYTES + CHUNK) * CHUNKS];

	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 37 + 1);
	uint32_t bytes = make_stream(data, stream);
	for (uint32_t at = 0; at <= bytes; at++) {
		struct rig rig;

		rig_open(&rig, kind);
		CHECK(socket_write(rig.fd, stream, at));
		close(rig.fd);
		enum esp_status status = outcome(&rig);
		CHECK_MSG((status == ESP_OK) == (at == bytes), "cut at byte %u: status %d", at, status);
		if (status == ESP_OK) {
			CHECK(memcmp(rig.out, data, sizeof(data)) == 0);
		} else {
			CHECK(status == ESP_EPEER || status == ESP_ELINK);
			CHECK_U64(lane_failure(rig.lane).node, 0);
		}
		rig_close(&rig);
	}
}

/* One frame, then the end. A frame that could be, and is not all there, is a broken link; any other is refused. */
static void try_frame(enum socket_kind kind, struct frame frame)
{
	struct rig rig;
	uint8_t bytes[FRAME_BYTES];
	bool could_be = (frame.type == FRAME_DATA || frame.type == FRAME_CREDIT) && frame.flags <= FRAME_CHECKED &&
	                frame.channel < 2 && frame.ack == 0;

	if (frame.type == FRAME_CREDIT)
		could_be = could_be && frame.index == 0 && frame.bytes == 0 && frame.flags == 0;
	else
		could_be = could_be && frame.index < CREDITS && frame.bytes <= SLOT &&
		           (frame.channel == 1 || frame.index >= CHUNKS || frame.bytes == CHUNK);
	rig_open(&rig, kind);
	frame_encode(&frame, bytes);
	(void)socket_write(rig.fd, bytes, sizeof(bytes));
	close(rig.fd);
	enum esp_status status = outcome(&rig);
	bool refused = status == ESP_ECORRUPT || status == ESP_EMISMATCH;
	CHECK_MSG(refused != could_be && status != ESP_OK,
	          "type %u, flags %u, channel %u, index %u, ack %u, bytes %u: status %d", frame.type, frame.flags,
	          frame.channel, frame.index, frame.ack, frame.bytes, status);
	rig_close(&rig);
}

static void numbers_at_limits(enum socket_kind kind)
{
	static const uint32_t values[] = {0, 1, 2, 3, 4, CHUNK - 1, CHUNK + 1, SLOT, SLOT + 1, 0x7fff, 0xffff, 0x7fffffff,
	                                  0x80000000, UINT32_MAX};
	const struct frame good = {.type = FRAME_DATA, .bytes = CHUNK};

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
	uint8_t data[CHUNK] = {1}, bytes[2 * (FRAME_BYTES + CHUNK)];
	struct frame frame = {.type = FRAME_DATA, .index = 1, .bytes = CHUNK};
	uint32_t count = make_frame(frame, data, bytes);

	count += make_frame(frame, data, bytes + count);
	rig_open(&rig, kind);
	CHECK(socket_write(rig.fd, bytes, count));
	CHECK(outcome(&rig) == ESP_ECORRUPT);
	close(rig.fd);
	rig_close(&rig);
}

int main(void)
{
	for (enum socket_kind kind = 0; kind < SOCKET_KIND_COUNT; kind++) {
		if (!socket_kind_works(kind))
			continue;
		cut_everywhere(kind);
		numbers_at_limits(kind);
		repeated(kind);
	}
	return 0;
}
