/*
 * trip.h - one call on its way through Espalier: where its data lies, and where its result goes.
 *
 * Espalier wants each side of a call in one piece, MPI has blocks with displacements and types with holes. What is in one piece
 * already stays where it is; anything else is packed into temporary memory and unpacked from it. Which of the two happens is
 * this rank's own matter: the bytes of a call are the same on all ranks, however each of them describes its memory.
 */
#ifndef MPI_TRIP_H
#define MPI_TRIP_H

#include "shim.h"

/* Memory as MPI describes it: blocks[i] elements at displacement[i] elements; or `count` elements in a row. */
struct layout {
	void *base;
	struct type type;
	int blocks;           /* 0: one block of count */
	const int *counts;    /* by block              */
	const int *displs;
	size_t count;
};

/* Memory of the caller's own, not temporary; 0 bytes: none. */
struct piece {
	const void *at;
	size_t bytes;
};

struct trip {
	struct esp_call call;
	struct piece reads, writes; /* as the call does */
	MPI_Comm comm;
	struct comm *known;
	void *source;          /* temporary, or NULL */
	void *target;          /* temporary, or NULL */
	struct layout result;  /* where the target is unpacked to; its arrays are our own */
	void *move_to;         /* a result in its place that is wanted elsewhere; or NULL */
	const void *move_from;
	size_t move_bytes;
	uint64_t *counts;      /* call.counts, ours */
	uint64_t *expected;    /* alltoallv: bytes from each rank, ours; or NULL */
	char trouble[160];     /* why the call cannot be made, although the others make it; "": nothing */
};

/* The first trouble counts. */
void trip_trouble(struct trip *trip, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* There was trouble: the others, who wait for this rank, are told why, and so is the caller. */
int trip_refuse(struct trip *trip, const char *function);

/* A zeroed trip for a call on comm. */
void trip_begin(struct trip *trip, MPI_Comm comm, struct comm *known, enum esp_collective collective);

/* The layout's data in one piece, for the call to read. */
const void *trip_source(struct trip *trip, const struct layout *layout);
/* The same as a copy in any case, for a call whose result goes to the same memory. */
const void *trip_put_aside(struct trip *trip, const struct layout *layout);
/* One piece of memory for the call to write, from which the layout is filled at the end. */
void *trip_target(struct trip *trip, const struct layout *layout);

/* The call may be made faster if the memory that it uses is shared. Just before it is made. */
void trip_share(const struct trip *trip);

/* Bytes of each block, as the call's counts. */
void trip_counts(struct trip *trip, const int *counts, uint32_t n, size_t element_bytes);

/* Elements of all blocks. */
size_t layout_elements(const struct layout *layout);

/* The call has ended well: the result goes where it is wanted. False: MPI could not unpack it. */
bool trip_arrive(struct trip *trip);
/* Frees what it had. */
void trip_end(struct trip *trip);

/* Makes the call and waits for it; an MPI error code. */
int trip_run(struct trip *trip, const char *function);

/* requests.c: starts it, and takes *trip over, which is copied. */
int trip_start(struct trip *trip, const char *function, MPI_Request *request);

/*
 * An alltoall whose blocks differ: every rank knows its own row and column of the table of counts, and the call wants all of
 * it. row: bytes to each rank, from malloc; taken over. Blocking if request is NULL. What the table says that others send is
 * compared with what this rank expects before anything is written.
 */
int trip_alltoallv(struct trip *trip, uint64_t *row, const char *function, MPI_Request *request);

#endif
