/*
 * tracer.h - a rank's trace: any thread adds events to a ring, and a thread of its own writes them to a file.
 *
 * To add an event takes a lock for some dozen instructions and waits for nothing; events for which the ring has no room
 * are counted and lost. The file's name ends in ".part" until the rank leaves in good order. A full disk ends the trace
 * with one warning and has no other effect.
 */
#ifndef RANK_OBSERVE_TRACER_H
#define RANK_OBSERVE_TRACER_H

#include <stdbool.h>
#include <stdint.h>

#include "node/observe/record.h"

struct rank;
struct tracer;

/* For rank_open(), before the first call. NULL: the settings want none, or it cannot be opened, as the log says. */
struct tracer *tracer_open(struct rank *context);
/* Waits some seconds at most until the events are written. Accepts NULL. */
void tracer_close(struct tracer *tracer, struct rank *context);

/* All of these: any thread; accept NULL. */
void tracer_add_call(struct tracer *tracer, const struct record *record);
bool tracer_has_detail(const struct tracer *tracer);
/* A lane's work on a call; or, with a peer, its wait for that peer. Keeps `what`: static text. */
void tracer_add_lane(struct tracer *tracer, uint32_t lane, const char *what, uint64_t from_ns, uint64_t to_ns,
                     uint32_t peer, uint64_t chunk);
void tracer_mark(struct tracer *tracer, const char *format, ...) __attribute__((format(printf, 2, 3)));
uint64_t tracer_lost(struct tracer *tracer);

#endif
