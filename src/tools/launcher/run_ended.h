/*
 * run_ended.h - tells ranks that join which others have ended, so that nobody waits for those.
 *
 * A Unix socket in the abstract name space: no file that could stay behind, and nothing to inherit that a
 * script in between might close. Whoever connects, if it is our user, gets the ranks that are gone
 * (wire/ended_msg.h), and that is all. If there is no such socket the job runs all the same.
 */
#ifndef TOOLS_LAUNCHER_RUN_ENDED_H
#define TOOLS_LAUNCHER_RUN_ENDED_H

#include <stdint.h>

#include "tools/launcher/run_child.h"

#define RUN_ENDED_NAME 48u   /* with the NUL */
#define RUN_ENDED_ANSWERS 16 /* in one turn: anybody on this host can connect, and the job shall not wait for them */

#define RUN_ENDED_NEVER 127  /* as a shell has it for what could not be started */

struct run_ended {
	int fd; /* -1: none */
	char name[RUN_ENDED_NAME]; /* "": none */
	uint8_t *answer;           /* room for all ranks */
};

/* size: how many ranks there can be. */
void run_ended_open(struct run_ended *ended, uint32_t size);

/*
 * Answers some of those who ask now; the others in turns to come. children: by rank, so many as were started; from there
 * up to settled: ranks that never will be, which count as ended with RUN_ENDED_NEVER. Never waits.
 */
void run_ended_answer(struct run_ended *ended, const struct run_child *children, uint32_t count, uint32_t settled);

/* Also for one that is zeroed but for its fd, which is -1. */
void run_ended_close(struct run_ended *ended);

#endif
