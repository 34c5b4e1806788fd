/*
 * train_worker.c - computing of a worker, in time: forward layer by layer as parameters come, backward gradient by
 * gradient.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/train_state.h"

static void on_layers(void *user);
static void on_gradient(void *user);

/* When the call may start: the last of its gradients is ready. */
static double gradient_at(const struct train_worker *worker, uint32_t sum)
{
	const struct train *train = worker->train;
	const struct train_call *call = &train->sums.calls[sum];
	double ready_s = load_ready_s(train->load, worker->rank, worker->iteration, call->first + call->count - 1);

	return worker->backward_from + ready_s / train->speed;
}

/* The layers whose parameters are there are computed in one go: nothing can change while they are. */
static void forward(struct train_worker *worker)
{
	struct train *train = worker->train;
	const struct load *load = train->load;
	double until = train->agenda.now;
	uint32_t layer = worker->layer;

	if (!worker->may_forward || worker->computes)
		return;
	while (layer < load->layer_count && worker->needs[layer] == 0)
		until += load->layer_s[layer++] / train->speed;
	if (layer == worker->layer)
		return;
	if (worker->layer == 0)
		worker->forward_from = train->agenda.now;
	worker->layer = layer;
	worker->computes = true;
	sim_agenda_at(&train->agenda, until, on_layers, worker);
}

static void backward(struct train_worker *worker)
{
	struct train *train = worker->train;

	if (train->config.watch.computed)
		train->config.watch.computed(train->config.watch.user, worker->rank, true, worker->iteration,
		                             worker->forward_from, train->agenda.now);
	worker->may_forward = false;
	worker->layer = 0;
	worker->next_sum = 0;
	worker->backward_from = train->agenda.now;
	/* Parameters that come from here on belong to the next iteration. */
	memcpy(worker->needs, train->needs, train->load->layer_count * sizeof(*worker->needs));
	sim_agenda_at(&train->agenda, gradient_at(worker, 0), on_gradient, worker);
}

static void on_layers(void *user)
{
	struct train_worker *worker = user;

	worker->computes = false;
	if (worker->layer == worker->train->load->layer_count)
		backward(worker);
	else
		forward(worker);
}

/* The backward pass is over. */
static void finish(struct train_worker *worker)
{
	struct train *train = worker->train;

	if (train->config.watch.computed)
		train->config.watch.computed(train->config.watch.user, worker->rank, false, worker->iteration,
		                             worker->backward_from, train->agenda.now);
	worker->iteration++;
	/* Without servers the barrier lets the next pass begin; otherwise parameters do. */
	if ((train->servers || train->config.no_barrier) && worker->iteration < train->iterations) {
		worker->may_forward = true;
		forward(worker);
	}
}

/* Gradients are ready: their calls are started, all that are due now. */
static void on_gradient(void *user)
{
	struct train_worker *worker = user;
	struct train *train = worker->train;
	const struct train_calls *sums = &train->sums;
	uint32_t workers = train->load->workers;
	double due = gradient_at(worker, worker->next_sum), next = due;

	while (worker->next_sum < sums->count) {
		struct train_call *call = &sums->calls[worker->next_sum];

		next = gradient_at(worker, worker->next_sum);
		if (next > due)
			break;
		worker->next_sum++;
		sim_train_start(train, call,
		                call->rotation ? (worker->rank + workers - call->rotation) % workers : worker->rank);
	}
	if (worker->next_sum < sums->count)
		sim_agenda_at(&train->agenda, next, on_gradient, worker);
	else
		finish(worker);
}

void sim_worker_begin(struct train_worker *worker)
{
	memset(worker->needs, 0, worker->train->load->layer_count * sizeof(*worker->needs));
	worker->may_forward = true;
	forward(worker);
}

void sim_worker_got(struct train_worker *worker, uint32_t layer)
{
	if (--worker->needs[layer] == 0 && layer == worker->layer)
		forward(worker);
}

enum esp_status sim_train_make_workers(struct train *train, struct error *err)
{
	const struct load *load = train->load;

	train->workers = calloc(load->workers, sizeof(*train->workers));
	train->needs = calloc((size_t)load->layer_count * (load->workers + 1), sizeof(*train->needs));
	if (!train->workers || !train->needs)
		return error_set(err, ESP_ENOMEM, "no memory for %u workers", load->workers);
	for (uint32_t i = 0; i < train->spreads.count; i++)
		train->needs[load->items[train->spreads.calls[i].first].layer]++;
	for (uint32_t i = 0; !train->servers && i < load->gradient_count; i++) {
		if (load->gradients[i].item != LOAD_NONE)
			train->needs[load->items[load->gradients[i].item].layer]++;
	}
	for (uint32_t i = 0; i < load->workers; i++) {
		struct train_worker *worker = &train->workers[i];

		*worker = (struct train_worker){.train = train, .rank = i, .may_forward = true};
		worker->needs = train->needs + (size_t)load->layer_count * (i + 1);
		memcpy(worker->needs, train->needs, load->layer_count * sizeof(*worker->needs));
	}
	return ESP_OK;
}

void sim_train_drop_workers(struct train *train)
{
	free(train->workers);
	free(train->needs);
}
