/*
 * rank_info.c - what a context can be asked.
 */
#include <string.h>
#include <strings.h>

#include "rank/progress/callbacks.h"
#include "rank/progress/progress.h"

const char *rank_setting(struct rank *context, const char *name)
{
	for (size_t i = 0; i < CONF_COUNT; i++) {
		if (strcasecmp(conf_setting_at(i)->name, name) == 0)
			return context->settings[i];
	}
	return NULL;
}

static void add_sockets(const struct rank *context, const struct tcp *tcp, struct rank_stats *out)
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

static void add_memory(const struct shm *shm, struct rank_stats *out)
{
	struct shm_stats stats = shm_stats(shm);

	out->sent_bytes += stats.sent_bytes;
	out->received_bytes += stats.received_bytes;
	out->shared_bytes += stats.offered_bytes;
	out->sent_messages += stats.messages_sent;
}

/* What one lane has moved; as far as it was known the last time if its driver does not give it up in time. */
static struct rank_stats ask_lane(struct rank *context, struct progress *progress, uint64_t until_ns)
{
	struct rank_stats stats = {0};
	bool is_ours = progress_try_acquire(progress, until_ns);

	if (is_ours && progress->tcp)
		add_sockets(context, progress->tcp, &stats);
	if (is_ours && progress->shm)
		add_memory(progress->shm, &stats);
	pthread_mutex_lock(&context->lock);
	if (is_ours)
		progress->stats = stats;
	else
		stats = progress->stats;
	pthread_mutex_unlock(&context->lock);
	if (is_ours)
		progress_release(progress);
	return stats;
}

void rank_stats(struct rank *context, struct rank_stats *out)
{
	rank_stats_until(context, UINT64_MAX, out);
}

void rank_stats_until(struct rank *context, uint64_t until_ns, struct rank_stats *out)
{
	*out = (struct rank_stats){0};
	for (uint32_t i = 0; i < context->lanes; i++) {
		struct rank_stats lane = ask_lane(context, &context->progress[i], until_ns);

		out->sent_messages += lane.sent_messages;
		out->sent_bytes += lane.sent_bytes;
		out->received_bytes += lane.received_bytes;
		out->shared_bytes += lane.shared_bytes;
		out->network_bytes += lane.network_bytes;
	}
	pthread_mutex_lock(&context->lock);
	out->calls = context->ended_calls;
	pthread_mutex_unlock(&context->lock);
	out->small_calls = atomic_load(&context->shm_small_calls);
	out->calls += out->small_calls;
	out->retunes = atomic_load(&context->retunes);
	out->moved_masters = atomic_load(&context->moved_masters);
}

void rank_poke(struct rank *context)
{
	pthread_mutex_lock(&context->lock);
	if (context->has_queues)
		callbacks_look_after_queues(context);
	pthread_mutex_unlock(&context->lock);
}
