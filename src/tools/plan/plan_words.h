/*
 * plan_words.h - the row of a node in words: as cells of a table, or as sentences. Pure but for the FILE; any thread.
 */
#ifndef TOOLS_PLAN_PLAN_WORDS_H
#define TOOLS_PLAN_PLAN_WORDS_H

#include <stdio.h>

#include "plan/plan.h"

/* Owned texts; "-" if empty. */
struct plan_words {
	char *waits; /* nodes that it waits for, in order */
	char *sends; /* nodes that it sends to, in order */
	char *steps; /* as in the text form */
};

/* ESP_ENOMEM */
ESP_CHECKED enum esp_status plan_tool_words_init(struct plan_words *words, const struct plan_row *row);
void plan_tool_words_fini(struct plan_words *words);

/* Prints a sentence about the steps from step `at` on; returns the number of steps that it covers. */
uint32_t plan_tool_explain(const struct plan_row *row, uint32_t at, FILE *out);

#endif
