#include "../model.h"

#include <math.h>

#include "../random.h"
#include "base/check.h"

#define BATCH 5
static const uint32_t widths[] = {7, 9, 6, 4};
#define LAYERS 3

/* A small model with a batch to try it on. */
struct rig {
	struct model model;
	float *weights, *gradient, *velocity;
	float rows[BATCH * 7];
	uint8_t labels[BATCH];
};

static void rig_open(struct rig *rig, uint64_t seed)
{
	struct random random = {seed};
	CHECK(model_open(&rig->model, widths, LAYERS, BATCH) == 0);
	size_t floats = model_floats(&rig->model);
	rig->weights = calloc(floats, sizeof(float));
	rig->gradient = calloc(floats, sizeof(float));
	rig->velocity = calloc(floats, sizeof(float));
	CHECK(rig->weights && rig->gradient && rig->velocity);
	model_init(&rig->model, rig->weights, seed);
	for (int i = 0; i < BATCH * 7; i++)
		rig->rows[i] = random_between(&random, -1, 1);
	for (int i = 0; i < BATCH; i++)
		rig->labels[i] = (uint8_t)random_below(&random, 4);
}

static void rig_close(struct rig *rig)
{
	model_close(&rig->model);
	free(rig->weights);
	free(rig->gradient);
	free(rig->velocity);
}

static double mean_loss(struct rig *rig)
{
	uint32_t correct;
	return model_loss(&rig->model, rig->weights, rig->rows, rig->labels, BATCH, &correct) / BATCH;
}

static void backward(struct rig *rig)
{
	mean_loss(rig);
	for (uint32_t l = LAYERS; l-- > 0;)
		model_backward(&rig->model, rig->weights, l, rig->gradient);
}

static void test_shape(void)
{
	struct rig rig;
	rig_open(&rig, 1);
	CHECK_U64(model_layer_floats(&rig.model, 0), 8 * 9);
	CHECK_U64(model_layer_floats(&rig.model, 2), 7 * 4);
	CHECK_U64(model_floats(&rig.model), 8 * 9 + 10 * 6 + 7 * 4);
	/* Biases begin at 0, weights do not. */
	CHECK(rig.weights[7 * 9] == 0 && rig.weights[7 * 9 - 1] != 0 && rig.weights[8 * 9] != 0);
	rig_close(&rig);
	CHECK(model_open(&rig.model, widths, MODEL_LAYERS_MAX + 1, 1) == -1);
	CHECK(model_open(&rig.model, widths, 0, 1) == -1);
}

/* Without any weights all classes are equally likely, and the first is named. */
static void test_loss_of_nothing(void)
{
	struct rig rig;
	uint32_t correct, zeros = 0;
	rig_open(&rig, 1);
	memset(rig.weights, 0, model_floats(&rig.model) * sizeof(float));
	double loss = model_loss(&rig.model, rig.weights, rig.rows, rig.labels, BATCH, &correct);
	for (int i = 0; i < BATCH; i++)
		zeros += rig.labels[i] == 0;
	CHECK(fabs(loss - BATCH * log(4)) < 1e-12);
	CHECK_U64(correct, zeros);
	rig_close(&rig);
}

/* Which neurons ReLU lets through. */
static uint64_t pattern(const struct rig *rig)
{
	uint64_t bits = 0;
	for (uint32_t l = 1; l < LAYERS; l++)
		for (size_t i = 0; i < (size_t)BATCH * widths[l]; i++)
			bits = bits * 31 + (rig->model.values[l][i] > 0);
	return bits;
}

/* The slope of the loss when one weight moves; false: an edge of ReLU is crossed, and there is none. */
static bool slope(struct rig *rig, size_t i, double *out)
{
	const float reach = 0x1p-9f;
	float weight = rig->weights[i], high = weight + reach, low = weight - reach;
	rig->weights[i] = high;
	double above = mean_loss(rig);
	uint64_t above_pattern = pattern(rig);
	rig->weights[i] = low;
	double below = mean_loss(rig);
	rig->weights[i] = weight;
	*out = (above - below) / (high - low);
	return above_pattern == pattern(rig);
}

static void test_gradient(uint64_t seed)
{
	struct rig rig;
	size_t edges = 0, moved = 0;
	rig_open(&rig, seed);
	backward(&rig);
	for (size_t i = 0; i < model_floats(&rig.model); i++) {
		double expected;
		if (!slope(&rig, i, &expected)) {
			edges++;
			continue;
		}
		double actual = rig.gradient[i];
		moved += fabs(actual) > 1e-3;
		CHECK_MSG(fabs(actual - expected) < 5e-4 + 1e-3 * fabs(expected),
		          "weight %zu: gradient %g, slope %g, seed %" PRIu64, i, actual, expected, seed);
	}
	CHECK_MSG(edges * 2 < model_floats(&rig.model), "%zu edges, seed %" PRIu64, edges, seed);
	CHECK_MSG(moved * 20 > model_floats(&rig.model), "only %zu weights matter, seed %" PRIu64, moved, seed);
	rig_close(&rig);
}

/* The mean of the gradients of two halves is the gradient of the whole: what data-parallel training rests on. */
static void test_halves(void)
{
	struct rig rig;
	uint32_t correct;
	rig_open(&rig, 3);
	size_t floats = model_floats(&rig.model);
	float *half = calloc(floats, sizeof(float));
	CHECK(half);
	model_loss(&rig.model, rig.weights, rig.rows, rig.labels, 4, &correct);
	for (uint32_t l = LAYERS; l-- > 0;)
		model_backward(&rig.model, rig.weights, l, rig.gradient);
	for (uint32_t first = 0; first < 4; first += 2) {
		model_loss(&rig.model, rig.weights, rig.rows + first * 7, rig.labels + first, 2, &correct);
		for (uint32_t l = LAYERS; l-- > 0;)
			model_backward(&rig.model, rig.weights, l, half);
		for (size_t i = 0; i < floats; i++)
			rig.gradient[i] -= half[i] / 2;
	}
	for (size_t i = 0; i < floats; i++)
		CHECK(fabsf(rig.gradient[i]) < 1e-6f);
	free(half);
	rig_close(&rig);
}

static void test_update(void)
{
	struct rig rig;
	const struct step step = {.rate = 0.5f, .momentum = 0.25f, .decay = 0};
	rig_open(&rig, 1);
	size_t place = rig.model.first[1], other = rig.model.first[2];
	rig.weights[place] = rig.weights[other] = 2;
	rig.gradient[place] = rig.gradient[other] = 1;
	model_update(&rig.model, 1, rig.weights, rig.velocity, rig.gradient, &step);
	CHECK(rig.weights[place] == 1.5f && rig.velocity[place] == 1);
	model_update(&rig.model, 1, rig.weights, rig.velocity, rig.gradient, &step);
	CHECK(rig.weights[place] == 0.875f && rig.velocity[place] == 1.25f);
	CHECK(rig.weights[other] == 2);
	rig_close(&rig);
}

/* A few hundred steps are enough to learn five samples by heart. One seed: with so few neurons all may die at once. */
static void test_learns(void)
{
	struct rig rig;
	const struct step step = {.rate = 0.05f, .momentum = 0.9f, .decay = 0};
	rig_open(&rig, 1);
	double before = mean_loss(&rig);
	for (int i = 0; i < 400; i++) {
		backward(&rig);
		for (uint32_t l = 0; l < LAYERS; l++)
			model_update(&rig.model, l, rig.weights, rig.velocity, rig.gradient, &step);
	}
	CHECK_MSG(mean_loss(&rig) < before / 4, "loss %g before, %g after", before, mean_loss(&rig));
	rig_close(&rig);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);
	test_shape();
	test_loss_of_nothing();
	for (uint64_t i = 0; i < 20; i++)
		test_gradient(seed + i);
	test_halves();
	test_update();
	test_learns();
	return 0;
}
