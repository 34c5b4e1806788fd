/*
 * accept_limit.h - how many strangers are let in at the ports of a rank.
 *
 * To accept a connection, to greet it and to close it costs tens of microseconds, so somebody who connects thousands of times
 * a second could take a core away from the job. Who is a rank can only be told after it was let in. So each that is let in takes
 * a ticket, and whoever proves itself gives it back: ranks use up none. There are enough for all ranks to come at once;
 * those that strangers have taken grow back at ACCEPT_LIMIT_RATE. Without tickets the accept_limit is locked, and who comes waits in the
 * kernel's queue, which is kept short then: the rest is dropped before it costs anything.
 *
 *     free ──── no ticket left ────> locked ──── ACCEPT_LIMIT_PAUSE: those that have grown back ──┐
 *      ^                               ^                                                       │
 *      │                               └────────────── all used up ───────────────────────────┤
 *      └──── nobody waits any more, or a rank is expected ────────────────────────────────────┘
 *
 * A rank that finds no way in has itself announced by others (CONTROL_DIALS): then nobody takes a ticket for a while.
 *
 * Pure: no I/O, no clock. Used by the control's thread alone.
 */
#ifndef NODE_CONTROL_ACCEPT_LIMIT_H
#define NODE_CONTROL_ACCEPT_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define ACCEPT_LIMIT_RATE 400u                  /* tickets that grow back in a second: at 25 us each, one per cent of a core */
#define ACCEPT_LIMIT_SPARE 64u                  /* tickets, beyond one for each connection that the job can need             */
#define ACCEPT_LIMIT_PAUSE_NS (50 * NS_PER_MS)  /* between two looks while it is locked                                      */
#define ACCEPT_LIMIT_EXPECT_NS (4 * NS_PER_S)   /* a kernel tries to connect at 0, 1 and 3 s                                 */

struct accept_limit {
	uint64_t most, tickets; /* in millionths */
	uint64_t grown_ns;      /* until when they have grown */
	uint64_t free_until_ns; /* a rank is expected         */
	uint64_t look_ns;       /* while locked: when to look again */
	bool locked;
};

/* For a job that needs so many connections at most. Everybody is expected, until accept_limit_settle(). */
void accept_limit_init(struct accept_limit *accept_limit, uint64_t connections, uint64_t now_ns);
/* A rank comes within ACCEPT_LIMIT_EXPECT_NS. */
void accept_limit_expect(struct accept_limit *accept_limit, uint64_t now_ns);
/* Nobody is expected any more. */
void accept_limit_settle(struct accept_limit *accept_limit);

/* May somebody be let in? If not, it is locked from now on. */
bool accept_limit_admits(struct accept_limit *accept_limit, uint64_t now_ns);
/* Somebody was let in, as accept_limit_admits() said, and takes a ticket. */
void accept_limit_take(struct accept_limit *accept_limit, uint64_t now_ns);
/* Who was let in has proved itself. */
void accept_limit_proved(struct accept_limit *accept_limit);
/* Nobody waits outside any more: not locked from now on. */
void accept_limit_empty(struct accept_limit *accept_limit);

/* When to look whether somebody waits; UINT64_MAX: whenever somebody comes, it is not locked. */
uint64_t accept_limit_look_ns(const struct accept_limit *accept_limit, uint64_t now_ns);

#endif
