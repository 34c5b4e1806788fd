/*
 * hello.c - all ranks of a job add up their numbers: espalier run -n 4 -- hello
 */
#include <espalier/espalier.h>
#include <stdio.h>

static int fail(void)
{
	struct esp_error error = ESP_ERROR_INIT;
	esp_last_error(&error);
	fprintf(stderr, "hello: %s\n", error.text);
	return 1;
}

int main(void)
{
	struct esp_context *job;
	if (esp_init(NULL, &job) != ESP_OK) /* rank and size from the environment */
		return fail();
	struct esp_group *world = esp_world(job);
	float mine[2] = {1, (float)esp_rank(world)}, sum[2];
	if (esp_allreduce(world, mine, sum, 2, ESP_F32, ESP_SUM) != ESP_OK)
		return fail();
	printf("rank %u of %u: %g ranks, their numbers add up to %g\n", esp_rank(world), esp_size(world), sum[0], sum[1]);
	return esp_fini(job) == ESP_OK ? 0 : fail();
}
