/*
 * load.c - makes a load from a model: layers, order of sending, order of gradients, speeds. Pure.
 */
#include "sim/workload/load.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

/* An element to be sorted: equal keys keep the order of their indices. */
struct sorted {
	double key;
	uint32_t index;
};

static int by_key(const void *left, const void *right)
{
	const struct sorted *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* A Fisher-Yates draw. */
static uint32_t draw_index(struct rng *rng, uint32_t last)
{
	return (uint32_t)rng_below(rng, (uint64_t)last + 1);
}

/* ---- speeds ---- */

static double profile(double slowest, uint32_t place, uint32_t count)
{
	double x = count > 1 ? (double)place / (count - 1) : 1;

	return 1 + (slowest - 1) * x * x * x;
}

static void draw_factors(struct load *load, const struct model *model, struct rng *rng, bool shuffle)
{
	uint32_t known = shuffle ? 0 : model->worker_factor_count;

	for (uint32_t i = 0; i < load->workers; i++) {
		if (i < known)
			load->worker_factor[i] = model->worker_factors[i];
		else if (known > 0)
			load->worker_factor[i] = model->worker_factors[rng_below(rng, known)];
		else
			load->worker_factor[i] = profile(model->slowest_factor, i, load->workers);
	}
	for (uint32_t i = load->workers; shuffle && i-- > 1;) {
		uint32_t other = draw_index(rng, i);
		double kept = load->worker_factor[i];

		load->worker_factor[i] = load->worker_factor[other];
		load->worker_factor[other] = kept;
	}
}

void workload_load_jitter(struct load *load, double most, uint64_t seed)
{
	struct rng rng;

	rng_init(&rng, seed);
	for (uint32_t i = 0; i < load->workers; i++)
		load->worker_factor[i] *= 1 + most * rng_unit(&rng);
}

/* ---- the order of sending ---- */

/* The largest parameter of the last layer: its weights. */
static uint32_t last_weights(const struct model *model)
{
	uint32_t found = 0;

	for (uint32_t i = 1; i < model->parameter_count; i++) {
		const struct model_parameter *a = &model->parameters[i], *b = &model->parameters[found];

		if (a->forward_order > b->forward_order || (a->forward_order == b->forward_order && a->bytes > b->bytes))
			found = i;
	}
	return found;
}

/* Permutes the displacements of the model's own order. */
static void draw_order(const struct model *model, struct rng *rng, struct sorted *order)
{
	uint32_t count = model->parameter_count;

	for (uint32_t i = 0; i < count; i++)
		order[model->distribution_order[i]].key = (double)i - model->distribution_order[i];
	for (uint32_t i = count; i-- > 1;) {
		uint32_t other = draw_index(rng, i);
		double kept = order[i].key;

		order[i].key = order[other].key;
		order[other].key = kept;
	}
	for (uint32_t i = 0; i < count; i++)
		order[i] = (struct sorted){i + order[i].key, i};
	order[last_weights(model)].key = 2.0 * count;
}

static struct sorted *sending_order(const struct model *model, struct rng *rng, bool shuffle)
{
	uint32_t count = model->parameter_count;
	struct sorted *order = calloc(count, sizeof(*order));

	if (!order)
		return NULL;
	if (shuffle && model->distribution_order) {
		draw_order(model, rng, order);
	} else {
		for (uint32_t i = 0; i < count; i++)
			order[i] = (struct sorted){model->parameters[i].forward_order, i};
		for (uint32_t i = 0; model->distribution_order && i < count; i++)
			order[model->distribution_order[i]].key = i;
	}
	qsort(order, count, sizeof(*order), by_key);
	return order;
}

/* ---- layers ---- */

/* Fills layer_of[parameter], numbered without gaps, and the time of each layer. */
static enum esp_status make_layers(struct load *load, const struct model *model, uint32_t *layer_of)
{
	uint32_t count = model->parameter_count;
	struct sorted *order = calloc(count, sizeof(*order));

	load->layer_s = calloc(count, sizeof(*load->layer_s));
	if (!order || !load->layer_s) {
		free(order);
		return ESP_ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		order[i] = (struct sorted){model->parameters[i].forward_order, i};
	qsort(order, count, sizeof(*order), by_key);
	for (uint32_t i = 0; i < count; i++) {
		load->layer_count += i == 0 || order[i].key != order[i - 1].key;
		layer_of[order[i].index] = load->layer_count - 1;
		load->layer_s[load->layer_count - 1] += model->parameters[order[i].index].forward_share * model->forward_s;
	}
	free(order);
	return ESP_OK;
}

/* ---- the whole ---- */

static enum esp_status make_items(struct load *load, const struct model *model, struct rng *rng, bool shuffle,
                                  const uint32_t *layer_of)
{
	struct sorted *order = sending_order(model, rng, shuffle);

	load->items = calloc(model->parameter_count, sizeof(*load->items));
	if (!order || !load->items) {
		free(order);
		return ESP_ENOMEM;
	}
	for (uint32_t i = 0; i < model->parameter_count; i++) {
		const struct model_parameter *parameter = &model->parameters[order[i].index];

		if (parameter->distributed)
			load->items[load->item_count++] =
				(struct load_item){parameter->bytes, layer_of[order[i].index], parameter->variable, order[i].index};
	}
	free(order);
	return ESP_OK;
}

static enum esp_status make_gradients(struct load *load, const struct model *model)
{
	uint32_t count = model->parameter_count;
	struct sorted *order = calloc(count, sizeof(*order));
	uint32_t *item_of = calloc(count, sizeof(*item_of));

	load->gradients = calloc(count, sizeof(*load->gradients));
	if (!order || !item_of || !load->gradients) {
		free(order);
		free(item_of);
		return ESP_ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		item_of[i] = LOAD_NONE;
	for (uint32_t i = 0; i < load->item_count; i++)
		item_of[load->items[i].source] = i;
	for (uint32_t i = 0; i < count; i++) {
		if (model->parameters[i].aggregated)
			order[load->gradient_count++] = (struct sorted){model->parameters[i].grad_ready, i};
	}
	qsort(order, load->gradient_count, sizeof(*order), by_key);
	for (uint32_t i = 0; i < load->gradient_count; i++) {
		const struct model_parameter *parameter = &model->parameters[order[i].index];

		load->gradients[i] = (struct load_gradient){parameter->bytes, parameter->variable, item_of[order[i].index],
		                                            order[i].index,
		                                            order[i].key * model->backward_s};
	}
	free(order);
	free(item_of);
	return ESP_OK;
}

enum esp_status workload_load_init(struct load *load, const struct model *model, uint32_t workers, uint64_t seed,
                                   struct error *err)
{
	struct rng rng;

	*load = (struct load){.workers = workers, .backward_s = model->backward_s,
	                      .distribution_factor = model->distribution_factor};
	rng_init(&rng, seed);
	if (workers == 0 || workers > LOAD_WORKERS_MAX)
		return error_set(err, ESP_EINVAL, "%u workers: there must be 1 to %u", workers, LOAD_WORKERS_MAX);
	uint32_t *layer_of = calloc(model->parameter_count, sizeof(*layer_of));
	load->worker_factor = calloc(workers, sizeof(*load->worker_factor));
	enum esp_status status = layer_of && load->worker_factor ? make_layers(load, model, layer_of) : ESP_ENOMEM;
	if (status == ESP_OK)
		status = make_items(load, model, &rng, seed != 0, layer_of);
	if (status == ESP_OK)
		status = make_gradients(load, model);
	free(layer_of);
	if (status != ESP_OK)
		return error_set(err, status, "no memory for what %s moves", model->name);
	draw_factors(load, model, &rng, seed != 0);
	return load->gradient_count > 0 ? ESP_OK : error_set(err, ESP_EINVAL, "%s: no gradient is aggregated", model->name);
}

void workload_load_fini(struct load *load)
{
	free(load->items);
	free(load->gradients);
	free(load->layer_s);
	free(load->worker_factor);
	free(load->seen_s);
	free(load->row_of);
	*load = (struct load){0};
}

uint64_t workload_load_item_bytes(const struct load *load)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < load->item_count; i++)
		sum += load->items[i].bytes;
	return sum;
}

uint64_t workload_load_gradient_bytes(const struct load *load)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < load->gradient_count; i++)
		sum += load->gradients[i].bytes;
	return sum;
}
