/*
 * launcher.h - what only the one who started the ranks can know: which of them have ended.
 *
 * A rank that ends before it has joined would be waited for until the deadline. espalier run
 * answers at a Unix socket in the abstract name space (ESP_LAUNCHER names it) with the ranks that are gone
 * (wire/ended_msg.h). Those that join ask now and then. Nothing here waits: an answer is read when
 * the next question is due. The other way round it is told whom a rank blames for a group that has failed, which
 * only the ranks can know (wire/blame_msg.h). Where there is no such socket, on other hosts and under other
 * launchers, nobody is asked or told and nothing is different.
 */
#ifndef RANK_JOIN_LAUNCHER_H
#define RANK_JOIN_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "wire/ended_msg.h"

#define LAUNCHER_PAUSE_NS (200 * NS_PER_MS) /* between questions */

struct launcher {
	const char *name; /* "": nobody is asked; borrowed */
	int fd;           /* an answer is awaited there; -1: none */
	uint64_t next_ns; /* when the next question is due; UINT64_MAX: never */
};

void launcher_init(struct launcher *launcher, const char *name, uint64_t now_ns);

/*
 * If it is time: takes the last answer and asks again. Returns how many ranks, from 0 on, the answer is about
 * (ended_get()); no more than size, and nothing is known of the others. out: size * ENDED_BYTES.
 */
uint32_t launcher_turn(struct launcher *launcher, uint64_t now_ns, uint8_t *out, uint32_t size);

void launcher_fini(struct launcher *launcher);

/* Rank `who` says that rank `whom` has failed it, to the launcher of this name ("": nobody). Never waits; what cannot be said is not. */
void launcher_blame(const char *name, uint32_t who, uint32_t whom);

#endif
