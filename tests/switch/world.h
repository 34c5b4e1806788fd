/*
 * world.h - jobs, switches and a bad network in virtual time: the product's step and end hosts, driven as a driver of
 * sockets would drive them.
 *
 * Every packet is encoded, may be lost, repeated, delayed, marked or changed in a bit, and is decoded again. Switches
 * forget everything and start anew, or never come back; members die; forgers that know a flow's number send packets
 * without its key. One seed gives one run.
 */
#ifndef TESTS_SWITCH_WORLD_H
#define TESTS_SWITCH_WORLD_H

#include "base/rng.h"
#include "switch/endpoint/succession.h"
#include "switch/step/step_text.h"

#define WORLD_JOBS 4u
#define WORLD_MEMBERS 16u
#define WORLD_NODES (WORLD_MEMBERS + 1u) /* and a server */
#define WORLD_SWITCHES 3u
#define WORLD_WORDS 8u
#define WORLD_GENERATIONS 3u /* of a job: one for each call, at most */
#define WORLD_FLOWS (WORLD_JOBS * WORLD_GENERATIONS)

enum world_fault {
	FAULT_LOSS,
	FAULT_REPEAT,
	FAULT_REORDER, /* within a round trip */
	FAULT_DELAY, /* some packets come seconds later */
	FAULT_CORRUPT,
	FAULT_REBOOT, /* switches start anew */
	FAULT_SWITCH_DEATH,
	FAULT_MEMBER_DEATH,
	FAULT_FORGER,
	FAULT_STRAGGLER,
	FAULT_FEW_SLOTS, /* fewer than a window */
	FAULT_FEW_NUMBERS, /* the flow number changes between calls */
	WORLD_FAULTS,
};

/* A rule that is switched off, to see what it is for. */
enum world_off {
	OFF_NOTHING,
	OFF_S6, /* results free no slot */
	OFF_O1, /* a changed contribution has a right tag */
	OFF_O2, /* nobody is answered once a number is complete */
};

struct world_options {
	uint64_t seed;
	bool is_large; /* up to 16 workers and thousands of slots and elements */
	enum world_off off;
	bool is_shut; /* members reach their switch and not each other; no switch dies or starts anew */
	bool is_plain; /* no faults, one job, one call after the other: a sound network */
	uint64_t trip_ns; /* one way, of each packet; 0: 50 us */
	uint64_t late_ns; /* so much later than the others member 0 begins each call */
	uint32_t kills; /* a sound network whose one switch is killed so often, and started anew but for the last time */
};

struct world_totals {
	uint64_t runs, faults[WORLD_FAULTS];       /* runs with that fault */
	uint64_t step[STEP_EVENTS], owner[OWNER_EVENTS];
	uint64_t resends, bypasses, fast, timeouts, results, repeated, refused, asks;
	uint64_t elements, taken; /* elements completed; contributions that owners added one by one */
	uint64_t contributions;   /* of members in completed elements */
	uint64_t gone, alive;     /* changes of memberships */
	uint64_t generations;     /* that members went on to */
	uint64_t answered_former; /* contributions that the owner of a former generation answered */
	uint64_t marks, halvings;
	uint64_t packets, lost, corrupted, forged, unregistered;
	uint64_t failed_jobs; /* a member died */
	double longest_s;
	uint64_t wrong, hangs, leaked; /* with a rule off: wrong sums; runs without an end; slots held at the end */
	uint64_t killed;
	double stall_s;      /* the longest time without a result while a call waits */
	double least_before; /* of the contributions between 200 ms after a start and the next kill: share of the switch */
};

/*
 * Runs one world to its end; ends the program with the seed if a sum is wrong, a job hangs, or an owner holds too much.
 */
void world_run(const struct world_options *options, struct world_totals *totals);

const char *world_fault_name(enum world_fault fault);

#endif
