/*
 * survivor.c - a training that goes on when ranks die: espalier run -n 4 --lose 2 -- survivor
 *
 * Every rank has the same weights. In each step the ranks average their gradients, and apply them. Two of them die on the way;
 * the others agree on who is left and on the last step that has ended well everywhere, go back to it where they were
 * further, and go on. In the end all who are left have the same weights, of the same number of steps.
 */
#include <espalier/espalier.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 10000
#define STEPS 60

static double weights[COUNT], before[COUNT], gradient[COUNT], average[COUNT];

static void must(enum esp_status status)
{
	struct esp_error error = ESP_ERROR_INIT;

	if (status == ESP_OK)
		return;
	esp_last_error(&error);
	fprintf(stderr, "survivor: %s\n", error.text);
	exit(1);
}

static void compute(uint64_t step, uint32_t rank)
{
	for (int i = 0; i < COUNT; i++)
		gradient[i] = (double)(step * 7 + rank * 3 + (uint64_t)i % 5);
}

static void apply(void)
{
	memcpy(before, weights, sizeof(weights));
	for (int i = 0; i < COUNT; i++)
		weights[i] -= 0.01 * average[i];
}

/* Those who are left; used: the number of the last call whose result is in the weights; *step: how far they all are. */
static struct esp_group *go_on(struct esp_context *job, struct esp_group *group, uint64_t used, uint64_t *step)
{
	struct esp_shrink shrink = ESP_SHRINK_INIT;
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_group *left;

	esp_last_error(&error);
	must(esp_group_shrink(group, &shrink, &left));
	if (used > shrink.completed_everywhere) { /* a step that has ended well here, but not everywhere */
		memcpy(weights, before, sizeof(weights));
		--*step;
	}
	if (esp_rank(left) == 0)
		printf("step %llu: %s; %u ranks go on\n", (unsigned long long)*step, error.text, esp_size(left));
	if (group != esp_world(job))
		must(esp_group_free(group));
	return left;
}

int main(void)
{
	struct esp_context *job;

	must(esp_init(NULL, &job));
	struct esp_group *group = esp_world(job);
	uint32_t rank = esp_rank(group), size = esp_size(group);
	uint64_t step = 0, used = 0;
	while (step < STEPS) {
		if ((rank == 1 && step == 20 && size > 1) || (rank == 2 && step == 40 && size > 2))
			raise(SIGKILL); /* what may happen to anybody */
		compute(step, rank);
		if (esp_allreduce(group, gradient, average, COUNT, ESP_F64, ESP_AVG) == ESP_OK) {
			apply();
			used = esp_group_calls(group);
			step++;
		} else {
			group = go_on(job, group, used, &step);
			used = 0; /* of the new group none */
		}
	}
	double least, most, sum = 0;
	for (int i = 0; i < COUNT; i++)
		sum += weights[i];
	must(esp_allreduce(group, &sum, &least, 1, ESP_F64, ESP_MIN));
	must(esp_allreduce(group, &sum, &most, 1, ESP_F64, ESP_MAX));
	if (esp_rank(group) == 0)
		printf("%u of %u ranks are left after %d steps, and %s\n", esp_size(group), size, STEPS,
		       least == most ? "agree" : "DO NOT AGREE");
	must(esp_fini(job));
	return least == most ? 0 : 1;
}
