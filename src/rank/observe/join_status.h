/*
 * join_status.h - a rank that still joins answers espalier status too: since when it joins, and whom it waits for.
 *
 * The server (status_server.h) is driven by the control, and there is none before all ranks have each other's addresses. Until then a thread of
 * its own stands in; it ends when the rank has joined, or has given up.
 */
#ifndef RANK_OBSERVE_JOIN_STATUS_H
#define RANK_OBSERVE_JOIN_STATUS_H

#include "node/observe/account.h"
#include "rank/state.h"

/*
 * Opens context->mod.join_status, once it is known who this rank is; join.progress tells it from then on whom the rank waits for. Without it joining
 * goes on, so nothing fails.
 */
void join_status_open(struct rank *context);
/* And closes it. Fine if there is none. */
void join_status_close(struct rank *context);

/* What there is to tell of a rank that joins. Any thread. */
void join_status_account(struct rank *context, struct account *out);

#endif
