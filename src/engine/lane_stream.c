/*
 * lane_stream.c - the streams of a lane: opened and closed, found by channel, failing one by one.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/lane_state.h"

/* ---- members ---- */

static bool is_regular(const uint32_t *peers, uint32_t count)
{
	if (count > 1 && peers[1] <= peers[0])
		return false;
	for (uint32_t i = 2; i < count; i++) {
		if (peers[i] < peers[i - 1] || peers[i] - peers[i - 1] != peers[1] - peers[0])
			return false;
	}
	return true;
}

static int by_peer(const void *a, const void *b, void *peers)
{
	uint32_t x = ((const uint32_t *)peers)[*(const uint32_t *)a], y = ((const uint32_t *)peers)[*(const uint32_t *)b];

	return x < y ? -1 : x > y;
}

static enum esp_status members_tabulate(struct members *members, const uint32_t *peers, struct error *err)
{
	uint32_t count = members->count;

	members->peers = malloc(count * sizeof(uint32_t));
	members->by_peer = malloc(count * sizeof(uint32_t));
	if (!members->peers || !members->by_peer)
		return error_set(err, ESP_ENOMEM, "no memory for a group of %u", count);
	memcpy(members->peers, peers, count * sizeof(uint32_t));
	for (uint32_t i = 0; i < count; i++)
		members->by_peer[i] = i;
	qsort_r(members->by_peer, count, sizeof(uint32_t), by_peer, members->peers);
	for (uint32_t i = 1; i < count; i++) {
		if (peers[members->by_peer[i]] == peers[members->by_peer[i - 1]])
			return error_set(err, ESP_EINVAL, "rank %u is a member twice", peers[members->by_peer[i]]);
	}
	return ESP_OK;
}

enum esp_status lane_members_init(struct members *members, const uint32_t *peers, uint32_t count, uint32_t peer_count,
                                  struct error *err)
{
	*members = (struct members){.count = count, .stride = 1};
	if (count == 0 || count > peer_count)
		return error_set(err, ESP_EINVAL, "a group of %u: there are %u ranks", count, peer_count);
	if (!peers)
		return ESP_OK;
	for (uint32_t i = 0; i < count; i++) {
		if (peers[i] >= peer_count)
			return error_set(err, ESP_EINVAL, "rank %u: there are %u", peers[i], peer_count);
	}
	if (!is_regular(peers, count))
		return members_tabulate(members, peers, err);
	members->first = peers[0];
	members->stride = count > 1 ? peers[1] - peers[0] : 1;
	return ESP_OK;
}

void lane_members_fini(struct members *members)
{
	free(members->peers);
	free(members->by_peer);
}

uint32_t lane_members_place(const struct members *members, uint32_t peer)
{
	if (!members->peers) {
		uint32_t offset = peer - members->first;

		if (members->stride != 1 && offset % members->stride != 0)
			return PLAN_NONE;
		offset /= members->stride;
		return peer >= members->first && offset < members->count ? offset : PLAN_NONE;
	}
	uint32_t low = 0, high = members->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2, place = members->by_peer[middle];

		if (members->peers[place] == peer)
			return place;
		if (members->peers[place] < peer)
			low = middle + 1;
		else
			high = middle;
	}
	return PLAN_NONE;
}

/* ---- lists ---- */

void lane_list_add(struct stream *stream, enum stream_list list)
{
	struct lane *lane = stream->lane;

	if (stream->is_in[list])
		return;
	stream->is_in[list] = true;
	stream->next_in[list] = NULL;
	if (lane->first_in[list])
		lane->last_in[list]->next_in[list] = stream;
	else
		lane->first_in[list] = stream;
	lane->last_in[list] = stream;
}

struct stream *lane_list_take(struct lane *lane, enum stream_list list)
{
	struct stream *stream = lane->first_in[list];

	if (stream) {
		lane->first_in[list] = stream->next_in[list];
		stream->is_in[list] = false;
	}
	return stream;
}

static void lane_list_remove(struct stream *stream, enum stream_list list)
{
	struct lane *lane = stream->lane;
	struct stream *before = NULL;

	if (!stream->is_in[list])
		return;
	for (struct stream *at = lane->first_in[list]; at != stream; at = at->next_in[list])
		before = at;
	if (before)
		before->next_in[list] = stream->next_in[list];
	else
		lane->first_in[list] = stream->next_in[list];
	if (lane->last_in[list] == stream)
		lane->last_in[list] = before;
	stream->is_in[list] = false;
}

/* ---- what happens to a stream ---- */

/* In ranks. The rank to blame need not be a member: the caller that names it knows better. */
static void note_failure(struct stream *stream, uint32_t peer)
{
	stream->failed = true;
	stream->why = exec_failure(stream->exec);
	stream->why.node = peer;
	stream->why.wait.peer = members_peer(&stream->members, stream->why.wait.peer);
	lane_list_add(stream, FAILED);
}

void lane_stream_stir(struct stream *stream)
{
	struct exec *exec = stream->exec;

	if (has_failed(exec) && !stream->failed)
		note_failure(stream, members_peer(&stream->members, exec->failure.node));
	if (exec->done_first)
		lane_list_add(stream, DONE);
	if (exec->ready_first)
		lane_list_add(stream, STIRRED);
}

void lane_stream_fail(struct stream *stream, uint32_t peer, enum esp_status status)
{
	if (stream->failed)
		return;
	exec_fail(stream->exec, lane_members_place(&stream->members, peer), status);
	note_failure(stream, peer);
	lane_stream_stir(stream); /* for the results */
}

/* ---- open and close ---- */

/* The cell for a channel; NULL: no memory. */
static struct stream **cell_of(struct lane *lane, uint16_t channel)
{
	struct stream ***page = &lane->pages[channel / PAGE_STREAMS];

	if (!*page)
		*page = calloc(PAGE_STREAMS, sizeof(struct stream *));
	return *page ? &(*page)[channel % PAGE_STREAMS] : NULL;
}

bool lane_has_lost(const struct lane *lane, uint32_t peer)
{
	return lane->peers[peer].lost;
}

void lane_readmit(struct lane *lane, uint32_t peer)
{
	assert(peer < lane->config.peers);
	lane->lost_count -= lane->peers[peer].lost;
	lane->peers[peer].lost = false;
}

static enum esp_status check_members(const struct lane *lane, const struct stream *stream, struct error *err)
{
	for (uint32_t i = 0; lane->lost_count > 0 && i < stream->members.count; i++) {
		uint32_t peer = members_peer(&stream->members, i);

		if (lane->peers[peer].lost)
			return error_set(err, ESP_EPEER, "rank %u, a member, is lost", peer);
	}
	return ESP_OK;
}

static enum esp_status stream_init(struct stream *stream, const struct lane_stream_config *config, struct error *err)
{
	struct lane *lane = stream->lane;
	struct exec_config exec_config = lane->config.exec;
	enum esp_status status =
		lane_members_init(&stream->members, config->peers, config->members, lane->config.peers, err);

	if (status == ESP_OK && config->node >= config->members)
		status = error_set(err, ESP_EINVAL, "place %u in a group of %u", config->node, config->members);
	if (status == ESP_OK)
		status = check_members(lane, stream, err);
	exec_config.node = config->node;
	if (status == ESP_OK)
		status = exec_open(&exec_config, &stream->exec, err);
	if (status == ESP_OK)
		exec_share_staging(stream->exec, &lane->staging);
	return status;
}

static void stream_free(struct stream *stream)
{
	exec_close(stream->exec);
	lane_members_fini(&stream->members);
	free(stream->queued);
	free(stream);
}

enum esp_status lane_stream_open(struct lane *lane, const struct lane_stream_config *config, struct error *err)
{
	if (lane->failure.status != ESP_OK)
		return error_set(err, lane->failure.status, "the lane has failed");
	if (stream_find(lane, config->channel))
		return error_set(err, ESP_EINVAL, "channel %u is open", config->channel);
	struct stream **cell = cell_of(lane, config->channel);
	struct stream *stream = cell ? calloc(1, sizeof(*stream)) : NULL;
	if (!stream)
		return error_set(err, ESP_ENOMEM, "no memory for a stream");
	stream->lane = lane;
	stream->channel = config->channel;
	enum esp_status status = stream_init(stream, config, err);
	if (status != ESP_OK) {
		stream_free(stream);
		return status;
	}
	list_prepend(&lane->streams, &stream->link);
	*cell = stream;
	return ESP_OK;
}

void lane_stats_add(struct exec_stats *sum, const struct exec_stats *one)
{
	sum->calls += one->calls;
	sum->chunks += one->chunks;
	sum->steps += one->steps;
	sum->messages_sent += one->messages_sent;
	sum->messages_received += one->messages_received;
	sum->credits_sent += one->credits_sent;
	sum->parked += one->parked;
	sum->slots += one->slots;
}

void lane_stream_free(struct stream *stream)
{
	struct lane *lane = stream->lane;
	struct exec_stats stats = exec_stats(stream->exec);

	lane_stats_add(&lane->closed, &stats);
	lane->unfinished -= stream->unfinished;
	for (enum stream_list list = 0; list < STREAM_LISTS; list++)
		lane_list_remove(stream, list);
	lane_turns_drop(stream);
	list_remove(&lane->streams, &stream->link);
	lane->pages[stream->channel / PAGE_STREAMS][stream->channel % PAGE_STREAMS] = NULL;
	stream_free(stream);
}

void lane_stream_close(struct lane *lane, uint16_t channel)
{
	struct stream *stream = stream_find(lane, channel);

	if (stream)
		lane_stream_free(stream);
}
