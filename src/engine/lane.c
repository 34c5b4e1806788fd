#include "engine/lane.h"

#include <stdlib.h>

#include "base/partition.h"

struct lane {
	uint32_t streams;
	uint32_t turn; /* the stream that is asked first for the next message */
	struct exec_failure failure;
	struct exec *exec[];
};

enum esp_status lane_open(const struct lane_config *config, struct lane **out, struct error *err)
{
	if (config->streams == 0 || config->streams > UINT16_MAX)
		return error_set(err, ESP_EINVAL, "%u streams: there must be 1 to %u", config->streams, UINT16_MAX);
	struct lane *lane = calloc(1, sizeof(*lane) + config->streams * sizeof(struct exec *));
	if (!lane)
		return error_set(err, ESP_ENOMEM, "no memory for a lane");
	lane->streams = config->streams;
	for (uint32_t i = 0; i < config->streams; i++) {
		enum esp_status status = exec_open(&config->exec, &lane->exec[i], err);

		if (status != ESP_OK) {
			lane_close(lane);
			return status;
		}
	}
	*out = lane;
	return ESP_OK;
}

void lane_close(struct lane *lane)
{
	for (uint32_t i = 0; lane && i < lane->streams; i++)
		exec_close(lane->exec[i]);
	free(lane);
}

bool lane_take_done(struct lane *lane, struct exec_done *out)
{
	for (uint32_t i = 0; i < lane->streams; i++) {
		if (exec_take_done(lane->exec[i], out))
			return true;
	}
	return false;
}

/* What failed in one stream ends all: the transport has one connection for them. */
static void spread_failure(struct lane *lane, const struct exec_failure *failure)
{
	lane->failure = *failure;
	for (uint32_t i = 0; i < lane->streams; i++) {
		exec_fail(lane->exec[i], failure->node, failure->status);
		if (!lane->failure.waited) {
			struct exec_failure one = exec_failure(lane->exec[i]);

			lane->failure.waited = one.waited;
			lane->failure.wait = one.wait;
		}
	}
}

/* Called after whatever may have made a stream fail by itself. */
static void notice_failure(struct lane *lane, uint32_t stream)
{
	struct exec_failure failure = exec_failure(lane->exec[stream]);

	if (failure.status != ESP_OK && lane->failure.status == ESP_OK)
		spread_failure(lane, &failure);
}

void lane_fail(struct lane *lane, uint32_t peer, enum esp_status status)
{
	struct exec_failure failure = {.status = status, .node = peer};

	if (lane->failure.status == ESP_OK)
		spread_failure(lane, &failure);
}

enum esp_status lane_start(struct lane *lane, uint32_t stream, const struct exec_call *call, struct error *err)
{
	if (stream >= lane->streams)
		return error_set(err, ESP_EINVAL, "stream %u: there are %u", stream, lane->streams);
	enum esp_status status = exec_start(lane->exec[stream], call, err);
	notice_failure(lane, stream);
	return status;
}

struct exec_failure lane_failure(const struct lane *lane)
{
	return lane->failure;
}

struct exec_stats lane_stats(const struct lane *lane)
{
	struct exec_stats sum = {0};

	for (uint32_t i = 0; i < lane->streams; i++) {
		struct exec_stats one = exec_stats(lane->exec[i]);

		sum.calls += one.calls;
		sum.chunks += one.chunks;
		sum.steps += one.steps;
		sum.messages_sent += one.messages_sent;
		sum.messages_received += one.messages_received;
		sum.credits_sent += one.credits_sent;
		sum.parked += one.parked;
		sum.slots += one.slots;
	}
	return sum;
}

/* ---- what a transport calls ---- */

/* Streams take turns, so that a large call does not keep a small one from being sent. */
static bool user_next(void *user, uint32_t peer, struct transport_message *out)
{
	struct lane *lane = user;

	for (uint32_t i = 0; i < lane->streams; i++) {
		uint32_t stream = (lane->turn + i) % lane->streams;

		if (exec_next(lane->exec[stream], peer, out)) {
			out->channel = (uint16_t)stream;
			lane->turn = (stream + 1) % lane->streams;
			return true;
		}
	}
	return false;
}

static uint32_t user_ready(void *user)
{
	struct lane *lane = user;

	for (uint32_t i = 0; i < lane->streams; i++) {
		uint32_t peer = exec_ready(lane->exec[i]);

		if (peer != UINT32_MAX)
			return peer;
	}
	return UINT32_MAX;
}

static void user_sent(void *user, uint32_t peer, uint16_t channel, void *cookie)
{
	struct lane *lane = user;
	(void)peer;

	if (cookie) /* credits have none */
		exec_sent(lane->exec[channel], cookie);
	notice_failure(lane, channel);
}

static enum esp_status user_begin(void *user, uint32_t peer, const struct transport_message *message)
{
	struct lane *lane = user;

	if (message->channel >= lane->streams)
		return ESP_ECORRUPT;
	enum esp_status status = exec_begin(lane->exec[message->channel], peer, message);
	notice_failure(lane, message->channel);
	return status;
}

static struct transport_room user_room(void *user, uint32_t peer, uint16_t channel)
{
	struct lane *lane = user;

	return exec_room(lane->exec[channel], peer);
}

static void user_arrived(void *user, uint32_t peer, uint16_t channel, uint32_t bytes)
{
	struct lane *lane = user;

	exec_arrived(lane->exec[channel], peer, bytes);
}

static void user_ended(void *user, uint32_t peer, uint16_t channel)
{
	struct lane *lane = user;

	exec_ended(lane->exec[channel], peer);
	notice_failure(lane, channel);
}

static enum esp_status user_offer(void *user, uint32_t peer, const struct transport_message *message)
{
	struct lane *lane = user;

	if (message->channel >= lane->streams)
		return ESP_ECORRUPT;
	enum esp_status status = exec_offer(lane->exec[message->channel], peer, message);
	notice_failure(lane, message->channel);
	return status;
}

static uint32_t user_consumed(void *user, uint32_t peer, uint16_t channel)
{
	struct lane *lane = user;

	return exec_consumed(lane->exec[channel], peer);
}

static enum esp_status user_credit(void *user, uint32_t peer, const struct transport_message *message)
{
	struct lane *lane = user;

	if (message->channel >= lane->streams)
		return ESP_ECORRUPT;
	enum esp_status status = exec_credit(lane->exec[message->channel], peer, message);
	notice_failure(lane, message->channel);
	return status;
}

static void user_lost(void *user, uint32_t peer, enum esp_status why)
{
	lane_fail(user, peer, why);
}

static enum esp_status user_failed(void *user)
{
	struct lane *lane = user;

	return lane->failure.status;
}

const struct transport_user lane_user = {
	.next = user_next,
	.ready = user_ready,
	.sent = user_sent,
	.begin = user_begin,
	.room = user_room,
	.arrived = user_arrived,
	.ended = user_ended,
	.offer = user_offer,
	.consumed = user_consumed,
	.credit = user_credit,
	.lost = user_lost,
	.failed = user_failed,
};

/* ---- chunks to lanes ---- */

enum esp_status lanes_assign(const struct plan *plan, uint32_t lanes, uint8_t *out_lane)
{
	uint64_t count = plan->chunks.chunk_count;

	if (lanes == 0 || lanes > UINT8_MAX)
		return ESP_EINVAL;
	uint64_t *sizes = calloc(count ? count : 1, sizeof(*sizes));
	uint32_t *bins = calloc(count ? count : 1, sizeof(*bins));
	enum esp_status status = ESP_ENOMEM;
	if (sizes && bins) {
		for (uint64_t c = 0; c < count; c++)
			sizes[c] = chunks_piece(&plan->chunks, c).bytes;
		status = partition_lpt(sizes, count, NULL, lanes, bins);
	}
	for (uint64_t c = 0; status == ESP_OK && c < count; c++)
		out_lane[c] = (uint8_t)bins[c];
	free(sizes);
	free(bins);
	return status;
}
