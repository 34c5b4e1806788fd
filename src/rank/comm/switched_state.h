/*
 * switched_state.h - the state of sums that travel through a switch; private to switched*.c.
 */
#ifndef RANK_COMM_SWITCHED_STATE_H
#define RANK_COMM_SWITCHED_STATE_H

#include "rank/comm/switched.h"

/* Of a communicator. */
struct switched {
	struct switch_flow *flow; /* NULL: no memory for it here, which the other members hear at each call */
	atomic_bool decides;
};

enum switched_stage {
	SWITCHED_ASKS,    /* a small allreduce by a plan: do all agree to the switch? */
	SWITCHED_THROUGH, /* the switch's flow sums */
	SWITCHED_PLANNED, /* the lanes do */
};

enum question {
	ASK_MAGNITUDE, /* the greatest magnitude of an element */
	ASK_REFUSES,   /* 1: not through the switch */
	QUESTIONS,
};

/* Of a call. */
struct switched_call {
	enum switched_stage stage;
	uint64_t mine[QUESTIONS], all[QUESTIONS];
	struct planned *planned; /* of the question */
	struct work_part *asking; /* its parts */
	struct work_part summing; /* stands for the flow's work */
	struct switch_sum sum;
	struct switch_piece *pieces;
};

#endif
