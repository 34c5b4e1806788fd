/*
 * status_server.h - answers whoever asks about this rank, over local sockets: espalier status, curl, Prometheus.
 *
 * HTTP on a Unix socket with an abstract name, and on one with a path if the setting metrics asks for it. Only
 * processes of the same user, or of root, are answered, a few at a time, and none of them for long; nobody is waited for.
 * The steward drives it: desk_descriptor() becomes readable when there is something to do.
 *
 *     /metrics   statistics in Prometheus' text form
 *     /status    an account of the calls under way and of the last few (node/observe/account.h)
 *     /account   the same with all calls that are remembered
 */
#ifndef RANK_OBSERVE_STATUS_SERVER_H
#define RANK_OBSERVE_STATUS_SERVER_H

#include "rank/rank.h"

/* Without it a job goes on, so what fails is said in the log. NULL: the settings want none, or there is none to be had. */
struct desk *desk_open(struct context *context);
void desk_close(struct desk *desk); /* NULL is fine */
int desk_descriptor(const struct desk *desk); /* -1 for NULL */
void desk_turn(struct desk *desk);

/* The abstract name without its leading NUL: "espalier/UID/INSTANCE/RANK". */
#define DESK_NAME 64u
#define DESK_PREFIX "espalier/%u/"
const char *desk_name(uint32_t user, uint64_t instance, uint32_t rank, char name[DESK_NAME]);

#endif
