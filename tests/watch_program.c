/*
 * watch_program.c - a job for watch_cli_test.py: some calls, and then one rank does what its name says.
 *
 * watch_program WHAT RANK: work (nobody does anything), hang (never makes the last call), stop (the same, and looks at nothing),
 * die, other (makes another call), leave, wait (the first one waits for its standard input), endless (all make large calls until they are
 * ended, from memory that others read where it lies)
 */
#include <espalier/espalier.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct esp_context *job;
static float *data;

#define LARGE (1u << 18)

static int fail(const char *what)
{
	struct esp_error error = ESP_ERROR_INIT;

	esp_last_error(&error);
	fprintf(stderr, "%s: %s\n", what, error.text);
	return 1;
}

/* Until the others have given up. */
static void wait_for_failure(void)
{
	struct esp_error error = ESP_ERROR_INIT;

	while (esp_group_error(esp_world(job), &error) == ESP_OK && error.status == ESP_OK)
		usleep(1000);
}

static int last_call(const char *what, int is_it)
{
	struct esp_group *world = esp_world(job);
	char line[8];

	if (strcmp(what, "wait") == 0) {
		puts("ready");
		fflush(stdout);
		if (esp_rank(world) == 0 && !fgets(line, sizeof(line), stdin))
			return 1;
	}
	if (is_it && strcmp(what, "die") == 0)
		_exit(9);
	if (is_it && strcmp(what, "stop") == 0)
		pause();
	if (is_it && strcmp(what, "hang") == 0) {
		wait_for_failure();
		return 0;
	}
	if (is_it && strcmp(what, "leave") == 0)
		return 0;
	if (is_it && strcmp(what, "other") == 0)
		return esp_allreduce(world, data, data, 77, ESP_F32, ESP_SUM) == ESP_OK ? 0 : fail("the other call");
	return esp_allreduce(world, data, data, LARGE, ESP_F32, ESP_SUM) == ESP_OK ? 0 : fail("the last call");
}

static int call_for_ever(void)
{
	float *in, *out;

	if (esp_alloc(job, LARGE * sizeof(*in), (void **)&in) != ESP_OK || esp_alloc(job, LARGE * sizeof(*out), (void **)&out) != ESP_OK)
		return fail("esp_alloc");
	memset(in, 0, LARGE * sizeof(*in));
	while (esp_allreduce(esp_world(job), in, out, LARGE, ESP_F32, ESP_SUM) == ESP_OK)
		;
	return fail("esp_allreduce");
}

int main(int argc, char **argv)
{
	if (argc < 3 || esp_init(NULL, &job) != ESP_OK)
		return fail("esp_init");
	struct esp_group *world = esp_world(job);
	data = calloc(LARGE, sizeof(*data));
	for (int i = 0; i < 50; i++) {
		if (esp_allreduce(world, data, data, 10, ESP_F32, ESP_SUM) != ESP_OK)
			return fail("esp_allreduce");
	}
	for (int i = 0; i < 5; i++) {
		if (esp_allreduce(world, data, data, LARGE, ESP_F32, ESP_SUM) != ESP_OK)
			return fail("esp_allreduce");
	}
	if (strcmp(argv[1], "endless") == 0)
		return call_for_ever();
	int status = last_call(argv[1], esp_rank(world) == (uint32_t)atoi(argv[2]));
	if (esp_fini(job) != ESP_OK)
		return fail("esp_fini");
	free(data);
	return status;
}
