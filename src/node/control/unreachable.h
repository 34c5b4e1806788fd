/*
 * unreachable.h - ranks that are dialled and do not answer: their addresses, and the sentence about them. Pure; the
 * owner locks it.
 *
 * A firewall that drops connection requests does so silently: a rank only notices that peers do not answer, and calls
 * that wait for them end at their own deadline. So each rank keeps the peers that did not answer, for the error text.
 */
#ifndef NODE_CONTROL_UNREACHABLE_H
#define NODE_CONTROL_UNREACHABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "node/net/route.h"
#include "wire/control_msg.h"

#define UNREACHABLE_MOST 16u /* ranks that are kept: with more, any of them will do for the sentence */

struct unreachable {
	uint32_t rank;
	bool by_kernel;       /* its host answers, and the process does not */
	char way[ROUTE_TEXT]; /* the last one that was tried */
};

/*
 * A rank announces that it dials another (CONTROL_DIALS), and every rank forwards it. On a congested network, where
 * many do not answer, announcements must neither fill the network nor delay heartbeats. A rank that learns that it is
 * dialled accepts all connections for longer than this.
 */
#define UNREACHABLE_HOLDS_NS (3 * NS_PER_S)
#define UNREACHABLE_WORDS 8u /* announcements in that time */

/* Guarded by the owner's lock. */
struct unreachable_list {
	struct unreachable all[UNREACHABLE_MOST];
	uint32_t count;
	uint32_t told[UNREACHABLE_WORDS];    /* ranks that were announced last, a ring */
	uint64_t told_ns[UNREACHABLE_WORDS]; /* and when; 0: never */
	uint32_t next;
};

void unreachable_note(struct unreachable_list *list, uint32_t rank, const char *way, bool by_kernel);
/* True if it is to be announced that this rank is dialled; counts as announced from now on. */
bool unreachable_tells(struct unreachable_list *list, uint32_t rank, uint64_t now_ns);
/*
 * True if an announcement of rank `by`, made at `at_ns` of its clock, is new. heard: by rank, the time of its last one.
 * So none goes around for ever, however many there are; one that is overtaken by a later one of the same rank is lost,
 * and will be repeated. False if there is no such rank.
 */
bool unreachable_is_news(uint64_t *heard, uint32_t size, uint32_t by, uint64_t at_ns);
/* The rank has answered. */
void unreachable_forget(struct unreachable_list *list, uint32_t rank);
/* NULL: the rank is not in the list. */
const struct unreachable *unreachable_find(const struct unreachable_list *list, uint32_t rank);

/*
 * "rank 0 on a gets no answer from rank 1 on b at 10.0.0.2 port 4711: ...". by, peer: as context_rank_text(). Returns
 * text.
 */
const char *unreachable_text(const struct unreachable *unreached, const char *by, const char *peer,
                             char text[CONTROL_TEXT]);

#endif
