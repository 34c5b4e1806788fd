#include "engine/lane.h"

#include <stdlib.h>
#include <string.h>

#include "engine/lane_state.h"
#include "plan/partition.h"

/* ---- open and close ---- */

static enum esp_status config_check(const struct lane_config *config, struct error *err)
{
	if (config->ports == 0 || config->ports > LANE_PORTS_MAX)
		return error_set(err, ESP_EINVAL, "%u transports: there must be 1 to %u", config->ports, LANE_PORTS_MAX);
	if (config->peers == 0)
		return error_set(err, ESP_EINVAL, "a job without ranks");
	for (uint32_t i = 0; config->port_of && i < config->peers; i++) {
		if (config->port_of[i] >= config->ports)
			return error_set(err, ESP_EINVAL, "rank %u is reached by transport %u: there are %u", i,
			                 config->port_of[i], config->ports);
	}
	return ESP_OK;
}

enum esp_status lane_open(const struct lane_config *config, struct lane **out, struct error *err)
{
	enum esp_status status = config_check(config, err);

	if (status != ESP_OK)
		return status;
	struct lane *lane = calloc(1, sizeof(*lane));
	if (!lane)
		return error_set(err, ESP_ENOMEM, "no memory for a lane");
	lane->config = *config;
	lane->config.port_of = NULL;
	lane->peers = calloc(config->peers, sizeof(*lane->peers));
	lane->port_of = config->port_of ? malloc(config->peers) : NULL;
	if (!lane->peers || (config->port_of && !lane->port_of)) {
		lane_close(lane);
		return error_set(err, ESP_ENOMEM, "no memory for a lane of %u ranks", config->peers);
	}
	if (lane->port_of)
		memcpy(lane->port_of, config->port_of, config->peers);
	for (uint32_t i = 0; i < LANE_PORTS_MAX; i++)
		lane->ports[i].lane = lane;
	*out = lane;
	return ESP_OK;
}

void lane_close(struct lane *lane)
{
	if (!lane)
		return;
	while (lane->streams.first)
		lane_stream_free(lane_first_stream(lane));
	for (uint32_t i = 0; i < 65536 / PAGE_STREAMS; i++)
		free(lane->pages[i]);
	while (lane->turn_free) {
		struct turn *turn = lane->turn_free;

		lane->turn_free = turn->next;
		free(turn);
	}
	free(lane->peers);
	free(lane->port_of);
	free(lane->staging);
	free(lane);
}

void *lane_port(struct lane *lane, uint32_t port)
{
	return port < lane->config.ports ? &lane->ports[port] : NULL;
}

/* ---- calls ---- */

enum esp_status lane_start(struct lane *lane, uint16_t channel, const struct exec_call *call, struct error *err)
{
	struct stream *stream = stream_find(lane, channel);

	if (!stream)
		return error_set(err, ESP_EINVAL, "channel %u is not open", channel);
	enum esp_status status = exec_start(stream->exec, call, err);
	if (status == ESP_OK) {
		stream->unfinished++;
		lane->unfinished++;
		lane->started = channel;
	}
	lane_stream_stir(stream);
	return status;
}

bool lane_take_done(struct lane *lane, struct exec_done *out)
{
	struct stream *stream;

	while ((stream = lane_list_take(lane, DONE)) != NULL) {
		if (!exec_take_done(stream->exec, out))
			continue;
		stream->unfinished--;
		lane->unfinished--;
		if (stream->exec->done_first)
			lane_list_add(stream, DONE);
		return true;
	}
	return false;
}

uint32_t lane_unfinished(const struct lane *lane)
{
	return lane->unfinished;
}

bool lane_waits(const struct lane *lane, uint16_t channel, struct exec_wait *out)
{
	const struct stream *stream = stream_find(lane, channel);
	struct exec_wait wait;

	if (!stream || !exec_waits(stream->exec, &wait))
		return false;
	wait.peer = members_peer(&stream->members, wait.peer);
	*out = wait;
	return true;
}

bool lane_waits_any(const struct lane *lane, struct exec_wait *out)
{
	for (const struct stream *stream = lane_first_stream(lane); stream; stream = lane_next_stream(stream)) {
		struct exec_wait wait;

		if (exec_waits(stream->exec, &wait) && wait.peer != PLAN_NONE) {
			wait.peer = members_peer(&stream->members, wait.peer);
			*out = wait;
			return true;
		}
	}
	return false;
}

/* ---- failure ---- */

void lane_fail_stream(struct lane *lane, uint16_t channel, uint32_t peer, enum esp_status status)
{
	struct stream *stream = stream_find(lane, channel);

	if (stream)
		lane_stream_fail(stream, peer, status);
}

void lane_fail(struct lane *lane, uint32_t peer, enum esp_status status)
{
	if (lane->failure.status != ESP_OK)
		return;
	lane->failure = (struct exec_failure){.status = status, .node = peer};
	for (struct stream *stream = lane_first_stream(lane); stream; stream = lane_next_stream(stream))
		lane_stream_fail(stream, peer, status);
}

bool lane_take_failure(struct lane *lane, struct lane_failure *out)
{
	struct stream *stream = lane_list_take(lane, FAILED);

	if (!stream)
		return false;
	*out = (struct lane_failure){.channel = stream->channel, .why = stream->why};
	return true;
}

struct exec_stats lane_stats(const struct lane *lane)
{
	struct exec_stats sum = lane->closed;

	for (const struct stream *stream = lane_first_stream(lane); stream; stream = lane_next_stream(stream)) {
		struct exec_stats one = exec_stats(stream->exec);

		lane_stats_add(&sum, &one);
	}
	return sum;
}

/* ---- chunks to lanes ---- */

enum esp_status lanes_assign(const struct plan *plan, uint32_t lanes, const uint64_t *weights, uint8_t *out_lane)
{
	uint64_t count = plan->chunks.chunk_count;

	if (lanes == 0 || lanes > UINT8_MAX)
		return ESP_EINVAL;
	uint64_t *sizes = calloc(count ? count : 1, sizeof(*sizes));
	uint32_t *bins = calloc(count ? count : 1, sizeof(*bins));
	enum esp_status status = ESP_ENOMEM;
	if (sizes && bins) {
		for (uint64_t c = 0; c < count; c++)
			sizes[c] = plan_chunks_piece(&plan->chunks, c).bytes;
		status = plan_partition_lpt(sizes, count, weights, lanes, bins);
	}
	for (uint64_t c = 0; status == ESP_OK && c < count; c++)
		out_lane[c] = (uint8_t)bins[c];
	free(sizes);
	free(bins);
	return status;
}
