/*
 * order.h - the order in which a batch's updates are sent, and which are dropped at their workers (algorithms 1, 2).
 *
 *     shortest first   the update that would be there first, given what is booked, is next
 *     deadlines        an update with deadline d is one of the next d that are applied
 *     look-ahead       an update that is next by its deadline alone, and would come after its successor, is dropped
 *
 * An update is next by its deadline as soon as as many updates are due within the next m places as there are places.
 * More than m due within m places cannot all be in time: the slowest is dropped. An update that has waited is preferred
 * to shorter ones, but not to deadlines. Books what it orders on the calendar. Pure.
 */
#ifndef FABRIC_ORDER_H
#define FABRIC_ORDER_H

#include "fabric/calendar.h"

#define ORDER_UPDATES_MOST 1024u

enum order_fate {
	ORDER_SENT,       /* has a place and a booking                                             */
	ORDER_LATE,       /* dropped: its deadline is past before it is sent                       */
	ORDER_CROWDED,    /* dropped: more updates are due than places are left, and it is the slowest */
	ORDER_OVERTAKEN,  /* dropped: it would hold up its successor (look-ahead)                  */
	ORDER_UNBOOKED,   /* no place: its path has no rate, or the calendar no room               */
};

struct order_update {
	/* the caller's */
	struct calendar_path path;
	uint64_t bytes;
	uint64_t from;      /* not sent before */
	int64_t deadline;   /* equation 9: the last place that is in time; below 1: none */
	bool has_waited;
	/* the result */
	uint8_t fate;       /* enum order_fate */
	uint32_t place;     /* from 1; of ORDER_SENT; of ORDER_OVERTAKEN the one that it would have had */
	uint32_t booking;   /* of ORDER_SENT; the caller's to give back */
	struct calendar_span span;
	bool is_forced;     /* it was next by its deadline */
};

/* Equation 9: how many may be applied, this one included, with the version after all that is decided already. */
int64_t order_deadline(uint64_t computed_from, uint32_t delay_bound, uint64_t version);

/* Orders count updates, at most ORDER_UPDATES_MOST. Returns how many are sent. */
uint32_t order_run(struct calendar *calendar, struct order_update *updates, uint32_t count);

/* Rules that are left out, to see what each is worth. */
enum order_flag {
	ORDER_NO_DEADLINES = 1, /* the shortest first: places may be later than deadlines, and no update is dropped */
	ORDER_NO_DROPS = 2,     /* an update that cannot be in time is sent, behind all deadlines; no look-ahead    */
};
uint32_t order_run_with(struct calendar *calendar, struct order_update *updates, uint32_t count, uint32_t flags);

#endif
