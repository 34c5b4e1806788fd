/*
 * trace_event.h - what a rank records, as events of a trace (report/trace_event.h). Pure but for the FILE.
 *
 * pid is the rank, tid a track. Slices on one track do not overlap: calls that do stand on several tracks, and so do a lane's parts of them.
 */
#ifndef NODE_OBSERVE_TRACE_EVENT_H
#define NODE_OBSERVE_TRACE_EVENT_H

#include <stdio.h>

#include "node/observe/record.h"

#define TRACE_TRACKS 32u /* for one kind of slices                          */
#define TRACE_MARKS 90u  /* the track of what happens at one moment         */
#define TRACE_WAITS 50u  /* what a lane waits for, counted from its first one */
#define TRACE_TEXT 96u

/* The first track of a lane; calls begin at 0. */
static inline uint32_t trace_lane_track(uint32_t lane)
{
	return 100 * (lane + 1);
}

struct trace_head {
	const char *job, *host;
	uint64_t instance, host_id; /* ranks with the same host_id have the same clock */
	uint32_t rank, size;
	uint64_t now_ns, real_ns;   /* one moment, by both clocks                      */
};

/* The first lines. */
void trace_write_head(FILE *out, const struct trace_head *head);
void trace_write_end(FILE *out);

/* Each writes one event, or two, behind those that are there. */
void trace_write_call(FILE *out, uint32_t rank, uint32_t track, const struct record *record, const char *words);
/* What a lane does of a call (peer is RECORD_NONE), or what it waits for. */
void trace_write_lane(FILE *out, uint32_t rank, uint32_t track, const char *what, uint64_t from_ns, uint64_t to_ns, uint32_t peer,
                      uint64_t chunk);
/* How a track is called; before its first slice. */
void trace_write_track(FILE *out, uint32_t rank, uint32_t track, const char *name);
void trace_write_mark(FILE *out, uint32_t rank, uint64_t at_ns, const char *text);

/* Tracks on which calls do not overlap. Zeroed: none is in use. */
struct trace_tracks {
	uint64_t busy_until_ns[TRACE_TRACKS];
	uint32_t used; /* so many of them have had a slice */
};
/* For slices in the order of their ends. The last track takes what has no room elsewhere. */
uint32_t trace_track(struct trace_tracks *tracks, uint64_t from_ns, uint64_t to_ns);

#endif
