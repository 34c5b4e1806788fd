/*
 * launcher.h - asks the launcher of the ranks which of them have ended.
 *
 * A rank that ends before it has joined would be waited for until the deadline. espalier run listens on an
 * abstract Unix socket (ESP_LAUNCHER is its name) and answers with the ranks that have ended
 * (wire/ended_msg.h); joining ranks ask it periodically. Nothing here blocks: an answer is read when the next
 * question is due. In the other direction a rank reports which rank it holds responsible for a failed job
 * (wire/blame_msg.h). On other hosts, and under other launchers, there is no such socket and these functions do
 * nothing.
 */
#ifndef RANK_JOIN_LAUNCHER_H
#define RANK_JOIN_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "wire/ended_msg.h"

#define LAUNCHER_PAUSE_NS (200 * NS_PER_MS) /* between questions */

struct launcher {
	const char *name; /* "": there is no launcher; borrowed */
	int fd;           /* the connection on which an answer is awaited; -1: none */
	uint64_t next_ns; /* when the next question is due; UINT64_MAX: never */
};

void launcher_init(struct launcher *launcher, const char *name, uint64_t now_ns);

/*
 * When it is due: reads the last answer and asks again. Returns the number of ranks, from 0 on, that the answer
 * covers (ended_get()), at most size; the others are unknown. out: size * ENDED_BYTES.
 */
uint32_t launcher_turn(struct launcher *launcher, uint64_t now_ns, uint8_t *out, uint32_t size);

void launcher_fini(struct launcher *launcher);

/*
 * Reports to the launcher of this name ("": none) that rank `accused` has failed rank `accuser`. Never blocks;
 * a report that cannot be sent is dropped.
 */
void launcher_blame(const char *name, uint32_t accuser, uint32_t accused);

#endif
