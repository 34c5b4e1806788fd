/*
 * poller.h - sleeping until a socket has an edge, or somebody wakes us. Private to tcp.
 *
 * Sockets are watched edge-triggered, for both directions at once and from the beginning:
 * waiting for room to send then costs no system call when it begins and none when it ends,
 * and a bulk transfer is not reported anew on each turn. The price is that whoever polls has
 * to remember what was reported, which bounded turns need in any case.
 */
#ifndef TRANSPORT_TCP_POLLER_H
#define TRANSPORT_TCP_POLLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/error.h"

#define POLLER_EVENTS 64

struct poller {
	int events, wakeup;
	bool lacks_pwait2; /* the kernel has no epoll_pwait2() */
};

/* ESP_ELIMIT, ESP_ENOMEM; fini is due in any case. */
ESP_CHECKED enum esp_status poller_init(struct poller *poller);
void poller_fini(struct poller *poller);

/* subject comes back with every event of fd; it is not NULL. ESP_ELIMIT, ESP_ENOMEM. */
ESP_CHECKED enum esp_status poller_watch(struct poller *poller, int fd, void *subject);
void poller_unwatch(struct poller *poller, int fd);

/*
 * Sleeps for timeout_ns at most (negative: no limit) and returns the number of events, at
 * most POLLER_EVENTS; a wake is one whose subject is NULL, an interruption is none.
 */
unsigned poller_wait(struct poller *poller, int64_t timeout_ns, struct epoll_event *out);

/* From any thread: ends the sleep, the current or the next one. */
void poller_wake(struct poller *poller);

#endif
