#include "model.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "gemm.h"
#include "random.h"

int model_open(struct model *model, const uint32_t *widths, uint32_t layers, uint32_t batch_max)
{
	memset(model, 0, sizeof *model);
	if (layers == 0 || layers > MODEL_LAYERS_MAX)
		return -1;
	model->layers = layers;
	model->batch_max = batch_max;
	bool failed = false;
	for (uint32_t l = 0; l <= layers; l++) {
		model->widths[l] = widths[l];
		model->values[l] = calloc((size_t)batch_max * widths[l], sizeof(float));
		model->deltas[l] = calloc((size_t)batch_max * widths[l], sizeof(float));
		failed |= !model->values[l] || !model->deltas[l];
	}
	for (uint32_t l = 0; l < layers; l++)
		model->first[l + 1] = model->first[l] + ((size_t)widths[l] + 1) * widths[l + 1];
	if (failed)
		model_close(model);
	return failed ? -1 : 0;
}

void model_close(struct model *model)
{
	for (uint32_t l = 0; l <= MODEL_LAYERS_MAX; l++) {
		free(model->values[l]);
		free(model->deltas[l]);
	}
	memset(model, 0, sizeof *model);
}

/* The biases stand behind a layer's weights. */
static size_t bias_of(const struct model *model, uint32_t layer)
{
	return model->first[layer] + (size_t)model->widths[layer] * model->widths[layer + 1];
}

void model_init(const struct model *model, float *weights, uint64_t seed)
{
	memset(weights, 0, model_floats(model) * sizeof weights[0]);
	for (uint32_t l = 0; l < model->layers; l++) {
		struct random random = random_stream(seed, RANDOM_WEIGHTS, l, 0);
		float scale = sqrtf(2 / (float)model->widths[l]);
		for (size_t i = model->first[l]; i < bias_of(model, l); i++)
			weights[i] = scale * random_normal(&random);
	}
}

static struct matrix by_rows(const float *at, size_t columns)
{
	return (struct matrix){at, columns, 1};
}

static struct matrix transposed(const float *at, size_t columns)
{
	return (struct matrix){at, 1, columns};
}

static void forward_layer(struct model *model, const float *weights, uint32_t layer)
{
	size_t inputs = model->widths[layer], outputs = model->widths[layer + 1];
	float *out = model->values[layer + 1];
	const float *bias = weights + bias_of(model, layer);
	bool last = layer + 1 == model->layers;
	gemm(out, by_rows(model->values[layer], inputs), by_rows(weights + model->first[layer], outputs), model->batch,
	     inputs, outputs);
	for (size_t row = 0; row < model->batch; row++) {
		for (size_t o = 0; o < outputs; o++) {
			float value = out[row * outputs + o] + bias[o];
			out[row * outputs + o] = last || value > 0 ? value : 0;
		}
	}
}

/* The mean loss's derivative by one sample's outputs, softmax less the truth; returns the sample's loss. */
static double softmax_loss(const float *outputs, float *delta, uint32_t classes, uint32_t label, uint32_t batch)
{
	float most = outputs[0];
	for (uint32_t c = 1; c < classes; c++)
		most = outputs[c] > most ? outputs[c] : most;
	double sum = exp((double)outputs[0] - most);
	for (uint32_t c = 1; c < classes; c++)
		sum += exp((double)outputs[c] - most);
	for (uint32_t c = 0; c < classes; c++) {
		double share = exp((double)outputs[c] - most) / sum;
		delta[c] = (float)((share - (c == label)) / batch);
	}
	return log(sum) - (outputs[label] - most);
}

static uint32_t index_of_most(const float *outputs, uint32_t classes)
{
	uint32_t best = 0;
	for (uint32_t c = 1; c < classes; c++)
		best = outputs[c] > outputs[best] ? c : best;
	return best;
}

double model_loss(struct model *model, const float *weights, const float *rows, const uint8_t *labels, uint32_t batch,
                  uint32_t *out_correct)
{
	uint32_t classes = model->widths[model->layers];
	double loss = 0;
	uint32_t correct = 0;
	model->batch = batch;
	memcpy(model->values[0], rows, (size_t)batch * model->widths[0] * sizeof rows[0]);
	for (uint32_t l = 0; l < model->layers; l++)
		forward_layer(model, weights, l);
	for (uint32_t i = 0; i < batch; i++) {
		const float *outputs = model->values[model->layers] + (size_t)i * classes;
		loss += softmax_loss(outputs, model->deltas[model->layers] + (size_t)i * classes, classes, labels[i], batch);
		correct += index_of_most(outputs, classes) == labels[i];
	}
	*out_correct = correct;
	return loss;
}

static void bias_gradient(float *gradient, const float *delta, size_t batch, size_t outputs)
{
	memset(gradient, 0, outputs * sizeof gradient[0]);
	for (size_t row = 0; row < batch; row++)
		for (size_t o = 0; o < outputs; o++)
			gradient[o] += delta[row * outputs + o];
}

void model_backward(struct model *model, const float *weights, uint32_t layer, float *gradient)
{
	size_t inputs = model->widths[layer], outputs = model->widths[layer + 1], batch = model->batch;
	const float *values = model->values[layer], *delta = model->deltas[layer + 1];
	gemm(gradient + model->first[layer], transposed(values, inputs), by_rows(delta, outputs), inputs, batch, outputs);
	bias_gradient(gradient + bias_of(model, layer), delta, batch, outputs);
	if (layer == 0)
		return;
	float *below = model->deltas[layer];
	gemm(below, by_rows(delta, outputs), transposed(weights + model->first[layer], outputs), batch, outputs, inputs);
	/* ReLU let through only what was positive. */
	for (size_t i = 0; i < batch * inputs; i++)
		below[i] = values[i] > 0 ? below[i] : 0;
}

void model_update(const struct model *model, uint32_t layer, float *weights, float *velocity, const float *gradient,
                  const struct step *step)
{
	for (size_t i = model->first[layer]; i < model->first[layer + 1]; i++) {
		velocity[i] = step->momentum * velocity[i] + gradient[i] + step->decay * weights[i];
		weights[i] -= step->rate * velocity[i];
	}
}
