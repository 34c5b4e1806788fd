/*
 * sample.h - measurements of the nodes of a group in one window, as all of them know them.
 *
 * The sums over peers are enough: the papers' formulas are made of them, and they travel as the sum of one vector per
 * node instead of a matrix. All numbers are integers, and so is all arithmetic in this folder: nodes that are given the
 * same sample must come to the same decision, whatever machine they run on.
 */
#ifndef TUNE_SAMPLE_H
#define TUNE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

struct tune_node {
	uint64_t sent_bytes;     /* sum of D(i, j) over j                                                */
	uint64_t received_bytes; /* sum of D(j, i)                                                       */
	uint64_t send_rate;      /* sum of BW(i, j), bytes per second while there was something to send; 0: unknown */
	uint64_t receive_rate;   /* sum of BW(j, i); 0: unknown                                          */
	uint64_t cross_rate;     /* the part of send_rate that goes to other groups; 0: unknown          */
	/*
	 * The part of the window with bytes under way, in thousandths, times the bytes, of each connection, added up; 0:
	 * unknown. A node that had bytes under way all the time is at its limit; one that had not could have carried more.
	 */
	uint64_t send_busy, receive_busy;
	uint64_t rtt_ns;         /* the longest round trip to a peer; 0: unknown                         */
	uint64_t time_ns;        /* in which calls were under way, as this node saw it                   */
};

struct tune_sample {
	uint32_t nodes;
	const struct tune_node *at;
	/*
	 * Calls ran by a plan without masters, in which a node has one peer to send to and one to receive from, as around a
	 * ring. A slow node then makes one direction of each of its neighbours slow, and both of its own.
	 */
	bool is_chain;
};

/*
 * The time that the window's calls took: as the node that waited least says. A node that comes late to a call sees how
 * long the network takes, all others also see how long they waited. 0: unknown.
 */
uint64_t tune_sample_time(const struct tune_sample *sample);
/* Bytes that all nodes sent. */
uint64_t tune_sample_bytes(const struct tune_sample *sample);
/*
 * The bytes per second that a node can move: the slower of its two directions; in a chain the faster. 0: unknown. A
 * node whose connections were idle for a while is taken to be as much faster, twice at the most.
 */
uint64_t tune_node_rate(const struct tune_sample *sample, uint32_t node);

/* The middle one of those that are known; 0: none is. scratch: as many. */
uint64_t tune_median(const uint64_t *rates, uint32_t count, uint64_t *scratch);

/*
 * Turns rates into weights to plan by: thousandths of the median of all, which is returned. A rate within a fifth of
 * the median, or unknown, becomes 1000, because measurements scatter and plans should not; from a third on it stays as
 * it is; between the two lies a slope. scratch: as many.
 */
#define TUNE_WEIGHT_MOST 100000u
uint64_t tune_level(uint64_t *rates, uint32_t count, uint64_t *scratch);

#endif
