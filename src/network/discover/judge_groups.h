/*
 * judge_groups.h - from what was measured to groups, and how sure that is.
 *
 * Each kind of distance gives its candidates (network/discover/candidates.h) and is asked whether it shows groups at all. Of the candidates
 * of all kinds that do, the cost model (tune/choose.h) takes the one with the fastest plan. Pure, and used by whoever probes:
 * the library and the command. Private to src/api and src/cli.
 */
#ifndef NETWORK_DISCOVER_JUDGE_GROUPS_H
#define NETWORK_DISCOVER_JUDGE_GROUPS_H

#include "network/discover/candidates.h"
#include "network/topo/survey.h"

/* Zeros are the defaults. */
struct verdict_wish {
	uint32_t groups; /* so many; 0: as many as is best */
	uint64_t seed;
};

enum verdict_word {
	VERDICT_NONE,   /* the distances show no groups: they could be like that by accident */
	VERDICT_UNSURE, /* there are groups, but hosts could as well be in others            */
	VERDICT_LIKELY,
	VERDICT_SURE,
	VERDICT_TOLD,   /* somebody said how many groups there are */
};
/* "sure" */
const char *verdict_word_text(enum verdict_word word);

/* What one kind of distance says. */
struct verdict_kind {
	bool measured;
	struct matrix tamed; /* what is grouped: nothing in it is far beyond the rest */
	struct candidates candidates;
	struct candidates_choice choice;
};

struct verdict {
	struct grouping grouping;
	enum survey_kind kind;       /* the distances that the groups are from   */
	struct verdict_kind kinds[SURVEY_KINDS];
	enum verdict_word word;
	double within, across;       /* median distance in groups, and between them, of that kind; NAN: there is none */
	double *belonging;           /* by host: -1 .. 1, how much nearer its own group is than the next; 0: one group */
	uint32_t doubtful;           /* the host that belongs the least         */
	double kinds_agree;          /* adjusted mutual information of what both kinds say alone; NAN: there is one kind */
};

/* The survey has at least two hosts and one kind. ESP_EINVAL (groups), ESP_ENOMEM. */
ESP_CHECKED enum esp_status verdict_make(const struct survey *survey, const struct verdict_wish *wish, struct verdict *out,
                                         struct error *err);
/* How many groups this kind of distance shows by itself, 1 if it shows none; 0: it was not measured. */
uint32_t verdict_groups_by(const struct verdict *verdict, enum survey_kind kind);
void verdict_fini(struct verdict *verdict); /* accepts a zeroed struct */

#endif
