/*
 * judge_groups.h - groups from a survey, and how certain they are.
 *
 * Each kind of distance gives candidates (network/discover/candidates.h) and shows groups or none. Of the
 * candidates of the kind that shows them most clearly, the cost model (choose_grouping.h) takes the one with
 * the fastest plan. Pure.
 */
#ifndef NETWORK_DISCOVER_JUDGE_GROUPS_H
#define NETWORK_DISCOVER_JUDGE_GROUPS_H

#include "network/discover/candidates.h"
#include "network/discover/natural.h"
#include "network/topo/survey.h"

/* Zeros are the defaults. */
struct verdict_wish {
	uint32_t groups; /* number of groups; 0: choose it */
	uint64_t seed;
	/* 1 or more: by what factor sizes may differ from the mean, for a number that is given; 0: what is fastest */
	double elasticity;
};

enum verdict_word {
	VERDICT_NONE,   /* the distances show no groups: they could be random */
	VERDICT_UNSURE, /* there are groups, but hosts could as well be in others */
	VERDICT_LIKELY,
	VERDICT_SURE,
	VERDICT_TOLD,   /* the number of groups was given */
};
/* "sure" */
const char *discover_verdict_word_text(enum verdict_word word);

#define VERDICT_COUNTS 3u

/* The analysis of one kind of distance. */
struct verdict_kind {
	bool measured;
	struct matrix confirmed; /* the distances that decide: single outliers and gaps replaced (confirm.h) */
	struct matrix tamed;     /* for k-means and the evidence: outliers clipped */
	struct naturals naturals;
	uint32_t counts[VERDICT_COUNTS], count_count; /* the numbers of groups that stand out */
	struct candidates candidates;
	struct candidates_choice choice;
};

struct verdict {
	struct grouping grouping;
	enum survey_kind kind;       /* the distances that the groups are from */
	struct verdict_kind kinds[SURVEY_KINDS];
	enum verdict_word word;
	enum natural_source source; /* which of them has found the groups */
	bool polished;              /* and whether swaps and moves have changed them */
	double saves, noise_saves;  /* the share of time that a plan by them saves, and what noise alone would save */
	double within, across;       /* median distances within groups and between them, of that kind; NAN: there is none */
	double *belonging;           /* by host: -1 .. 1, how much nearer its own group is than the next; 0: one group */
	uint32_t doubtful;           /* the host that belongs least */
	/* adjusted mutual information of the results of both kinds alone; NAN: there is one kind */
	double kinds_agree;
};

/* The survey has at least two hosts and one kind. ESP_EINVAL (groups), ESP_ENOMEM. */
ESP_CHECKED enum esp_status discover_verdict_make(const struct survey *survey, const struct verdict_wish *wish,
                                                  struct verdict *out, struct error *err);
/* The number of groups that this kind of distance shows by itself, 1 if it shows none; 0: it was not measured. */
uint32_t discover_verdict_groups_by(const struct verdict *verdict, enum survey_kind kind);
void discover_verdict_fini(struct verdict *verdict); /* accepts a zeroed struct */

#endif
