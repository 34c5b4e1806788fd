/*
 * background.c - what goes on while the program computes: espalier run -n 4 -- background
 *
 * A call in the background, a call that is planned once and made again and again, a group of every second rank, and a
 * message from each rank to the next.
 */
#include <espalier/espalier.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 100000

static void must(enum esp_status status)
{
	struct esp_error error = ESP_ERROR_INIT;

	if (status == ESP_OK)
		return;
	esp_last_error(&error);
	fprintf(stderr, "background: %s\n", error.text);
	exit(1);
}

static float gradients[COUNT], weights[COUNT];

static void in_background(struct esp_group *world)
{
	struct esp_call call = ESP_CALL_INIT; /* an allreduce of floats, a sum, unless it says otherwise */
	struct esp_work *work;

	call.in = call.out = gradients;
	call.count = COUNT;
	call.op = ESP_AVG;
	must(esp_prepare(world, &call, &work)); /* planned once ... */
	for (int step = 0; step < 3; step++) {
		for (int i = 0; i < COUNT; i++)
			gradients[i] = (float)(step + (int)esp_rank(world));
		must(esp_restart(work)); /* ... and made again and again */
		/* Compute here what does not need the averages. esp_test(work) tells whether they are there. */
		must(esp_wait(work, -1));
		for (int i = 0; i < COUNT; i++)
			weights[i] -= gradients[i];
	}
	esp_work_free(work);
}

static float sum_of_every_second(struct esp_group *world)
{
	float one = 1, sum = 0;
	struct esp_group *group;

	must(esp_group_split(world, esp_rank(world) % 2, 0, &group));
	must(esp_allreduce(group, &one, &sum, 1, ESP_F32, ESP_SUM));
	must(esp_group_free(group));
	return sum;
}

static int from_neighbour(struct esp_group *world)
{
	uint32_t rank = esp_rank(world), size = esp_size(world);
	int mine = (int)rank, theirs = -1;
	struct esp_work *receive;

	must(esp_recv_start(world, &theirs, sizeof(theirs), (rank + size - 1) % size, 7, 0, &receive));
	must(esp_send(world, &mine, sizeof(mine), (rank + 1) % size, 7));
	must(esp_wait(receive, -1));
	esp_work_free(receive);
	return theirs;
}

int main(void)
{
	struct esp_context *job;

	must(esp_init(NULL, &job));
	struct esp_group *world = esp_world(job);
	in_background(world);
	float many = sum_of_every_second(world);
	int from = from_neighbour(world);
	printf("rank %u: weight %g, %g ranks in its group, a message from rank %d\n", esp_rank(world), weights[0], many, from);
	must(esp_fini(job));
	return 0;
}
