/*
 * verdict.h - the diagnosis: which rank holds a job up, and how, from the accounts of its ranks.
 *
 * Pure. Ranks without an account are expected: a dead rank has none. Where a rank waits in one call for a rank
 * that waits in another one, the chain is followed to its end.
 */
#ifndef TOOLS_DIAGNOSE_VERDICT_H
#define TOOLS_DIAGNOSE_VERDICT_H

#include "node/observe/account.h"

enum verdict_kind {
	VERDICT_NONE,     /* no rank waits for another */
	VERDICT_DIED,     /* the rank is gone */
	VERDICT_LEFT,     /* the rank has left in good order, and others wait for it               */
	VERDICT_MISMATCH, /* the rank has made another call than the others                        */
	VERDICT_ABSENT,   /* the rank has not made the call that others wait in, and is in none    */
	VERDICT_SILENT,   /* the rank is waited for and does not answer: stopped, or cut off */
	VERDICT_SLOW,     /* all are in the call, and the others wait for the rank */
	VERDICT_DEADLOCK, /* the rank and another one wait for each other in different calls       */
	VERDICT_OTHER,    /* the rank, if there is one, has failed by itself: text has its own reason */
};

#define VERDICT_TEXT 640u

struct verdict {
	enum verdict_kind kind;
	int32_t rank;         /* the rank at fault; -1: none in particular */
	int32_t other;        /* DEADLOCK: the other rank; -1 otherwise */
	uint32_t channel, first; /* the communicator */
	uint64_t number;      /* the call that is held up; 0: none */
	uint64_t waited_ns;   /* how long a rank has waited in it */
	char text[VERDICT_TEXT]; /* the diagnosis as a sentence */
};

/* "died", "absent" ... */
const char *diagnose_verdict_kind_name(enum verdict_kind kind);

/*
 * accounts: of one job, at most one per rank, in any order. live: they were collected just now; otherwise they
 * were written when a call failed. Without accounts the diagnosis is VERDICT_NONE.
 */
struct verdict diagnose_verdict_find(const struct account *accounts, uint32_t count, bool live);
/* The same, live; mute: ranks of this host that were asked as well and did not answer. */
struct verdict diagnose_verdict_find_live(const struct account *accounts, uint32_t count, const uint32_t *mute,
                                          uint32_t mute_count);

/* The oldest call that a rank is in, or was in when it failed. NULL: none. */
const struct account_call *diagnose_verdict_current(const struct account *account);

#endif
