/*
 * leave_program.c HOW - a job whose last rank leaves in the middle, and whose process is the last that ends.
 *
 * HOW: fini, it leaves in good order; abort, it aborts the group first. Then it waits until nothing is left of the others'
 * processes, and returns 3. The others' calls fail, and they return 1.
 */
#include <errno.h>
#include <espalier/espalier.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RANKS_MAX 64

static int fail(void)
{
	struct esp_error error = ESP_ERROR_INIT;
	esp_last_error(&error);
	fprintf(stderr, "%s\n", error.text);
	return 1;
}

/* Until whoever has started them has reaped them. */
static void outlive(int64_t pid)
{
	while (kill((pid_t)pid, 0) == 0 || errno != ESRCH)
		sched_yield();
}

static int leave(struct esp_context *job, const char *how, const int64_t *pids, uint32_t others)
{
	if (strcmp(how, "abort") == 0 && esp_abort(esp_world(job), "enough") != ESP_OK)
		return fail();
	if (strcmp(how, "abort") != 0 && esp_fini(job) != ESP_OK)
		return fail();
	for (uint32_t rank = 0; rank < others; rank++)
		outlive(pids[rank]);
	return 3;
}

int main(int argc, char **argv)
{
	struct esp_context *job;
	int64_t pids[RANKS_MAX], mine = getpid(), sum;
	if (argc != 2 || esp_init(NULL, &job) != ESP_OK)
		return fail();
	struct esp_group *world = esp_world(job);
	uint32_t size = esp_size(world);
	if (size > RANKS_MAX || esp_allgather(world, &mine, pids, 1, ESP_I64) != ESP_OK)
		return fail();
	if (esp_rank(world) == size - 1)
		return leave(job, argv[1], pids, size - 1);
	while (esp_allreduce(world, &mine, &sum, 1, ESP_I64, ESP_SUM) == ESP_OK)
		;
	return fail();
}
