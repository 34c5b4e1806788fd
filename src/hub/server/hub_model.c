#include "hub/server/hub_model.h"

#include <stdlib.h>

#include "base/units.h"
#include "hub/server/hub_sets.h"
#include "hub/server/model_memory.h"

/* ---- memory ---- */

static enum esp_status check_free(const struct hub_session *session, uint64_t bytes, struct error *err)
{
	const struct hub *hub = session->hub;
	char need[UNITS_TEXT], left[UNITS_TEXT], all[UNITS_TEXT];
	uint64_t free_bytes = hub->config.memory_bytes - hub->memory_taken;

	if (bytes <= free_bytes)
		return ESP_OK;
	return error_set(err, ESP_ELIMIT, "job %s needs %s of the hub's memory, and %s of %s are left (--memory)",
	                 session->job->name, units_format_bytes(bytes, need), units_format_bytes(free_bytes, left),
	                 units_format_bytes(hub->config.memory_bytes, all));
}

/* Before the layout is made: what it takes, and the arrays of the model unless hubs share it. */
static enum esp_status check_declared(struct hub_session *session, struct error *err)
{
	const struct hub_job *job = session->job;
	uint64_t elements;
	enum esp_status status = hub_layout_measure(session->tensors, session->tensor_count, job->chunk_bytes, &elements,
	                                            &session->layout_bytes, err);

	if (status != ESP_OK || job->hubs > 1)
		return status == ESP_OK ? check_free(session, session->layout_bytes, err) : status;
	uint64_t arrays = elements * sizeof(float) * (2 + optimizer_states(&job->optimizer));
	return check_free(session, session->layout_bytes + arrays, err);
}

static enum esp_status take_memory(struct hub_session *session, uint32_t pushers, struct error *err)
{
	struct hub *hub = session->hub;
	uint64_t bytes = session->layout_bytes + store_model_bytes(&session->layout, &session->job->optimizer);

	for (uint32_t i = 0; i < hub->config.lanes; i++)
		bytes += store_lane_bytes(&session->layout, i, session->worker_count, pushers) +
		         (session->job->delay_bound > 0 ? store_lane_async_bytes(&session->layout, i) : 0);
	enum esp_status status = check_free(session, bytes, err);
	if (status == ESP_OK)
		status = model_memory_take(&session->layout, &session->job->optimizer, &session->model, &session->memory,
		                           &session->memory_bytes, err);
	if (status != ESP_OK)
		return status;
	session->taken_bytes = bytes;
	hub->memory_taken += bytes;
	return ESP_OK;
}

/* ---- parts ---- */

static enum esp_status make_parts(struct hub_session *session, const struct optimizer *optimizers, struct error *err)
{
	struct hub *hub = session->hub;

	for (uint32_t i = 0; i < hub->config.lanes; i++) {
		const struct store_lane_config config = {
			.layout = &session->layout,
			.model = &session->model,
			.lane = i,
			.workers = session->worker_count,
			.optimizers = optimizers,
			.is_async = session->job->delay_bound > 0,
			.sets = session->job->delay_bound > 0 ? NULL : session->sets,
		};
		enum esp_status status =
			hub_part_make(hub->lanes[i], session, &config, session->job->weight, &session->parts[i], err);
		if (status != ESP_OK)
			return status;
	}
	return ESP_OK;
}

/* Parts that no lane has been given yet. */
static void free_parts(struct hub_session *session)
{
	for (uint32_t i = 0; i < session->hub->config.lanes; i++) {
		hub_part_free(session->parts[i]);
		session->parts[i] = NULL;
	}
}

enum esp_status hub_model_open(struct hub_session *session, struct error *err)
{
	struct optimizer *optimizers = calloc(session->layout.groups + 1u, sizeof(*optimizers));

	if (!optimizers)
		return error_set(err, ESP_ENOMEM, "the hub has no memory for the job's parameter groups");
	for (uint32_t i = 0; i < session->layout.groups; i++)
		optimizers[i] = session->job->optimizer;
	enum esp_status status = make_parts(session, optimizers, err);
	free(optimizers);
	if (status != ESP_OK) {
		free_parts(session);
		return status;
	}
	for (uint32_t i = 0; i < session->hub->config.lanes; i++) {
		hub_part_open(session->parts[i]);
		session->part_count++;
	}
	return ESP_OK;
}

/* ---- the beginning ---- */

enum esp_status hub_model_begin(struct hub_session *session, struct error *err)
{
	uint32_t lanes[LAYOUT_HUBS_MOST] = {0};
	const struct layout_split split = {.hubs = session->job->hubs, .own = session->job->own, .lanes = lanes};

	lanes[split.own] = session->hub->config.lanes;
	enum esp_status status = check_declared(session, err);
	if (status == ESP_OK)
		status = hub_layout_split(session->tensors, session->tensor_count, session->job->chunk_bytes, &split,
		                          &session->layout, err);
	return status == ESP_OK ? take_memory(session, hub_sets_make(session), err) : status;
}
