/*
 * trace_event.h - the calls, waits and marks of a rank as events of a trace (report/trace_event.h). One thread per
 * FILE; no other I/O.
 *
 * pid is the rank, tid a track. Slices of one track do not overlap: overlapping calls are on several tracks, and so
 * are a lane's parts of them.
 */
#ifndef NODE_OBSERVE_TRACE_EVENT_H
#define NODE_OBSERVE_TRACE_EVENT_H

#include <stdio.h>

#include "node/observe/record.h"

#define TRACE_TRACKS 32u /* for one kind of slices */
#define TRACE_MARKS 90u  /* the track of events without duration */
#define TRACE_WAITS 50u  /* tracks of a lane's waits, counted from the lane's first track */
#define TRACE_TEXT 96u

/* The first track of a lane; tracks of calls begin at 0. */
static inline uint32_t trace_lane_track(uint32_t lane)
{
	return 100 * (lane + 1);
}

struct trace_head {
	const char *job, *host;
	uint64_t instance, host_id; /* ranks with the same host_id have the same clock */
	uint32_t rank, size;
	uint64_t now_ns, real_ns;   /* one moment on both clocks */
};

/* Begins a trace. */
void trace_write_head(FILE *out, const struct trace_head *head);
void trace_write_end(FILE *out);

/* Each appends one event, or two. */
void trace_write_call(FILE *out, uint32_t rank, uint32_t track, const struct record *record, const char *words);
/* A lane's work on a call (peer: RECORD_NONE), or its wait for a peer. */
void trace_write_lane(FILE *out, uint32_t rank, uint32_t track, const char *what, uint64_t from_ns, uint64_t to_ns,
                      uint32_t peer, uint64_t chunk);
/* The name of a track; before its first slice. */
void trace_write_track(FILE *out, uint32_t rank, uint32_t track, const char *name);
void trace_write_mark(FILE *out, uint32_t rank, uint64_t at_ns, const char *text);

/* Gives calls tracks on which they do not overlap. Zeroed: no track is in use. */
struct trace_tracks {
	uint64_t busy_until_ns[TRACE_TRACKS];
	uint32_t used; /* number of tracks that have had a slice */
};
/* The track of a slice; slices are given in the order of their ends. If no track is free, returns the last one. */
uint32_t trace_track(struct trace_tracks *tracks, uint64_t from_ns, uint64_t to_ns);

#endif
