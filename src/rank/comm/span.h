/*
 * span.h - memory of a call as executors need it: in one piece.
 *
 * A call on one buffer is one span. Many buffers are several: a large one is a span by
 * itself and moves without a copy; small neighbours are put together in staging memory and
 * taken apart again. That is for vectors (allreduce, reduce, broadcast), which can be cut
 * anywhere; where blocks have owners everything is staged.
 */
#ifndef RANK_COMM_SPAN_H
#define RANK_COMM_SPAN_H

#include "rank/comm/call.h"
#include "rank/comm/plan_cache.h"

struct span {
	const uint8_t *in;
	uint8_t *out;
	uint64_t block_bytes;
	bool in_place;
	uint8_t *staging;            /* NULL: none; what was gathered, then what is to be scattered */
	uint64_t in_at, out_at;      /* where it lies in all of the caller's memory, if staged      */
	uint64_t in_bytes, out_bytes;
	/* While it runs on memory that the caller shares, in and out are its places in the heap. */
	struct annex *in_annex, *out_annex; /* NULL: not                                            */
	const uint8_t *own_in;       /* the caller's */
	uint8_t *own_out;
	struct planned *planned;     /* NULL: none yet */
};

/* at_once: all of it in one span, as the small path has it. */
ESP_CHECKED enum esp_status comm_spans_make(const struct call *call, uint64_t chunk_bytes, bool at_once,
                                            struct span **out, uint32_t *out_count);
/* Not the plans. */
void comm_spans_fini(struct span *spans, uint32_t count);

/* It is about to run; what the caller shares it takes hold of until comm_span_land(). Nothing has to be shared. */
struct segment;
void comm_span_set_out(struct span *span, struct segment *segment);
void comm_span_land(struct span *span);

/* Fills the staging memory, and what else is not there, from the caller's input, and the caller's output from it. */
void comm_span_gather(const struct span *span, const struct call *call);
void comm_span_scatter(const struct span *span, const struct call *call);

#endif
