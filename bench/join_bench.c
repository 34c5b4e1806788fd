/*
 * join_bench.c - how long it takes until all ranks of a job have joined, as processes on this machine, over the public API.
 *
 *     build/bench/join_bench [RANKS,RANKS,...] [ROUNDS]
 *
 * A round starts all ranks at once, through the leader on the loopback and with a key. Times are from before the first fork:
 * until all processes were started, until the last rank had the roster, and until the last esp_init() had returned, which is
 * when all are connected and have met in a first barrier. Nobody leaves before that; how long leaving takes, until the last process has
 * ended, is told apart. Prints the medians of the rounds, the best and the worst until all are ready, and, as a machine may have other
 * things to do, the processor's time of all ranks until they are ready, the least of the rounds.
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

/* Of a rank, as clock_now_ns() counts. */
struct moments {
	uint64_t joined; /* it had the roster            */
	uint64_t ready;  /* its esp_init() had returned  */
	uint64_t spent;  /* processor's time until then  */
};

static uint64_t spent_ns(void)
{
	struct timespec spent;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
	return (uint64_t)spent.tv_sec * NS_PER_S + (uint64_t)spent.tv_nsec;
}

/* The library says so when it has the roster. */
static void on_line(void *context, int level, const char *line)
{
	struct moments *moments = context;

	(void)level;
	if (strstr(line, " joined "))
		moments->joined = clock_now_ns();
}

/* Leaves when `go` is closed. */
static int be_rank(unsigned rank, int fd, int go)
{
	static const char *const settings[] = {"log=info", NULL};
	struct moments moments = {0};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_context *job;
	struct esp_error error = ESP_ERROR_INIT;

	set_number("ESP_RANK", rank);
	options.settings = settings;
	options.log = on_line;
	options.log_context = &moments;
	if (esp_init(&options, &job) != ESP_OK) {
		esp_last_error(&error);
		fprintf(stderr, "join_bench: rank %u: %s\n", rank, error.text);
		return 1;
	}
	moments.ready = clock_now_ns();
	moments.spent = spent_ns();
	char byte;
	if (write(fd, &moments, sizeof(moments)) != sizeof(moments) || read(go, &byte, 1) != 0)
		return 1;
	return esp_fini(job) != ESP_OK;
}

/* Of all ranks, in milliseconds since the first was started. */
struct times {
	double started, joined, ready, left, spent;
};

/* Starts all ranks and waits until they are gone. */
static struct times run_round(unsigned ranks)
{
	int fds[2], go[2], status, failed = 0;
	uint64_t begin;
	struct moments last = {0}, moments;
	struct times times;

	if (pipe(fds) != 0 || pipe(go) != 0)
		exit(1);
	unsetenv("ESP_LAUNCHER");
	set_number("ESP_SIZE", ranks);
	choose_leader();
	begin = clock_now_ns();
	for (unsigned rank = 0; rank < ranks; rank++) {
		pid_t child = fork();

		if (child == 0) {
			close(fds[0]);
			close(go[1]);
			_exit(be_rank(rank, fds[1], go[0]));
		}
		failed |= child < 0;
	}
	times.started = (double)(clock_now_ns() - begin) * 1e-6;
	close(fds[1]);
	close(go[0]);
	times.spent = 0;
	for (unsigned i = 0; i < ranks && read(fds[0], &moments, sizeof(moments)) == sizeof(moments); i++) {
		times.spent += (double)moments.spent * 1e-6;
		last.joined = moments.joined > last.joined ? moments.joined : last.joined;
		last.ready = moments.ready > last.ready ? moments.ready : last.ready;
	}
	close(fds[0]);
	close(go[1]);
	uint64_t all_ready = clock_now_ns();
	while (wait(&status) > 0)
		failed |= status != 0;
	if (failed || last.joined < begin)
		exit(1);
	times.joined = (double)(last.joined - begin) * 1e-6;
	times.ready = (double)(last.ready - begin) * 1e-6;
	times.left = (double)(clock_now_ns() - all_ready) * 1e-6;
	return times;
}

static int compare(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return (one > other) - (one < other);
}

static void measure(unsigned ranks, unsigned rounds)
{
	double started[ROUNDS_MAX] = {0}, joined[ROUNDS_MAX] = {0}, ready[ROUNDS_MAX] = {0}, left[ROUNDS_MAX] = {0}, spent[ROUNDS_MAX] = {0};

	for (unsigned i = 0; i < rounds; i++) {
		struct times times = run_round(ranks);

		started[i] = times.started;
		joined[i] = times.joined;
		ready[i] = times.ready;
		left[i] = times.left;
		spent[i] = times.spent;
	}
	double *all[] = {started, joined, ready, left, spent};
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		qsort(all[i], rounds, sizeof(double), compare);
	printf("%8u  %8.1f  %8.1f  %8.1f  %8.1f  %8.1f  (%.1f..%.1f)\n", ranks, started[rounds / 2], joined[rounds / 2], ready[rounds / 2],
	       left[rounds / 2], spent[0], ready[0], ready[rounds - 1]);
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
	printf("%8s  %8s  %8s  %8s  %8s  %8s  (best..worst), all in ms\n", "ranks", "started", "joined", "ready", "leaving", "spent");
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
