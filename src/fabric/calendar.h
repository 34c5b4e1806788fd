/*
 * calendar.h - the rest of each link over time: transfers are booked on it, and bookings are given back.
 *
 * A link has a rate that may change at any time; a booking takes the bottleneck of its path at each moment until all of
 * its bytes are through, so transfers that are booked one after the other never exceed a link. Time is nanoseconds,
 * sizes are bytes, rates are bytes per second, all integers. Pure: no I/O, no clock; nothing is allocated after
 * opening.
 */
#ifndef FABRIC_CALENDAR_H
#define FABRIC_CALENDAR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define CALENDAR_PATH_MOST 32u
#define CALENDAR_LINKS_MOST 4096u
#define CALENDAR_NEVER UINT64_MAX
#define CALENDAR_NONE UINT32_MAX            /* no booking */
#define CALENDAR_RATE_MOST (UINT64_C(1) << 50)
#define CALENDAR_BYTES_MOST (UINT64_C(1) << 50)

struct calendar;

/* The links of a transfer, in any order, each once. */
struct calendar_path {
	uint32_t count;
	uint32_t links[CALENDAR_PATH_MOST];
};

/* When the first byte leaves and the last one is there. */
struct calendar_span {
	uint64_t begin, end;
};

/* A part of a booking: bytes per second from one time to another. */
struct calendar_part {
	uint64_t from, to, rate;
};

/*
 * All links have rate 0 until it is set. steps: times per link at which its rest may change; bookings: at a time.
 * ESP_EINVAL, ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status calendar_open(uint32_t links, uint32_t steps, uint32_t bookings, struct calendar **out,
                                          struct error *err);
void calendar_close(struct calendar *calendar); /* NULL is fine */

/*
 * The link has this rate from a time on, for ever. Bookings stay as they are, so less than nothing may be left of the
 * link for a while: nothing more is booked there. False: there is no step left.
 */
bool calendar_set_rate(struct calendar *calendar, uint32_t link, uint64_t from, uint64_t rate);
/* The rate of the link as a whole, and what is left of it, at a time. */
uint64_t calendar_rate(const struct calendar *calendar, uint32_t link, uint64_t at);
uint64_t calendar_left(const struct calendar *calendar, uint32_t link, uint64_t at);
/* From this time on nothing is booked on the link. */
uint64_t calendar_booked_until(const struct calendar *calendar, uint32_t link);

/* When the bytes would be there if they were booked now, from a time on. CALENDAR_NEVER: the path has no rate left. */
uint64_t calendar_fit(const struct calendar *calendar, const struct calendar_path *path, uint64_t from, uint64_t bytes);
/* Books them. CALENDAR_NONE: never, or there is no step or booking left; nothing has changed then. */
uint32_t calendar_take(struct calendar *calendar, const struct calendar_path *path, uint64_t from, uint64_t bytes,
                       struct calendar_span *out);
/* The rest of a booking from a time on is free again. With 0 the booking is no more: each is given back so once. */
void calendar_give_back(struct calendar *calendar, uint32_t booking, uint64_t from);
/* The parts of a booking, in order: *at begins as 0. False: there are no more. */
bool calendar_part(const struct calendar *calendar, uint32_t booking, uint32_t *at, struct calendar_part *out);

/* Bookings made from here on can be undone together; marks nest. None that is older is given back meanwhile. */
uint64_t calendar_mark(const struct calendar *calendar);
void calendar_rollback(struct calendar *calendar, uint64_t mark);

/* Forgets times before now. Bookings stay until they are given back. */
void calendar_trim(struct calendar *calendar, uint64_t now);
/* Bookings that there are. */
uint32_t calendar_bookings(const struct calendar *calendar);

#endif
