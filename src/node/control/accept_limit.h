/*
 * accept_limit.h - how many strangers are let in at the ports of a rank.
 *
 * To accept a connection, to greet it and to close it costs tens of microseconds, so somebody who connects thousands of times
 * a second could take a core away from the job. Who is a rank can only be told after it was let in. So each that is let in takes
 * a ticket, and whoever proves itself gives it back: ranks use up none. There are enough for all ranks to come at once;
 * those that strangers have taken grow back at TURNSTILE_RATE. Without tickets the turnstile is locked, and who comes waits in the
 * kernel's queue, which is kept short then: the rest is dropped before it costs anything.
 *
 *     free ──── no ticket left ────> locked ──── TURNSTILE_PAUSE: those that have grown back ──┐
 *      ^                               ^                                                       │
 *      │                               └────────────── all used up ───────────────────────────┤
 *      └──── nobody waits any more, or a rank is expected ────────────────────────────────────┘
 *
 * A rank that finds no way in has itself announced by others (CONTROL_DIALS): then nobody takes a ticket for a while.
 *
 * Pure: no I/O, no clock. Used by the steward's thread alone.
 */
#ifndef NODE_CONTROL_ACCEPT_LIMIT_H
#define NODE_CONTROL_ACCEPT_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define TURNSTILE_RATE 400u                  /* tickets that grow back in a second: at 25 us each, one per cent of a core */
#define TURNSTILE_SPARE 64u                  /* tickets, beyond one for each connection that the job can need             */
#define TURNSTILE_PAUSE_NS (50 * NS_PER_MS)  /* between two looks while it is locked                                      */
#define TURNSTILE_EXPECT_NS (4 * NS_PER_S)   /* a kernel tries to connect at 0, 1 and 3 s                                 */

struct turnstile {
	uint64_t most, tickets; /* in millionths */
	uint64_t grown_ns;      /* until when they have grown */
	uint64_t free_until_ns; /* a rank is expected         */
	uint64_t look_ns;       /* while locked: when to look again */
	bool locked;
};

/* For a job that needs so many connections at most. Everybody is expected, until turnstile_settle(). */
void turnstile_init(struct turnstile *turnstile, uint64_t connections, uint64_t now_ns);
/* A rank comes within TURNSTILE_EXPECT_NS. */
void turnstile_expect(struct turnstile *turnstile, uint64_t now_ns);
/* Nobody is expected any more. */
void turnstile_settle(struct turnstile *turnstile);

/* May somebody be let in? If not, it is locked from now on. */
bool turnstile_admits(struct turnstile *turnstile, uint64_t now_ns);
/* Somebody was let in, as turnstile_admits() said, and takes a ticket. */
void turnstile_take(struct turnstile *turnstile, uint64_t now_ns);
/* Who was let in has proved itself. */
void turnstile_proved(struct turnstile *turnstile);
/* Nobody waits outside any more: not locked from now on. */
void turnstile_empty(struct turnstile *turnstile);

/* When to look whether somebody waits; UINT64_MAX: whenever somebody comes, it is not locked. */
uint64_t turnstile_look_ns(const struct turnstile *turnstile, uint64_t now_ns);

#endif
