#include "duet.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

void duet_die(const char *what)
{
	fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
	exit(1);
}

static _Noreturn void explain(FILE *out, const char *usage, int status)
{
	fprintf(out,
	        "%s"
	        "\n"
	        "  --rounds N  measurements of each, 1 to 101 (default 7)\n"
	        "  --json      print JSON\n",
	        usage);
	exit(status);
}

struct duet_options duet_parse(int argc, char **argv, const char *usage)
{
	static const struct option names[] = {
		{"rounds", required_argument, NULL, 'r'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct duet_options options = {.rounds = 7};

	for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
		if (c == 'r')
			options.rounds = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'j')
			options.json = true;
		else
			explain(c == 'h' ? stdout : stderr, usage, c == 'h' ? 0 : 2);
	}
	if (options.rounds == 0 || options.rounds > DUET_ROUNDS)
		duet_die("--rounds takes 1 to 101");
	return options;
}

static uint64_t process_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

struct duet_time duet_run(void *(*play)(void *end), void *one, void *other)
{
	pthread_t thread;
	uint64_t start = clock_now_ns(), cpu_start = process_ns();

	if (pthread_create(&thread, NULL, play, one) != 0)
		duet_die("no thread");
	play(other);
	pthread_join(thread, NULL);
	return (struct duet_time){clock_now_ns() - start, process_ns() - cpu_start};
}

/* ---- an end ---- */

void duet_begin(struct duet_end *end)
{
	if (!end->is_sender)
		return;
	end->to_send = end->echoes ? 1 : end->messages;
	end->ready = true;
}

void duet_receive(struct duet_end *end)
{
	end->received++;
	if (end->echoes && end->to_send < end->messages) {
		end->to_send++;
		end->ready = true;
	}
}

bool duet_is_done(const struct duet_end *end)
{
	bool receives = end->echoes || !end->is_sender, sends = end->echoes || end->is_sender;

	return (!receives || end->received == end->messages) && (!sends || end->sent == end->messages);
}

uint32_t duet_ready(void *user)
{
	struct duet_end *end = user;
	bool ready = end->ready;

	end->ready = false;
	return ready ? 0 : UINT32_MAX;
}

void duet_sent(void *user, uint32_t peer, uint16_t channel, void *cookie)
{
	struct duet_end *end = user;
	(void)peer, (void)channel, (void)cookie;

	end->sent++;
}

void duet_lost(void *user, uint32_t peer, enum esp_status why)
{
	(void)user, (void)peer, (void)why;
	duet_die("the other end is lost");
}

enum esp_status duet_failed(void *user)
{
	(void)user;
	return ESP_OK;
}

/* ---- results ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double duet_pick(const void *structs, size_t struct_bytes, unsigned count, size_t at, unsigned which)
{
	double values[DUET_ROUNDS] = {0};

	for (unsigned i = 0; i < count; i++)
		memcpy(&values[i], (const char *)structs + i * struct_bytes + at, sizeof(double));
	qsort(values, count, sizeof(*values), by_value);
	return values[which];
}
