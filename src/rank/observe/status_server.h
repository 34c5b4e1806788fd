/*
 * status_server.h - the answers of a rank on its local sockets: to espalier status, curl and Prometheus.
 *
 * The socket (node/observe/http_server.h) has an abstract name, and another one has a path if the setting metrics asks
 * for it. The loop of the control thread drives the server, or that of join_status.h.
 *
 *     /metrics   statistics in Prometheus' text form
 *     /status    an account of the calls under way and of the last few (node/observe/account.h)
 *     /account   the same with all calls that are remembered
 */
#ifndef RANK_OBSERVE_STATUS_SERVER_H
#define RANK_OBSERVE_STATUS_SERVER_H

#include "node/observe/http_server.h"
#include "rank/state.h"

/*
 * NULL: the settings want none, or it cannot be opened. A job goes on without it, so no error is returned; a failure to
 * listen is logged. The loop's thread calls this and http_server_close().
 */
struct http_server *status_server_open(struct rank *context, struct loop *loop);

/* The abstract name without its leading NUL: "espalier/UID/INSTANCE/RANK". */
#define STATUS_SERVER_NAME 64u
#define STATUS_SERVER_PREFIX "espalier/%u/"
const char *status_server_name(uint32_t user, uint64_t instance, uint32_t rank, char name[STATUS_SERVER_NAME]);

#endif
