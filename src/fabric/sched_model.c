/*
 * sched_model.c - models for the workers that have asked for them: one tree for all that wait (fabric/distribution.h).
 */
#include <inttypes.h>

#include "base/clock.h"
#include "fabric/distribution.h"
#include "fabric/sched_parts.h"

#define SHORT_PART 2u /* of a batch: waiting for others would cost more than a transfer of its own */

static bool is_short(const struct sched *sched, uint64_t bytes)
{
	unsigned __int128 most = (unsigned __int128)sched->config.hub_rate * sched->config.batch_ns / SHORT_PART / NS_PER_S;

	return bytes < most && calendar_booked_until(sched->calendar, sched_hub_link_out(sched)) <= sched->now;
}

enum esp_status sched_wants(struct sched *sched, uint32_t worker, uint64_t bytes, uint64_t now, struct error *err)
{
	enum esp_status status = sched_see_time(sched, now, err);

	if (status != ESP_OK)
		return status;
	if (worker >= sched->config.workers || !sched->links[worker].is_here)
		return error_set(err, ESP_EINVAL, "worker %u asked for the model before it had registered", worker);
	if (bytes == 0 || bytes > CALENDAR_BYTES_MOST)
		return error_set(err, ESP_EINVAL, "worker %u asked for a model of %" PRIu64 " bytes", worker, bytes);
	if (sched->links[worker].wants > 0)
		return error_set(err, ESP_EINVAL, "worker %u asked twice for the model", worker);
	sched->links[worker].wants = bytes;
	sched->links[worker].wants_ns = now;
	sched->has_short_want |= is_short(sched, bytes);
	sched_want_batch(sched, now);
	return ESP_OK;
}

static void decide_one(struct sched *sched, const struct distribution_request *requests, const uint32_t *workers,
                       uint32_t row)
{
	const struct distribution_request *request = &requests[row];
	struct sched_link *link = &sched->links[workers[row]];

	sched->models[sched->model_count++] = (struct sched_model){
		.worker = workers[row],
		.tree = sched->trees,
		.source = request->source == DISTRIBUTION_HUB ? SCHED_HUB : workers[request->source],
		.outputs = request->outputs,
		.start_ns = request->span.begin > sched->now ? request->span.begin - sched->now : 0,
		.rate = sched_rate_of(link->wants, &request->span),
	};
	link->tree = sched->trees;
	link->model_bytes = request->source == DISTRIBUTION_HUB ? link->wants : 0; /* another worker may be the slow one */
	link->model_rate = sched->models[sched->model_count - 1].rate;
	link->wants = 0;
	link->source = request->source == DISTRIBUTION_HUB ? SCHED_HUB : workers[request->source];
	link->models++;
	sched->models_decided++;
	if (request->booking != CALENDAR_NONE)
		sched->chains[sched->chain_count++] = (struct sched_chain){request->booking, request->span.end};
}

void sched_model_end(struct sched *sched)
{
	for (uint32_t i = sched->chain_count; i-- > 0;) {
		if (sched->chains[i].end_ns > sched->now)
			continue;
		calendar_give_back(sched->calendar, sched->chains[i].booking, 0);
		sched->chains[i] = sched->chains[--sched->chain_count];
	}
}

uint64_t sched_least_steps(const struct sched *sched)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t worker = 0; worker < sched->config.workers; worker++) {
		const struct sched_link *link = &sched->links[worker];

		least = link->is_here && link->steps < least ? link->steps : least;
	}
	return least == UINT64_MAX ? 0 : least;
}

/* Is the worker too far ahead of the slowest one? */
static bool is_ahead(const struct sched *sched, uint32_t worker)
{
	const struct sched_link *link = &sched->links[worker];

	return sched->config.has_slack && link->steps - sched_least_steps(sched) > sched->config.slack &&
	       sched->now - link->wants_ns < sched->config.slack_wait_ns;
}

void sched_model_decide(struct sched *sched)
{
	struct distribution_request requests[LEDGER_WORKERS_MOST];
	uint32_t workers[LEDGER_WORKERS_MOST], count = 0;
	struct distribution_config config = {.calendar = sched->calendar,
	                                     .hub = sched_hub_link_out(sched),
	                                     .now = sched->now,
	                                     .next_batch = sched->now + sched->config.batch_ns,
	                                     .is_tree = !sched->config.has_no_trees};

	sched->has_short_want = false;
	sched->model_at = sched->model_count = 0;
	for (uint32_t worker = 0; worker < sched->config.workers; worker++) {
		if (sched->links[worker].wants == 0 || is_ahead(sched, worker))
			continue;
		config.is_tree &= sched->links[worker].can_forward;
		workers[count] = worker;
		requests[count++] = (struct distribution_request){.host = sched->hosts[worker],
		                                                  .in = sched_link_in(sched, worker),
		                                                  .out = sched_link_out(sched, worker)};
		config.bytes = sched->links[worker].wants > config.bytes ? sched->links[worker].wants : config.bytes;
	}
	if (count == 0 || sched->chain_count + count > SCHED_MODELS_MOST)
		return;
	sched->trees += distribution_run(&config, requests, count) > 0;
	for (uint32_t row = 0; row < count; row++) {
		if (requests[row].is_served)
			decide_one(sched, requests, workers, row);
	}
}

bool sched_next_model(struct sched *sched, struct sched_model *out)
{
	while (sched->model_at < sched->model_count) {
		*out = sched->models[sched->model_at++];
		if (sched->links[out->worker].is_here) /* else it has gone meanwhile */
			return true;
	}
	return false;
}
