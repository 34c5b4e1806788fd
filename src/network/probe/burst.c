#include "network/probe/burst.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rng.h"

#define DATA_BYTES (256u << 10) /* most bytes of one send or receive */
#define POLL_MOST_NS (2 * NS_PER_MS) /* longest poll, so that the slot's times are kept */

/* A connection to the target. */
enum dial_state {
	DIAL_NONE,
	DIAL_CONNECTING,
	DIAL_SENDING,  /* sending the packet */
	DIAL_READING, /* reading the answer */
	DIAL_READY,   /* data may follow */
};

struct dial {
	int fd;
	enum dial_state state;
	uint32_t done; /* bytes sent or read */
	uint8_t packet[PACKET_BYTES];
};

struct run {
	struct burst_port *port;
	const struct burst_round *round;
	struct dial dials[BURST_EACH_MOST];
	uint32_t dial_count;
	uint64_t sent;
	bool reached;
	uint64_t now_ns;
};

/* ---- the port ---- */

enum esp_status probe_burst_open(struct burst_port *port, int family, uint16_t first, uint16_t last, struct error *err)
{
	struct rng rng;

	port->fd = -1;
	port->next_order = 0;
	for (uint32_t i = 0; i < BURST_GUESTS; i++)
		port->guests[i] = (struct burst_guest){.fd = -1};
	port->data = malloc(DATA_BYTES);
	if (!port->data)
		return error_set(err, ESP_ENOMEM, "no memory for probing");
	rng_init(&rng, 1);
	for (uint32_t i = 0; i < DATA_BYTES; i++)
		port->data[i] = (uint8_t)rng_next(&rng);
	enum esp_status status = probe_place_open(family, PLACE_STREAMS, first, last, &port->fd, &port->port, err);
	if (status != ESP_OK)
		probe_burst_close(port);
	return status;
}

/* Closes with a reset: bytes that are still under way are not needed. */
static void close_now(int fd)
{
	struct linger linger = {1, 0};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}

static void guest_close(struct burst_guest *guest)
{
	if (guest->fd >= 0)
		close_now(guest->fd);
	guest->fd = -1;
}

void probe_burst_close(struct burst_port *port)
{
	for (uint32_t i = 0; i < BURST_GUESTS && port->data; i++)
		guest_close(&port->guests[i]);
	if (port->fd >= 0)
		close(port->fd);
	free(port->data);
	port->fd = -1;
	port->data = NULL;
}

/* ---- incoming connections ---- */

/* A free slot, or that of the oldest unproved connection. */
static struct burst_guest *find_slot(struct burst_port *port)
{
	struct burst_guest *oldest = NULL;

	for (uint32_t i = 0; i < BURST_GUESTS; i++) {
		struct burst_guest *guest = &port->guests[i];
		if (guest->fd == -1)
			return guest;
		if (!guest->proved && (!oldest || guest->order < oldest->order))
			oldest = guest;
	}
	if (oldest)
		guest_close(oldest);
	return oldest;
}

static void accept_guests(struct burst_port *port)
{
	for (uint32_t i = 0; i < BURST_GUESTS; i++) {
		int fd = accept4(port->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		struct burst_guest *guest = find_slot(port);
		if (!guest) {
			close_now(fd);
			continue;
		}
		*guest = (struct burst_guest){.fd = fd, .order = port->next_order++};
	}
}

/* True: bytes have arrived, and there may be more to do. */
static bool read_packet(struct run *run, struct burst_guest *guest)
{
	struct packet packet, answer;
	ssize_t n = recv(guest->fd, guest->packet + guest->have, PACKET_BYTES - guest->have, 0);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		guest_close(guest);
		return false;
	}
	if (n < 0)
		return false;
	guest->have += (uint32_t)n;
	if (guest->have < PACKET_BYTES)
		return true;
	if (!probe_packet_decode(run->round->session, guest->packet, PACKET_BYTES, run->round->hosts, &packet) ||
	    packet.kind != PACKET_STREAM || packet.to != run->round->self) {
		guest_close(guest);
		return false;
	}
	guest->proved = true;
	guest->from = packet.from;
	guest->round = packet.round;
	answer = packet;
	answer.kind = PACKET_WELCOME;
	answer.from = packet.to;
	answer.to = packet.from;
	probe_packet_encode(run->round->session, &answer, guest->packet);
	return true;
}

/* An early connection waits for its round, a late one has missed it. */
static void send_welcome(struct run *run, struct burst_guest *guest)
{
	if (guest->round < run->round->round) {
		guest_close(guest);
		return;
	}
	if (guest->round > run->round->round)
		return;
	ssize_t n = send(guest->fd, guest->packet + guest->said, PACKET_BYTES - guest->said, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		guest_close(guest);
		return;
	}
	guest->said += n > 0 ? (uint32_t)n : 0;
	guest->welcome = guest->said == PACKET_BYTES;
}

/* The kernel discards the data. */
static void discard_data(struct run *run, struct burst_guest *guest)
{
	ssize_t n = recv(guest->fd, run->port->data, DATA_BYTES, MSG_TRUNC); /* MSG_TRUNC: the buffer is not written */

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		close(guest->fd); /* its data still counts */
		guest->fd = -2;
		return;
	}
	if (n <= 0)
		return;
	guest->bytes += (uint64_t)n;
	if (run->now_ns < run->round->count_ns)
		return;
	if (guest->first_ns == 0) /* bytes of this read arrived before the counted time */
		guest->first_ns = run->now_ns;
	else
		guest->counted += (uint64_t)n;
	guest->last_ns = run->now_ns;
}

static void serve(struct run *run, struct burst_guest *guest)
{
	if (!guest->proved && !read_packet(run, guest))
		return;
	if (guest->fd >= 0 && guest->proved && !guest->welcome)
		send_welcome(run, guest);
	if (guest->fd >= 0 && guest->welcome)
		discard_data(run, guest);
}

/* ---- outgoing connections ---- */

static void dial_close(struct dial *dial)
{
	if (dial->state != DIAL_NONE)
		close_now(dial->fd);
	dial->state = DIAL_NONE;
	dial->fd = -1;
}

static void dial_connect(struct run *run, struct dial *dial)
{
	struct sockaddr_storage to;
	socklen_t length;
	const struct packet packet = {
		.kind = PACKET_STREAM,
		.from = run->round->self,
		.to = run->round->target,
		.round = run->round->round,
	};

	*dial = (struct dial){.fd = -1};
	if (!probe_place_socket_name(&run->round->places[run->round->target], PLACE_STREAMS, &to, &length))
		return;
	dial->fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (dial->fd < 0)
		return;
	dial->state = DIAL_CONNECTING;
	probe_packet_encode(run->round->session, &packet, dial->packet);
	if (connect(dial->fd, (const struct sockaddr *)(const void *)&to, length) != 0 && errno != EINPROGRESS)
		dial_close(dial);
}

static void check_connected(struct dial *dial)
{
	int reason = 0, yes = 1;
	socklen_t length = sizeof(reason);

	if (getsockopt(dial->fd, SOL_SOCKET, SO_ERROR, &reason, &length) != 0 || reason != 0) {
		dial_close(dial);
		return;
	}
	(void)setsockopt(dial->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	dial->state = DIAL_SENDING;
}

static void send_packet(struct dial *dial)
{
	ssize_t n = send(dial->fd, dial->packet + dial->done, PACKET_BYTES - dial->done, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		dial_close(dial);
		return;
	}
	dial->done += n > 0 ? (uint32_t)n : 0;
	if (dial->done == PACKET_BYTES) {
		dial->state = DIAL_READING;
		dial->done = 0;
	}
}

static void read_answer(struct run *run, struct dial *dial)
{
	const struct burst_round *round = run->round;
	struct packet packet;
	ssize_t n = recv(dial->fd, dial->packet + dial->done, PACKET_BYTES - dial->done, 0);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		dial_close(dial);
		return;
	}
	dial->done += n > 0 ? (uint32_t)n : 0;
	if (dial->done < PACKET_BYTES)
		return;
	if (!probe_packet_decode(round->session, dial->packet, PACKET_BYTES, round->hosts, &packet) ||
	    packet.kind != PACKET_WELCOME || packet.from != round->target || packet.to != round->self ||
	    packet.round != round->round) {
		dial_close(dial);
		return;
	}
	dial->state = DIAL_READY;
	run->reached = true;
}

static void send_data(struct run *run, struct dial *dial)
{
	ssize_t n = send(dial->fd, run->port->data, DATA_BYTES, MSG_NOSIGNAL);

	if (n > 0)
		run->sent += (uint64_t)n;
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		dial_close(dial);
}

static short dial_wants(const struct run *run, const struct dial *dial)
{
	switch (dial->state) {
	case DIAL_CONNECTING:
	case DIAL_SENDING:
		return POLLOUT;
	case DIAL_READING:
		return POLLIN;
	case DIAL_READY:
		return run->now_ns >= run->round->start_ns ? POLLOUT : 0;
	case DIAL_NONE:
		break;
	}
	return 0;
}

static void dial_progress(struct run *run, struct dial *dial)
{
	if (dial->state == DIAL_CONNECTING)
		check_connected(dial);
	else if (dial->state == DIAL_SENDING)
		send_packet(dial);
	else if (dial->state == DIAL_READING)
		read_answer(run, dial);
	else if (dial->state == DIAL_READY && run->now_ns >= run->round->start_ns)
		send_data(run, dial);
}

/* ---- a slot ---- */

#define POLLS (1u + BURST_GUESTS + BURST_EACH_MOST)

static void wait_and_serve(struct run *run)
{
	struct pollfd polls[POLLS];
	struct burst_port *port = run->port;
	uint32_t count = 0;
	uint64_t left = run->round->end_ns - run->now_ns, nap = left < POLL_MOST_NS ? left : POLL_MOST_NS;
	struct timespec time = {0, (long)nap};

	polls[count++] = (struct pollfd){port->fd, POLLIN, 0};
	for (uint32_t i = 0; i < BURST_GUESTS; i++) {
		const struct burst_guest *guest = &port->guests[i];
		bool early = guest->proved && guest->round > run->round->round;
		short wants = guest->proved && !guest->welcome ? POLLOUT : POLLIN;
		polls[count++] = (struct pollfd){early ? -1 : guest->fd, wants, 0};
	}
	for (uint32_t i = 0; i < run->dial_count; i++) {
		short wants = dial_wants(run, &run->dials[i]);
		polls[count++] = (struct pollfd){wants ? run->dials[i].fd : -1, wants, 0};
	}
	if (ppoll(polls, count, &time, NULL) <= 0) {
		run->now_ns = clock_now_ns();
		return;
	}
	run->now_ns = clock_now_ns();
	for (uint32_t i = 0; i < BURST_GUESTS; i++)
		if (polls[1 + i].revents && port->guests[i].fd >= 0)
			serve(run, &port->guests[i]);
	for (uint32_t i = 0; i < run->dial_count; i++)
		if (polls[1 + BURST_GUESTS + i].revents)
			dial_progress(run, &run->dials[i]);
	if (polls[0].revents)
		accept_guests(port);
}

/*
 * The rate in the counted time. That begins with the first read in it, which is late if this process is not
 * scheduled, and ends with the last read, unless nothing arrived for so long that the sender must have stopped.
 */
static double rate_of(const struct burst_guest *guest, const struct burst_round *round)
{
	uint64_t window = round->end_ns - round->count_ns;
	uint64_t end_ns = guest->last_ns + window / 4 < round->end_ns ? round->end_ns : guest->last_ns;
	uint64_t span = end_ns - guest->first_ns;

	if (guest->counted == 0)
		return 0;
	return (double)guest->counted * 1e9 / (double)(span < window / 3 ? window : span);
}

static struct burst_from *find_from(struct burst_result *out, uint32_t host)
{
	for (uint32_t i = 0; i < out->count; i++)
		if (out->from[i].host == host)
			return &out->from[i];
	out->from[out->count] = (struct burst_from){.host = host};
	return &out->from[out->count++];
}

static void finish(struct run *run, struct burst_result *out)
{
	*out = (struct burst_result){.reached = run->reached, .sent = run->sent};
	for (uint32_t i = 0; i < run->dial_count; i++)
		dial_close(&run->dials[i]);
	for (uint32_t i = 0; i < BURST_GUESTS; i++) {
		struct burst_guest *guest = &run->port->guests[i];
		if (guest->fd == -1 || !guest->proved || guest->round > run->round->round)
			continue; /* it may be for the next round */
		if (guest->welcome) {
			struct burst_from *from = find_from(out, guest->from);
			from->bytes += guest->bytes;
			from->rate += rate_of(guest, run->round);
		}
		if (guest->fd >= 0)
			guest_close(guest);
		guest->fd = -1;
	}
}

void probe_burst_run(struct burst_port *port, const struct burst_round *round, struct burst_result *out)
{
	struct run run = {.port = port, .round = round, .now_ns = clock_now_ns()};

	if (round->target != BURST_NONE)
		run.dial_count = round->streams < BURST_EACH_MOST ? round->streams : BURST_EACH_MOST;
	for (uint32_t i = 0; i < run.dial_count; i++)
		dial_connect(&run, &run.dials[i]);
	for (uint32_t i = 0; i < BURST_GUESTS; i++) /* connections that came early */
		if (port->guests[i].fd >= 0 && port->guests[i].proved)
			serve(&run, &port->guests[i]);
	while (run.now_ns < round->end_ns)
		wait_and_serve(&run);
	finish(&run, out);
}
