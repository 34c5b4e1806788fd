/*
 * join_status.h - answers espalier status for a rank that still joins: since when, and for which peers it waits. Opened
 * and closed by the thread that opens the rank; I/O on the status server's sockets.
 *
 * The control drives the status server (status_server.h), and there is no control before the ranks have each other's
 * addresses. Until then a thread of its own drives it; the thread ends when the rank has joined, or has given up.
 */
#ifndef RANK_OBSERVE_JOIN_STATUS_H
#define RANK_OBSERVE_JOIN_STATUS_H

#include "node/observe/account.h"
#include "rank/state.h"

/*
 * Opens context->mod.join_status, once this rank's number is known; join.progress then reports the peers that the rank
 * waits for. Never fails: without it joining goes on.
 */
void join_status_open(struct rank *context);
/* Closes it. Accepts that there is none. */
void join_status_close(struct rank *context);

/* The account of a rank that joins. Any thread. */
void join_status_account(struct rank *context, struct account *out);

#endif
