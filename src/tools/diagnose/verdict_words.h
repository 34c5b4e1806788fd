/*
 * verdict_words.h - a diagnosis in one sentence. Private to src/tools/diagnose. Pure.
 */
#ifndef TOOLS_DIAGNOSE_VERDICT_WORDS_H
#define TOOLS_DIAGNOSE_VERDICT_WORDS_H

#include "tools/diagnose/verdict.h"

struct verdict_case {
	const struct account *accounts;
	uint32_t count;
	bool live;
	const uint32_t *mute; /* ranks of this host that do not answer */
	uint32_t mute_count;
};

/* A call as one rank has it. */
struct verdict_call {
	const struct account *account;
	const struct account_call *call;
	uint32_t channel, first; /* its communicator */
};

/* call: the one that is held up; NULL: none. culprit: NULL: it has no account. */
void diagnose_verdict_put_words(const struct verdict_case *c, const struct verdict_call *call,
                                const struct account *culprit, struct verdict *verdict);
void diagnose_verdict_put_cycle(const struct verdict_call *from, const struct verdict_call *to,
                                struct verdict *verdict);
void diagnose_verdict_put_mismatch(const struct verdict_case *c, const struct verdict_call *odd,
                                   const struct verdict_call *usual, struct verdict *verdict);
void diagnose_verdict_put_reason(const struct account_group *group, struct verdict *verdict);

#endif
