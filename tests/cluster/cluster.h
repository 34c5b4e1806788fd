/*
 * cluster.h - a whole cluster in one process: lanes, plans and the loop network, for tests.
 *
 * A scenario is drawn from a seed: nodes, lanes, streams, credits, delays, and a few calls
 * of any collective, planner, type and operation, started at random times on each node.
 * cluster_run() runs it to the end and returns what every node got.
 */
#ifndef TESTS_CLUSTER_H
#define TESTS_CLUSTER_H

#include <stddef.h>

#include "base/rng.h"
#include "engine/lane.h"
#include "transport/loop/loop.h"

#define CLUSTER_CALLS 6u

/* What the elements of a call are filled with. */
enum cluster_fill {
	FILL_SMALL, /* small whole numbers: every order of addition gives the same bits */
	FILL_WILD,  /* any bits: the order of addition shows                            */
};

/* What a worker brings. In place, in and out are two views of one of the two. */
struct cluster_buffers {
	uint8_t *memory[2]; /* guarded; for input and output, or one of them */
	uint64_t bytes[2];
	uint8_t *in, *out;
	uint64_t in_bytes, out_bytes;
};

struct cluster_call {
	struct plan *plan;
	bool owns_plan;
	uint8_t *lane_of;
	enum esp_type type;
	enum esp_op op;
	double factor;
	enum cluster_fill fill;
	uint64_t data_seed;
	uint32_t stream;
	bool scribbled;
	struct cluster_buffers *buffers; /* by worker; NULL when dry                  */
	uint32_t *lanes_left;            /* by node                                   */
	enum esp_status *status;         /* by node; ESP_PENDING while it runs        */
};

struct cluster_spec {
	uint64_t seed;          /* of the schedule */
	uint32_t nodes;         /* the most that any plan has, extra ones included */
	uint32_t lanes, streams, credits, active_chunks, slot_bytes, first_index;
	uint64_t delay_ns, start_spread_ns;
	uint32_t fragment_most, flight_most;
	enum loop_carry carry;
	bool checked;
	uint32_t corrupt_one_in;
	bool dry;
	uint32_t victim;        /* node that is lost, or PLAN_NONE */
	uint64_t victim_after_ns;
	bool scribble;          /* overwrite what a call gives back, as soon as it ends */
};

struct cluster {
	struct cluster_spec spec;
	struct loop *loop;
	struct lane **lanes; /* by node, then lane */
	struct cluster_call calls[CLUSTER_CALLS];
	uint32_t call_count;
	struct rng rng;
};

void cluster_open(struct cluster *cluster, const struct cluster_spec *spec);
/* Adds a call and fills its inputs from data_seed. Takes the plan if owns_plan. */
struct cluster_call *cluster_add(struct cluster *cluster, struct plan *plan, bool owns_plan, enum esp_type type,
                                 enum esp_op op, double factor, enum cluster_fill fill, uint64_t data_seed);
/* Runs until nothing is under way. */
void cluster_run(struct cluster *cluster);
void cluster_close(struct cluster *cluster);

struct lane *cluster_lane(const struct cluster *cluster, uint32_t node, uint32_t lane);

/* Draws a scenario and its calls. */
void cluster_draw(struct cluster *cluster, uint64_t seed);
/* The same with checksums on all links, where one fragment in so many has a bit turned over. */
void cluster_draw_with(struct cluster *cluster, uint64_t seed, uint32_t corrupt_one_in);
/* A random plan for up to most_nodes workers. */
struct plan *cluster_draw_plan(struct rng *rng, const struct planner *planner, enum plan_collective collective,
                               uint32_t workers, uint32_t element_bytes);

/* ---- data.c: what goes in, and what must come out ---- */

void cluster_fill(struct cluster_call *call);
/* The call has ended on this worker: overwrites its input, and its output too if it failed, as their owner may. */
void cluster_scribble(struct cluster_call *call, uint32_t node);
void cluster_free(struct cluster_call *call);

/*
 * Compares a finished call with a reference computed element by element; false: why says
 * what is wrong, guards and inputs included. FILL_WILD: only that all receivers agree.
 */
bool cluster_matches(const struct cluster_call *call, char *why, size_t why_bytes);

/* One line that says what a call is. */
void cluster_describe(const struct cluster_call *call, char *text, size_t bytes);

#endif
