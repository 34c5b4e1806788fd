/*
 * unreachable.h - ranks that are dialled and do not answer: where that was tried, and what to say about it.
 *
 * A firewall that drops what asks for a connection says nothing to anybody: a rank only notices that others do not answer, and
 * whatever waits for them ends at its own deadline. So it is kept who does not answer where, for the sentence that is told then.
 */
#ifndef NODE_CONTROL_UNREACHABLE_H
#define NODE_CONTROL_UNREACHABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "node/net/route.h"
#include "wire/control_msg.h"

#define UNREACHABLE_MOST 16u /* ranks that are kept: where more do not answer, one is as good as another */

struct unreachable {
	uint32_t rank;
	bool by_kernel;       /* its host answers, and the process does not */
	char way[ROUTE_TEXT]; /* the last one that was tried                */
};

/*
 * That a rank is dialled is word for all (CONTROL_DIALS), passed on by each of them: on a network that is full, where many do not answer, it
 * must not be what fills it, nor what beats have to wait behind. Who is dialled lets all in for longer than this.
 */
#define UNREACHABLE_HOLDS_NS (3 * NS_PER_S)
#define UNREACHABLE_WORDS 8u /* in that time */

/* Guarded by the lock of the context. */
struct unreachable_list {
	struct unreachable all[UNREACHABLE_MOST];
	uint32_t count;
	uint32_t told[UNREACHABLE_WORDS];    /* of whom all were told last, a ring */
	uint64_t told_ns[UNREACHABLE_WORDS]; /* and when; 0: never                 */
	uint32_t next;
};

void unreachable_note(struct unreachable_list *list, uint32_t rank, const char *way, bool by_kernel);
/* Are all to be told that this rank is dialled? Then they are. */
bool unreachable_tells(struct unreachable_list *list, uint32_t rank, uint64_t now_ns);
/*
 * Such a word of another rank, `by`, by whose clock it was said `at_ns`: is it new? heard: by rank, the last of each. However many there are, none
 * goes around for ever; one that a later one of the same rank overtakes is lost, and is said again. Of no such rank: false.
 */
bool unreachable_is_news(uint64_t *heard, uint32_t size, uint32_t by, uint64_t at_ns);
/* It has answered. */
void unreachable_forget(struct unreachable_list *list, uint32_t rank);
/* NULL: it is not known to be one. */
const struct unreachable *unreachable_find(const struct unreachable_list *list, uint32_t rank);

/* "rank 0 on a gets no answer from rank 1 on b at 10.0.0.2 port 4711: ...". by, who: as context_rank_text(). Returns text. */
const char *unreachable_text(const struct unreachable *unreached, const char *by, const char *who, char text[CONTROL_TEXT]);

#endif
