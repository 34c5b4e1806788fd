/*
 * fine.h - Finetune: one master after the other away from the node that is to blame.
 *
 * Blame of node i is beta l(i) + gamma t(i): t(i), how long its bytes take (longest round trip plus bytes over rate),
 * as a fraction of the longest; l(i), how much it moves beyond what the least loaded node moves, as a fraction of the
 * spread. The paper gives no weights, no threshold, and no l(i) when all loads are equal. Chosen here (docs/retuning.md
 * says why):
 *
 *     gamma 8, beta 1     time is what is to be short; balance decides between nodes whose times are alike
 *     spread              at least a twentieth of the largest load: so l(i) is 0 when all are equal, and small
 *                         where differences are
 *     epsilon 1.1         the worst is left alone unless its blame is a tenth above the best's; 1.3 if both move the
 *                         same, so that scatter does not unbalance an even load
 *
 * A move goes from the worst node that has a master to the node with the least blame that can take it off its hands: in
 * its own group or, if there are more than two groups and the worst is a global master, in any. If that pair is not to
 * be moved between, the next worst is looked at: a node that is slow and has no master left is left alone. Nothing is
 * moved that would make the taker's time longer than the giver's was, so nothing is moved to and fro. If the same node
 * stays the worst, twice as much is moved each time; and likewise if the same node stays the best, which is how one
 * that has recovered gets its share back from all the others.
 */
#ifndef TUNE_FINE_H
#define TUNE_FINE_H

#include <stdbool.h>

#include "plan/masters.h"
#include "tune/sample.h"

#define TUNE_BETA 1u
#define TUNE_GAMMA 8u
#define TUNE_EPSILON_PERCENT 110u
#define TUNE_EPSILON_EVEN_PERCENT 130u

struct tune_fine {
	uint32_t worst, best; /* giver and taker of the step before */
	uint32_t streak;      /* steps in a row with one of them; 0: none */
};

struct tune_move {
	uint32_t from, to;   /* of the first one: later ones of the step go from the node that is the worst then */
	uint32_t moved;      /* masters; 0: nothing is to be moved          */
	uint32_t global;     /* of these, global ones                       */
	uint32_t from_blame, to_blame; /* in thousandths of beta + gamma    */
};

/* The input of a step, by node. */
struct tune_view {
	uint64_t *bytes;       /* that a node moves: the larger of its two directions. Follows the moves */
	const uint64_t *rates; /* bytes per second, none is 0                                            */
	const struct tune_node *at;
	uint32_t nodes;
};

/* Blame of every node into out[], in thousandths of beta + gamma. */
void tune_blame(const struct tune_view *view, uint32_t *out);

/* Memory for a step: an entry per node. */
struct tune_scratch {
	uint64_t *bytes;
	uint32_t *blame;
	bool *tried;
};

/* One step. The sample was measured with these masters. *out tells what was moved, if anything. */
void tune_fine_step(struct tune_fine *fine, struct plan_masters *masters, const struct tune_sample *sample,
                    const uint64_t *rates, struct tune_scratch *scratch, struct tune_move *out);

#endif
