/*
 * rail_program.c - a job for rails_test.py: calls of all kinds, each result looked at, until a file is there.
 *
 * rail_program FILE [PAUSE_MS [BEGIN [TWICE]]]: rank 0 looks for the file, and all end with the round after that. Pauses: between rounds, so that
 * connections are idle most of the time. Begin: a file that is waited for before the first call, which makes the connections for data.
 * Twice: any word; a call of another group follows the one that has failed, and fails as well.
 *
 * Numbers are whole and small, so every sum is exact, and different in every round, for every element, on every rank: what is
 * lost, doubled or of another round shows.
 */
#include <espalier/espalier.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LARGE (1u << 19) /* 2 MiB */
#define SMALL 1000u
#define LETTER 50000u

static struct esp_context *job;
static float *in, *out;

static int fail(const char *what, uint64_t round)
{
	struct esp_error error = ESP_ERROR_INIT;

	esp_last_error(&error);
	fprintf(stderr, "round %" PRIu64 ", %s: %s\n", round, what, error.text);
	return 1;
}

static float value(uint32_t rank, uint64_t round, uint32_t i)
{
	return (float)((rank * 7919u + round * 104729u + i * 31u) % 1009u);
}

static void fill(uint32_t rank, uint64_t round, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		in[i] = value(rank, round, i);
}

static int wrong(const char *what, uint64_t round, uint32_t i, float found, float expected)
{
	fprintf(stderr, "WRONG: round %" PRIu64 ", %s: element %u is %g, not %g\n", round, what, i, (double)found, (double)expected);
	return 1;
}

static int check_sum(const char *what, uint64_t round, uint32_t count, const float *found)
{
	uint32_t size = esp_size(esp_world(job));

	for (uint32_t i = 0; i < count; i++) {
		float sum = 0;

		for (uint32_t rank = 0; rank < size; rank++)
			sum += value(rank, round, i);
		if (found[i] != sum)
			return wrong(what, round, i, found[i], sum);
	}
	return 0;
}

/* In place, where an input is gone once the call has begun. */
static int sum_in_place(uint64_t round, uint32_t count)
{
	fill(esp_rank(esp_world(job)), round, count);
	if (esp_allreduce(esp_world(job), in, in, count, ESP_F32, ESP_SUM) != ESP_OK)
		return fail("allreduce in place", round);
	return check_sum("allreduce in place", round, count, in);
}

/* Elsewhere; and the input is written over as soon as it may be. */
static int sum(uint64_t round, uint32_t count)
{
	fill(esp_rank(esp_world(job)), round, count);
	if (esp_allreduce(esp_world(job), in, out, count, ESP_F32, ESP_SUM) != ESP_OK)
		return fail("allreduce", round);
	fill(77, round + 1, count);
	return check_sum("allreduce", round, count, out);
}

static int broadcast(uint64_t round)
{
	uint32_t root = (uint32_t)(round % esp_size(esp_world(job)));

	fill(esp_rank(esp_world(job)), round, LARGE / 4);
	if (esp_broadcast(esp_world(job), in, LARGE / 4, ESP_F32, root) != ESP_OK)
		return fail("broadcast", round);
	for (uint32_t i = 0; i < LARGE / 4; i++) {
		if (in[i] != value(root, round, i))
			return wrong("broadcast", round, i, in[i], value(root, round, i));
	}
	return 0;
}

/* To the next rank, from the one before. */
static int letters(uint64_t round)
{
	uint32_t rank = esp_rank(esp_world(job)), size = esp_size(esp_world(job)), before = (rank + size - 1) % size;
	struct esp_work *sent;

	fill(rank, round, LETTER);
	if (esp_send_start(esp_world(job), in, LETTER * sizeof(float), (rank + 1) % size, round, 0, &sent) != ESP_OK ||
	    esp_recv(esp_world(job), out, LETTER * sizeof(float), before, round, NULL, NULL) != ESP_OK || esp_wait(sent, -1) != ESP_OK)
		return fail("letter", round);
	esp_work_free(sent);
	for (uint32_t i = 0; i < LETTER; i++) {
		if (out[i] != value(before, round, i))
			return wrong("letter", round, i, out[i], value(before, round, i));
	}
	return 0;
}

/* Does rank 0 see the file? */
static int is_over(const char *file, uint64_t round, int *out_over)
{
	int32_t over = esp_rank(esp_world(job)) == 0 && access(file, F_OK) == 0;

	if (esp_broadcast(esp_world(job), &over, 1, ESP_I32, 0) != ESP_OK)
		return fail("the end", round);
	*out_over = over;
	return 0;
}

static void await_beginning(const char *file)
{
	fprintf(stderr, "ready\n");
	while (access(file, F_OK) != 0)
		usleep(10000);
}

static int fail_again(struct esp_group *other, uint64_t round)
{
	if (esp_allreduce(other, in, out, LARGE, ESP_F32, ESP_SUM) == ESP_OK)
		fprintf(stderr, "WRONG: the call of the other group ended well\n");
	return fail("the other group", round);
}

int main(int argc, char **argv)
{
	struct esp_group *other = NULL;
	uint64_t round = 0;
	int over = 0, pause_ms = argc > 2 ? atoi(argv[2]) : 0;

	if (argc < 2 || esp_init(NULL, &job) != ESP_OK || esp_alloc(job, LARGE * sizeof(float), (void **)&in) != ESP_OK ||
	    esp_alloc(job, LARGE * sizeof(float), (void **)&out) != ESP_OK)
		return fail("the beginning", 0);
	if (argc > 4 && esp_group_split(esp_world(job), 0, 0, &other) != ESP_OK)
		return fail("the other group", 0);
	if (argc > 3)
		await_beginning(argv[3]);
	while (!over) {
		if (sum(round, LARGE) || sum_in_place(round, LARGE) || sum(round, SMALL) || sum_in_place(round, 1) || broadcast(round) ||
		    letters(round) || is_over(argv[1], round, &over))
			return other ? fail_again(other, round) : 1;
		round++;
		usleep((useconds_t)pause_ms * 1000);
	}
	printf("%" PRIu64 " rounds, all right\n", round);
	return esp_fini(job) == ESP_OK ? 0 : fail("the end", round);
}
