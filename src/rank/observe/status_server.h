/*
 * status_server.h - answers whoever asks about this rank, over local sockets: espalier status, curl, Prometheus.
 *
 * HTTP on a Unix socket with an abstract name, and on one with a path if the setting metrics asks for it. Only
 * processes of the same user, or of root, are answered, a few at a time, and none of them for long; nobody is waited for.
 * The control drives it: status_server_descriptor() becomes readable when there is something to do.
 *
 *     /metrics   statistics in Prometheus' text form
 *     /status    an account of the calls under way and of the last few (node/observe/account.h)
 *     /account   the same with all calls that are remembered
 */
#ifndef RANK_OBSERVE_STATUS_SERVER_H
#define RANK_OBSERVE_STATUS_SERVER_H

#include "rank/state.h"

/* Without it a job goes on, so what fails is said in the log. NULL: the settings want none, or there is none to be had. */
struct status_server *status_server_open(struct rank *context);
void status_server_close(struct status_server *server); /* NULL is fine */
int status_server_descriptor(const struct status_server *server); /* -1 for NULL */
void status_server_turn(struct status_server *server);

/* The abstract name without its leading NUL: "espalier/UID/INSTANCE/RANK". */
#define STATUS_SERVER_NAME 64u
#define STATUS_SERVER_PREFIX "espalier/%u/"
const char *status_server_name(uint32_t user, uint64_t instance, uint32_t rank, char name[STATUS_SERVER_NAME]);

#endif
