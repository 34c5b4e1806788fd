/*
 * launcher_ended.h - tells joining ranks which ranks have ended, so that none is waited for in vain.
 *
 * A Unix socket in the abstract name space: no file that could stay behind, and no descriptor that a script in
 * between might close. A process of this user that connects gets the list of ranks that have ended
 * (wire/ended_msg.h). Without the socket the job runs all the same. Never blocks.
 */
#ifndef TOOLS_LAUNCHER_LAUNCHER_ENDED_H
#define TOOLS_LAUNCHER_LAUNCHER_ENDED_H

#include <stdint.h>

#include "tools/launcher/launcher_child.h"

#define RUN_ENDED_NAME 48u   /* with its NUL */
#define RUN_ENDED_ANSWERS 16 /* per turn: any process on this host can connect, and must not hold up the job */

#define RUN_ENDED_NEVER 127 /* as a shell has it for a command that could not be started */

struct run_ended {
	int fd;                    /* -1: none */
	char name[RUN_ENDED_NAME]; /* "": none */
	uint8_t *answer;           /* room for all ranks */
};

/* size: most ranks of the job. */
void launcher_ended_open(struct run_ended *ended, uint32_t size);

/*
 * Answers at most RUN_ENDED_ANSWERS questions; later turns answer the rest. children: by rank, `count` were
 * started; ranks from there up to `settled` never will be, and count as ended with RUN_ENDED_NEVER. Never
 * blocks.
 */
void launcher_ended_answer(struct run_ended *ended, const struct run_child *children, uint32_t count, uint32_t settled);

/* Accepts a struct that is zero but for its fd, which is -1. */
void launcher_ended_close(struct run_ended *ended);

#endif
