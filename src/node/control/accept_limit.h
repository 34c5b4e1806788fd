/*
 * accept_limit.h - a token bucket that bounds how many unproved connections a node accepts. Pure: no I/O, no clock.
 * Control thread only.
 *
 * To accept, greet and close a connection costs tens of microseconds, so a stranger that connects thousands of times a
 * second could take a core away from the job. Only an accepted connection can prove that it comes from a rank. So each
 * accepted connection takes a token, and gives it back once it is proved: ranks use up none. There are enough tokens
 * for all ranks to connect at once; tokens that strangers have taken grow back at ACCEPT_LIMIT_RATE. Without tokens the
 * limit is locked, and connections wait in the kernel's backlog, which is kept short then: the kernel drops the rest
 * before they cost anything.
 *
 *     free ──── no token left ─────> locked ──── ACCEPT_LIMIT_PAUSE: tokens that have grown back ─┐
 *      ^                               ^                                                          │
 *      │                               └────────────── all used up ───────────────────────────────┤
 *      └──── the backlog is empty, or a rank is expected ─────────────────────────────────────────┘
 *
 * A rank whose connections are not accepted is announced by its peers (CONTROL_DIALS): then connections take no tokens
 * for a while.
 */
#ifndef NODE_CONTROL_ACCEPT_LIMIT_H
#define NODE_CONTROL_ACCEPT_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define ACCEPT_LIMIT_RATE 400u                 /* tokens per second: at 25 us a connection, one per cent of a core */
#define ACCEPT_LIMIT_SPARE 64u                 /* tokens, beyond one for each connection that the job can need */
#define ACCEPT_LIMIT_PAUSE_NS (50 * NS_PER_MS) /* between two batches while it is locked */
#define ACCEPT_LIMIT_EXPECT_NS (4 * NS_PER_S)  /* a kernel tries to connect at 0, 1 and 3 s */

struct accept_limit {
	uint64_t most, tokens;  /* in millionths of a token */
	uint64_t grown_ns;      /* time up to which tokens have grown back */
	uint64_t free_until_ns; /* a rank is expected until then: no tokens are taken */
	uint64_t batch_ns;      /* while locked: time of the next batch */
	bool locked;
};

/* For a job that needs at most so many connections. Ranks are expected until accept_limit_settle(). */
void accept_limit_init(struct accept_limit *accept_limit, uint64_t connections, uint64_t now_ns);
/* A rank is expected to connect within ACCEPT_LIMIT_EXPECT_NS. */
void accept_limit_expect(struct accept_limit *accept_limit, uint64_t now_ns);
/* No rank is expected any more. */
void accept_limit_settle(struct accept_limit *accept_limit);

/* True if a connection may be accepted. If not, the limit is locked from now on. */
bool accept_limit_admits(struct accept_limit *accept_limit, uint64_t now_ns);
/* A connection was accepted after accept_limit_admits() returned true: takes a token. */
void accept_limit_take(struct accept_limit *accept_limit, uint64_t now_ns);
/* An accepted connection is proved: gives its token back. */
void accept_limit_proved(struct accept_limit *accept_limit);
/* The backlogs are empty: not locked from now on. */
void accept_limit_empty(struct accept_limit *accept_limit);

/* When to accept again while locked; UINT64_MAX: not locked, accept whenever a port is readable. */
uint64_t accept_limit_due_ns(const struct accept_limit *accept_limit, uint64_t now_ns);

#endif
