#include "studies/paper_groups.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static const struct {
	const char *name, *planner;
	const char *formula[PAPER_COLUMN_COUNT];
} rows[PAPER_ROW_COUNT] = {
	[PAPER_SHARDED] = {"PS (fully sharded)", "flat", {"2", "2(NC-1)S", "2N(C-1)S"}},
	[PAPER_HALVING_DOUBLING] = {"Halving doubling", "halving-doubling", {"2 log2 NC", "2(NC-1)S", "2(C-1)S"}},
	[PAPER_RING] = {"Ring-Chunked", "ring", {"2NC-1", "(2NC-1)S", "(2C-1)S"}},
	[PAPER_TREE] = {"Tree, workers as leaves", "tree", {"2(logC N + 1)", "2C(NC-1)/(C-1) S", "~2C(N-1)/(C-1) S"}},
	[PAPER_TREE_INNER] = {"Tree, workers inside", "tree", {"2(logC N + 1)", "2C(NC-1)/(C-1) S", "~2C(N-1)/(C-1) S"}},
	[PAPER_TWO_LEVEL] = {"2-level hierarchical", "two-level", {"4", "2S(NC-1)", "2(C-1)S"}},
};

const char *paper_row_name(enum paper_row row)
{
	return rows[row].name;
}

const char *paper_row_planner(enum paper_row row)
{
	return rows[row].planner;
}

const char *paper_column_name(enum paper_column column)
{
	static const char *const names[] = {"rounds", "bytes on the wire", "bytes between racks"};

	return names[column];
}

const char *paper_formula_text(enum paper_row row, enum paper_column column)
{
	return rows[row].formula[column];
}

uint32_t paper_fanout(const struct paper_shape *shape)
{
	return shape->racks > 1 ? shape->racks : 2;
}

/* ---- the formulas ---- */

static double tree_formula(enum paper_column column, double n, double c)
{
	if (c == 1)
		return NAN;
	switch (column) {
	case PAPER_ROUNDS:
		return 2 * (log(n) / log(c) + 1);
	case PAPER_WIRE:
		return 2 * c * (n * c - 1) / (c - 1);
	case PAPER_CROSS:
		break;
	}
	return 2 * c * (n - 1) / (c - 1);
}

double paper_formula(enum paper_row row, enum paper_column column, const struct paper_shape *shape)
{
	double n = shape->per_rack, c = shape->racks;
	const double wire = 2 * (n * c - 1);
	const double formulas[PAPER_ROW_COUNT][PAPER_COLUMN_COUNT] = {
		[PAPER_SHARDED] = {2, wire, 2 * n * (c - 1)},
		[PAPER_HALVING_DOUBLING] = {2 * log2(n * c), wire, 2 * (c - 1)},
		[PAPER_RING] = {2 * n * c - 1, 2 * n * c - 1, 2 * c - 1},
		[PAPER_TWO_LEVEL] = {4, wire, 2 * (c - 1)},
	};

	return row == PAPER_TREE || row == PAPER_TREE_INNER ? tree_formula(column, n, c) : formulas[row][column];
}

bool paper_same(double counted, double formula)
{
	/* Different values of these formulas differ by more than rounding errors for any number of nodes. */
	return fabs(counted - formula) <= 1e-9 * fmax(1, fabs(formula));
}

/* ---- why a count differs ---- */

struct why {
	char *text;
	uint64_t n, c, all; /* N, C, NC */
	enum placement place;
	double counted;
};

__attribute__((format(printf, 2, 3)))
static void say(const struct why *why, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why->text, PAPER_WHY_TEXT, format, args);
	va_end(args);
}

/* Half of the count, for quantities that are passed once up and once down: edges of a tree, or its levels. */
static unsigned long long half(const struct why *why)
{
	return (unsigned long long)llround(why->counted / 2);
}

/* Writes "3 edges join different racks, each passed twice". */
static const char *crossing(const struct why *why, char text[80])
{
	unsigned long long count = half(why);

	if (count == 0)
		return "no edge joins different racks";
	snprintf(text, 80,
	         count == 1 ? "one edge joins different racks, passed twice"
	                    : "%llu edges join different racks, each passed twice",
	         count);
	return text;
}

static void why_halving(const struct why *why, enum paper_column column)
{
	unsigned long long cube = 1;
	unsigned bits = 0;

	for (; cube * 2 <= why->all; bits++)
		cube *= 2;
	if (column == PAPER_ROUNDS)
		say(why,
		    "NC = %llu is no power of two: the nodes beyond %llu (%llu of them) hand their parts to others before the "
		    "%u rounds of sums, and get the result after the %u rounds back",
		    (unsigned long long)why->all, cube, (unsigned long long)why->all - cube, bits, bits);
	else
		say(why, "the least, 2(C-1)S, needs each rack to be summed inside before anything leaves it; partners follow "
		         "from the bits of the rank, and here some rack is not");
}

static void why_ring(const struct why *why, enum paper_column column)
{
	switch (column) {
	case PAPER_ROUNDS:
		say(why, "a chunk visits the NC-1 other nodes to be summed and NC-1 to be handed out: 2(NC-1), one less");
		return;
	case PAPER_WIRE:
		say(why, "each chunk is sent NC-1 times to be summed and NC-1 times to be handed out: 2(NC-1)S, one S less");
		return;
	case PAPER_CROSS:
		break;
	}
	if (why->c == 1)
		say(why, "there is one rack, and nothing leaves it");
	else if (why->place == PLACE_INTERLEAVED)
		say(why, "nodes that follow each other stand in different racks, so that all 2(NC-1)S cross");
	else
		say(why, "each of the C links between racks carries every chunk twice, but for one chunk that skips it on its "
		         "first way around and one on its second: 2C(1 - 1/NC)S = (2C - 2/N)S");
}

static void why_undefined(const struct why *why)
{
	say(why, "with C = 1 the formula divides by zero, as a fan-out of 1 makes no tree; counted with a fan-out of 2");
}

static void why_tree(const struct why *why, enum paper_column column)
{
	switch (column) {
	case PAPER_ROUNDS:
		say(why,
		    "N = %llu is no power of C = %llu, and levels are whole: the tree has %llu above the leaves, each passed "
		    "twice",
		    (unsigned long long)why->n, (unsigned long long)why->c, half(why));
		return;
	case PAPER_WIRE:
		say(why,
		    "the formula is for a full tree; NC = %llu is no power of C = %llu, some inner nodes have fewer than C "
		    "children, and there are %llu edges, each passed twice",
		    (unsigned long long)why->all, (unsigned long long)why->c, half(why));
		return;
	case PAPER_CROSS:
		say(why,
		    "the formula takes all edges above the lowest level to cross and none below; here an inner node stands in "
		    "the rack of its first leaf, and %s",
		    crossing(why, (char[80]){0}));
		return;
	}
}

static void why_inner(const struct why *why, enum paper_column column)
{
	switch (column) {
	case PAPER_ROUNDS:
		say(why, "the inner nodes are workers too: the NC nodes stand on %llu levels below the top, each passed twice",
		    half(why));
		return;
	case PAPER_WIRE:
		say(why,
		    "there are no extra nodes: each of the NC-1 workers below the top has one edge, passed twice: 2(NC-1)S");
		return;
	case PAPER_CROSS:
		say(why,
		    "the formula takes all edges above the lowest level to cross; here node i stands below node (i-1)/C, and "
		    "%s",
		    crossing(why, (char[80]){0}));
		return;
	}
}

static void why_two_level(const struct why *why)
{
	if (why->c == 1)
		say(why, "there is one rack, and no sum between racks to wait for: its two rounds fall away");
	else
		say(why, "racks of one node have nothing to sum inside: those two rounds fall away");
}

void paper_why(enum paper_row row, enum paper_column column, const struct paper_shape *shape, double counted,
               char text[PAPER_WHY_TEXT])
{
	const struct why why = {
		.text = text,
		.n = shape->per_rack,
		.c = shape->racks,
		.all = (uint64_t)shape->per_rack * shape->racks,
		.place = shape->place,
		.counted = counted,
	};
	bool tree = row == PAPER_TREE || row == PAPER_TREE_INNER;

	text[0] = '\0';
	if (tree && why.c == 1)
		why_undefined(&why);
	else if (why.all == 1)
		say(&why, "a single node has no peer");
	else if (row == PAPER_HALVING_DOUBLING)
		why_halving(&why, column);
	else if (row == PAPER_RING)
		why_ring(&why, column);
	else if (row == PAPER_TREE)
		why_tree(&why, column);
	else if (row == PAPER_TREE_INNER)
		why_inner(&why, column);
	else if (row == PAPER_TWO_LEVEL)
		why_two_level(&why);
}
