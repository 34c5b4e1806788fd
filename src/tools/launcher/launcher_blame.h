/*
 * launcher_blame.h - which rank failed first, from the ranks' reports of each other.
 *
 * A rank that leaves in the middle of a job tells the others before its process has ended, so these may be
 * reaped first, and the rank that is reaped first is not the cause. So a rank reports which rank has failed it
 * (wire/blame_msg.h), in a datagram before its calls fail, and the cause is the end of the chain:
 *
 *     rank 0, failed first --blames--> rank 3 --blames--> rank 2, ended with status 3: that one
 *
 * Without the socket, or if it was full, the cause is the rank that failed first. Never blocks.
 */
#ifndef TOOLS_LAUNCHER_LAUNCHER_BLAME_H
#define TOOLS_LAUNCHER_LAUNCHER_BLAME_H

#include <stdint.h>

#include "tools/launcher/launcher_child.h"

#define RUN_BLAME_NONE UINT32_MAX
#define RUN_BLAME_EACH 64 /* datagrams per turn: any process on this host can send some */

struct run_blame {
	int fd; /* -1: none */
	uint32_t size;
	uint32_t *accused; /* by rank: the rank that it blames; RUN_BLAME_NONE */
	uint32_t first;    /* the first rank that has reported; RUN_BLAME_NONE */
};

/* name: of the launcher (launcher_ended.h); "": none. size: most ranks of the job. */
void launcher_blame_open(struct run_blame *blame, const char *name, uint32_t size);

/*
 * Reads at most RUN_BLAME_EACH datagrams and returns their number. A rank's latest report counts: the job may
 * have gone on without the rank that it named before. Never blocks.
 */
int launcher_blame_read(struct run_blame *blame);

/* True if a report names this rank. */
bool launcher_blame_has_named(const struct run_blame *blame, uint32_t rank);

/*
 * The rank at the end of the chain of blame from `failed`, the first that failed; `failed` if that rank did not
 * fail by itself.
 */
uint32_t launcher_blame_follow(const struct run_blame *blame, const struct run_child *children, uint32_t failed);

/* Accepts a struct that is zero but for its fd, which is -1. */
void launcher_blame_close(struct run_blame *blame);

#endif
