/*
 * tcp_ops.c - TCP as a struct transport_ops.
 */
#include "transport/tcp/tcp.h"

static enum esp_status ops_open(const struct transport_config *config, const struct transport_user *user, void *context,
                                void **out, struct error *err)
{
	const struct tcp_options *options = config->options;
	struct tcp_config own = {
		.peers = config->peers,
		.send_buffer = options ? options->send_buffer : 0,
		.receive_buffer = options ? options->receive_buffer : 0,
		.unsent_most = options ? options->unsent_most : 0,
		.resumes = config->resumes,
		.poller = config->poller,
		.dial = config->dial,
		.dial_context = config->dial_context,
	};
	struct tcp *tcp;
	enum esp_status status = tcp_open(&own, user, context, &tcp, err);

	if (status == ESP_OK)
		*out = tcp;
	return status;
}

static void ops_close(void *t)
{
	tcp_close(t);
}

static enum esp_status ops_adopt(void *t, uint32_t peer, const struct endpoint *endpoint, bool replaces,
                                 struct error *err)
{
	return replaces ? tcp_replace(t, peer, endpoint->fd, endpoint->checked, err)
	                : tcp_adopt(t, peer, endpoint->fd, endpoint->checked, err);
}

static void ops_drop(void *t, uint32_t peer, enum esp_status why)
{
	tcp_drop(t, peer, why);
}

static enum esp_status ops_readmit(void *t, uint32_t peer, struct error *err)
{
	(void)err;
	tcp_readmit(t, peer);
	return ESP_OK;
}

static void ops_forget(void *t, uint16_t channel)
{
	tcp_forget(t, channel);
}

static unsigned ops_poll(void *t)
{
	return tcp_poll(t, 0);
}

static unsigned ops_flush(void *t)
{
	return tcp_flush(t);
}

static bool ops_arm(void *t)
{
	(void)t; /* edges that come from now on make the descriptor readable */
	return true;
}

static void ops_disarm(void *t)
{
	tcp_has_slept(t);
}

static int ops_fd(const void *t)
{
	return tcp_descriptor(t);
}

static void ops_wake(void *t)
{
	tcp_wake(t);
}

static bool ops_owes(const void *t)
{
	return tcp_is_resuming(t);
}

static void ops_stats(const void *t, struct transport_stats *out)
{
	tcp_totals(t, out);
}

static bool ops_path(const void *t, uint32_t peer, struct path_stats *out)
{
	return tcp_stats(t, peer, out);
}

const struct transport_ops tcp_ops = {
	.name = "tcp",
	.caps = TRANSPORT_REPLACES | TRANSPORT_PATHS,
	.open = ops_open,
	.close = ops_close,
	.adopt = ops_adopt,
	.drop = ops_drop,
	.readmit = ops_readmit,
	.forget = ops_forget,
	.poll = ops_poll,
	.flush = ops_flush,
	.arm = ops_arm,
	.disarm = ops_disarm,
	.fd = ops_fd,
	.wake = ops_wake,
	.owes = ops_owes,
	.stats = ops_stats,
	.path = ops_path,
};
