/*
 * ready.h - waits until poll(2) has something to tell of one descriptor, or a time has come.
 */
#ifndef BASE_READY_H
#define BASE_READY_H

#include <poll.h>
#include <stdbool.h>

#include "base/clock.h"

/* False: until_ns, as clock_now_ns() counts, has come first. */
static inline bool ready_by(int fd, short events, uint64_t until_ns)
{
	for (;;) {
		struct pollfd ready = {fd, events, 0};
		uint64_t now = clock_now_ns();

		if (now >= until_ns)
			return false;
		uint64_t ms = (until_ns - now) / NS_PER_MS + 1;
		if (poll(&ready, 1, ms > 60000 ? 60000 : (int)ms) > 0)
			return true;
	}
}

#endif
