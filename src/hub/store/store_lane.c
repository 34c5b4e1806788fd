#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "hub/store/store_state.h"

#define ALLOCATIONS 8u          /* of a lane */
#define ALLOCATION_BYTES 4160u  /* each may be rounded up to a page, with a head */

static uint32_t chunks_of(const struct hub_layout *layout, uint32_t lane)
{
	assert(lane < layout->lanes);
	return layout->lane_first[lane + 1] - layout->lane_first[lane];
}

/* The longest term of the lane. */
static uint32_t term_bytes(const struct hub_layout *layout, uint32_t lane)
{
	uint32_t most = 0;

	for (uint32_t i = layout->lane_first[lane]; i < layout->lane_first[lane + 1]; i++) {
		uint32_t bytes = hub_layout_chunk_bytes(layout, layout->lane_chunks[i]);

		most = bytes > most ? bytes : most;
	}
	return most;
}

/* All terms but those of worker 0 may have to wait; of an asynchronous job all. */
static uint64_t slots_of(const struct hub_layout *layout, uint32_t lane, uint32_t pushers, bool is_async)
{
	static_assert(LAYOUT_CHUNKS_MOST < STORE_NO_SLOT / STORE_WORKERS_MOST, "slots are numbered by 32 bits");
	return (uint64_t)chunks_of(layout, lane) * (pushers - !is_async);
}

uint64_t store_lane_bytes(const struct hub_layout *layout, uint32_t lane, uint32_t workers, uint32_t pushers)
{
	uint64_t chunks = chunks_of(layout, lane);

	assert(pushers >= 1 && pushers <= workers && workers <= STORE_WORKERS_MOST);
	return sizeof(struct store_lane) + workers * sizeof(struct store_peer) +
	       chunks * (sizeof(struct store_chunk) + workers * sizeof(struct store_request)) +
	       store_pool_bytes(slots_of(layout, lane, pushers, false), term_bytes(layout, lane)) +
	       store_values_bytes(layout->groups, workers) + layout->groups * sizeof(struct optimizer) +
	       ALLOCATIONS * ALLOCATION_BYTES;
}

uint64_t store_lane_async_bytes(const struct hub_layout *layout, uint32_t lane)
{
	return store_pool_bytes(chunks_of(layout, lane), term_bytes(layout, lane));
}

uint64_t store_model_bytes(const struct hub_layout *layout, const struct optimizer *optimizer)
{
	uint64_t halves = layout->has_halves ? layout->elements * sizeof(uint16_t) : 0;

	return layout->elements * sizeof(float) * (2 + optimizer_states(optimizer)) + halves;
}

/* ---- opening ---- */

static uint32_t states_of(const struct store_model *model)
{
	uint32_t states = 0;

	while (states < OPTIMIZER_STATES && model->states[states])
		states++;
	return states;
}

static enum esp_status check_optimizers(const struct store_lane_config *config, struct error *err)
{
	for (uint32_t group = 0; group < config->layout->groups; group++) {
		const struct optimizer *optimizer = &config->optimizers[group];
		enum esp_status status = optimizer_check(optimizer, err);

		if (status != ESP_OK)
			return status;
		if (optimizer->kind != config->optimizers[0].kind)
			return error_set(err, ESP_EINVAL, "parameter groups 0 and %u have different kinds of optimizers", group);
		if (config->layout->elements > 0 && optimizer_states(optimizer) > states_of(config->model))
			return error_set(err, ESP_EINVAL, "the optimizer of parameter group %u needs %u arrays of states, not %u",
			                 group, optimizer_states(optimizer), states_of(config->model));
	}
	return ESP_OK;
}

static enum esp_status check_sets(const struct store_lane_config *config, struct error *err)
{
	uint64_t all = UINT64_MAX >> (STORE_WORKERS_MOST - config->workers), seen = 0;

	for (uint32_t worker = 0; config->sets && worker < config->workers; worker++) {
		uint64_t set = config->sets[worker];

		if ((set & (seen | ~all)) || (set && (uint32_t)__builtin_ctzll(set) != worker))
			return error_set(err, ESP_EINVAL, "the set that worker %u pushes for is not its own", worker);
		seen |= set;
	}
	if (config->sets && (seen != all || config->is_async))
		return error_set(err, ESP_EINVAL, "not every worker is in a set, or the job is asynchronous");
	return ESP_OK;
}

static enum esp_status check_config(const struct store_lane_config *config, struct error *err)
{
	const struct store_model *model = config->model;

	if (config->workers < 1 || config->workers > STORE_WORKERS_MOST)
		return error_set(err, ESP_EINVAL, "%u workers: expected 1 to %u", config->workers, STORE_WORKERS_MOST);
	if (config->lane >= config->layout->lanes)
		return error_set(err, ESP_EINVAL, "lane %u: the layout has %u", config->lane, config->layout->lanes);
	if (config->layout->elements > 0 &&
	    (!model->weights || !model->sums || (config->layout->has_halves && !model->halves)))
		return error_set(err, ESP_EINVAL, "the model has no memory");
	enum esp_status status = check_sets(config, err);
	return status == ESP_OK ? check_optimizers(config, err) : status;
}

static bool copy_optimizers(struct store_lane *lane)
{
	uint32_t groups = lane->config.layout->groups;

	lane->optimizers = calloc(groups ? groups : 1, sizeof(*lane->optimizers));
	if (lane->optimizers && groups > 0)
		memcpy(lane->optimizers, lane->config.optimizers, groups * sizeof(*lane->optimizers));
	lane->config.optimizers = lane->optimizers;
	return lane->optimizers != NULL;
}

static enum esp_status allocate(struct store_lane *lane)
{
	const struct hub_layout *layout = lane->config.layout;
	uint32_t workers = lane->config.workers, chunks = lane->chunk_count;
	uint32_t pushers = (uint32_t)__builtin_popcountll(lane->pushers);
	uint32_t slots = (uint32_t)slots_of(layout, lane->config.lane, pushers, lane->config.is_async);

	lane->chunks = calloc(chunks ? chunks : 1, sizeof(*lane->chunks));
	lane->requests = calloc(chunks ? (uint64_t)chunks * workers : 1, sizeof(*lane->requests));
	if (!copy_optimizers(lane) || !lane->chunks || !lane->requests)
		return ESP_ENOMEM;
	enum esp_status status = store_values_init(&lane->values, lane->config.optimizers, layout->groups, workers);
	return status == ESP_OK ? store_pool_init(&lane->pool, slots, term_bytes(layout, lane->config.lane)) : status;
}

static void lane_init(struct store_lane *lane, const struct store_lane_config *config)
{
	lane->config = *config;
	lane->chunk_count = lane->at_least = chunks_of(config->layout, config->lane);
	lane->numbers = config->layout->lane_chunks + config->layout->lane_first[config->lane];
	lane->states = states_of(config->model);
	lane->config.sets = NULL;
	for (uint32_t worker = 0; worker < config->workers; worker++) {
		lane->peers[worker].first_due = lane->peers[worker].last_due = STORE_NO_CHUNK;
		lane->sets[worker] = config->sets ? config->sets[worker] : UINT64_C(1) << worker;
		lane->pushers |= lane->sets[worker] ? UINT64_C(1) << worker : 0;
	}
}

enum esp_status store_lane_open(const struct store_lane_config *config, struct store_lane **out, struct error *err)
{
	assert(config->layout && config->model && (config->optimizers || config->layout->groups == 0));
	enum esp_status status = check_config(config, err);

	if (status != ESP_OK)
		return status;
	struct store_lane *lane = calloc(1, sizeof(*lane) + config->workers * sizeof(lane->peers[0]));
	if (lane)
		lane_init(lane, config);
	status = lane ? allocate(lane) : ESP_ENOMEM;
	if (status != ESP_OK) {
		store_lane_close(lane);
		return error_set(err, status, "no memory for lane %u: %" PRIu64 " bytes", config->lane,
		                 store_lane_bytes(config->layout, config->lane, config->workers, config->workers));
	}
	*out = lane;
	return ESP_OK;
}

void store_lane_close(struct store_lane *lane)
{
	if (!lane)
		return;
	store_pool_fini(&lane->pool);
	store_values_fini(&lane->values);
	free(lane->optimizers);
	free(lane->requests);
	free(lane->chunks);
	free(lane);
}

void store_lane_share(struct store_lane *lane, uint32_t pusher, const struct store_shared *shared)
{
	assert(pusher < lane->config.workers && lane->sets[pusher] && !lane->config.layout->has_halves);
	lane->shared[pusher] = *shared;
}

/* ---- the end ---- */

void store_lane_fail(struct store_lane *lane, enum esp_status status)
{
	assert(status < 0);
	if (lane->failure == ESP_OK)
		lane->failure = status;
}

static bool has_unanswered(const struct store_lane *lane, uint32_t worker)
{
	for (uint32_t chunk = 0; chunk < lane->chunk_count; chunk++) {
		if (store_request(lane, chunk, worker)->state != STORE_IDLE)
			return true;
	}
	return false;
}

void store_lane_leave(struct store_lane *lane, uint32_t worker)
{
	struct error why;

	assert(worker < lane->config.workers);
	if (lane->failure != ESP_OK || lane->left >> worker & 1)
		return;
	if (has_unanswered(lane, worker)) {
		error_set(&why, ESP_ECORRUPT, "worker %u has left before its requests were answered", worker);
		store_blame(lane, worker, &why);
	}
	lane->left |= UINT64_C(1) << worker;
	for (uint32_t chunk = 0; chunk < lane->chunk_count; chunk++) {
		uint64_t terms = lane->chunks[chunk].terms;

		if (!lane->config.is_async && terms != 0 && !(store_contributors(lane, terms) >> worker & 1))
			store_blame_left(lane, chunk);
	}
}

/* ---- its state ---- */

/* The workers that a chunk waits for: for their terms, and worker 0 for the first weights. */
static uint64_t chunk_missing(const struct store_lane *lane, uint32_t number)
{
	const struct store_chunk *chunk = &lane->chunks[number];
	uint64_t missing = chunk->terms ? store_all(lane) & ~store_contributors(lane, chunk->terms) : 0;

	return missing | (chunk->pulls > 0 && !chunk->has_weights);
}

uint64_t store_lane_missing(const struct store_lane *lane, uint32_t tensor)
{
	assert(tensor < lane->config.layout->tensors);
	const struct layout_place *place = &lane->config.layout->place[tensor];
	uint64_t missing = 0, least = UINT64_MAX;

	for (uint32_t number = place->first_chunk; number < place->first_chunk + place->chunks; number++) {
		if (lane->config.layout->chunk[number].lane != lane->config.lane)
			continue;
		uint32_t chunk = lane->config.layout->lane_at[number];
		uint64_t waits = chunk_missing(lane, chunk);

		if (waits && lane->chunks[chunk].version < least) {
			least = lane->chunks[chunk].version;
			missing = waits;
		}
	}
	return missing;
}

bool store_lane_versions(const struct store_lane *lane, uint64_t *out_least, uint64_t *out_most)
{
	if (lane->chunk_count == 0)
		return false;
	*out_least = lane->least;
	*out_most = lane->most;
	return true;
}

struct store_lane_stats store_lane_stats(const struct store_lane *lane)
{
	return lane->stats;
}
