/*
 * run_blame.h - whom ranks name as the one that has failed them.
 *
 * A rank that leaves in the middle of a job tells the others before its process has ended, so these may well be
 * reaped first, and the first that failed is not the cause. So ranks say whom they blame (wire/blame_msg.h), in a
 * datagram before their calls fail, and who is the cause is found out at the end:
 *
 *     rank 0, failed first --blames--> rank 3 --blames--> rank 2, ended with status 3: that one
 *
 * If there is no such socket, or it was full, the first that failed is the one that is named.
 */
#ifndef TOOLS_LAUNCHER_RUN_BLAME_H
#define TOOLS_LAUNCHER_RUN_BLAME_H

#include <stdint.h>

#include "tools/launcher/run_child.h"

#define RUN_BLAME_NOBODY UINT32_MAX
#define RUN_BLAME_EACH 64 /* datagrams in one turn: anybody on this host can send some */

struct run_blame {
	int fd;         /* -1: none */
	uint32_t size;
	uint32_t *whom; /* by rank; RUN_BLAME_NOBODY */
	uint32_t first; /* who has said something first; RUN_BLAME_NOBODY */
};

/* name: of the launcher (run_ended.h); "": none. size: how many ranks there can be. */
void run_blame_open(struct run_blame *blame, const char *name, uint32_t size);

/*
 * Takes what has come, at most RUN_BLAME_EACH; returns how many that were. What a rank says last counts: a job may have gone on
 * without the one that it named before. Never waits.
 */
int run_blame_read(struct run_blame *blame);

/* Has anybody named this rank? */
bool run_blame_has_named(const struct run_blame *blame, uint32_t rank);

/* The rank that the blame leads to from the one that failed first: one that has failed by itself, or else `failed`. */
uint32_t run_blame_follow(const struct run_blame *blame, const struct run_child *children, uint32_t failed);

/* Also for one that is zeroed but for its fd, which is -1. */
void run_blame_close(struct run_blame *blame);

#endif
