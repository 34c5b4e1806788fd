/*
 * rules.h - what an explorer runs: the product's step and merge rule, and others in their place, to see that it would
 * find what they break.
 */
#ifndef TESTS_SWITCH_RULES_H
#define TESTS_SWITCH_RULES_H

#include "switch/endpoint/element.h"
#include "switch/step/step.h"

#define RULES_WORDS 16u

/* A slot with its words, and a packet with its words. */
struct rules_slot {
	struct step_slot slot;
	uint32_t words[RULES_WORDS];
};
struct rules_packet {
	struct atp_packet packet;
	uint32_t words[RULES_WORDS];
};

/* Runs step and words; returns whether the packet leaves. */
typedef bool rules_step_fn(const struct step_limits *limits, struct rules_slot *slot, struct rules_packet *packet,
                           bool is_child, uint64_t now_ns);
typedef void rules_take_fn(struct element *element, const struct shape *shape, const struct rules_packet *packet);

struct rules {
	const char *name;
	rules_step_fn *step;
	rules_take_fn *take;
	bool reuses_numbers; /* against I1: a number begins anew once it is complete, with other contents */
	bool never_bypasses; /* against W2 */
	bool never_ages;     /* against S3 */
	bool knows_no_age;   /* slots are freed by resends and results alone: leaks are not looked for */
};

/* The product's objects, and nothing else. */
extern const struct rules rules_product;

/* The paper's own switch and server, as printed: a partial sum is added if one of its bits is new. */
extern const struct rules rules_paper;
/* The same, but its server drops partial sums that overlap. */
extern const struct rules rules_paper_disjoint;

/* The product with one rule switched off each. */
extern const struct rules rules_s1_off; /* a member's packet joins the second level as if it were its group */
extern const struct rules rules_s3_off; /* old slots are not forgotten */
extern const struct rules rules_s4_off; /* repeated originals are added again */
extern const struct rules rules_s5_off; /* a resend whose bit is there is added again */
extern const struct rules rules_o3_off; /* a partial sum is added if one of its bits is new */
extern const struct rules rules_w2_off; /* all resends go through the switch */
extern const struct rules rules_i1_off; /* numbers are used again */

#endif
