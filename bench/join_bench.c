/*
 * join_bench.c - how long it takes until all ranks of a job have joined, as processes on this machine, over the public API.
 *
 *     build/bench/join_bench [RANKS,RANKS,...] [ROUNDS]
 *
 * A round starts all ranks at once, through the leader on the loopback and with a key. Its time is from before the first fork
 * until the last esp_init() has returned, which is when all have met in a first barrier. Prints the best, the median and the
 * worst of the rounds, and the median of what of it was spent on starting processes.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "espalier/espalier.h"

#define ROUNDS_MAX 100

static void set_number(const char *name, unsigned number)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", number);
	setenv(name, text, 1);
}

static void choose_leader(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	char text[32];
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
		perror("join_bench");
		exit(1);
	}
	close(fd);
	snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(address.sin_port));
	setenv("ESP_LEADER", text, 1);
	setenv("ESP_KEY", "a passphrase for this benchmark", 1);
}

/* A rank: tells the moment at which it had joined. */
static int be_rank(unsigned rank, int fd)
{
	struct esp_context *job;
	struct esp_error error = ESP_ERROR_INIT;

	set_number("ESP_RANK", rank);
	if (esp_init(NULL, &job) != ESP_OK) {
		esp_last_error(&error);
		fprintf(stderr, "join_bench: rank %u: %s\n", rank, error.text);
		return 1;
	}
	uint64_t now = clock_now_ns();
	if (write(fd, &now, sizeof(now)) != sizeof(now))
		return 1;
	return esp_fini(job) != ESP_OK;
}

/* Starts all ranks and waits until they are gone. */
static void run_round(unsigned ranks, double *out_started, double *out_joined)
{
	int fds[2], status, failed = 0;
	uint64_t last = 0, moment, begin;

	if (pipe(fds) != 0)
		exit(1);
	set_number("ESP_SIZE", ranks);
	choose_leader();
	begin = clock_now_ns();
	for (unsigned rank = 0; rank < ranks; rank++) {
		pid_t child = fork();

		if (child == 0) {
			close(fds[0]);
			_exit(be_rank(rank, fds[1]));
		}
		failed |= child < 0;
	}
	*out_started = (double)(clock_now_ns() - begin) * 1e-6;
	close(fds[1]);
	while (read(fds[0], &moment, sizeof(moment)) == sizeof(moment))
		last = moment > last ? moment : last;
	close(fds[0]);
	while (wait(&status) > 0)
		failed |= status != 0;
	if (failed || last < begin)
		exit(1);
	*out_joined = (double)(last - begin) * 1e-6;
}

static int compare(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return (one > other) - (one < other);
}

static void measure(unsigned ranks, unsigned rounds)
{
	double started[ROUNDS_MAX], joined[ROUNDS_MAX];

	for (unsigned i = 0; i < rounds; i++)
		run_round(ranks, &started[i], &joined[i]);
	qsort(started, rounds, sizeof(*started), compare);
	qsort(joined, rounds, sizeof(*joined), compare);
	printf("%8u  %8.1f  %8.1f  %8.1f  %8.1f\n", ranks, joined[0], joined[rounds / 2], joined[rounds - 1], started[rounds / 2]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *at = argc > 1 ? argv[1] : "2,16,64,256";
	unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 5;

	if (argc > 3 || rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "usage: %s [RANKS,RANKS,...] [ROUNDS]\n", argv[0]);
		return 2;
	}
	printf("%8s  %8s  %8s  %8s  %8s\n", "ranks", "best ms", "median", "worst", "starting");
	while (*at) {
		char *end;
		unsigned long ranks = strtoul(at, &end, 10);

		if (end == at || ranks < 1 || ranks > 65536 || (*end && *end != ',')) {
			fprintf(stderr, "%s: %s is no list of numbers of ranks\n", argv[0], at);
			return 2;
		}
		measure((unsigned)ranks, rounds);
		at = *end ? end + 1 : end;
	}
	return 0;
}
