/*
 * tracer.h - a rank's trace: events are left in a ring, and a thread of its own writes them to a file.
 *
 * Whoever leaves an event takes a lock for some dozen instructions and waits for nothing; what the ring has no room for is counted and
 * lost. The file has ".part" behind its name until the rank leaves in good order. A disk that is full ends the trace with one
 * warning and nothing else.
 */
#ifndef RANK_OBSERVE_TRACER_H
#define RANK_OBSERVE_TRACER_H

#include <stdbool.h>
#include <stdint.h>

#include "node/observe/record.h"

struct rank;
struct tracer;

/* For rank_open(), before the first call. NULL: the settings want none, or there is none to be had, which is said in the log. */
struct tracer *tracer_open(struct rank *context);
/* Waits a moment for what is to be written. NULL is fine. */
void tracer_close(struct tracer *tracer, struct rank *context);

/* All of these: any thread, NULL is fine. */
void tracer_add_call(struct tracer *tracer, const struct record *record);
bool tracer_has_detail(const struct tracer *tracer);
/* What a lane did of a call; or, with a peer, what it waited for. what: static text. */
void tracer_add_lane(struct tracer *tracer, uint32_t lane, const char *what, uint64_t from_ns, uint64_t to_ns, uint32_t peer,
                     uint64_t chunk);
void tracer_mark(struct tracer *tracer, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t tracer_lost(struct tracer *tracer);

#endif
