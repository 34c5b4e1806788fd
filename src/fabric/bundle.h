/*
 * bundle.h - which updates of an order go to the hub directly, and which are added on the way (algorithm 3).
 *
 * An order of updates is cut into groups: the first goes to the hub directly, each other one to an aggregator, which
 * adds its members and sends one aggregate. For each size of the first group the rest is cut greedily: an update joins
 * the group that is open if it is there before the hub has all groups before; else the group is closed, its aggregate
 * is booked, and the next aggregator opens one. The best cut is booked. Updates are applied in the given order. A cut
 * that cannot become better than the best one before is left as soon as that is certain.
 *
 * Rules where the paper leaves something open: a group takes its first update whenever it comes; the last aggregator
 * takes the rest; an aggregate starts when its last member is there; an update of the aggregator's own host costs no
 * network. Pure.
 */
#ifndef FABRIC_BUNDLE_H
#define FABRIC_BUNDLE_H

#include "fabric/calendar.h"

#define BUNDLE_UPDATES_MOST 1024u
#define BUNDLE_AGGREGATORS_MOST 64u

enum bundle_goal {
	BUNDLE_LAST, /* the hub has all updates as early as possible: synchronous use (equation 16)          */
	BUNDLE_MEAN, /* the mean of the times at which the hub has each is least: asynchronous use (equation 17) */
};

/* Where updates are added: its host's links out and in. */
struct bundle_aggregator {
	uint32_t host, in, out;
};

struct bundle_update {
	/* the caller's */
	uint32_t host, out;  /* of its worker: the host's number, and its link */
	uint64_t bytes;
	uint64_t from;       /* not sent before */
	/* the result */
	uint32_t group;      /* 0: direct; else the aggregator, from 1 */
	uint32_t booking;    /* CALENDAR_NONE: it costs no network */
	struct calendar_span span;
	uint64_t there;      /* when the hub has it */
};

struct bundle_group {
	uint32_t members;
	uint64_t bytes;      /* of the aggregate */
	uint32_t booking;    /* CALENDAR_NONE: no members */
	struct calendar_span span;
};

struct bundle {
	uint32_t direct;     /* updates that go to the hub by themselves */
	uint64_t last;       /* when the hub has all */
	unsigned __int128 sum; /* of the times at which it has each */
	struct bundle_group groups[BUNDLE_AGGREGATORS_MOST]; /* of aggregator i + 1 */
};

/*
 * Updates in the order in which they are to be applied; hub_in: the hub's link. True: all are booked, as *out and the
 * updates say. False: a path has no rate, or the calendar no room; nothing is booked then.
 */
bool bundle_run(struct calendar *calendar, struct bundle_update *updates, uint32_t count,
                const struct bundle_aggregator *aggregators, uint32_t aggregator_count, uint32_t hub_in,
                enum bundle_goal goal, struct bundle *out);

/* Books the one cut with so many direct updates. False: as of bundle_run(), but some may be booked: roll back. */
bool bundle_cut(struct calendar *calendar, struct bundle_update *updates, uint32_t count,
                const struct bundle_aggregator *aggregators, uint32_t aggregator_count, uint32_t hub_in,
                uint32_t direct, struct bundle *out);

#endif
