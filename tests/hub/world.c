#include "hub/world.h"

#include "base/check.h"

#define HUB_NODE 0u

/* ---- the reference ---- */

static enum esp_type type_of(const struct world *world, uint32_t tensor)
{
	return (enum esp_type)world->layout.tensor[tensor].type;
}

/* A number that the type has. */
static float rounded(enum esp_type type, float value)
{
	uint8_t bytes[sizeof(float)];

	math_narrow(type, bytes, &value, 1);
	math_widen(type, &value, bytes, 1);
	return value;
}

/* Of no particular meaning; with many different exponents, so that the order of addition shows. */
static float any_at(uint32_t worker, uint32_t round, uint64_t element)
{
	uint64_t state = (uint64_t)worker << 48 ^ (uint64_t)round << 32 ^ element;
	const uint64_t bits = rng_splitmix(&state);
	const float fraction = (float)(bits >> 40) * 0x1p-24f - 0.5f;

	return fraction * (float)(1u << (bits & 15));
}

static float gradient_at(enum esp_type type, uint32_t worker, uint32_t round, uint64_t element)
{
	return rounded(type, any_at(worker, round, element));
}

static float first_weight_at(enum esp_type type, uint64_t element)
{
	return gradient_at(type, 99, 99, element);
}

static void reference_round(const struct world *world, uint32_t round, uint64_t element, uint32_t tensor, float *states)
{
	enum esp_type type = type_of(world, tensor);
	float weight = world->history[round][element], sum = gradient_at(type, 0, round, element);
	uint16_t group = world->layout.tensor[tensor].group;
	struct optimizer_step step = {.optimizer = &world->optimizers[round][group], .step = round + UINT64_C(1),
	                              .contributors = world->workers, .weights = &weight, .sum = &sum,
	                              .states = {&states[0], &states[1]}};

	for (uint32_t worker = 1; worker < world->workers; worker++)
		sum = sum + gradient_at(type, worker, round, element);
	CHECK(optimizer_run_at(MATH_PORTABLE, &step, 1));
	world->history[round + 1][element] = weight;
}

/* Element by element: neither chunks nor lanes nor buffers. */
static void make_history(struct world *world)
{
	for (uint32_t version = 0; version <= world->rounds; version++)
		world->history[version] = calloc(world->layout.elements + 1, sizeof(float));
	for (uint32_t t = 0; t < world->layout.tensors; t++) {
		const struct layout_tensor *tensor = &world->layout.tensor[t];
		for (uint64_t i = 0; i < tensor->elements; i++) {
			const uint64_t element = world->layout.place[t].at + i;
			float states[OPTIMIZER_STATES] = {0};

			world->history[0][element] = first_weight_at(type_of(world, t), element);
			for (uint32_t round = 0; round < world->rounds; round++)
				reference_round(world, round, element, t, states);
		}
	}
}

/* ---- the ends of the network ---- */

static bool hub_next(void *user, uint32_t peer, struct transport_message *out)
{
	return store_lane_user.next(((struct hub_end *)user)->store, peer - 1, out);
}

static uint32_t hub_ready(void *user)
{
	uint32_t worker = store_lane_user.ready(((struct hub_end *)user)->store);
	return worker == UINT32_MAX ? worker : worker + 1;
}

static void hub_sent(void *user, uint32_t peer, uint16_t channel, void *cookie)
{
	store_lane_user.sent(((struct hub_end *)user)->store, peer - 1, channel, cookie);
}

static enum esp_status hub_begin(void *user, uint32_t peer, const struct transport_message *message)
{
	return store_lane_user.begin(((struct hub_end *)user)->store, peer - 1, message);
}

static struct transport_room hub_room(void *user, uint32_t peer, uint16_t channel)
{
	return store_lane_user.room(((struct hub_end *)user)->store, peer - 1, channel);
}

static void hub_arrived(void *user, uint32_t peer, uint16_t channel, uint32_t bytes)
{
	store_lane_user.arrived(((struct hub_end *)user)->store, peer - 1, channel, bytes);
}

static void hub_ended(void *user, uint32_t peer, uint16_t channel)
{
	store_lane_user.ended(((struct hub_end *)user)->store, peer - 1, channel);
}

static enum esp_status hub_credit(void *user, uint32_t peer, const struct transport_message *message)
{
	return store_lane_user.credit(((struct hub_end *)user)->store, peer - 1, message);
}

static void hub_lost(void *user, uint32_t peer, enum esp_status why)
{
	store_lane_user.lost(((struct hub_end *)user)->store, peer - 1, why);
}

static enum esp_status hub_failed(void *user)
{
	return store_lane_user.failed(((struct hub_end *)user)->store);
}

static const struct transport_user hub_user = {
	.next = hub_next,
	.ready = hub_ready,
	.sent = hub_sent,
	.begin = hub_begin,
	.room = hub_room,
	.arrived = hub_arrived,
	.ended = hub_ended,
	.credit = hub_credit,
	.lost = hub_lost,
	.failed = hub_failed,
};

/* The network tells every node of every loss; a worker has no connection but to the hub. */
static void worker_lost(void *user, uint32_t peer, enum esp_status why)
{
	if (peer == HUB_NODE)
		client_lane_user.lost(user, peer, why);
}

static struct transport_user worker_user; /* client_lane_user, but for lost() */

/* ---- opening ---- */

static void draw_optimizers(struct world *world, uint32_t groups)
{
	static const char *const texts[] = {
		"avg",  "sgd lr=0.1", "sgd lr=0.05 momentum=0.9 weight_decay=0.01", "sgd lr=0.05 momentum=0.9 nesterov=yes",
		"adam", "adamw",
	};
	struct optimizer first;

	CHECK(optimizer_parse(texts[rng_below(&world->rng, sizeof(texts) / sizeof(texts[0]))], &first, NULL) == ESP_OK);
	for (uint32_t round = 0; round < world->rounds; round++)
		for (uint32_t group = 0; group < groups; group++) {
			struct optimizer *optimizer = &world->optimizers[round][group];
			*optimizer = round > 0 ? world->optimizers[round - 1][group] : first;
			if (round > 0 && first.kind != OPTIMIZER_AVG && rng_chance(&world->rng, 1, 3))
				optimizer->lr = rng_unit(&world->rng);
		}
}

static void open_layout(struct world *world)
{
	static const enum esp_type types[] = {ESP_F32, ESP_F32, ESP_F16, ESP_BF16};
	struct layout_tensor tensors[WORLD_TENSORS_MOST];
	const uint32_t count = 1 + (uint32_t)rng_below(&world->rng, WORLD_TENSORS_MOST);
	/* Frames of large chunks have zeros before their data (transport_shift()). */
	const uint32_t chunk_bytes = rng_chance(&world->rng, 1, 16) ? 2 * TRANSPORT_SHIFTED_FROM : LAYOUT_CHUNK_LEAST;

	for (uint32_t t = 0; t < count; t++)
		tensors[t] = (struct layout_tensor){
			.name = t + 1,
			.elements = rng_chance(&world->rng, 1, 8) ? 0 : rng_below(&world->rng, 6 * chunk_bytes / 4),
			.type = (uint8_t)types[rng_below(&world->rng, sizeof(types) / sizeof(types[0]))],
			.group = (uint16_t)rng_below(&world->rng, WORLD_GROUPS_MOST),
		};
	CHECK(hub_layout_make(tensors, count, chunk_bytes, world->lanes, &world->layout, NULL) == ESP_OK);
}

static void open_hub(struct world *world)
{
	const uint64_t elements = world->layout.elements + 1;

	world->model.weights = calloc(elements, sizeof(float));
	world->model.sums = calloc(elements, sizeof(float));
	world->model.halves = calloc(elements, sizeof(uint16_t));
	for (uint32_t i = 0; i < optimizer_states(&world->optimizers[0][0]); i++)
		world->model.states[i] = calloc(elements, sizeof(float));
	for (uint32_t lane = 0; lane < world->lanes; lane++) {
		const struct store_lane_config config = {.layout = &world->layout, .model = &world->model, .lane = lane,
		                                         .workers = world->workers, .optimizers = world->optimizers[0]};
		CHECK(store_lane_open(&config, &world->hub[lane].store, NULL) == ESP_OK);
		inproc_attach(world->net, HUB_NODE, lane, &hub_user, &world->hub[lane]);
	}
}

static void open_worker(struct world *world, uint32_t number)
{
	struct worker *worker = &world->worker[number];

	*worker = (struct worker){.number = number, .ahead = (uint32_t)rng_below(&world->rng, 20)};
	for (uint32_t lane = 0; lane < world->lanes; lane++) {
		const struct client_lane_config config = {.layout = &world->layout, .lane = lane};
		CHECK(client_lane_open(&config, &worker->lanes[lane], NULL) == ESP_OK);
		inproc_attach(world->net, number + 1, lane, &worker_user, worker->lanes[lane]);
	}
}

void world_open(struct world *world, uint64_t seed, const struct world_faults *faults)
{
	*world = (struct world){0};
	worker_user = client_lane_user;
	worker_user.lost = worker_lost;
	rng_init(&world->rng, seed);
	world->workers = 1 + (uint32_t)rng_below(&world->rng, WORLD_WORKERS_MOST);
	world->lanes = 1 + (uint32_t)rng_below(&world->rng, WORLD_LANES_MOST);
	world->rounds = 1 + (uint32_t)rng_below(&world->rng, WORLD_ROUNDS_MOST);
	const struct inproc_config config = {
		.seed = rng_next(&world->rng),
		.nodes = world->workers + 1,
		.lanes = world->lanes,
		.delay_ns = rng_below(&world->rng, 2000),
		.fragment_most = rng_chance(&world->rng, 1, 3) ? 0 : 1 + (uint32_t)rng_below(&world->rng, 400),
		.flight_most = (uint32_t)rng_below(&world->rng, 5),
		.carry = rng_chance(&world->rng, 1, 2) ? INPROC_COPY : INPROC_LATE,
		.checked = faults->corrupt_one_in > 0,
		.corrupt_one_in = faults->corrupt_one_in,
	};
	CHECK(inproc_open(&config, &world->net, NULL) == ESP_OK);
	open_layout(world);
	draw_optimizers(world, world->layout.groups);
	make_history(world);
	open_hub(world);
	for (uint32_t number = 0; number < world->workers; number++)
		open_worker(world, number);
}

/* ---- operations ---- */

static void operation_free(struct operation *operation)
{
	if (operation->weights != operation->gradient)
		free(operation->weights);
	free(operation->gradient);
	free(operation);
}

static void start(struct world *world, struct worker *worker, uint8_t kind, uint32_t tensor, uint32_t version)
{
	const uint64_t elements = world->layout.tensor[tensor].elements, at = world->layout.place[tensor].at;
	struct operation *operation = calloc(1, sizeof(*operation));

	operation->gradient = calloc(elements + 1, sizeof(float));
	for (uint64_t i = 0; i < elements && !hub_kind_is_write(kind); i++) {
		enum esp_type type = type_of(world, tensor);
		float value = kind == HUB_SET ? first_weight_at(type, at + i)
		                              : gradient_at(type, worker->number, worker->round, at + i);

		math_narrow(type, (uint8_t *)operation->gradient + i * math_type_bytes(type), &value, 1);
	}
	const bool is_in_place = rng_chance(&world->rng, 1, 2);
	operation->weights = is_in_place ? operation->gradient : calloc(elements + 1, sizeof(float));
	operation->left = world->lanes;
	operation->version = version;
	operation->next = worker->operations;
	worker->operations = operation;
	worker->under_way++;
	for (uint32_t lane = 0; lane < world->lanes; lane++) {
		operation->parts[lane] = (struct client_part){.kind = kind, .tensor = tensor, .cookie = operation,
		                                              .gradient = operation->gradient,
		                                              .weights = operation->weights};
		client_lane_start(worker->lanes[lane], &operation->parts[lane]);
	}
}

static void shuffle(struct world *world, uint32_t *numbers, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		numbers[i] = i;
	for (uint32_t i = count; i > 1; i--) {
		const uint32_t other = (uint32_t)rng_below(&world->rng, i), number = numbers[i - 1];
		numbers[i - 1] = numbers[other];
		numbers[other] = number;
	}
}

/* All workers tell the same values, each by itself. */
static void tell_values(const struct world *world, const struct worker *worker)
{
	const uint32_t round = worker->round;

	for (uint32_t group = 0; round > 0 && group < world->layout.groups; group++) {
		const struct optimizer *optimizer = &world->optimizers[round][group];
		if (optimizer_equal(optimizer, &world->optimizers[round - 1][group]))
			continue;
		for (uint32_t lane = 0; lane < world->lanes; lane++) {
			enum esp_status status = client_lane_hyper(worker->lanes[lane], (uint16_t)group, round, optimizer);
			CHECK(status == client_lane_failure(worker->lanes[lane]));
		}
	}
}

/* Pulls come first: behind a push in the same round they would wait for workers that wait for this one. */
static void start_round(struct world *world, struct worker *worker)
{
	uint32_t order[WORLD_TENSORS_MOST];

	if (worker->number == 0 && !worker->has_set)
		for (uint32_t t = 0; t < world->layout.tensors; t++) {
			start(world, worker, HUB_SET, t, 0);
			if (optimizer_states(&world->optimizers[0][0]) > 0) /* zeros, of no former rounds: as it is without */
				start(world, worker, HUB_WRITE + 1, t, 0);
		}
	worker->has_set = true;
	shuffle(world, order, world->layout.tensors);
	for (uint32_t i = 0; i < world->layout.tensors; i++)
		if (rng_chance(&world->rng, 1, 4))
			start(world, worker, HUB_PULL, order[i], worker->round);
	for (uint32_t i = 0; worker->round > 0 && i < world->layout.tensors; i++)
		if (rng_chance(&world->rng, 1, 8))
			start(world, worker, HUB_READ, order[i], worker->round);
	tell_values(world, worker);
	shuffle(world, order, world->layout.tensors);
	for (uint32_t i = 0; i < world->layout.tensors; i++)
		start(world, worker, rng_chance(&world->rng, 1, 2) ? HUB_PUSH : HUB_PUSHPULL, order[i], worker->round + 1);
	worker->round++;
	for (uint32_t lane = 0; lane < world->lanes; lane++)
		inproc_poke(world->net, worker->number + 1, lane);
}

static void check_weights(const struct world *world, const struct operation *operation)
{
	const struct client_part *part = &operation->parts[0];
	const float *expected = world->history[operation->version] + world->layout.place[part->tensor].at;

	enum esp_type type = hub_kind_is_read(part->kind) ? ESP_F32 : type_of(world, part->tensor);
	size_t each = math_type_bytes(type);

	if (part->kind != HUB_PULL && part->kind != HUB_PUSHPULL && !hub_kind_is_read(part->kind))
		return;
	for (uint64_t i = 0; i < world->layout.tensor[part->tensor].elements; i++) {
		const uint8_t *found = (const uint8_t *)operation->weights + i * each;
		uint8_t bytes[sizeof(float)];

		math_narrow(type, bytes, &expected[i], 1);
		CHECK_MSG(memcmp(found, bytes, each) == 0, "tensor %u, version %u, element %" PRIu64 " is not %a", part->tensor,
		          operation->version, i, (double)expected[i]);
	}
}

static void finish_operation(const struct world *world, struct worker *worker, struct operation *operation)
{
	struct operation **at = &worker->operations;

	if (operation->status == ESP_OK)
		check_weights(world, operation);
	else
		CHECK(worker->has_failed);
	while (*at != operation)
		at = &(*at)->next;
	*at = operation->next;
	worker->under_way--;
	operation_free(operation);
}

static void collect(const struct world *world, struct worker *worker)
{
	struct client_part *part;

	for (uint32_t lane = 0; lane < world->lanes; lane++) {
		while ((part = client_lane_take_done(worker->lanes[lane])) != NULL) {
			struct operation *operation = part->cookie;
			if (operation->status == ESP_OK)
				operation->status = part->status;
			if (--operation->left == 0)
				finish_operation(world, worker, operation);
		}
	}
}

/* ---- failures ---- */

/* The hub has told the worker that the session is over. */
static void worker_fails(void *context)
{
	const struct worker *worker = context;

	client_lane_fail(worker->lanes[0], ESP_EJOB);
}

/*
 * A node that fails on one lane fails on all. The other end also hears of it on the control connection: the network knows
 * no connection on which nothing was sent.
 */
static void session_ends(void *context)
{
	struct world *world = context;

	if (world->hub_has_failed || world->hub_is_killed)
		return;
	world->hub_has_failed = true;
	for (uint32_t lane = 0; lane < world->lanes; lane++) {
		store_lane_fail(world->hub[lane].store, ESP_EPEER);
		inproc_poke(world->net, HUB_NODE, lane);
	}
	for (uint32_t number = 0; number < world->workers; number++)
		inproc_after(world->net, rng_below(&world->rng, 3000), worker_fails, &world->worker[number]);
}

static void spread_hub_failure(struct world *world)
{
	struct store_trouble trouble;

	for (uint32_t lane = 0; lane < world->lanes; lane++)
		if (store_lane_take_trouble(world->hub[lane].store, &trouble))
			session_ends(world);
}

static void spread_worker_failure(struct world *world, struct worker *worker)
{
	enum esp_status status = ESP_OK;

	if (worker->has_failed || worker->is_killed)
		return;
	for (uint32_t lane = 0; lane < world->lanes && status == ESP_OK; lane++)
		status = client_lane_failure(worker->lanes[lane]);
	if (status == ESP_OK)
		return;
	worker->has_failed = true;
	for (uint32_t lane = 0; lane < world->lanes; lane++) {
		client_lane_fail(worker->lanes[lane], status);
		inproc_poke(world->net, worker->number + 1, lane);
	}
	inproc_after(world->net, rng_below(&world->rng, 3000), session_ends, world);
}

void world_kill(struct world *world, uint32_t node)
{
	inproc_kill(world->net, node);
	if (node == HUB_NODE)
		world->hub_is_killed = true;
	else
		world->worker[node - 1].is_killed = true;
}

/* ---- steps ---- */

static bool can_start(const struct world *world, const struct worker *worker)
{
	return worker->round < world->rounds && worker->under_way <= worker->ahead && !worker->has_failed &&
	       !worker->is_killed;
}

/* Some worker that may start a round does. */
static bool start_some(struct world *world)
{
	const uint32_t first = (uint32_t)rng_below(&world->rng, world->workers);

	for (uint32_t i = 0; i < world->workers; i++) {
		struct worker *worker = &world->worker[(first + i) % world->workers];
		if (can_start(world, worker)) {
			start_round(world, worker);
			return true;
		}
	}
	return false;
}

bool world_step(struct world *world)
{
	bool has_moved = rng_chance(&world->rng, 1, 20) && start_some(world);

	if (!has_moved)
		has_moved = inproc_turn(world->net) || start_some(world);
	spread_hub_failure(world);
	for (uint32_t number = 0; number < world->workers; number++) {
		spread_worker_failure(world, &world->worker[number]);
		if (!world->worker[number].is_killed)
			collect(world, &world->worker[number]);
	}
	return has_moved;
}

/* ---- the end ---- */

static void check_model(const struct world *world)
{
	uint64_t least, most;

	for (uint32_t t = 0; t < world->layout.tensors; t++) {
		const uint64_t at = world->layout.place[t].at, bytes = world->layout.tensor[t].elements * sizeof(float);
		CHECK(test_same_bits(world->model.weights + at, world->history[world->rounds] + at, bytes));
	}
	for (uint32_t lane = 0; lane < world->lanes; lane++)
		if (store_lane_versions(world->hub[lane].store, &least, &most))
			CHECK(least == world->rounds && most == world->rounds);
}

bool world_check_end(const struct world *world)
{
	bool has_failed = world->hub_is_killed || world->hub_has_failed;

	for (uint32_t number = 0; number < world->workers; number++) {
		const struct worker *worker = &world->worker[number];
		has_failed |= worker->has_failed || worker->is_killed;
		CHECK_MSG(worker->is_killed || worker->under_way == 0, "worker %u has %u operations under way", number,
		          worker->under_way);
	}
	if (has_failed)
		return false;
	for (uint32_t number = 0; number < world->workers; number++)
		CHECK_U64(world->worker[number].round, world->rounds);
	check_model(world);
	return true;
}

static void close_worker(struct world *world, struct worker *worker)
{
	for (uint32_t lane = 0; lane < world->lanes; lane++)
		client_lane_close(worker->lanes[lane]);
	while (worker->operations) {
		struct operation *operation = worker->operations;
		worker->operations = operation->next;
		operation_free(operation);
	}
}

void world_close(struct world *world)
{
	inproc_close(world->net);
	for (uint32_t lane = 0; lane < world->lanes; lane++)
		store_lane_close(world->hub[lane].store);
	for (uint32_t number = 0; number < world->workers; number++)
		close_worker(world, &world->worker[number]);
	for (uint32_t version = 0; version <= world->rounds; version++)
		free(world->history[version]);
	free(world->model.weights);
	free(world->model.sums);
	free(world->model.halves);
	for (uint32_t i = 0; i < OPTIMIZER_STATES; i++)
		free(world->model.states[i]);
	hub_layout_fini(&world->layout);
}
