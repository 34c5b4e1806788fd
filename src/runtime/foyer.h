/*
 * foyer.h - a rank that still joins answers espalier status too: since when it joins, and whom it waits for.
 *
 * The desk (desk.h) is driven by the steward, and there is none before all ranks have each other's addresses. Until then a thread of
 * its own stands in; it ends when the rank has joined, or has given up.
 */
#ifndef RUNTIME_FOYER_H
#define RUNTIME_FOYER_H

#include "runtime/context.h"
#include "watch/account.h"

/*
 * Opens context->foyer, once it is known who this rank is; join.progress tells it from then on whom the rank waits for. Without it joining
 * goes on, so nothing fails.
 */
void foyer_open(struct context *context);
/* And closes it. Fine if there is none. */
void foyer_close(struct context *context);

/* What there is to tell of a rank that joins. Any thread. */
void foyer_account(struct context *context, struct account *out);

#endif
