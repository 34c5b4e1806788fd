/*
 * rank_info.c - what a context can be asked.
 */
#include <string.h>
#include <strings.h>

#include "rank/progress/callbacks.h"
#include "rank/progress/progress.h"

const char *context_setting(struct context *context, const char *name)
{
	for (size_t i = 0; i < CONF_COUNT; i++) {
		if (strcasecmp(conf_setting_at(i)->name, name) == 0)
			return context->settings[i];
	}
	return NULL;
}

static void add_sockets(const struct context *context, const struct tcp *tcp, struct context_stats *out)
{
	struct tcp_stats stats;

	for (uint32_t i = 0; i < context->size; i++) {
		if (tcp_stats(tcp, i, &stats)) {
			out->network_bytes += stats.sent_bytes;
			out->sent_bytes += stats.sent_bytes;
			out->received_bytes += stats.received_bytes;
			out->sent_messages += stats.sent_messages;
		}
	}
}

static void add_memory(const struct shm *shm, struct context_stats *out)
{
	struct shm_stats stats = shm_stats(shm);

	out->sent_bytes += stats.sent_bytes;
	out->received_bytes += stats.received_bytes;
	out->shared_bytes += stats.offered_bytes;
	out->sent_messages += stats.messages_sent;
}

/* What one lane has moved; as far as it was known the last time if its driver does not give it up in time. */
static struct context_stats ask_lane(struct context *context, struct driver *driver, uint64_t until_ns)
{
	struct context_stats stats = {0};
	bool is_ours = driver_try_acquire(driver, until_ns);

	if (is_ours && driver->tcp)
		add_sockets(context, driver->tcp, &stats);
	if (is_ours && driver->shm)
		add_memory(driver->shm, &stats);
	pthread_mutex_lock(&context->lock);
	if (is_ours)
		driver->stats = stats;
	else
		stats = driver->stats;
	pthread_mutex_unlock(&context->lock);
	if (is_ours)
		driver_release(driver);
	return stats;
}

void context_stats(struct context *context, struct context_stats *out)
{
	context_stats_until(context, UINT64_MAX, out);
}

void context_stats_until(struct context *context, uint64_t until_ns, struct context_stats *out)
{
	*out = (struct context_stats){0};
	for (uint32_t i = 0; i < context->lanes; i++) {
		struct context_stats lane = ask_lane(context, &context->drivers[i], until_ns);

		out->sent_messages += lane.sent_messages;
		out->sent_bytes += lane.sent_bytes;
		out->received_bytes += lane.received_bytes;
		out->shared_bytes += lane.shared_bytes;
		out->network_bytes += lane.network_bytes;
	}
	pthread_mutex_lock(&context->lock);
	out->calls = context->ended_calls;
	pthread_mutex_unlock(&context->lock);
	out->small_calls = atomic_load(&context->board_calls);
	out->calls += out->small_calls;
	out->retunes = atomic_load(&context->retunes);
	out->moved_masters = atomic_load(&context->moved_masters);
}

void context_poke(struct context *context)
{
	pthread_mutex_lock(&context->lock);
	if (context->has_queues)
		chores_look_after_queues(context);
	pthread_mutex_unlock(&context->lock);
}
