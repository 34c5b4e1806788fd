/*
 * unreached.h - ranks that are dialled and do not answer: where that was tried, and what to say about it.
 *
 * A firewall that drops what asks for a connection says nothing to anybody: a rank only notices that others do not answer, and
 * whatever waits for them ends at its own deadline. So it is kept who does not answer where, for the sentence that is told then.
 */
#ifndef RUNTIME_UNREACHED_H
#define RUNTIME_UNREACHED_H

#include <stdbool.h>
#include <stdint.h>

#include "group/route.h"
#include "wire/control_msg.h"

#define UNREACHED_MOST 16u /* ranks that are kept: where more do not answer, one is as good as another */

struct unreached {
	uint32_t rank;
	bool by_kernel;       /* its host answers, and the process does not */
	char way[ROUTE_TEXT]; /* the last one that was tried                */
};

/* Guarded by the lock of the context. */
struct unreached_list {
	struct unreached all[UNREACHED_MOST];
	uint32_t count;
};

void unreached_note(struct unreached_list *list, uint32_t rank, const char *way, bool by_kernel);
/* It has answered. */
void unreached_forget(struct unreached_list *list, uint32_t rank);
/* NULL: it is not known to be one. */
const struct unreached *unreached_find(const struct unreached_list *list, uint32_t rank);

/* "rank 0 on a gets no answer from rank 1 on b at 10.0.0.2 port 4711: ...". by, who: as context_rank_text(). Returns text. */
const char *unreached_text(const struct unreached *unreached, const char *by, const char *who, char text[CONTROL_TEXT]);

#endif
