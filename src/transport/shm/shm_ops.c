/*
 * shm_ops.c - shared memory as a struct transport_ops.
 */
#include <assert.h>
#include <unistd.h>

#include "transport/shm/shm_state.h"

static enum esp_status ops_open(const struct transport_config *config, const struct transport_user *user, void *context,
                                void **out, struct error *err)
{
	const struct shm_options *options = config->options;
	struct shm *shm;

	assert(options && options->segment);
	struct shm_config own = {
		.segment = options->segment,
		.lane = options->lane,
		.peers = config->peers,
		.peer_of = options->peer_of,
		.is_crowded = config->is_crowded,
	};
	enum esp_status status = shm_open_lane(&own, user, context, &shm, err);
	if (status == ESP_OK)
		*out = shm;
	return status;
}

static void ops_close(void *t)
{
	shm_close(t);
}

/* Nothing is replaced: memory does not break. */
static enum esp_status ops_adopt(void *t, uint32_t peer, const struct endpoint *endpoint, bool replaces,
                                 struct error *err)
{
	struct shm *shm = t;
	uint32_t local = peer < shm->user_peers ? shm->local_of[peer] : UINT32_MAX;
	enum esp_status status = ESP_OK;

	assert(!replaces);
	if (local == UINT32_MAX)
		status = error_set(err, ESP_EINVAL, "peer %u does not share memory with this lane", peer);
	else if (shm->has_ended)
		status = error_set(err, ESP_EPEER, "peer %u came after a failure", peer);
	else if (shm->peers[local].view)
		status = error_set(err, ESP_EINVAL, "peer %u is adopted already", peer);
	if (status != ESP_OK) {
		close(endpoint->fd);
		return status;
	}
	shm_adopt(shm, local, endpoint->memory, endpoint->fd);
	return ESP_OK;
}

static void ops_drop(void *t, uint32_t peer, enum esp_status why)
{
	shm_drop(t, peer, why);
}

static enum esp_status ops_readmit(void *t, uint32_t peer, struct error *err)
{
	return shm_readmit(t, peer, err);
}

static void ops_forget(void *t, uint16_t channel)
{
	shm_forget(t, channel);
}

static unsigned ops_poll(void *t)
{
	return shm_poll(t);
}

static bool ops_arm(void *t)
{
	return shm_doze(t);
}

static void ops_disarm(void *t)
{
	shm_rouse(t);
}

static int ops_fd(const void *t)
{
	return shm_descriptor(t);
}

static void ops_wake(void *t)
{
	shm_wake(t);
}

static bool ops_owes(const void *t)
{
	(void)t;
	return false;
}

static void ops_stats(const void *t, struct transport_stats *out)
{
	struct shm_stats stats = shm_stats(t);

	*out = (struct transport_stats){
		.messages_sent = stats.messages_sent,
		.sent_bytes = stats.sent_bytes,
		.received_bytes = stats.received_bytes,
		.shared_bytes = stats.offered_bytes,
	};
}

static bool ops_path(const void *t, uint32_t peer, struct path_stats *out)
{
	(void)t;
	(void)peer;
	(void)out;
	return false;
}

const struct transport_ops shm_ops = {
	.name = "shm",
	.caps = TRANSPORT_OFFERS | TRANSPORT_STORES,
	.open = ops_open,
	.close = ops_close,
	.adopt = ops_adopt,
	.drop = ops_drop,
	.readmit = ops_readmit,
	.forget = ops_forget,
	.poll = ops_poll,
	.flush = ops_poll, /* nothing of it asks the kernel */
	.arm = ops_arm,
	.disarm = ops_disarm,
	.fd = ops_fd,
	.wake = ops_wake,
	.owes = ops_owes,
	.stats = ops_stats,
	.path = ops_path,
};
