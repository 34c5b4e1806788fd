/*
 * poller.h - sleeping until a socket has an edge, or another thread wakes the sleeper.
 *
 * One thread at a time waits; only poller_wake() may be called by others. Any number of transports of that thread may
 * share a poller, so that a process with a hundred jobs has one.
 *
 * Sockets are watched edge-triggered, for both directions at once and from the beginning: waiting for room to send then
 * costs no system call when it begins and none when it ends, and a bulk transfer is not reported anew on each turn. The
 * price is that the subject has to remember what was reported, which bounded turns need in any case. A look of one
 * transport tells the subjects of all: before it sleeps, the thread asks each transport whether it has work.
 */
#ifndef TRANSPORT_POLLER_H
#define TRANSPORT_POLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct poller {
	int events, wakeup;
	bool lacks_pwait2; /* the kernel has no epoll_pwait2() */
	bool was_woken;    /* a look that did not sleep took a wake from the kernel: it ends the next sleep */
};

/* The owner of a watched descriptor; embedded in it. */
struct poller_subject {
	/* Events of epoll(7). Notes them and returns: it must not close, free or unwatch anything. */
	void (*ready)(struct poller_subject *subject, uint32_t events);
};

/* ESP_ELIMIT, ESP_ENOMEM; fini is due in any case. */
ESP_CHECKED enum esp_status poller_init(struct poller *poller);
void poller_fini(struct poller *poller);

/* subject is told of every edge of fd until poller_unwatch(). ESP_ELIMIT, ESP_ENOMEM. */
ESP_CHECKED enum esp_status poller_watch(struct poller *poller, int fd, struct poller_subject *subject);
void poller_unwatch(struct poller *poller, int fd);

/* Sleeps for timeout_ns at most (0: not at all; negative: no limit) and tells the subjects of their events. */
void poller_look(struct poller *poller, int64_t timeout_ns);

/* Becomes readable when poller_look() would find something. Never read from it. */
static inline int poller_descriptor(const struct poller *poller)
{
	return poller->events;
}

/* From any thread: ends the sleep, the current or the next one. Looks that do not sleep keep it for that one. */
void poller_wake(struct poller *poller);

#endif
