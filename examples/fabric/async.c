/*
 * async.c - linear regression by asynchronous updates: the last worker is four times slower than the others, which do
 * not wait for it.
 *
 *     espalier hub --listen 127.0.0.1:7700 --key-file hub.key &
 *     espalier sched --listen 127.0.0.1:7900 --key-file hub.key --batch 20ms &
 *     espalier hub create line --workers 4 --mode async --delay-bound 8 --sched 127.0.0.1:7900 \
 *         --optimizer "sgd lr=0.3"
 *     ESP_HUB_TICKET=line.ticket espalier run -n 4 -- build/examples/fabric/async
 *
 * Each worker prints what became of its updates, and how far the weights are from the true ones.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <espalier/hub.h>

#define FEATURES 1024
#define NONZEROS 64  /* features of a sample that are not zero */
#define SAMPLES 8    /* of a worker in one step */
#define STEPS 150    /* of a fast worker */
#define STEP_MS 5    /* that a fast worker computes */
#define SLOWER 4

static const double scale = NONZEROS / 3.0; /* so that a step of the learning rate 1 would solve a sample */

static float true_weight(uint32_t i)
{
	return (float)(i % 7) - 3;
}

/* Pseudo-random numbers in [0, 2^24). */
static uint32_t draw(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*state >> 40);
}

/* Of half the squared error, over the samples of this step. */
static void compute_gradient(const float *weights, float *gradient, uint64_t *state)
{
	memset(gradient, 0, FEATURES * sizeof(*gradient));
	for (uint32_t s = 0; s < SAMPLES; s++) {
		uint32_t at[NONZEROS];
		float x[NONZEROS], error = 0;

		for (uint32_t i = 0; i < NONZEROS; i++) {
			at[i] = draw(state) % FEATURES;
			x[i] = (float)draw(state) / (float)(1 << 23) - 1;
			error += x[i] * (weights[at[i]] - true_weight(at[i]));
		}
		for (uint32_t i = 0; i < NONZEROS; i++)
			gradient[at[i]] += error * x[i] / (float)scale;
	}
}

static double distance(const float *weights)
{
	double sum = 0;

	for (uint32_t i = 0; i < FEATURES; i++)
		sum += (weights[i] - true_weight(i)) * (weights[i] - true_weight(i));
	return sum / FEATURES;
}

static double norm_of(const float *gradient)
{
	double sum = 0;

	for (uint32_t i = 0; i < FEATURES; i++)
		sum += (double)gradient[i] * gradient[i];
	return sqrt(sum);
}

static void compute_for(uint32_t ms)
{
	const struct timespec pause = {.tv_nsec = (long)ms * 1000000};

	nanosleep(&pause, NULL);
}

static int fail(void)
{
	struct esp_error error = ESP_ERROR_INIT;

	esp_last_error(&error);
	fprintf(stderr, "%s\n", error.text);
	return 1;
}

int main(int argc, char **argv)
{
	static float weights[FEATURES], gradient[FEATURES];
	struct esp_hub_tensor tensor = {sizeof(tensor), "weights", FEATURES, ESP_F32, 0, weights};
	const uint32_t most = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : STEPS;
	void *const to[] = {weights};
	const void *const from[] = {gradient};
	uint32_t fates[ESP_HUB_LATE_AT_HUB + 1] = {0};
	uint64_t version = 0, delays = 0;
	struct esp_hub *hub;

	if (esp_hub_connect(NULL, &hub) != ESP_OK)
		return fail();
	uint32_t worker = esp_hub_worker(hub), is_slow = worker > 0 && worker + 1 == esp_hub_workers(hub);
	uint64_t state = worker + 1;
	int status = esp_hub_init(hub, &tensor, 1) == ESP_OK ? 0 : fail();

	for (uint32_t step = 0; status == 0 && step < (is_slow ? most / SLOWER : most); step++) {
		struct esp_hub_update update = {.struct_size = sizeof(update), .gradients = from};
		struct esp_hub_result result = ESP_HUB_RESULT_INIT;

		if (esp_hub_model(hub, to, &version) != ESP_OK) {
			status = fail();
			break;
		}
		compute_gradient(weights, gradient, &state);
		compute_for(is_slow ? SLOWER * STEP_MS : STEP_MS);
		update.computed_from = version;
		update.norm = norm_of(gradient);
		if (esp_hub_update(hub, &update, &result) != ESP_OK) {
			status = fail();
			break;
		}
		fates[result.fate]++;
		delays += result.fate == ESP_HUB_APPLIED ? result.delay : 0;
	}
	if (status == 0 && esp_hub_model(hub, to, &version) == ESP_OK)
		printf(
			"worker %u of %u%s: %u updates applied with a delay of %.1f on average, dropped: %u at the source, %u when "
			"offered, %u at the hub; mean squared distance %.4f at version %llu\n",
			worker, esp_hub_workers(hub), is_slow ? ", slow" : "", fates[ESP_HUB_APPLIED],
			fates[ESP_HUB_APPLIED] > 0 ? (double)delays / fates[ESP_HUB_APPLIED] : 0.0, fates[ESP_HUB_LATE_AT_SOURCE],
			fates[ESP_HUB_LATE_AT_OFFER], fates[ESP_HUB_LATE_AT_HUB], distance(weights), (unsigned long long)version);
	esp_hub_close(hub);
	return status;
}
