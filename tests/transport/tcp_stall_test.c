/*
 * tcp_stall_test.c - a peer that does not read costs the sender neither memory nor time, and nobody else notices.
 */
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "recorder.h"
#include "sockets.h"
#include "transport/tcp/conn.h"
#include "transport/tcp/tcp.h"

#define STALLED 0u
#define LIVELY 1u
#define PLENTY 1000000u

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static struct tcp *open_with(struct recorder *recorder, uint32_t stride)
{
	struct tcp_config config = {.peers = RECORDER_PEERS, .dial = recorder_dial, .dial_context = recorder};
	struct tcp *tcp;

	recorder_open(recorder, stride);
	recorder->goes_on = true;
	CHECK(tcp_open(&config, &recorder_user, recorder, &tcp, NULL) == ESP_OK);
	return tcp;
}

static struct tcp *open_one(struct recorder *recorder)
{
	return open_with(recorder, 997);
}

/* Both ends in one thread: sends so many messages to and fro. */
static void ping_pong(struct tcp *a, struct recorder *at_a, struct tcp *b, struct recorder *at_b, uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		uint32_t before = at_a->peers[LIVELY].ended;

		recorder_send(at_a, LIVELY, 1);
		recorder_send(at_b, LIVELY, 1);
		while (at_a->peers[LIVELY].ended == before || at_b->peers[LIVELY].ended < at_a->peers[LIVELY].ended) {
			tcp_poll(a, 0);
			tcp_poll(b, 0);
		}
	}
}

/* Sends until the kernel takes no more; what is pulled beyond that is a few headers. */
static void fill_up(struct tcp *tcp, struct recorder *recorder)
{
	const struct recorder_peer *peer = &recorder->peers[STALLED];

	while (tcp_poll(tcp, 0) > 0)
		;
	CHECK(peer->sent < peer->to_send);
	CHECK(peer->pulled - peer->sent <= CONN_GATHER);
}

static void stall(enum socket_kind kind)
{
	struct recorder at_a, at_b;
	struct tcp *a = open_one(&at_a), *b = open_one(&at_b);
	struct path_stats before, after;
	int stalled[2], lively[2];
	uint8_t bytes[1000];

	socket_pair(kind, stalled);
	socket_pair(kind, lively);
	CHECK(tcp_adopt(a, STALLED, stalled[0], false, NULL) == ESP_OK);
	CHECK(tcp_adopt(a, LIVELY, lively[0], true, NULL) == ESP_OK);
	CHECK(tcp_adopt(b, LIVELY, lively[1], true, NULL) == ESP_OK);
	recorder_send(&at_a, STALLED, PLENTY);
	fill_up(a, &at_a);

	/* The other connection is as lively as ever, and the stalled one is left alone. */
	CHECK(tcp_stats(a, STALLED, &before));
	ping_pong(a, &at_a, b, &at_b, 300);
	CHECK(tcp_stats(a, STALLED, &after));
	CHECK(after.send_calls - before.send_calls <= 2); /* the kernel may have made room once more */
	CHECK(at_a.peers[STALLED].pulled - at_a.peers[STALLED].sent <= CONN_GATHER);

	/* Waiting costs nothing: the processor's time is a small part of the time that passes. */
	fill_up(a, &at_a);
	uint64_t start = cpu_ns();
	for (int i = 0; i < 10; i++)
		tcp_poll(a, 20 * (int64_t)NS_PER_MS);
	CHECK(cpu_ns() - start < 100 * NS_PER_MS);

	/* It reads on: so do we, as far as it reads. */
	uint32_t sent = at_a.peers[STALLED].sent;
	while (at_a.peers[STALLED].sent == sent) {
		CHECK(recv(stalled[1], bytes, sizeof(bytes), 0) > 0);
		tcp_poll(a, 0);
	}
	fill_up(a, &at_a);

	/* Whoever watches the deadline gives it up; the others go on. */
	tcp_drop(a, STALLED, ESP_ETIMEOUT);
	CHECK(at_a.peers[STALLED].lost == 1 && at_a.peers[STALLED].why == ESP_ETIMEOUT);
	ping_pong(a, &at_a, b, &at_b, 100);
	CHECK_U64(at_a.peers[LIVELY].lost + at_b.peers[LIVELY].lost, 0);
	CHECK(!tcp_stats(a, STALLED, &after));
	CHECK(tcp_stats(a, LIVELY, &after) && after.has_path == (kind != SOCKET_UNIX));
	CHECK_U64(after.sent_messages, 400);
	close(stalled[1]);
	tcp_close(a);
	tcp_close(b);
	recorder_close(&at_a);
	recorder_close(&at_b);
}

/* Many small messages share a system call, both ways; large ones go whole. */
static void batches(enum socket_kind kind, bool without_memory)
{
	struct recorder at_a, at_b;
	struct tcp *a = open_one(&at_a), *b = open_one(&at_b);
	struct path_stats out, in;
	int fds[2];

	at_a.stride = at_b.stride = 0;
	at_a.without_memory = at_b.without_memory = without_memory;
	socket_pair(kind, fds);
	CHECK(tcp_adopt(a, LIVELY, fds[0], false, NULL) == ESP_OK);
	CHECK(tcp_adopt(b, LIVELY, fds[1], false, NULL) == ESP_OK);
	recorder_send(&at_a, LIVELY, 2000);
	while (at_b.peers[LIVELY].ended < 2000) {
		tcp_poll(a, 0);
		tcp_poll(b, 0);
	}
	CHECK(tcp_stats(a, LIVELY, &out) && tcp_stats(b, LIVELY, &in));
	CHECK_U64(out.sent_bytes, 2000 * FRAME_BYTES);
	CHECK_U64(in.received_bytes, out.sent_bytes);
	CHECK_MSG(out.send_calls <= 2000 / 16 && in.receive_calls <= 2000 / 16, "%" PRIu64 " and %" PRIu64 " calls",
	          out.send_calls, in.receive_calls);
	tcp_close(a);
	tcp_close(b);
	recorder_close(&at_a);
	recorder_close(&at_b);
}

/* A wake that comes before the sleep ends it as well. */
static void wakes(void)
{
	struct recorder recorder;
	struct tcp *tcp = open_one(&recorder);

	for (int i = 0; i < 3; i++) {
		tcp_wake(tcp);
		CHECK_U64(tcp_poll(tcp, -1), 0);
	}
	tcp_close(tcp);
	recorder_close(&recorder);
}

/* Polls of a until a message of this peer has come. */
static unsigned polls_until(struct tcp *a, struct recorder *at_a, struct tcp *b, struct recorder *at_b, uint32_t peer)
{
	uint32_t before = at_a->peers[peer].ended;
	unsigned polls = 0;

	recorder_send(at_b, peer, 1);
	while (tcp_poll(b, 0) > 0)
		;
	for (; at_a->peers[peer].ended == before; polls++) {
		CHECK(polls < 1000);
		tcp_poll(a, 0);
	}
	return polls;
}

/* Who waits for one peer reads from it at once; and hears the others as well, though not as soon. */
static void awaited(enum socket_kind kind)
{
	struct recorder at_a, at_b;
	struct tcp *a = open_with(&at_a, 1), *b = open_with(&at_b, 1); /* messages of a few bytes */
	int stalled[2], lively[2];

	socket_pair(kind, stalled);
	socket_pair(kind, lively);
	CHECK(tcp_adopt(a, STALLED, stalled[0], false, NULL) == ESP_OK);
	CHECK(tcp_adopt(b, STALLED, stalled[1], false, NULL) == ESP_OK);
	CHECK(tcp_adopt(a, LIVELY, lively[0], true, NULL) == ESP_OK);
	CHECK(tcp_adopt(b, LIVELY, lively[1], true, NULL) == ESP_OK);
	polls_until(a, &at_a, b, &at_b, STALLED);
	polls_until(a, &at_a, b, &at_b, LIVELY);

	at_a.has_awaited = true;
	at_a.awaited = STALLED;
	for (int i = 0; i < 100; i++) {
		CHECK(polls_until(a, &at_a, b, &at_b, LIVELY) <= 140);
		CHECK(polls_until(a, &at_a, b, &at_b, STALLED) <= 2);
	}

	/* One that ends while it is waited for is noticed by reading, too. */
	tcp_close(b);
	for (int i = 0; i < 300; i++)
		tcp_poll(a, 0);
	CHECK_U64(at_a.peers[STALLED].lost, 1);
	CHECK_U64(at_a.peers[LIVELY].lost, 1);
	tcp_close(a);
	recorder_close(&at_a);
	recorder_close(&at_b);
}

int main(void)
{
	for (enum socket_kind kind = 0; kind < SOCKET_KIND_COUNT; kind++) {
		if (!socket_kind_works(kind))
			continue;
		stall(kind);
		awaited(kind);
		batches(kind, false);
		batches(kind, true);
	}
	wakes();
	return 0;
}
