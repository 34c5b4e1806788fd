/*
 * plan_words.h - the row of a node in words: as cells of a table, or as sentences.
 */
#ifndef TOOLS_PLAN_PLAN_WORDS_H
#define TOOLS_PLAN_PLAN_WORDS_H

#include <stdio.h>

#include "plan/plan.h"

/* Owned texts; "-" where there is nothing to say. */
struct plan_words {
	char *waits; /* nodes, in order     */
	char *sends; /* nodes, in order     */
	char *steps; /* as in the text form */
};

/* ESP_ENOMEM */
ESP_CHECKED enum esp_status plan_words_init(struct plan_words *words, const struct plan_row *row);
void plan_words_fini(struct plan_words *words);

/* A sentence about what begins at step `at`; returns how many steps it covers. */
uint32_t plan_explain(const struct plan_row *row, uint32_t at, FILE *out);

#endif
