#include "store_job.h"

#include <math.h>

#include "base/check.h"

#define INTEGER_SHIFT 8 /* so that workers' numbers are powers of two that a half has */

/* ---- drawing ---- */

static enum esp_type draw_type(struct rng *rng)
{
	static const enum esp_type types[] = {ESP_F32, ESP_F32, ESP_F16, ESP_BF16};

	return types[rng_below(rng, sizeof(types) / sizeof(types[0]))];
}

/* One hub or several, each with a lane at least. */
static void draw_hubs(struct job *job, struct rng *rng, const struct layout_tensor *tensors, uint32_t count,
                      uint32_t chunk_bytes)
{
	uint32_t all = (uint32_t)rng_below(rng, JOB_LANES) + 1, lanes[JOB_LANES] = {1, 1, 1};
	struct layout_split split = {.hubs = (uint32_t)rng_below(rng, all) + 1, .own = LAYOUT_ALL_HUBS, .lanes = lanes};

	job->hub_count = split.hubs;
	lanes[split.hubs - 1] += all - split.hubs;
	CHECK(hub_layout_split(tensors, count, chunk_bytes, &split, &job->layout, NULL) == ESP_OK);
	CHECK_U64(job->layout.lanes, all);
	for (split.own = 0; split.own < split.hubs; split.own++)
		CHECK(hub_layout_split(tensors, count, chunk_bytes, &split, &job->hubs[split.own].layout, NULL) == ESP_OK);
}

static void draw_layout(struct job *job, struct rng *rng)
{
	struct layout_tensor tensors[4];
	uint32_t count = (uint32_t)rng_below(rng, 4) + 1;
	uint32_t chunk_bytes = rng_chance(rng, 1, 2) ? LAYOUT_CHUNK_LEAST : LAYOUT_CHUNK_LEAST + 128;

	for (uint32_t t = 0; t < count; t++)
		tensors[t] = (struct layout_tensor){.name = t + 1, .elements = rng_chance(rng, 1, 8) ? 0 : rng_below(rng, 200),
		                                    .type = (uint8_t)draw_type(rng), .group = (uint16_t)rng_below(rng, JOB_GROUPS)};
	tensors[0].elements += tensors[0].elements == 0;
	draw_hubs(job, rng, tensors, count, chunk_bytes);
	CHECK(job->layout.chunk_elements <= JOB_CHUNK_ELEMENTS);
}

static struct optimizer draw_optimizer(struct rng *rng, uint8_t kind)
{
	struct optimizer optimizer = {.kind = kind};

	if (kind == OPTIMIZER_AVG)
		return optimizer;
	optimizer.lr = rng_unit(rng) + 0.01;
	optimizer.weight_decay = rng_chance(rng, 1, 2) ? 0.01 : 0;
	if (kind == OPTIMIZER_SGD) {
		optimizer.momentum = rng_chance(rng, 1, 2) ? 0.9 : 0;
		optimizer.nesterov = optimizer.momentum != 0 && rng_chance(rng, 1, 2);
	} else {
		optimizer.beta1 = 0.9;
		optimizer.beta2 = 0.99;
		optimizer.eps = 1e-8;
	}
	return optimizer;
}

static void draw_changes(struct job *job, struct rng *rng, uint32_t group)
{
	struct optimizer optimizer = job->optimizers[group];
	uint64_t from = 0;

	if (optimizer.kind == OPTIMIZER_AVG)
		return;
	for (uint32_t i = 0; i < JOB_CHANGES && rng_chance(rng, 1, 2); i++) {
		from += 1 + rng_below(rng, 2);
		optimizer.lr *= 0.5;
		job->changes[group][job->change_count[group]++] = (struct job_change){.from = from, .optimizer = optimizer};
	}
}

static void draw_optimizers(struct job *job, struct rng *rng)
{
	uint8_t kind = (uint8_t)rng_below(rng, OPTIMIZER_KINDS);

	for (uint32_t group = 0; group < JOB_GROUPS; group++) {
		job->optimizers[group] = draw_optimizer(rng, kind);
		draw_changes(job, rng, group);
	}
}

static uint32_t draw_workers(struct rng *rng)
{
	if (rng_chance(rng, 1, 16))
		return (uint32_t)rng_below(rng, STORE_WORKERS_MOST) + 1;
	return (uint32_t)rng_below(rng, 6) + 1;
}

/* Of some jobs, workers share hosts; a host has any of the workers. Sets send terms of float32. */
static void draw_sets(struct job *job, struct rng *rng)
{
	bool are_shared = !job->layout.has_halves && rng_chance(rng, 1, 2);
	uint32_t hosts = are_shared ? (uint32_t)rng_below(rng, job->workers) + 1 : job->workers, pusher[STORE_WORKERS_MOST];

	memset(pusher, 0xff, sizeof(pusher));
	for (uint32_t worker = 0; worker < job->workers; worker++) {
		uint32_t host = are_shared ? (uint32_t)rng_below(rng, hosts) : worker;

		pusher[host] = pusher[host] == UINT32_MAX ? worker : pusher[host];
		job->sets[pusher[host]] |= UINT64_C(1) << worker;
	}
}

/* ---- numbers ---- */

static enum esp_type type_of(const struct job *job, uint64_t element)
{
	uint32_t t = job->layout.tensors - 1;

	while (t > 0 && job->layout.place[t].at > element)
		t--;
	return (enum esp_type)job->layout.tensor[t].type;
}

/* A number that the element's type has. */
static float rounded(const struct job *job, uint64_t element, float value)
{
	uint8_t bytes[sizeof(float)];

	math_narrow(type_of(job, element), bytes, &value, 1);
	math_widen(type_of(job, element), &value, bytes, 1);
	return value;
}

static float hashed(const struct job *job, uint64_t a, uint64_t b, uint64_t element)
{
	uint64_t state = job->seed ^ (a << 48) ^ (b << 32) ^ element;
	float value = (float)(rng_splitmix(&state) >> 40) * 0x1p-20f - 8;

	return state & UINT64_C(1) << 60 ? value : value * 1e-4f;
}

/* Even elements tell which workers are in a sum, as bits; odd ones of which round they all are. */
static float encoded(uint32_t worker, uint64_t version, uint64_t element)
{
	return element % 2 == 0 ? ldexpf(1, (int)worker - INTEGER_SHIFT) : (float)(version + 1);
}

static float gradient(const struct job *job, uint32_t worker, uint64_t version, uint64_t element)
{
	return rounded(job, element,
	               job->is_integer ? encoded(worker, version, element) : hashed(job, worker + 1, version, element));
}

/* ((a + b) + c) over the workers of a set. */
static float set_sum(const struct job *job, uint32_t pusher, uint64_t version, uint64_t element)
{
	float sum = gradient(job, pusher, version, element);

	for (uint32_t worker = pusher + 1; worker < job->workers; worker++)
		sum += job->sets[pusher] >> worker & 1 ? gradient(job, worker, version, element) : -0.0f;
	return sum;
}

uint32_t job_pusher(const struct job *job, uint32_t worker)
{
	uint32_t pusher = 0;

	while (!(job->sets[pusher] >> worker & 1))
		pusher++;
	return pusher;
}

void job_gradient(const struct job *job, uint32_t worker, uint64_t version, uint32_t chunk, void *out)
{
	const struct layout_chunk *cut = &job->layout.chunk[chunk];
	float values[JOB_CHUNK_ELEMENTS];

	for (uint32_t i = 0; i < cut->elements; i++)
		values[i] = set_sum(job, worker, version, cut->at + i);
	math_narrow(hub_layout_chunk_type(&job->layout, chunk), out, values, cut->elements);
}

const float *job_array(const struct job *job, uint32_t chunk, uint32_t array, uint64_t version)
{
	CHECK(array <= job->states && version <= job->rounds);
	return job->arrays[array][version] + job->layout.chunk[chunk].at;
}

void job_first(const struct job *job, uint32_t chunk, void *out)
{
	math_narrow(hub_layout_chunk_type(&job->layout, chunk), out, job_array(job, chunk, 0, 0),
	            job->layout.chunk[chunk].elements);
}

bool job_is_version(const struct job *job, uint32_t chunk, uint64_t version, const void *weights)
{
	float expected[JOB_CHUNK_ELEMENTS];

	if (version > job->rounds)
		return false;
	math_narrow(hub_layout_chunk_type(&job->layout, chunk), expected, job_array(job, chunk, 0, version),
	            job->layout.chunk[chunk].elements);
	return memcmp(weights, expected, hub_layout_chunk_bytes(&job->layout, chunk)) == 0;
}

/* ---- the reference ---- */

static const struct optimizer *value_at(const struct job *job, uint32_t group, uint64_t version)
{
	const struct optimizer *optimizer = &job->optimizers[group];

	for (uint32_t i = 0; i < job->change_count[group]; i++) {
		if (job->changes[group][i].from <= version)
			optimizer = &job->changes[group][i].optimizer;
	}
	return optimizer;
}

static void reference_round(struct job *job, uint64_t version, uint32_t t)
{
	const struct layout_place *place = &job->layout.place[t];
	uint64_t elements = job->layout.tensor[t].elements;
	float sum[512];

	CHECK(elements <= 512);
	for (uint64_t i = 0; i < elements; i++) {
		sum[i] = set_sum(job, 0, version, place->at + i);
		for (uint32_t worker = 1; worker < job->workers; worker++)
			sum[i] += job->sets[worker] ? set_sum(job, worker, version, place->at + i) : -0.0f;
	}
	struct optimizer_step step = {
		.optimizer = value_at(job, job->layout.tensor[t].group, version),
		.step = job->before + version + 1,
		.contributors = job->workers,
		.weights = job->arrays[0][version + 1] + place->at,
		.sum = sum,
	};
	for (uint32_t i = 0; i < job->states; i++)
		step.states[i] = job->arrays[1 + i][version + 1] + place->at;
	CHECK(optimizer_run_at(MATH_PORTABLE, &step, elements));
}

static void make_first(struct job *job)
{
	for (uint64_t i = 0; i < job->layout.elements; i++) {
		job->arrays[0][0][i] = rounded(job, i, hashed(job, 0, 0, i));
		for (uint32_t state = 1; state <= job->states; state++)
			job->arrays[state][0][i] = job->before > 0 ? fabsf(hashed(job, 0, state, i)) : 0;
	}
}

static void make_reference(struct job *job)
{
	uint64_t elements = job->layout.elements;

	for (uint32_t version = 0; version <= job->rounds; version++) {
		for (uint32_t array = 0; array <= job->states; array++) {
			job->arrays[array][version] = calloc(elements, sizeof(float));
			if (version > 0)
				memcpy(job->arrays[array][version], job->arrays[array][version - 1], elements * sizeof(float));
		}
		if (version == 0)
			make_first(job);
		for (uint32_t t = 0; version > 0 && t < job->layout.tensors; t++)
			reference_round(job, version - 1, t);
	}
}

/* Elements that have not been received yet are no numbers. A hub without chunks has no memory. */
static void make_model(const struct job *job, struct job_hub *hub)
{
	uint64_t elements = hub->layout.elements;

	if (elements == 0)
		return;
	hub->model.halves = hub->layout.has_halves ? malloc(elements * sizeof(uint16_t)) : NULL;
	hub->model.weights = malloc(elements * sizeof(float));
	hub->model.sums = malloc(elements * sizeof(float));
	for (uint64_t i = 0; i < elements; i++)
		hub->model.weights[i] = hub->model.sums[i] = NAN;
	for (uint32_t i = 0; i < job->states; i++)
		hub->model.states[i] = calloc(elements, sizeof(float));
}

void job_draw(struct job *job, uint64_t seed)
{
	struct rng rng;

	rng_init(&rng, seed);
	*job = (struct job){.seed = rng_next(&rng), .workers = draw_workers(&rng)};
	job->rounds = (uint32_t)rng_below(&rng, JOB_ROUNDS) + 1;
	job->is_integer = job->workers <= JOB_INTEGER_WORKERS && rng_chance(&rng, 1, 3);
	draw_layout(job, &rng);
	draw_sets(job, &rng);
	draw_optimizers(job, &rng);
	for (uint32_t group = 0; group < JOB_GROUPS; group++) {
		uint32_t needed = optimizer_states(&job->optimizers[group]);

		job->states = needed > job->states ? needed : job->states;
	}
	job->before = job->states > 0 && rng_chance(&rng, 1, 3) ? (uint32_t)rng_below(&rng, 100) + 1 : 0;
	make_reference(job);
	for (uint32_t i = 0; i < job->hub_count; i++)
		make_model(job, &job->hubs[i]);
}

static void hub_fini(struct job_hub *hub)
{
	for (uint32_t i = 0; i < OPTIMIZER_STATES; i++)
		free(hub->model.states[i]);
	free(hub->model.halves);
	free(hub->model.weights);
	free(hub->model.sums);
	hub_layout_fini(&hub->layout);
}

void job_fini(struct job *job)
{
	for (uint32_t array = 0; array <= OPTIMIZER_STATES; array++) {
		for (uint32_t version = 0; version <= JOB_ROUNDS; version++)
			free(job->arrays[array][version]);
	}
	for (uint32_t i = 0; i < job->hub_count; i++)
		hub_fini(&job->hubs[i]);
	hub_layout_fini(&job->layout);
}

/* ---- hubs ---- */

uint32_t job_hub_of(const struct job *job, uint32_t lane)
{
	uint32_t hub = 0;

	CHECK(lane < job->layout.lanes);
	while (lane >= job->layout.hub_first[hub + 1])
		hub++;
	return hub;
}

static const struct job_hub *hub_of_chunk(const struct job *job, uint32_t chunk)
{
	return &job->hubs[job_hub_of(job, job->layout.chunk[chunk].lane)];
}

const float *job_held(const struct job *job, uint32_t chunk, uint32_t array)
{
	const struct job_hub *hub = hub_of_chunk(job, chunk);

	return (array == 0 ? hub->model.weights : hub->model.states[array - 1]) + hub->layout.chunk[chunk].at;
}

/* ---- the end ---- */

/* Each worker counts once in the last sums, and all are of the last round. */
static void check_sums(const struct job *job, uint32_t chunk)
{
	const struct job_hub *hub = hub_of_chunk(job, chunk);
	const struct layout_chunk *cut = &job->layout.chunk[chunk];

	for (uint64_t i = 0; i < cut->elements; i++) {
		bool is_even = (cut->at + i) % 2 == 0;
		float once = is_even ? ldexpf(ldexpf(1, (int)job->workers) - 1, -INTEGER_SHIFT) : (float)(job->workers * job->rounds);
		float sum = hub->model.sums[hub->layout.chunk[chunk].at + i];

		CHECK_MSG(sum == once, "sum %" PRIu64 " is %g, expected %g", cut->at + i, (double)sum, (double)once);
	}
}

void job_check_end(const struct job *job)
{
	for (uint32_t chunk = 0; chunk < job->layout.chunks; chunk++) {
		size_t bytes = job->layout.chunk[chunk].elements * sizeof(float);

		for (uint32_t array = 0; array <= job->states; array++)
			CHECK(memcmp(job_held(job, chunk, array), job_array(job, chunk, array, job->rounds), bytes) == 0);
		if (job->is_integer)
			check_sums(job, chunk);
	}
}
