/*
 * cluster.h - a whole cluster in one process: lanes, plans and the loop network, for tests.
 *
 * A scenario is drawn from a seed: nodes, lanes, groups, credits, delays, and a few calls
 * of any collective, planner, type and operation, started at random times on each node.
 * cluster_run() runs it to the end and returns what every node got.
 *
 * A group has a stream on every lane of its members. Those of a scenario are of all nodes and
 * open from the beginning; others can be added that are opened and closed while it runs. What
 * fails on one lane of a member fails on all its lanes at once and, after a while, at the other
 * members: telling them is the work of whoever makes groups, which is this harness here.
 */
#ifndef TESTS_CLUSTER_H
#define TESTS_CLUSTER_H

#include <stddef.h>

#include "base/rng.h"
#include "engine/lane.h"
#include "inproc/inproc.h"

#define CLUSTER_CALLS 6u /* of one scenario, at most */
#define CLUSTER_CALLS_MOST 64u
#define CLUSTER_GROUPS_MOST 16u

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
	uint32_t group;
	uint32_t odd;                    /* the place where another call is started in its stead, or PLAN_NONE */
	bool scribbled;
	/* Nodes are places in the group. */
	struct cluster_buffers *buffers; /* by worker; NULL when dry                  */
	uint32_t *lanes_left;            /* by node                                   */
	enum esp_status *status;         /* by node; ESP_PENDING while it runs        */
};

/* How a member of a group fares. */
struct cluster_member {
	bool open;                   /* has streams                                 */
	bool failed;
	bool heard;                  /* it failed because others told it so         */
	struct exec_failure failure;
	uint32_t calls_left;
};

struct cluster_group {
	uint16_t channel;
	uint32_t count;
	uint32_t *ranks;                /* by place; NULL: place is rank               */
	struct cluster_member *members; /* by place                                    */
	bool comes_and_goes;            /* opened while it runs, closed when it is done */
	bool refused;                   /* a member was lost before                    */
	uint64_t open_after_ns;
};

struct cluster_spec {
	uint64_t seed;          /* of the schedule */
	uint32_t nodes;         /* the most that any plan has, extra ones included */
	uint32_t lanes, streams, credits, active_chunks, slot_bytes, first_index;
	uint64_t delay_ns, start_spread_ns;
	uint32_t fragment_most, flight_most;
	enum inproc_carry carry;
	bool checked;
	uint32_t corrupt_one_in;
	bool dry;
	uint32_t victim;        /* node that is lost, or PLAN_NONE */
	uint64_t victim_after_ns;
	bool scribble;          /* overwrite what a call gives back, as soon as it ends */
	uint32_t abort_group, abort_place; /* a member that gives up, or PLAN_NONE */
	uint64_t abort_after_ns;
};

struct cluster {
	struct cluster_spec spec;
	struct inproc *loop;
	struct lane **lanes; /* by node, then lane */
	struct cluster_group groups[CLUSTER_GROUPS_MOST];
	uint32_t group_count;
	struct cluster_call calls[CLUSTER_CALLS_MOST];
	uint32_t call_count;
	struct rng rng;
};

void sim_cluster_open(struct cluster *cluster, const struct cluster_spec *spec);
/* Adds a group that comes and goes; copies ranks. Returns its index. */
uint32_t cluster_add_group(struct cluster *cluster, uint16_t channel, const uint32_t *ranks, uint32_t count,
                           uint64_t open_after_ns);
/* Adds a call, to one of the scenario's groups in turn, and fills its inputs from data_seed. Takes the plan if owns_plan. */
struct cluster_call *cluster_add(struct cluster *cluster, struct plan *plan, bool owns_plan, enum esp_type type,
                                 enum esp_op op, double factor, enum cluster_fill fill, uint64_t data_seed);
/* Runs until nothing is under way. */
void cluster_run(struct cluster *cluster);
void sim_cluster_close(struct cluster *cluster);

/* ---- group.c ---- */

uint32_t cluster_rank(const struct cluster_group *group, uint32_t place);
uint32_t cluster_place(const struct cluster_group *group, uint32_t rank); /* PLAN_NONE: is no member */
bool cluster_is_dead(const struct cluster *cluster, uint32_t rank);
/* Opens the streams of a member; false: refused. */
bool cluster_member_open(struct cluster *cluster, struct cluster_group *group, uint32_t place);
/* The groups that come are opened from now on, and their calls started. */
void cluster_groups_run(struct cluster *cluster);
/* What has become of a rank's calls and streams since; after every turn in which something may have. */
void cluster_collect(struct cluster *cluster, uint32_t rank);
void sim_cluster_start(struct cluster *cluster, struct cluster_call *call, uint32_t place);
void cluster_group_close(struct cluster_group *group);

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
