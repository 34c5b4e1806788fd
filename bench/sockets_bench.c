/*
 * sockets_bench.c - what the sockets of one machine let an allreduce take at the least, without any library.
 *
 *     sockets_bench [--ranks N] [--rounds N] [--only star|twin|ring]
 *
 * Processes (8 by default), joined by TCP connections over the loopback, do the least there is to do: no plan, no header but its bytes, no deadline,
 * nobody who could fail. While they wait they yield. Every result is checked.
 *
 *     star    everybody sends 4 bytes to rank 0, which adds and sends the sum back: 2 (N - 1) messages
 *     twin    ranks 0 and 1 do so for every other rank, and exchange: as many messages
 *     ring    100 MiB (or a little less, if that is no multiple of N blocks) in place, in blocks of 256 KiB, each once around to be summed and once to be handed out
 *
 * Medians of the rounds are shown, the fastest and the slowest. Run it as the ranks of a benchmark beside it are run: in a network namespace with the same
 * congestion control.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "math/math.h"
#include "wire/frame.h"

#define RANKS_MOST 64u
#define ROUNDS_MOST 101u
#define SMALL_CALLS 1000u /* in a round */
#define SMALL_BYTES (FRAME_BYTES + FRAME_STEP) /* as much as a message with a float takes */
#define SEGMENT_BYTES (1016 * (int)FRAME_STEP + 12) /* src/node/control/connection.c says why */
#define BLOCK_BYTES (256u << 10)
#define LARGE_BYTES (100u << 20)
#define YIELD_NS (300 * NS_PER_US) /* around the ring; then it sleeps, as ranks do */

struct rank {
	uint32_t self, size;
	int peers[RANKS_MOST]; /* by rank; -1: no connection */
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "sockets_bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* ---- connections ---- */

static void prepare(int fd)
{
	int on = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		die("a socket");
}

static void join_pair(int pair[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	int segment = SEGMENT_BYTES;

	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || pair[0] < 0 || setsockopt(pair[0], IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment)) < 0 || bind(listener, (struct sockaddr *)&address, bytes) < 0 || listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &bytes) < 0 ||
	    connect(pair[0], (struct sockaddr *)&address, sizeof(address)) < 0)
		die("the loopback");
	pair[1] = accept(listener, NULL, NULL);
	if (pair[1] < 0)
		die("accept");
	close(listener);
	prepare(pair[0]);
	prepare(pair[1]);
}

/* Who talks to whom: all with the two hubs, and each with the next around the ring. */
static bool are_joined(uint32_t a, uint32_t b, uint32_t size)
{
	return a < 2 || b == a + 1 || (a == 0 && b == size - 1);
}

/* Starts the other ranks. Returns in each of them. */
static struct rank start(uint32_t size)
{
	static int pairs[RANKS_MOST][RANKS_MOST][2];
	struct rank rank = {.size = size};

	for (uint32_t a = 0; a < size; a++) {
		for (uint32_t b = a + 1; b < size; b++) {
			if (are_joined(a, b, size))
				join_pair(pairs[a][b]);
		}
	}
	pid_t parent = getpid();
	for (uint32_t i = 1; i < size && rank.self == 0; i++) {
		pid_t child = fork();

		if (child < 0)
			die("fork");
		if (child == 0)
			rank.self = i;
	}
	if (rank.self != 0) { /* nobody is left behind */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			exit(1);
	}
	for (uint32_t i = 0; i < size; i++) {
		uint32_t low = i < rank.self ? i : rank.self, high = i < rank.self ? rank.self : i;

		rank.peers[i] = low != high && are_joined(low, high, size) ? pairs[low][high][i < rank.self] : -1;
	}
	/* Who ends is noticed by its peers if nobody else has its end of the connection. */
	for (uint32_t a = 0; a < size; a++) {
		for (uint32_t b = a + 1; b < size; b++) {
			for (uint32_t end = 0; end < 2 && are_joined(a, b, size); end++) {
				if ((end == 0 ? a : b) != rank.self)
					close(pairs[a][b][end]);
			}
		}
	}
	return rank;
}

/* ---- bytes ---- */

/* What a call on a socket has moved; 0: it would have to wait. */
static size_t moved(ssize_t bytes)
{
	if (bytes == 0 || (bytes < 0 && errno != EAGAIN && errno != EINTR))
		die("a connection");
	return bytes < 0 ? 0 : (size_t)bytes;
}

static void send_all(int fd, const void *data, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		size_t sent = moved(send(fd, (const char *)data + done, bytes - done, MSG_NOSIGNAL));

		done += sent;
		if (sent == 0)
			sched_yield();
	}
}

static void receive_all(int fd, void *data, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		size_t got = moved(recv(fd, (char *)data + done, bytes - done, 0));

		done += got;
		if (got == 0)
			sched_yield();
	}
}

/* ---- small calls ---- */

static void send_number(int fd, float number)
{
	char message[SMALL_BYTES] = {0};

	memcpy(message + FRAME_BYTES, &number, sizeof(number));
	send_all(fd, message, sizeof(message));
}

static float receive_number(int fd)
{
	char message[SMALL_BYTES];
	float number;

	receive_all(fd, message, sizeof(message));
	memcpy(&number, message + FRAME_BYTES, sizeof(number));
	return number;
}

/* The sum of every hubs-th rank from this one on, at each of the hubs; then of all of them. */
static float sum_small(const struct rank *rank, uint32_t hubs, float number)
{
	uint32_t hub = rank->self % hubs;

	if (rank->self != hub) {
		send_number(rank->peers[hub], number);
		return receive_number(rank->peers[hub]);
	}
	for (uint32_t i = hub + hubs; i < rank->size; i += hubs)
		number += receive_number(rank->peers[i]);
	if (hubs == 2) {
		send_number(rank->peers[1 - hub], number);
		number += receive_number(rank->peers[1 - hub]);
	}
	for (uint32_t i = hub + hubs; i < rank->size; i += hubs)
		send_number(rank->peers[i], number);
	return number;
}

/* Microseconds a call. */
static double time_small(const struct rank *rank, uint32_t hubs)
{
	float right = (float)rank->size * (float)(rank->size + 1) / 2;
	uint64_t start_ns = clock_now_ns();

	for (uint32_t i = 0; i < SMALL_CALLS; i++) {
		if (sum_small(rank, hubs, (float)rank->self + 1) != right)
			die("a wrong sum");
	}
	return (double)(clock_now_ns() - start_ns) / 1e3 / SMALL_CALLS;
}

static double time_star(const struct rank *rank, float *data)
{
	(void)data;
	return time_small(rank, 1);
}

static double time_twin(const struct rank *rank, float *data)
{
	(void)data;
	return time_small(rank, 2);
}

/* ---- large calls ---- */

static void wait_for(int out, int in, bool sends, bool receives, uint64_t since_ns)
{
	struct pollfd fds[2] = {{.fd = in, .events = receives ? POLLIN : 0}, {.fd = out, .events = sends ? POLLOUT : 0}};

	if (clock_now_ns() - since_ns < YIELD_NS)
		sched_yield();
	else
		(void)poll(fds, 2, 100);
}

/* A block to the next rank, and another from the one before it. */
static void exchange(int out, int in, const void *from, void *to, size_t bytes)
{
	size_t sent = 0, got = 0;
	uint64_t since_ns = clock_now_ns();

	while (sent < bytes || got < bytes) {
		size_t before = sent + got;

		if (sent < bytes)
			sent += moved(send(out, (const char *)from + sent, bytes - sent, MSG_NOSIGNAL));
		if (got < bytes)
			got += moved(recv(in, (char *)to + got, bytes - got, 0));
		if (sent + got > before)
			since_ns = clock_now_ns();
		else
			wait_for(out, in, sent < bytes, got < bytes, since_ns);
	}
}

/* Milliseconds. */
static double time_ring(const struct rank *rank, float *data)
{
	static _Alignas(4096) char staging[BLOCK_BYTES];
	uint32_t size = rank->size, steps = 2 * (size - 1), elements = BLOCK_BYTES / sizeof(float);
	uint32_t laps = LARGE_BYTES / BLOCK_BYTES / size;
	int out = rank->peers[(rank->self + 1) % size], in = rank->peers[(rank->self + size - 1) % size];

	for (size_t i = 0; i < (size_t)laps * size * elements; i++)
		data[i] = 1;
	(void)sum_small(rank, 1, 0); /* all are there */
	uint64_t start_ns = clock_now_ns();
	for (uint32_t lap = 0; lap < laps; lap++) {
		for (uint32_t step = 0; step < steps; step++) {
			float *from = data + (size_t)(lap * size + (rank->self + 2 * size - step) % size) * elements;
			float *to = data + (size_t)(lap * size + (rank->self + 2 * size - step - 1) % size) * elements;
			bool adds = step < size - 1;

			exchange(out, in, from, adds ? (void *)staging : to, BLOCK_BYTES);
			if (adds)
				math_fold(ESP_F32, ESP_SUM)(to, to, staging, elements);
		}
	}
	(void)sum_small(rank, 1, 0); /* the last one's time counts */
	double ms = (double)(clock_now_ns() - start_ns) / 1e6;
	for (size_t i = 0; i < (size_t)laps * size * elements; i++) {
		if (data[i] != (float)size)
			die("a wrong sum");
	}
	return ms;
}

/* ---- rounds ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct way {
	const char *name, *unit;
	double (*time)(const struct rank *, float *);
};

static const struct way ways[] = {{"star", "us", time_star}, {"twin", "us", time_twin}, {"ring", "ms", time_ring}};

#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void measure(const struct way *way, const struct rank *rank, float *data, uint32_t rounds)
{
	double samples[ROUNDS_MOST] = {0};

	(void)way->time(rank, data); /* warm-up */
	for (uint32_t i = 0; i < rounds; i++)
		samples[i] = way->time(rank, data);
	qsort(samples, rounds, sizeof(samples[0]), by_value);
	if (rank->self == 0)
		printf("%-5s %8.1f %s (%.1f..%.1f)\n", way->name, samples[rounds / 2], way->unit, samples[0], samples[rounds - 1]);
}

static const struct way *way_named(const char *name)
{
	for (size_t i = 0; i < WAYS; i++) {
		if (strcmp(ways[i].name, name) == 0)
			return &ways[i];
	}
	return NULL;
}

static _Noreturn void explain(void)
{
	fprintf(stderr, "usage: sockets_bench [--ranks 2..%u] [--rounds 1..%u] [--only star|twin|ring]\n", RANKS_MOST, ROUNDS_MOST);
	exit(2);
}

static unsigned long number_of(const char *text, unsigned long least, unsigned long most)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (end == text || *end || value < least || value > most)
		explain();
	return value;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"ranks", required_argument, NULL, 'n'}, {"rounds", required_argument, NULL, 'r'}, {"only", required_argument, NULL, 'o'}, {0}};
	unsigned long size = 8, rounds = 9;
	const struct way *first = ways, *end = ways + WAYS;

	for (int option; (option = getopt_long(argc, argv, "n:r:o:", options, NULL)) != -1;) {
		if (option == 'n')
			size = number_of(optarg, 2, RANKS_MOST);
		else if (option == 'r')
			rounds = number_of(optarg, 1, ROUNDS_MOST);
		else if (option == 'o' && (first = way_named(optarg)) != NULL)
			end = first + 1;
		else
			explain();
	}
	struct rank rank = start((uint32_t)size);
	float *data = aligned_alloc(2u << 20, LARGE_BYTES);

	if (!data)
		die("no memory");
	(void)madvise(data, LARGE_BYTES, MADV_HUGEPAGE);
	for (const struct way *way = first; way < end; way++)
		measure(way, &rank, data, (uint32_t)rounds);
	int status, failed = 0;
	while (rank.self == 0 && wait(&status) > 0)
		failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	return failed;
}
