/*
 * cost.h - how long a plan takes on a network: an estimate to choose by, not a simulation.
 *
 * A plan is walked once, for few chunks. The bytes that it sends over every link, round by round, say how many seconds
 * a byte of the buffer costs:
 *
 *     overlapped   the busiest link with all rounds together: what a long call comes to, whose chunks are in all
 *                  rounds at a time
 *     apart        the busiest link of each round, one round after the other: a call of few chunks
 *
 * Latency is that of the longest way of each round, one after the other. docs/topology.md has the formula.
 *
 * The network is a topology, whose links are shared by all that pass them, or measurements between pairs of nodes.
 * Pure, and the same on all machines: ranks that choose by it choose alike.
 */
#ifndef TUNE_COST_H
#define TUNE_COST_H

#include "network/topo/topology.h"
#include "plan/plan.h"

/* Time of a node for a message, on each end, and of a round beside the delays of its links. Seconds. */
#define TUNE_MESSAGE 4e-6
#define TUNE_ROUND 30e-6
/*
 * Rounds never overlap wholly: later ones wait behind earlier ones on the same links. Of what rounds cost more when
 * they come one after the other, so much stays for each beyond the second. In the simulator it is 0.01 to 0.15, mostly
 * below 0.05 (docs/topology.md).
 */
#define TUNE_LAG 0.05

struct tune_network {
	uint32_t nodes; /* of the plans: workers */
	/* Either a topology, and the vertex that each node stands on; */
	const struct topology *topology;
	const uint32_t *place;
	/*
	 * or distances, nodes x nodes row by row, as struct matrix has them (NAN: not known, taken as the mean of its row).
	 * Of the two one may be NULL: without seconds_per_byte a byte is taken to cost in proportion to latency, so that
	 * only comparisons of the result mean something.
	 */
	const double *seconds_per_byte;
	const double *latency; /* one way */
};

/* The load of a plan on a network, whatever the size of the buffer. */
struct tune_load {
	double overlapped, apart; /* seconds for each byte of the buffer                                  */
	double latency;           /* seconds, of all rounds                                               */
	double messages;          /* that the busiest node sends or receives, for each chunk of the buffer */
	double peak;              /* the same of the busiest node of one chunk: a call of few chunks      */
	uint32_t wave;            /* chunks that keep every node busy: as many as were walked               */
	uint32_t rounds;
};

/*
 * Walks a plan, of a call of `bytes` bytes for each block. Use one of as many small chunks as there are workers (or a
 * few times as many): tune_load_planner() makes it. ESP_ENOMEM; ESP_EPLAN: it is no plan.
 */
ESP_CHECKED enum esp_status tune_load_of(const struct plan *plan, const struct tune_network *network,
                                         struct tune_load *out, struct error *err);

/*
 * The load of what a planner makes of a collective. how: its chunks.collective, order, group_of and zone_of; the rest
 * is ours.
 */
ESP_CHECKED enum esp_status tune_load_planner(const struct planner *planner, const struct plan_spec *how,
                                              const struct tune_network *network, struct tune_load *out,
                                              struct error *err);

/* Seconds that a call of so many bytes (in all blocks), cut into such chunks, takes. */
double tune_seconds(const struct tune_load *load, uint64_t bytes, uint64_t chunk_bytes);

#endif
