/*
 * chain.h - streaming chains: hosts that pass one sum, or one model, on to each other chunk by chunk.
 *
 *     to the hub:    host ──> host ──> host ──> hub     each adds its own update to the chunk and passes it on
 *     from the hub:  hub ──> host ──> host ──> host     each keeps a copy of the chunk
 *
 * All links of a chain are busy at once, so a chain of any length takes the time of one transfer over the slowest of
 * its links (and a chunk more for each host, which is not counted). A slow host slows its whole chain: hosts are sorted
 * by the time that each would take alone, and the next chain is the number of first ones that brings the most updates
 * in the time until it is through. Pure.
 */
#ifndef FABRIC_CHAIN_H
#define FABRIC_CHAIN_H

#include "fabric/calendar.h"

#define CHAIN_STOPS_MOST (CALENDAR_PATH_MOST / 2) /* two links each, but for one end; and the hub's */

enum chain_way { CHAIN_TO_HUB, CHAIN_FROM_HUB };

struct chain_stop {
	/* the caller's */
	uint32_t in, out;  /* links of the host                              */
	uint32_t weight;   /* updates or requests of the host: at least 1    */
	uint32_t tag;      /* the caller's name of it                        */
	uint64_t from;     /* not before                                     */
	/* written by chain_sort() */
	uint64_t alone;    /* when it would be through by itself             */
};

/* Of all stops of a chain. */
struct chain_case {
	struct calendar *calendar;
	uint32_t hub;      /* the hub's link of this way */
	enum chain_way way;
	uint64_t bytes, now;
};

/*
 * Is so much of the hub's link free until the next batch that chains should begin now? Later they would hold more
 * updates, and the link carries others meanwhile.
 */
bool chain_may_begin(const struct calendar *calendar, uint32_t hub, uint64_t now, uint64_t next_batch);
/* The stops that are through first come first; of equals in the given order; the ones that never are stand last. */
void chain_sort(const struct chain_case *about, struct chain_stop *stops, uint32_t count);
/*
 * How many of the first stops make the next chain, at most CHAIN_STOPS_MOST. 0: the first one is never through.
 */
uint32_t chain_length(const struct chain_case *about, const struct chain_stop *stops, uint32_t count);
/*
 * Books a chain of these stops, and puts them into its order: the one whose link is not needed at the far end is first
 * of a chain to the hub, and last of one from it. CALENDAR_NONE: never through, or no room; nothing is booked then.
 */
uint32_t chain_book(const struct chain_case *about, struct chain_stop *stops, uint32_t count,
                    struct calendar_span *out);

#endif
