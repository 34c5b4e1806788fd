/*
 * status_server.h - answers requests about this rank on local sockets: of espalier status, curl, Prometheus. I/O on
 * sockets that do not block.
 *
 * HTTP on a Unix socket with an abstract name, and on one with a path if the setting metrics asks for it. Only
 * processes of the same user, or of root, are answered, a few at a time, and each for some seconds at most; the server
 * waits for none of them. The thread of its owner drives it (the control thread, or that of join_status.h):
 * status_server_descriptor() is readable when status_server_turn() has something to do.
 *
 *     /metrics   statistics in Prometheus' text form
 *     /status    an account of the calls under way and of the last few (node/observe/account.h)
 *     /account   the same with all calls that are remembered
 */
#ifndef RANK_OBSERVE_STATUS_SERVER_H
#define RANK_OBSERVE_STATUS_SERVER_H

#include "rank/state.h"

/*
 * NULL: the settings want none, or it cannot be opened. A job goes on without it, so no error is returned; a failure to
 * listen is logged.
 */
struct status_server *status_server_open(struct rank *context);
void status_server_close(struct status_server *server); /* NULL is fine */
int status_server_descriptor(const struct status_server *server); /* -1 for NULL */
void status_server_turn(struct status_server *server);

/* The abstract name without its leading NUL: "espalier/UID/INSTANCE/RANK". */
#define STATUS_SERVER_NAME 64u
#define STATUS_SERVER_PREFIX "espalier/%u/"
const char *status_server_name(uint32_t user, uint64_t instance, uint32_t rank, char name[STATUS_SERVER_NAME]);

#endif
