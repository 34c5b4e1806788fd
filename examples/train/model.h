/*
 * model.h - a network of full layers with ReLU between them, softmax at its end, and its gradients by hand.
 *
 * All weights stand in one array of floats, layer behind layer: first the weights (inputs x outputs, by rows), then
 * the biases. Gradients and momentum have the same form, so that a layer's gradient is one stretch of memory
 * that can be sent as soon as it is known:
 *
 *     loss = model_loss(model, weights, rows, labels, batch, &correct);
 *     for (l = model->layers; l-- > 0;) {
 *             model_backward(model, weights, l, gradient);
 *             ... the gradient of layer l is final ...
 *     }
 *
 * The struct holds the shape and the activations of the last batch; one thread.
 */
#ifndef TRAIN_MODEL_H
#define TRAIN_MODEL_H

#include <stddef.h>
#include <stdint.h>

#define MODEL_LAYERS_MAX 8

struct model {
	uint32_t layers;
	uint32_t widths[MODEL_LAYERS_MAX + 1]; /* inputs of the first layer, outputs of each                    */
	size_t first[MODEL_LAYERS_MAX + 1];    /* where a layer's floats begin; behind the last: how many in all */
	uint32_t batch_max;
	uint32_t batch;                        /* samples of the last model_loss()                              */
	float *values[MODEL_LAYERS_MAX + 1];   /* by rows of the batch: what a layer has been given             */
	float *deltas[MODEL_LAYERS_MAX + 1];   /* the loss's derivative by them; [0] is not computed            */
};

/* -1: no memory, or more than MODEL_LAYERS_MAX layers. */
int model_open(struct model *model, const uint32_t *widths, uint32_t layers, uint32_t batch_max);
void model_close(struct model *model);

static inline size_t model_floats(const struct model *model)
{
	return model->first[model->layers];
}
static inline size_t model_layer_floats(const struct model *model, uint32_t layer)
{
	return model->first[layer + 1] - model->first[layer];
}

/* Random weights of a size that keeps the signal's; biases 0. */
void model_init(const struct model *model, float *weights, uint64_t seed);

/* Cross-entropy of the batch, summed over its samples, and how many are classified correctly. */
double model_loss(struct model *model, const float *weights, const float *rows, const uint8_t *labels, uint32_t batch,
                  uint32_t *out_correct);

/*
 * Writes the gradient of one layer at its place in `gradient`: of the mean over the batch. From the last layer to the
 * first, after model_loss().
 */
void model_backward(struct model *model, const float *weights, uint32_t layer, float *gradient);

/* One step of gradient descent with momentum, for the floats of one layer. */
struct step {
	float rate, momentum, decay; /* decay: of the weights, per step and rate */
};
void model_update(const struct model *model, uint32_t layer, float *weights, float *velocity, const float *gradient,
                  const struct step *step);

#endif
