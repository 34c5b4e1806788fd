#include "rank/state.h"

#include <stdio.h>

#include "rank/comm/plan_cache.h"
#include "wire/bytes.h"

#define FAIR_SLOTS 4u /* of a lane, for each rank of the host */
#define WORD_MOST (2 * NS_PER_S / 5)

void rank_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attributes);
	pthread_condattr_destroy(&attributes);
}

const char *rank_text(const struct rank *context, uint32_t rank, char text[RANK_TEXT])
{
	snprintf(text, RANK_TEXT, "rank %u on %s", rank, context->roster.nodes[rank].host_name);
	return text;
}

const char *rank_unreached_text(const struct rank *context, const struct unreachable *unreached,
                                char text[CONTROL_TEXT])
{
	char by[RANK_TEXT], who[RANK_TEXT];

	return unreachable_text(unreached, rank_text(context, context->rank, by), rank_text(context, unreached->rank, who),
	                        text);
}

uint64_t rank_chunk_bytes(const struct rank *context)
{
	return context->conf.chunk_bytes ? context->conf.chunk_bytes : PLAN_CACHE_CHUNK;
}

/* With many ranks on the host smaller ones: each of them needs two, and more are better. */
uint32_t rank_slot_bytes(const struct rank *context)
{
	uint64_t fair = context->conf.buffer_bytes / context->lanes / context->near.local_count / FAIR_SLOTS /
	                PLAN_CACHE_CHUNK * PLAN_CACHE_CHUNK;

	if (context->conf.chunk_bytes)
		return (uint32_t)context->conf.chunk_bytes;
	return fair < PLAN_CACHE_CHUNK        ? PLAN_CACHE_CHUNK
	       : fair < PLAN_CACHE_CHUNK_MOST ? (uint32_t)fair
	                                      : PLAN_CACHE_CHUNK_MOST;
}

void rank_wait(struct rank *context, uint64_t until_ns)
{
	struct timespec at = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};

	context->sleepers++;
	pthread_cond_timedwait(&context->changed, &context->lock, &at);
	context->sleepers--;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * It comes at once, unless the machine is busy. A late rank waits for it, and then as long again for the others to hear
 * of the end: both together take less than a second, and of a call that lets joiners in no more than it keeps for the
 * vote afterwards (grow_time.c).
 */
uint64_t rank_word_ns(const struct rank *context)
{
	uint64_t word =
		least(rank_patience_ns(context), context->opening.word_most_ns ? context->opening.word_most_ns : WORD_MOST);

	return context->join.kin > 0 ? least(word, (context->join.deadline_ns - context->opening.began_ns) / 16) : word;
}

/* A message about a group is passed on once, by ranks that are not in it too. */
bool rank_is_news(struct rank *context, const struct control_msg *msg)
{
	bool is_absence = msg->type == CONTROL_ABSENT; /* there may be others */
	uint8_t name[FLOOD_NAME_BYTES];

	if (msg->type == CONTROL_DIALS) /* there may be more than are kept here */
		return unreachable_is_news(context->member.connect_heard, context->size, msg->first, msg->dials.at_ns);
	bytes_put32(name, msg->channel);
	bytes_put32(name + 4, msg->first);
	bytes_put32(name + 8, msg->about);
	bytes_put64(name + 12, is_absence ? msg->absent.sequence : 0);
	bytes_put64(name + 20, is_absence ? msg->absent.second : 0);
	bytes_put64(name + 28, is_absence ? msg->absent.key : 0);
	bytes_put32(name + 36, msg->type);
	return control_flood_filter_hear(&context->member.flood_filter, name, clock_now_ns());
}

void rank_watch(struct rank *context)
{
	if (!atomic_exchange(&context->member.ticking, true))
		control_tick(context->control, true);
}

/* A wait that began after the clock was read has taken no time. */
static bool has_passed(uint64_t patience_ns, uint64_t since_ns, uint64_t now)
{
	return now > since_ns && now - since_ns >= patience_ns;
}

/*
 * Data that a rank sent before it left may still be on its way. And a rank that left without a clue is not to blame: it
 * has asked the others which rank it waits for, and their answer comes first.
 */
bool rank_is_leave_over(const struct rank *context, uint64_t now)
{
	uint64_t answer = context->fates.clueless > 0 ? 2 * rank_word_ns(context) : 0;

	return has_passed(rank_patience_ns(context) + answer, context->fates.gone_ns, now);
}

bool rank_has_left(const struct rank *context, uint32_t rank, uint64_t waits_since_ns, uint64_t now)
{
	uint64_t patience = rank_patience_ns(context);

	return context->fates.of[rank] == FATE_LEFT && rank_is_leave_over(context, now) &&
	       has_passed(patience, waits_since_ns, now);
}

