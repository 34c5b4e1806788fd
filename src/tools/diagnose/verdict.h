/*
 * verdict.h - who holds a job up, found out from what its ranks say of themselves.
 *
 * Pure. Ranks that say nothing are reckoned with: the dead do not speak. Where a rank waits in one call for a rank that
 * waits in another one, the chain is followed to its end.
 */
#ifndef TOOLS_DIAGNOSE_VERDICT_H
#define TOOLS_DIAGNOSE_VERDICT_H

#include "node/observe/account.h"

enum verdict_kind {
	VERDICT_NONE,     /* nobody waits for anybody                                              */
	VERDICT_DIED,     /* the rank is gone                                                      */
	VERDICT_LEFT,     /* the rank has left in good order, and others wait for it               */
	VERDICT_MISMATCH, /* the rank has made another call than the others                        */
	VERDICT_ABSENT,   /* the rank has not made the call that others wait in, and is in none    */
	VERDICT_SILENT,   /* the rank is waited for and has not said anything: stopped, or cut off */
	VERDICT_SLOW,     /* all are in the call, and the others wait for the rank                 */
	VERDICT_DEADLOCK, /* the rank and another one wait for each other in different calls       */
	VERDICT_OTHER,    /* the rank, if any, has failed by itself: words are its own             */
};

#define VERDICT_TEXT 640u

struct verdict {
	enum verdict_kind kind;
	int32_t rank;         /* the culprit; -1: none in particular             */
	int32_t other;        /* DEADLOCK: the other one; -1 otherwise           */
	uint32_t channel, first; /* the group                                    */
	uint64_t number;      /* the call that is held up; 0: none               */
	uint64_t waited_ns;   /* how long somebody has waited in it              */
	char text[VERDICT_TEXT]; /* all that in one sentence, with a full stop   */
};

/* "died", "absent" ... */
const char *verdict_kind_name(enum verdict_kind kind);

/*
 * accounts: of one job, one for each rank at most, in any order. live: they were asked a moment ago; otherwise they were written
 * when something failed. With no account the verdict is VERDICT_NONE.
 */
struct verdict verdict_find(const struct account *accounts, uint32_t count, bool live);
/* The same, live; mute: ranks that were asked as well, on this host, and did not answer. */
struct verdict verdict_find_live(const struct account *accounts, uint32_t count, const uint32_t *mute, uint32_t mute_count);

/* The call that a rank is in, or was in when it failed: the oldest. NULL: none. */
const struct account_call *verdict_current(const struct account *account);

#endif
