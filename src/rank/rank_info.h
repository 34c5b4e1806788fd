/*
 * rank_info.h - questions that a program may ask a rank: settings, statistics. Any thread.
 */
#ifndef RANK_RANK_INFO_H
#define RANK_RANK_INFO_H

#include "rank/state.h"

/* A setting's value as text, until the rank is closed; NULL: there is none of that name. */
const char *rank_setting(struct rank *rank, const char *name);

struct rank_stats {
	uint64_t calls, small_calls;
	uint64_t sent_messages;
	uint64_t sent_bytes, received_bytes;
	uint64_t shared_bytes, network_bytes; /* of those sent: read where they lay, through sockets */
	uint64_t retunes, moved_masters;
};
void rank_stats(struct rank *context, struct rank_stats *out);
/* The same, but lanes that do not answer until then count as they did the last time. */
void rank_stats_until(struct rank *context, uint64_t until_ns, struct rank_stats *out);

/* A gate may have opened. */
void rank_poke(struct rank *context);

#endif
