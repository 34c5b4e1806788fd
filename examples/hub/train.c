/*
 * train.c - linear regression through a parameter hub: each worker has data of its own, the hub has the optimizer.
 *
 *     espalier hub --listen 127.0.0.1:7700 &
 *     espalier hub create line --workers 4 --optimizer "sgd lr=0.05 momentum=0.9"
 *     ESP_HUB_TICKET=line.ticket espalier run -n 4 -- build/examples/hub/train
 *
 * Every worker ends with the same weights, and prints how far they are from the true ones.
 */
#include <stdio.h>
#include <stdlib.h>

#include <espalier/hub.h>

#define FEATURES 64
#define SAMPLES 8 /* of a worker in one step */
#define STEPS 200

static float true_weight(uint32_t i)
{
	return (float)(i % 7) - 3;
}

/* Pseudo-random numbers in [-1, 1). */
static float draw(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (float)(*state >> 40) / (float)(1 << 23) - 1;
}

/* Of half the squared error, over the samples of this step. */
static void compute_gradient(const float *weights, float *gradient, uint64_t *state)
{
	static float x[FEATURES];

	for (uint32_t i = 0; i < FEATURES; i++)
		gradient[i] = 0;
	for (uint32_t s = 0; s < SAMPLES; s++) {
		float error = 0;

		for (uint32_t i = 0; i < FEATURES; i++) {
			x[i] = draw(state);
			error += x[i] * (weights[i] - true_weight(i));
		}
		for (uint32_t i = 0; i < FEATURES; i++)
			gradient[i] += error * x[i] / SAMPLES;
	}
}

static float distance(const float *weights)
{
	float most = 0;

	for (uint32_t i = 0; i < FEATURES; i++) {
		float off = weights[i] - true_weight(i);

		most = off > most ? off : -off > most ? -off : most;
	}
	return most;
}

static int fail(void)
{
	struct esp_error error = ESP_ERROR_INIT;

	esp_last_error(&error);
	fprintf(stderr, "%s\n", error.text);
	return 1;
}

int main(void)
{
	static float weights[FEATURES], gradient[FEATURES];
	struct esp_hub_tensor tensor = {sizeof(tensor), "weights", FEATURES, ESP_F32, 0, weights};
	struct esp_hub *hub;

	if (esp_hub_connect(NULL, &hub) != ESP_OK)
		return fail();
	uint32_t worker = esp_hub_worker(hub);
	uint64_t state = worker + 1;
	int status = esp_hub_init(hub, &tensor, 1) == ESP_OK ? 0 : fail();

	for (uint32_t step = 0; status == 0 && step < STEPS; step++) {
		compute_gradient(weights, gradient, &state);
		if (esp_hub_pushpull(hub, 0, gradient, weights) != ESP_OK)
			status = fail();
	}
	if (status == 0)
		printf("worker %u of %u: %u steps, the worst weight is off by %.4f\n", worker, esp_hub_workers(hub), STEPS,
		       (double)distance(weights));
	esp_hub_close(hub);
	return status;
}
