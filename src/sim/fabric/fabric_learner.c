#include "sim/fabric/fabric_learner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 32u
#define DIVERGED 1e4

const char *const fabric_task_names[] = {"logistic", "network", NULL};

struct shape {
	uint32_t features, hidden, classes, examples, looked_at;
	double target; /* part of the loss at the beginning, beyond what is left in the end */
	double left;   /* loss that no weights go below, for the target */
};

/* The logistic task's loss cannot go to 0: what is left was computed by 3,000 steps of gradient descent. */
static const struct shape shapes[] = {
	{30, 0, 1, 3000, 3000, 0.02, -1},
	{32, 256, 10, 2000, 500, 0.5, 0},
};

struct fabric_learner_run {
	enum fabric_task task;
	const struct shape *shape;
	struct fabric_learner hooks;
	uint32_t workers, parameters;
	double lr, target;
	struct rng rng;
	uint64_t applied, reached;
	bool has_failed;
	float *x;       /* examples, one behind the other */
	uint32_t *y;
	float *hub, *incoming, *waiting, *step, *update; /* of all workers, one behind the other */
	float *gradient;
};

/* ---- data ---- */

/* Without libm, so that data has the same bits everywhere. */
static double gauss(struct rng *rng)
{
	double sum = -6;

	for (uint32_t i = 0; i < 12; i++)
		sum += rng_unit(rng);
	return sum;
}

static double dot(const float *a, const float *b, uint32_t count)
{
	double sum = 0;

	for (uint32_t i = 0; i < count; i++)
		sum += (double)a[i] * (double)b[i];
	return sum;
}

/* ---- the tasks: loss of an example, and its gradient added to g ---- */

static double logistic(const struct fabric_learner_run *run, const float *w, uint32_t example, float *g)
{
	const float *x = run->x + (size_t)example * run->shape->features;
	double z = dot(w, x, run->shape->features), p = 1 / (1 + exp(-z));
	double error = p - run->y[example];

	for (uint32_t i = 0; g && i < run->shape->features; i++)
		g[i] += (float)(error * (double)x[i]);
	return (z > 30 ? z : log1p(exp(z))) - run->y[example] * z;
}

/* Weights: hidden rows, hidden biases, class rows, class biases. */
static double network(const struct fabric_learner_run *run, const float *w, uint32_t example, float *g)
{
	const struct shape *shape = run->shape;
	const float *x = run->x + (size_t)example * shape->features, *first_bias = w + shape->hidden * shape->features;
	const float *second = first_bias + shape->hidden, *second_bias = second + shape->classes * shape->hidden;
	float h[256];
	double out[10], most = -INFINITY, sum = 0;

	for (uint32_t j = 0; j < shape->hidden; j++) {
		float z = (float)dot(w + j * shape->features, x, shape->features) + first_bias[j];
		h[j] = z > 0 ? z : 0;
	}
	for (uint32_t k = 0; k < shape->classes; k++) {
		out[k] = dot(second + k * shape->hidden, h, shape->hidden) + (double)second_bias[k];
		most = out[k] > most ? out[k] : most;
	}
	for (uint32_t k = 0; k < shape->classes; k++)
		sum += exp(out[k] - most);
	double loss = log(sum) + most - out[run->y[example]];
	if (!g)
		return loss;
	float *g_bias = g + shape->hidden * shape->features, *g_second = g_bias + shape->hidden;
	float back[256] = {0};
	for (uint32_t k = 0; k < shape->classes; k++) {
		float error = (float)(exp(out[k] - most) / sum) - (float)(k == run->y[example]);

		for (uint32_t j = 0; j < shape->hidden; j++) {
			g_second[k * shape->hidden + j] += error * h[j];
			back[j] += error * second[k * shape->hidden + j];
		}
		g_second[shape->classes * shape->hidden + k] += error;
	}
	for (uint32_t j = 0; j < shape->hidden; j++) {
		if (h[j] <= 0)
			continue;
		for (uint32_t i = 0; i < shape->features; i++)
			g[j * shape->features + i] += back[j] * x[i];
		g_bias[j] += back[j];
	}
	return loss;
}

static double look(const struct fabric_learner_run *run, const float *w, uint32_t example, float *g)
{
	return run->task == FABRIC_LOGISTIC ? logistic(run, w, example, g) : network(run, w, example, g);
}

static double loss_of(const struct fabric_learner_run *run, const float *w)
{
	double sum = 0;

	for (uint32_t i = 0; i < run->shape->looked_at; i++)
		sum += look(run, w, i, NULL);
	return sum / run->shape->looked_at;
}

/* to -= lr times the gradient of a batch that is drawn. */
static void descend(struct fabric_learner_run *run, const float *w, float *to)
{
	memset(run->gradient, 0, run->parameters * sizeof(float));
	for (uint32_t i = 0; i < BATCH; i++)
		(void)look(run, w, (uint32_t)rng_below(&run->rng, run->shape->examples), run->gradient);
	for (uint32_t i = 0; i < run->parameters; i++)
		to[i] -= (float)(run->lr / BATCH) * run->gradient[i];
}

static bool is_at_target(struct fabric_learner_run *run)
{
	double loss = loss_of(run, run->hub);

	run->has_failed |= !(loss < DIVERGED);
	return loss <= run->target;
}

/* ---- hooks ---- */

static float *of(const struct fabric_learner_run *run, float *all, uint32_t worker)
{
	return all + (size_t)worker * run->parameters;
}

static void copy(const struct fabric_learner_run *run, float *to, const float *from)
{
	memcpy(to, from, run->parameters * sizeof(float));
}

static void on_send(void *user, uint32_t worker)
{
	struct fabric_learner_run *run = user;

	copy(run, of(run, run->incoming, worker), run->hub);
}

static void on_receive(void *user, uint32_t worker)
{
	struct fabric_learner_run *run = user;

	copy(run, of(run, run->waiting, worker), of(run, run->incoming, worker));
}

static void on_begin(void *user, uint32_t worker)
{
	struct fabric_learner_run *run = user;

	copy(run, of(run, run->step, worker), of(run, run->waiting, worker));
}

static void on_push(void *user, uint32_t worker)
{
	struct fabric_learner_run *run = user;
	float *update = of(run, run->update, worker);

	memset(update, 0, run->parameters * sizeof(float));
	descend(run, of(run, run->step, worker), update);
}

static void on_apply(void *user, uint32_t worker)
{
	struct fabric_learner_run *run = user;
	const float *update = of(run, run->update, worker);

	for (uint32_t i = 0; i < run->parameters; i++)
		run->hub[i] += update[i];
	if (++run->applied % run->workers == 0 && is_at_target(run))
		run->reached = run->applied;
}

static bool on_done(void *user)
{
	const struct fabric_learner_run *run = user;

	return run->reached > 0 || run->has_failed;
}

/* ---- opening ---- */

static uint32_t count_parameters(const struct shape *shape)
{
	if (shape->hidden == 0)
		return shape->features;
	return shape->hidden * (shape->features + 1) + shape->classes * (shape->hidden + 1);
}

static void draw_weights(struct fabric_learner_run *run, struct rng *rng, float *w, double scale)
{
	double wide = run->shape->features, deep = run->shape->hidden;

	for (uint32_t i = 0; i < run->parameters; i++) {
		bool is_first = i < run->shape->hidden * run->shape->features;
		w[i] = (float)(gauss(rng) * scale / sqrt(is_first || deep == 0 ? wide : deep));
	}
}

/* The class that a network gives most to; its own random weights are the truth. */
static uint32_t label(struct fabric_learner_run *run, const float *w, uint32_t example)
{
	uint32_t best = 0;
	double least = INFINITY;

	for (uint32_t k = 0; k < run->shape->classes; k++) {
		run->y[example] = k;
		double loss = network(run, w, example, NULL);
		if (loss < least) {
			best = k;
			least = loss;
		}
	}
	return best;
}

static void make_data(struct fabric_learner_run *run)
{
	struct rng rng;
	const struct shape *shape = run->shape;

	rng_init(&rng, 1); /* the task is the same for every seed */
	draw_weights(run, &rng, run->hub, 2);
	for (uint32_t i = 0; i < shape->examples; i++) {
		float *x = run->x + (size_t)i * shape->features;

		for (uint32_t j = 0; j < shape->features; j++)
			x[j] = (float)(gauss(&rng) * (run->task == FABRIC_LOGISTIC ? 0.3 + 0.1 * (j % 15) : 1));
		if (run->task == FABRIC_LOGISTIC)
			run->y[i] = rng_unit(&rng) < 1 / (1 + exp(-dot(run->hub, x, shape->features)));
		else
			run->y[i] = label(run, run->hub, i);
	}
	memset(run->hub, 0, run->parameters * sizeof(float));
	if (run->task == FABRIC_NETWORK)
		draw_weights(run, &rng, run->hub, 1);
}

/* By full gradient descent; the weights are as they were afterwards. */
static double least_loss(struct fabric_learner_run *run)
{
	float *w = run->step; /* not in use yet */

	memcpy(w, run->hub, run->parameters * sizeof(float));
	for (uint32_t step = 0; step < 300; step++) {
		memset(run->gradient, 0, run->parameters * sizeof(float));
		for (uint32_t i = 0; i < run->shape->examples; i++)
			(void)look(run, w, i, run->gradient);
		for (uint32_t i = 0; i < run->parameters; i++)
			w[i] -= run->gradient[i] / (float)run->shape->examples;
	}
	return loss_of(run, w);
}

static bool allocate(struct fabric_learner_run *run)
{
	size_t all = (size_t)run->workers * run->parameters;

	run->x = calloc((size_t)run->shape->examples * run->shape->features, sizeof(float));
	run->y = calloc(run->shape->examples, sizeof(*run->y));
	run->hub = calloc(run->parameters, sizeof(float));
	run->gradient = calloc(run->parameters, sizeof(float));
	run->incoming = calloc(all, sizeof(float));
	run->waiting = calloc(all, sizeof(float));
	run->step = calloc(all, sizeof(float));
	run->update = calloc(all, sizeof(float));
	return run->x && run->y && run->hub && run->gradient && run->incoming && run->waiting && run->step && run->update;
}

enum esp_status fabric_learner_open(enum fabric_task task, uint32_t workers, double lr, uint64_t seed,
                                    struct fabric_learner_run **out, struct error *err)
{
	struct fabric_learner_run *run = calloc(1, sizeof(*run));

	if (!run)
		return error_set(err, ESP_ENOMEM, "no memory for a task");
	run->task = task;
	run->shape = &shapes[task];
	run->workers = workers;
	run->lr = lr;
	run->parameters = count_parameters(run->shape);
	run->hooks = (struct fabric_learner){run, on_send, on_receive, on_begin, on_push, on_apply, on_done};
	if (!allocate(run)) {
		fabric_learner_close(run);
		return error_set(err, ESP_ENOMEM, "no memory for the weights of %u workers", workers);
	}
	make_data(run);
	double least = run->shape->left < 0 ? least_loss(run) : run->shape->left;
	run->target = least + run->shape->target * (loss_of(run, run->hub) - least);
	rng_init(&run->rng, seed);
	for (uint32_t worker = 0; worker < workers; worker++)
		on_send(run, worker), on_receive(run, worker), on_begin(run, worker);
	*out = run;
	return ESP_OK;
}

void fabric_learner_close(struct fabric_learner_run *run)
{
	if (!run)
		return;
	free(run->x);
	free(run->y);
	free(run->hub);
	free(run->gradient);
	free(run->incoming);
	free(run->waiting);
	free(run->step);
	free(run->update);
	free(run);
}

const struct fabric_learner *fabric_learner_hooks(struct fabric_learner_run *run)
{
	return &run->hooks;
}

uint64_t fabric_learner_reached(const struct fabric_learner_run *run)
{
	return run->reached;
}

uint32_t fabric_learner_parameters(const struct fabric_learner_run *run)
{
	return run->parameters;
}

double fabric_learner_loss(struct fabric_learner_run *run)
{
	return loss_of(run, run->hub);
}

uint64_t fabric_learner_synchronous(struct fabric_learner_run *run, uint64_t updates_most)
{
	while (run->applied < updates_most && !run->has_failed) {
		copy(run, run->step, run->hub);
		for (uint32_t worker = 0; worker < run->workers; worker++)
			descend(run, run->step, run->hub);
		run->applied += run->workers;
		if (is_at_target(run))
			return run->applied;
	}
	return 0;
}
