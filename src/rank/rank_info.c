/* rank_info.c - queries about a rank. */
#include <string.h>
#include <strings.h>

#include "rank/comm/callbacks.h"
#include "rank/rank_info.h"

const char *rank_setting(struct rank *context, const char *name)
{
	for (size_t i = 0; i < CONF_COUNT; i++) {
		if (strcasecmp(conf_setting_at(i)->name, name) == 0)
			return context->logs.settings[i];
	}
	return NULL;
}

void rank_stats(struct rank *context, struct rank_stats *out)
{
	rank_stats_until(context, UINT64_MAX, out);
}

void rank_stats_until(struct rank *context, uint64_t until_ns, struct rank_stats *out)
{
	*out = (struct rank_stats){0};
	for (uint32_t i = 0; i < context->lanes; i++) {
		struct transport_stats lane = progress_stats(&context->progress.lanes[i], until_ns);

		out->sent_messages += lane.messages_sent;
		out->sent_bytes += lane.sent_bytes;
		out->received_bytes += lane.received_bytes;
		out->shared_bytes += lane.shared_bytes;
		out->network_bytes += lane.network_bytes;
	}
	pthread_mutex_lock(&context->lock);
	out->calls = context->comms.ended_calls;
	pthread_mutex_unlock(&context->lock);
	out->small_calls = atomic_load(&context->comms.shm_small_calls);
	out->calls += out->small_calls;
	out->retunes = atomic_load(&context->comms.retunes);
	out->moved_masters = atomic_load(&context->comms.moved_masters);
}

void rank_poke(struct rank *context)
{
	pthread_mutex_lock(&context->lock);
	if (context->comms.has_queues)
		comm_callbacks_look_after_queues(context);
	pthread_mutex_unlock(&context->lock);
}
