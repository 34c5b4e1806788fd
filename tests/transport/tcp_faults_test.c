/*
 * tcp_faults_test.c - peers that vanish at any byte, reset, half-close, or talk nonsense.
 *
 * A peer is a bare socket here. Whatever it does, the transport ends with one lost() that
 * says what happened; every message that was whole before is delivered, no other is.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "recorder.h"
#include "sockets.h"
#include "transport/tcp/tcp.h"

#define STRIDE 40u /* messages of 0, 40, 80 ... bytes */
#define POLL_NS INT64_C(10000000000) /* longer than anything here takes; nothing waits it out */

enum ending { END_CLOSE, END_HALF, END_RESET, END_COUNT };

struct rig {
	struct recorder recorder;
	struct tcp *tcp;
	int fd; /* the peer's end */
};

static void rig_open(struct rig *rig, enum socket_kind kind, uint32_t stride)
{
	struct tcp_config config = {
		.peers = RECORDER_PEERS, .send_buffer = 1, .dial = recorder_dial, .dial_context = &rig->recorder};
	int fds[2];

	recorder_open(&rig->recorder, stride);
	CHECK(tcp_open(&config, &recorder_user, &rig->recorder, &rig->tcp, NULL) == ESP_OK);
	socket_pair(kind, fds);
	CHECK(tcp_adopt(rig->tcp, 0, fds[0], false, NULL) == ESP_OK);
	rig->fd = fds[1];
}

static void rig_close(struct rig *rig)
{
	tcp_close(rig->tcp);
	recorder_close(&rig->recorder);
}

/* Polls until the peer is lost. */
static enum esp_status loss(struct rig *rig)
{
	struct recorder_peer *peer = &rig->recorder.peers[0];

	while (peer->lost == 0)
		CHECK(tcp_poll(rig->tcp, POLL_NS) > 0);
	CHECK(tcp_poll(rig->tcp, 0) == 0);
	CHECK_U64(peer->lost, 1);
	return peer->why;
}

static void end_with(int fd, enum ending ending)
{
	if (ending == END_RESET)
		socket_will_reset(fd);
	if (ending == END_HALF)
		CHECK(shutdown(fd, SHUT_WR) == 0);
	else
		close(fd);
}

/* ---- an end at every byte ---- */

static uint32_t make_stream(uint8_t *out, uint32_t *starts, uint32_t messages, bool checked)
{
	uint32_t bytes = 0;

	for (uint32_t i = 0; i < messages; i++) {
		starts[i] = bytes;
		bytes += recorder_frame(STRIDE, i, checked, out + bytes);
	}
	starts[messages] = bytes;
	return bytes;
}

static void end_at(enum socket_kind kind, enum ending ending, const uint8_t *stream, const uint32_t *starts, uint32_t at)
{
	struct rig rig;
	uint32_t whole = 0;

	/* What fills up a message does not count. */
	while (starts[whole + 1] - frame_filling(whole * STRIDE) <= at)
		whole++;
	rig_open(&rig, kind, STRIDE);
	/* It arrives in two parts, so that both the read-ahead and the direct way are cut. */
	CHECK(socket_write(rig.fd, stream, at / 2));
	tcp_poll(rig.tcp, 0);
	CHECK(socket_write(rig.fd, stream + at / 2, at - at / 2));
	end_with(rig.fd, ending);
	enum esp_status why = loss(&rig);
	if (ending == END_HALF)
		close(rig.fd);
	CHECK_U64(rig.recorder.peers[0].ended, whole);
	bool in_order = ending != END_RESET && starts[whole] >= at;
	CHECK_MSG(why == (in_order ? ESP_EPEER : ESP_ELINK), "%s, ending %d at byte %u: status %d", socket_kind_name(kind),
	          ending, at, why);
	rig_close(&rig);
}

static void end_everywhere(enum socket_kind kind, enum ending ending)
{
	uint8_t stream[2048];
	uint32_t starts[7];

	if (ending == END_RESET && kind == SOCKET_UNIX)
		return;
	make_stream(stream, starts, 6, kind == SOCKET_IPV4);
	for (uint32_t at = 0; at < starts[5]; at++)
		end_at(kind, ending, stream, starts, at);
}

/* The peer goes while it is sent to, having read `at` bytes. */
static void end_while_sending(enum socket_kind kind, enum ending ending, uint32_t at)
{
	struct rig rig;
	uint8_t byte;

	rig_open(&rig, kind, 5000);
	recorder_send(&rig.recorder, 0, 5000);
	for (uint32_t i = 0; i < at; i++) {
		tcp_poll(rig.tcp, 0);
		CHECK(read(rig.fd, &byte, 1) == 1);
	}
	end_with(rig.fd, ending);
	enum esp_status why = loss(&rig);
	CHECK_MSG(why == ESP_ELINK || why == ESP_EPEER, "status %d", why);
	CHECK(rig.recorder.peers[0].sent < 5000);
	if (ending == END_HALF)
		close(rig.fd);
	rig_close(&rig);
}

/* The peer sends a message and closes without having read: that resets, but its last words count. */
static void last_words(enum socket_kind kind)
{
	struct rig rig;
	uint8_t frame[FRAME_BYTES];

	rig_open(&rig, kind, STRIDE);
	recorder_send(&rig.recorder, 0, 1);
	while (rig.recorder.peers[0].sent < 1)
		CHECK(tcp_poll(rig.tcp, POLL_NS) > 0);
	recorder_frame(STRIDE, 0, false, frame);
	CHECK(socket_write(rig.fd, frame, FRAME_BYTES));
	close(rig.fd);
	recorder_send(&rig.recorder, 0, 10); /* which fails, before anything is read */
	enum esp_status why = loss(&rig);
	CHECK(why == ESP_ELINK || why == ESP_EPEER);
	CHECK_U64(rig.recorder.peers[0].ended, 1);
	rig_close(&rig);
}

/* The peer takes nothing any more, but keeps the connection: only writing shows it. */
static void deaf(void)
{
	struct rig rig;

	rig_open(&rig, SOCKET_UNIX, STRIDE);
	CHECK(shutdown(rig.fd, SHUT_RD) == 0);
	tcp_poll(rig.tcp, 0);
	CHECK_U64(rig.recorder.peers[0].lost, 0);
	recorder_send(&rig.recorder, 0, 1);
	CHECK(loss(&rig) == ESP_ELINK);
	close(rig.fd);
	rig_close(&rig);
}

/* ---- nonsense ---- */

static void expect_refusal(enum socket_kind kind, const void *bytes, uint32_t count)
{
	struct rig rig;

	rig_open(&rig, kind, STRIDE);
	(void)socket_write(rig.fd, bytes, count);
	CHECK_U64((uint64_t)-loss(&rig), (uint64_t)-ESP_ECORRUPT);
	CHECK_U64(rig.recorder.peers[0].begun, 0);
	close(rig.fd);
	rig_close(&rig);
}

static void nonsense(enum socket_kind kind)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
	static const char ssh[] = "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n";
	static const uint8_t tls[64] = {0x16, 3, 1, 0, 59, 1, 0, 0, 55, 3, 3};
	uint8_t bytes[4096];

	expect_refusal(kind, http, sizeof(http));
	expect_refusal(kind, ssh, sizeof(ssh));
	expect_refusal(kind, tls, sizeof(tls));
	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 167 >> 3);
	expect_refusal(kind, bytes, sizeof(bytes));
	memset(bytes, 0, sizeof(bytes));
	expect_refusal(kind, bytes, sizeof(bytes));
	memset(bytes, 0xff, sizeof(bytes));
	expect_refusal(kind, bytes, sizeof(bytes));
}

/* A well-formed frame that cannot be, and one whose data is not what its checksum says. */
static void bad_frames(enum socket_kind kind)
{
	static const uint32_t values[] = {1, 2, 0x7fffffff, 0x80000000, UINT32_MAX};
	uint8_t bytes[256];
	struct frame frame;

	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		frame = (struct frame){.type = FRAME_DATA, .channel = 1, .index = values[i]};
		frame_encode(&frame, bytes);
		expect_refusal(kind, bytes, FRAME_BYTES);
		frame = (struct frame){.type = FRAME_DATA, .channel = 1, .bytes = values[i]};
		frame_encode(&frame, bytes);
		expect_refusal(kind, bytes, FRAME_BYTES);
	}
	frame = (struct frame){.type = FRAME_DATA, .channel = UINT16_MAX};
	frame_encode(&frame, bytes);
	expect_refusal(kind, bytes, FRAME_BYTES);

	struct rig rig;
	uint32_t first = recorder_frame(STRIDE, 0, true, bytes), second = recorder_frame(STRIDE, 1, true, bytes + first);
	bytes[first + FRAME_BYTES + 20] ^= 16;
	rig_open(&rig, kind, STRIDE);
	CHECK(socket_write(rig.fd, bytes, first + second));
	CHECK(loss(&rig) == ESP_ECORRUPT);
	CHECK_U64(rig.recorder.peers[0].ended, 1);
	close(rig.fd);
	rig_close(&rig);
}

/* ---- several connections, and none ---- */

static void second_connection(enum socket_kind kind)
{
	struct rig rig;
	uint8_t frame[FRAME_BYTES + 2 * FRAME_STEP], answer[FRAME_BYTES];
	int fds[2];

	rig_open(&rig, kind, STRIDE);
	recorder_frame(STRIDE, 0, false, frame);
	socket_pair(kind, fds);
	CHECK(tcp_adopt(rig.tcp, 0, fds[0], false, NULL) == ESP_OK);
	/* The peer sends on the second, we on the first: that is how it is when both dialled. */
	CHECK(socket_write(fds[1], frame, FRAME_BYTES));
	recorder_send(&rig.recorder, 0, 1);
	while (rig.recorder.peers[0].ended < 1 || rig.recorder.peers[0].sent < 1)
		CHECK(tcp_poll(rig.tcp, POLL_NS) > 0);
	CHECK(recv(rig.fd, answer, sizeof(answer), MSG_WAITALL) == FRAME_BYTES);
	CHECK(recv(fds[1], answer, sizeof(answer), MSG_DONTWAIT) < 0);
	/* But not on both, even if it is the message that comes next. */
	CHECK(socket_write(rig.fd, frame, recorder_frame(STRIDE, 1, false, frame)));
	CHECK(loss(&rig) == ESP_ECORRUPT);
	CHECK_U64(rig.recorder.peers[0].begun, 1);
	close(rig.fd);
	close(fds[1]);
	rig_close(&rig);
}

static void dialling(void)
{
	struct rig rig;
	int fds[2];

	rig_open(&rig, SOCKET_UNIX, STRIDE);
	rig.recorder.goes_on = true;
	recorder_send(&rig.recorder, 1, 1);
	tcp_poll(rig.tcp, 0);
	recorder_send(&rig.recorder, 1, 1);
	tcp_poll(rig.tcp, 0);
	CHECK_U64(rig.recorder.dials, 1);
	CHECK_U64(rig.recorder.peers[1].pulled, 0);
	socket_pair(SOCKET_UNIX, fds);
	CHECK(tcp_adopt(rig.tcp, 1, fds[0], false, NULL) == ESP_OK);
	while (rig.recorder.peers[1].sent < 2)
		CHECK(tcp_poll(rig.tcp, POLL_NS) > 0);
	close(fds[1]);
	while (rig.recorder.peers[1].lost == 0)
		CHECK(tcp_poll(rig.tcp, POLL_NS) > 0);
	/* Nobody gets through to the next one; and what comes late is closed. */
	recorder_send(&rig.recorder, 2, 1);
	tcp_poll(rig.tcp, 0);
	CHECK_U64(rig.recorder.dials, 2);
	tcp_drop(rig.tcp, 2, ESP_ETIMEOUT);
	CHECK(rig.recorder.peers[2].lost == 1 && rig.recorder.peers[2].why == ESP_ETIMEOUT);
	socket_pair(SOCKET_UNIX, fds);
	CHECK(tcp_adopt(rig.tcp, 2, fds[0], false, NULL) == ESP_EPEER);
	CHECK(read(fds[1], fds, 1) == 0);
	close(fds[1]);
	/* Who goes on still has the first peer. */
	recorder_send(&rig.recorder, 0, 3);
	while (rig.recorder.peers[0].sent < 3)
		CHECK(tcp_poll(rig.tcp, POLL_NS) > 0);
	close(rig.fd);
	rig_close(&rig);
}

static void not_connections(void)
{
	struct rig rig;
	int fds[2];

	rig_open(&rig, SOCKET_UNIX, STRIDE);
	CHECK(tcp_adopt(rig.tcp, 1, -1, false, NULL) == ESP_EINVAL);
	CHECK(pipe(fds) == 0);
	CHECK(tcp_adopt(rig.tcp, 1, fds[0], false, NULL) == ESP_EINVAL);
	CHECK(fcntl(fds[0], F_GETFD) < 0); /* it was taken all the same */
	close(fds[1]);
	CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0);
	CHECK(tcp_adopt(rig.tcp, 1, fds[0], false, NULL) == ESP_EINVAL);
	close(fds[1]);
	socket_pair(SOCKET_UNIX, fds);
	CHECK(tcp_adopt(rig.tcp, RECORDER_PEERS, fds[0], false, NULL) == ESP_EINVAL);
	close(fds[1]);
	close(rig.fd);
	rig_close(&rig);
}

/* The user fails by itself: its peers see the end, and it is not asked anything any more. */
static void own_failure(enum socket_kind kind)
{
	struct rig rig;
	uint8_t bytes[4096];
	ssize_t got;

	rig_open(&rig, kind, 5000);
	recorder_send(&rig.recorder, 0, 100);
	CHECK(tcp_poll(rig.tcp, POLL_NS) > 0);
	rig.recorder.failed = ESP_ENOMEM;
	CHECK(tcp_poll(rig.tcp, POLL_NS) > 0);
	CHECK(tcp_poll(rig.tcp, 0) == 0);
	while ((got = read(rig.fd, bytes, sizeof(bytes))) > 0)
		;
	CHECK(got == 0);
	CHECK_U64(rig.recorder.peers[0].lost, 0);
	close(rig.fd);
	rig_close(&rig);
}

int main(void)
{
	/* Nobody has to ignore it for us. */
	signal(SIGPIPE, SIG_DFL);
	for (enum socket_kind kind = 0; kind < SOCKET_KIND_COUNT; kind++) {
		if (!socket_kind_works(kind))
			continue;
		for (enum ending ending = 0; ending < END_COUNT; ending++) {
			end_everywhere(kind, ending);
			for (uint32_t at = 0; at <= FRAME_BYTES + 64; at += ending == END_CLOSE ? 1 : 11)
				if (kind != SOCKET_UNIX || ending != END_RESET)
					end_while_sending(kind, ending, at);
		}
		last_words(kind);
		nonsense(kind);
		bad_frames(kind);
		second_connection(kind);
		own_failure(kind);
	}
	deaf();
	dialling();
	not_connections();
	return 0;
}
