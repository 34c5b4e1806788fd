/*
 * paper_groups.h - table 1 of the PLink paper (Luo et al., MLSys 2020): its formulas, and reasons for different
 * counts.
 *
 * The paper compares algorithms that allreduce a buffer of S bytes on NC nodes in C racks of N each, by rounds,
 * bytes on the wire and bytes between racks. Pure functions; the counts come from the checker.
 */
#ifndef STUDIES_PAPER_GROUPS_H
#define STUDIES_PAPER_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "network/topo/groups.h"

enum paper_row {
	PAPER_SHARDED,
	PAPER_HALVING_DOUBLING,
	PAPER_RING,
	PAPER_TREE,       /* all nodes are leaves, as the paper counts */
	PAPER_TREE_INNER, /* the inner nodes are workers, as in practice; the same formulas */
	PAPER_TWO_LEVEL,
};
#define PAPER_ROW_COUNT 6

enum paper_column { PAPER_ROUNDS, PAPER_WIRE, PAPER_CROSS };
#define PAPER_COLUMN_COUNT 3

struct paper_shape {
	uint32_t per_rack; /* N */
	uint32_t racks;    /* C */
	enum placement place;
};

const char *paper_row_name(enum paper_row row);
const char *paper_row_planner(enum paper_row row);
const char *paper_column_name(enum paper_column column);
/* The formula as printed in the paper. */
const char *paper_formula_text(enum paper_row row, enum paper_column column);

/* The value of the formula: rounds, or multiples of S. NaN for a division by zero: trees with one rack. */
double paper_formula(enum paper_row row, enum paper_column column, const struct paper_shape *shape);

/* The fan-out of the trees: C, as in the paper, but 2 if C is 1. */
uint32_t paper_fanout(const struct paper_shape *shape);

/* True if the count equals the formula; false for NaN. */
bool paper_same(double counted, double formula);

/* Writes the reason for a different count; one sentence, without a full stop. */
#define PAPER_WHY_TEXT 320
void paper_why(enum paper_row row, enum paper_column column, const struct paper_shape *shape, double counted,
               char text[PAPER_WHY_TEXT]);

#endif
