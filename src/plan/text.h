/*
 * text.h - plans as text that people can read, write and diff.
 *
 *     espalier-plan 1
 *     planner ring
 *     collective allreduce
 *     nodes 2
 *     input 8*2
 *     output 8*2
 *     chunk 0: 8 bytes, in+0, out+0, from *, to *
 *       0: fetch; send in > 1; recv= out < 1; deliver
 *       1: fetch; recv+ out < 0 in; update out; send out > 0; deliver
 *     end
 *
 * docs/plan-text.md has the grammar. Printing is exact: parsing gives back the same
 * pieces, steps, laps and turns, and printing that gives back the same text.
 */
#ifndef PLAN_TEXT_H
#define PLAN_TEXT_H

#include <stddef.h>
#include <stdio.h>

#include "plan/plan.h"

/* Writes the plan to file. ESP_EIO, ESP_ENOMEM. */
ESP_CHECKED enum esp_status plan_print(const struct plan *plan, FILE *file, struct error *err);

/*
 * The statement of a row, as the text has it, to which steps[step] belongs: its number from 1
 * is returned, its text is put into out (cut to bytes - 1; empty if it is very long, or none).
 */
uint32_t plan_statement(const struct plan_step *steps, uint32_t count, uint32_t step, char *out, size_t bytes);

/*
 * A plan that was read keeps a table with an entry for each node and chunk, also where the
 * text says nothing. So that a few bytes cannot ask for gigabytes, nodes * chunks may be at
 * most this, plus so much for each byte of the text (eight bytes of memory each).
 */
#define PLAN_TEXT_ROWS (1u << 22)
#define PLAN_TEXT_ROWS_PER_BYTE 4u

/*
 * Reads text (any bytes, borrowed for the call) into a plan that holds its rows; *out is the caller's to close. On
 * ESP_EPARSE and ESP_ELIMIT (too many rows) err says "line 7: ...". The result is well-formed (numbers in range, steps
 * complete, pieces within the buffers that the text declares, memory bounded by the length of the text); whether it
 * computes the right thing is for plan_check() to say, which code that reads a plan from a file calls next.
 */
ESP_CHECKED enum esp_status plan_parse(const char *text, size_t length, struct plan **out, struct error *err);

#endif
