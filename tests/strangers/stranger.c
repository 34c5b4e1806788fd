/*
 * stranger.c - connects to ports without knowing what listens there, and says what strangers say.
 *
 *     stranger --ports 40001,40002 --kinds http,tls,slow --rate 200 --seconds 2 [--stay 0.05]
 *
 * Prints as JSON for each kind: how many connections there were, how many the other end closed, how long the longest was left
 * open by it, how many were open at a time, and the most bytes that anybody got to read. With --stay they leave by themselves after so
 * many seconds, also those that nobody has answered. Ports are on 127.0.0.1, unless an address stands in front: 10.0.0.2:40001.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/rng.h"
#include "report/json.h"

enum kind {
	KIND_HTTP,
	KIND_TLS,
	KIND_SSH,
	KIND_RANDOM, /* some thousand bytes                       */
	KIND_SLOW,   /* a byte now and then                       */
	KIND_SILENT, /* connects and says nothing                 */
	KIND_SCAN,   /* connects and goes away                    */
	KIND_RESET,  /* the same, and not politely                */
	KIND_COUNT,
};
static const char *const kind_names[] = {"http", "tls", "ssh", "random", "slow", "silent", "scan", "reset"};

#define OPEN_MOST 1000u
#define PORTS_MOST 64u
#define SLOW_NS (200 * NS_PER_MS)
#define LEAVE_NS (10 * NS_PER_MS)
#define RANDOM_BYTES 3000u

struct visit {
	int fd; /* -1: none */
	enum kind kind;
	bool is_connected;
	uint64_t began_ns, spoke_ns;
	uint64_t got;
};

struct tally {
	uint64_t begun, connected, closed, failed;
	uint64_t longest_ns, most_bytes, open, open_most;
};

struct tour {
	struct sockaddr_in ports[PORTS_MOST];
	uint32_t port_count;
	bool kinds[KIND_COUNT];
	double rate, seconds, stay; /* stay 0: until the other end closes */
	struct rng rng;
	int epoll_fd;
	struct visit visits[OPEN_MOST];
	struct tally tallies[KIND_COUNT];
	uint64_t skipped; /* there were too many open already */
};

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "stranger: %s\n", what);
	exit(2);
}

/* ---- a visit ---- */

static void end_visit(struct tour *tour, struct visit *visit, bool by_other)
{
	struct tally *tally = &tour->tallies[visit->kind];
	uint64_t age = clock_now_ns() - visit->began_ns;

	close(visit->fd);
	visit->fd = -1;
	if (visit->is_connected)
		tally->open--;
	tally->closed += by_other;
	tally->failed += !visit->is_connected;
	if (visit->is_connected && age > tally->longest_ns)
		tally->longest_ns = age;
}

static size_t compose(struct tour *tour, enum kind kind, uint8_t *out, size_t room)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: stranger\r\nAccept: */*\r\n\r\n";
	static const char ssh[] = "SSH-2.0-OpenSSH_9.2p1\r\n";
	/* The head of a client hello of TLS 1.2; what follows in a real one is random to us. */
	static const uint8_t tls[] = {0x16, 0x03, 0x01, 0x00, 0xc8, 0x01, 0x00, 0x00, 0xc4, 0x03, 0x03};
	size_t n = 0;

	switch (kind) {
	case KIND_HTTP:
		n = sizeof(http) - 1;
		memcpy(out, http, n);
		break;
	case KIND_SSH:
		n = sizeof(ssh) - 1;
		memcpy(out, ssh, n);
		break;
	case KIND_TLS:
		n = sizeof(tls) + 194;
		break;
	case KIND_RANDOM:
		n = 1 + (size_t)rng_below(&tour->rng, RANDOM_BYTES);
		break;
	case KIND_SLOW:
		n = 1;
		break;
	default:
		break;
	}
	n = n < room ? n : room;
	for (size_t i = 0; i < n && kind != KIND_HTTP && kind != KIND_SSH; i++)
		out[i] = (uint8_t)rng_next(&tour->rng);
	if (kind == KIND_TLS)
		memcpy(out, tls, sizeof(tls));
	return n;
}

static void speak(struct tour *tour, struct visit *visit)
{
	uint8_t bytes[RANDOM_BYTES];
	size_t n = compose(tour, visit->kind, bytes, sizeof(bytes));

	visit->spoke_ns = clock_now_ns();
	if (n > 0)
		(void)!send(visit->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT); /* what does not fit is not missed */
}

static void watch(struct tour *tour, struct visit *visit, int what, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = visit};

	if (epoll_ctl(tour->epoll_fd, what, visit->fd, &event) != 0)
		fail("cannot watch a socket");
}

static void arrive(struct tour *tour, struct visit *visit)
{
	struct tally *tally = &tour->tallies[visit->kind];
	struct linger rude = {.l_onoff = 1};
	int error = 0;
	socklen_t length = sizeof(error);

	if (getsockopt(visit->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) {
		end_visit(tour, visit, false);
		return;
	}
	visit->is_connected = true;
	tally->connected++;
	tally->open++;
	tally->open_most = tally->open > tally->open_most ? tally->open : tally->open_most;
	if (visit->kind == KIND_RESET)
		setsockopt(visit->fd, SOL_SOCKET, SO_LINGER, &rude, sizeof(rude));
	if (visit->kind == KIND_SCAN || visit->kind == KIND_RESET) {
		end_visit(tour, visit, false);
		return;
	}
	speak(tour, visit);
	watch(tour, visit, EPOLL_CTL_MOD, EPOLLIN);
}

static void listen_to(struct tour *tour, struct visit *visit)
{
	struct tally *tally = &tour->tallies[visit->kind];
	uint8_t bytes[4096];
	ssize_t n = recv(visit->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		end_visit(tour, visit, true);
		return;
	}
	visit->got += (uint64_t)n;
	tally->most_bytes = visit->got > tally->most_bytes ? visit->got : tally->most_bytes;
}

static void begin_visit(struct tour *tour)
{
	struct visit *visit = NULL;

	for (uint32_t i = 0; i < OPEN_MOST && !visit; i++)
		visit = tour->visits[i].fd < 0 ? &tour->visits[i] : NULL;
	if (!visit) {
		tour->skipped++;
		return;
	}
	uint32_t kind = (uint32_t)rng_below(&tour->rng, KIND_COUNT);
	while (!tour->kinds[kind])
		kind = (kind + 1) % KIND_COUNT;
	*visit = (struct visit){.kind = (enum kind)kind, .began_ns = clock_now_ns(),
	                        .fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
	if (visit->fd < 0)
		fail("no socket");
	const struct sockaddr_in *where = &tour->ports[rng_below(&tour->rng, tour->port_count)];
	tour->tallies[kind].begun++;
	if (connect(visit->fd, (const struct sockaddr *)where, sizeof(*where)) != 0 && errno != EINPROGRESS) {
		end_visit(tour, visit, false);
		return;
	}
	watch(tour, visit, EPOLL_CTL_ADD, EPOLLOUT);
}

/* ---- the tour ---- */

static void handle_events(struct tour *tour, int timeout_ms)
{
	struct epoll_event events[64];
	int count = epoll_wait(tour->epoll_fd, events, 64, timeout_ms);

	for (int i = 0; i < count; i++) {
		struct visit *visit = events[i].data.ptr;

		if (visit->fd < 0)
			continue;
		if (visit->is_connected)
			listen_to(tour, visit);
		else
			arrive(tour, visit);
	}
}

static void talk_slowly(struct tour *tour)
{
	uint64_t now = clock_now_ns();

	for (uint32_t i = 0; i < OPEN_MOST; i++) {
		struct visit *visit = &tour->visits[i];

		if (visit->fd >= 0 && visit->is_connected && visit->kind == KIND_SLOW && now >= visit->spoke_ns + SLOW_NS)
			speak(tour, visit);
	}
}

static void leave_in_time(struct tour *tour)
{
	uint64_t now = clock_now_ns(), stay = (uint64_t)(tour->stay * (double)NS_PER_S);

	for (uint32_t i = 0; i < OPEN_MOST; i++) {
		if (tour->visits[i].fd >= 0 && now >= tour->visits[i].began_ns + stay)
			end_visit(tour, &tour->visits[i], false);
	}
}

/* Until when nothing has to be done but what comes. Who visits seldom does not keep a core of the machine busy that it shares with the job. */
static int wait_ms(const struct tour *tour, uint64_t waited_ns, uint64_t begun)
{
	double next_s = (double)begun / tour->rate, due_s = next_s - (double)waited_ns / (double)NS_PER_S;
	double most_s = (double)(tour->stay > 0 ? LEAVE_NS : SLOW_NS / 4) / (double)NS_PER_S;
	double wait_s = due_s < most_s ? due_s : most_s;

	return wait_s > 0 ? (int)(wait_s * 1000) + 1 : 0;
}

static void go_round(struct tour *tour)
{
	uint64_t began = clock_now_ns(), end = began + (uint64_t)(tour->seconds * (double)NS_PER_S), begun = 0, talked = began, left = began;

	for (uint64_t now = began; now < end; now = clock_now_ns()) {
		uint64_t due = (uint64_t)((double)(now - began) / (double)NS_PER_S * tour->rate) + 1;

		for (unsigned i = 0; i < 64 && begun < due; i++, begun++)
			begin_visit(tour);
		handle_events(tour, begun < due ? 0 : wait_ms(tour, now - began, begun));
		if (now >= talked + SLOW_NS / 4) {
			talk_slowly(tour);
			talked = now;
		}
		if (tour->stay > 0 && now >= left + LEAVE_NS) {
			leave_in_time(tour);
			left = now;
		}
	}
	for (uint32_t i = 0; i < OPEN_MOST; i++) {
		if (tour->visits[i].fd >= 0)
			end_visit(tour, &tour->visits[i], false);
	}
}

static void print(const struct tour *tour)
{
	struct json json;

	json_init(&json, stdout);
	json_object_begin(&json);
	json_put_u64(&json, "skipped", tour->skipped);
	json_key(&json, "kinds");
	json_object_begin(&json);
	for (int i = 0; i < KIND_COUNT; i++) {
		const struct tally *tally = &tour->tallies[i];

		if (tally->begun == 0)
			continue;
		json_key(&json, kind_names[i]);
		json_object_begin(&json);
		json_put_u64(&json, "begun", tally->begun);
		json_put_u64(&json, "connected", tally->connected);
		json_put_u64(&json, "closed_by_other", tally->closed);
		json_put_u64(&json, "failed", tally->failed);
		json_put_double(&json, "longest_s", (double)tally->longest_ns / (double)NS_PER_S);
		json_put_u64(&json, "most_bytes", tally->most_bytes);
		json_put_u64(&json, "open_most", tally->open_most);
		json_object_end(&json);
	}
	json_object_end(&json);
	json_object_end(&json);
	if (json_fini(&json) != ESP_OK)
		exit(1);
}

/* ---- options ---- */

static void parse_ports(struct tour *tour, char *list)
{
	char *rest = NULL;

	for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		char *colon = strchr(word, ':');
		uint64_t port;

		if (colon) {
			*colon = '\0';
			if (inet_pton(AF_INET, word, &where.sin_addr) != 1)
				fail("--ports: an address has four numbers");
			word = colon + 1;
		}
		if (!number_parse_u64(word, strlen(word), &port) || port == 0 || port > 65535 || tour->port_count == PORTS_MOST)
			fail("--ports takes up to 64 numbers of ports");
		where.sin_port = htons((uint16_t)port);
		tour->ports[tour->port_count++] = where;
	}
}

static void parse_kinds(struct tour *tour, char *list)
{
	char *rest = NULL;

	memset(tour->kinds, 0, sizeof(tour->kinds));
	for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		uint32_t at = 0;

		while (at < KIND_COUNT && strcmp(kind_names[at], word) != 0)
			at++;
		if (at == KIND_COUNT)
			fail("--kinds takes http, tls, ssh, random, slow, silent, scan and reset");
		tour->kinds[at] = true;
	}
}

static void parse_positive(const char *text, double *out)
{
	if (!number_parse_double(text, strlen(text), out) || !(*out > 0))
		fail("--rate, --seconds and --stay take numbers above 0");
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"ports", required_argument, NULL, 'p'},   {"kinds", required_argument, NULL, 'k'}, {"rate", required_argument, NULL, 'r'},
		{"seconds", required_argument, NULL, 's'}, {"seed", required_argument, NULL, 'S'},  {"stay", required_argument, NULL, 'y'},
		{NULL, 0, NULL, 0},
	};
	static struct tour tour = {.rate = 100, .seconds = 1};
	uint64_t seed = 1;

	memset(tour.kinds, true, sizeof(tour.kinds));
	for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
		if (c == 'p')
			parse_ports(&tour, optarg);
		else if (c == 'k')
			parse_kinds(&tour, optarg);
		else if (c == 'r')
			parse_positive(optarg, &tour.rate);
		else if (c == 's')
			parse_positive(optarg, &tour.seconds);
		else if (c == 'y')
			parse_positive(optarg, &tour.stay);
		else if (c != 'S' || !number_parse_u64(optarg, strlen(optarg), &seed))
			fail("usage: stranger --ports LIST [--kinds LIST] [--rate N] [--seconds S] [--stay S] [--seed N]");
	}
	bool any = false;
	for (int i = 0; i < KIND_COUNT; i++)
		any = any || tour.kinds[i];
	if (tour.port_count == 0 || !any)
		fail("give --ports, and at least one of --kinds");
	rng_init(&tour.rng, seed);
	for (uint32_t i = 0; i < OPEN_MOST; i++)
		tour.visits[i].fd = -1;
	tour.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (tour.epoll_fd < 0)
		fail("no epoll");
	go_round(&tour);
	print(&tour);
	close(tour.epoll_fd);
	return 0;
}
