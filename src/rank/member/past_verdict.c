#include "rank/member/past_verdict.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define KEPT 64u

struct past_verdict {
	struct past_verdict *next;
	uint32_t channel, first, size;
	struct verdict_terms terms;
	uint8_t maps[]; /* members, those of them that stayed behind, and those that have left */
};

/* With the lock held. */
static void keep_last(struct rank *context)
{
	uint32_t count = 0;

	for (struct past_verdict **at = &context->comms.past; *at;) {
		struct past_verdict *old = *at;

		if (count++ < KEPT) {
			at = &old->next;
			continue;
		}
		*at = old->next;
		free(old);
	}
}

void past_verdict_keep(const struct comm *group, const struct agreement *agreement)
{
	struct rank *context = group->context;
	size_t map = verdict_map_bytes(group->size);
	struct past_verdict *past = calloc(1, sizeof(*past) + 3 * map);

	assert(agreement->is_decided);
	if (!past)
		return;
	past->channel = group->channel;
	past->first = group->ranks[0];
	past->size = group->size;
	past->terms = agreement->accepted;
	memcpy(past->maps, agreement->accepted_members, map);
	memcpy(past->maps + map, agreement->behind, map);
	for (uint32_t i = 0; i < group->size; i++) {
		if (agreement_has_left(agreement, i))
			verdict_set_bit(past->maps + 2 * map, i);
	}
	pthread_mutex_lock(&context->lock);
	past->next = context->comms.past;
	context->comms.past = past;
	keep_last(context);
	pthread_mutex_unlock(&context->lock);
}

size_t past_verdict_find(struct rank *context, uint32_t channel, uint32_t first, uint32_t size, uint8_t **out_bytes)
{
	size_t n = 0;

	pthread_mutex_lock(&context->lock);
	const struct past_verdict *past = context->comms.past;
	while (past && (past->channel != channel || past->first != first || past->size != size))
		past = past->next;
	*out_bytes = past ? malloc(verdict_msg_most(past->size)) : NULL;
	if (*out_bytes) {
		size_t map = verdict_map_bytes(past->size);
		struct verdict_msg answer = {.type = VERDICT_DECIDED,
		                             .size = past->size,
		                             .terms = past->terms,
		                             .members = past->maps,
		                             .behind = past->maps + map,
		                             .left = past->maps + 2 * map};

		n = verdict_msg_encode(&answer, *out_bytes);
	}
	pthread_mutex_unlock(&context->lock);
	return n;
}

void past_verdict_forget(struct rank *context, uint32_t channel, uint32_t first)
{
	struct past_verdict **at = &context->comms.past;

	while (*at) {
		struct past_verdict *old = *at;

		if (old->channel != channel || old->first != first) {
			at = &old->next;
			continue;
		}
		*at = old->next;
		free(old);
	}
}

void past_verdict_forget_all(struct rank *context)
{
	while (context->comms.past) {
		struct past_verdict *next = context->comms.past->next;

		free(context->comms.past);
		context->comms.past = next;
	}
}
