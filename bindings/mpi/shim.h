/*
 * shim.h - MPI's collectives by Espalier, for programs that know only MPI.
 *
 * The shim defines MPI_Allreduce and others; preloaded, or linked before the MPI library, they are found first.
 * What it does not carry goes on to the next definition: another tool's, or the MPI library's. It is compiled against the
 * mpi.h of one MPI, as their handles differ.
 *
 *     init.c       MPI_Init, MPI_Finalize: joins a job of the ranks of MPI_COMM_WORLD
 *     memory.c     MPI_Alloc_mem: memory that ranks of a host share
 *     share.c      large blocks of malloc() become such memory, if many calls are made on them
 *     heap.c       free() and realloc(): who frees one of those is seen
 *     comms.c      a group for each communicator, kept as its attribute
 *     types.c      types and operations in Espalier's terms; data that lies scattered
 *     trip.c       one call: from MPI's arguments to struct esp_call and back
 *     calls.c      the collectives
 *     requests.c   their non-blocking forms, and what waits for them
 *     summary.c    how many calls were carried
 */
#ifndef MPI_SHIM_H
#define MPI_SHIM_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "espalier/espalier.h"

/* The next definition of an MPI function, looked up once: NEXT(MPI_Allreduce)(...). */
void *next_find(const char *name);
#define NEXT(name)                                             \
	({                                                         \
		static __typeof__(&name) found;                        \
		if (!found)                                            \
			found = (__typeof__(&name))next_find(#name);       \
		found;                                                 \
	})

/* ---- init.c ---- */

/* Is there a job? Not before MPI_Init(), not after MPI_Finalize(), and not if joining failed on any rank. */
bool shim_is_on(void);
/* The job; NULL: there is none. */
struct esp_context *shim_world(void);

/* Has Espalier called MPI in this thread, to move messages on while it waits? Then it is not to be called. */
bool shim_is_idle(void);

/* Joins a job of the ranks of comm, all or none: NULL: none. */
struct esp_context *shim_join(MPI_Comm comm);

/* ---- comms.c ---- */

/* What we know of a communicator. */
struct comm {
	struct esp_group *group;
	struct esp_context *context; /* of its own, where its parent could not make the group; or NULL */
	bool is_worlds;              /* the group is one of shim_world(), and not of such a context */
	uint32_t rank, size;
	struct comm *next_alone;
	uint64_t keys;               /* used up on this communicator so far: see trip.h */
};

/* NULL: calls on it are not ours to carry. */
struct comm *comm_find(MPI_Comm handle);
void comms_open(struct esp_context *world);
void comms_close(void);

/*
 * A call on comm has failed: says so, and does what the communicator's error handler wants. Returns a code of which
 * MPI_Error_string() says the sentence. comm_fail(): it is this thread's last error.
 */
int comm_fail_as(MPI_Comm comm, const char *function, const struct esp_error *error);
int comm_fail(MPI_Comm comm, const char *function);

/* ---- types.c ---- */

struct type {
	MPI_Datatype handle;
	size_t bytes;       /* of one element's data                       */
	MPI_Aint extent;    /* from one element to the next in memory      */
	bool dense;         /* its data lies in one piece and in order, and elements side by side */
	bool reduces;       /* it can be computed with:                    */
	enum esp_type type; /* ... as this                                 */
};
/* False: not a type that has been committed. */
bool type_find(MPI_Datatype handle, struct type *out);
/* Do we combine this type with this operation? */
bool op_find(MPI_Op op, const struct type *type, enum esp_op *out);

/* ---- requests.c ---- */

/* Has any call been started that was not waited for yet? */
bool requests_are_under_way(void);
/* Before the first: has MPI look after them while it waits for anything. */
void requests_open(void);
/* Waits for those whose requests were freed and never waited for. */
void requests_drain(void);
/* The communicator is being freed: waits for all calls that are under way on it. */
void requests_end(const struct comm *comm);

/* ---- share.c: any thread ---- */

#define SHARE_LEAST_BYTES ((size_t)256 << 10) /* what is smaller is copied as fast as it is shared */

/* A call is about to be made on this memory, the caller's own, of at least SHARE_LEAST_BYTES: it is shared now if that is likely to pay. */
void share_see(void *memory, size_t bytes);
/* A block of malloc() is about to be freed: it is private from now on. False: it cannot be, so it must stay allocated. */
bool share_leave(void *memory);
/* From now on blocks of this job may be shared, unless the user, the host or the program is not for it. */
void share_open(struct esp_context *world);
/* Before esp_fini(), which makes all of them private; who frees one waits until share_closed(). */
void share_close(void);
void share_closed(void);
/* How many were shared so far, and how many bytes of them. */
void share_count(uint64_t *out_blocks, uint64_t *out_bytes);
void share_in_parent(void);
void share_in_child(void);

/* ---- heap.c: any thread ---- */

/* Is this memory a block that glibc's malloc() has mapped for it alone, with room for so many bytes? Reads nothing beyond its first page. */
bool heap_is_block(const void *memory, size_t bytes);
/* Is malloc() glibc's, and does what the program frees come through here? One thread at a time. */
bool heap_is_known(void);
/* One block more, or less, that share_leave() is to hear of. */
void heap_watch(void);
void heap_unwatch(void);
void heap_in_child(void);

/* ---- summary.c ---- */

enum function {
	F_ALLREDUCE, F_REDUCE, F_REDUCE_SCATTER, F_REDUCE_SCATTER_BLOCK, F_ALLGATHER, F_ALLGATHERV, F_BCAST, F_BARRIER, F_ALLTOALL,
	F_ALLTOALLV, FUNCTION_COUNT
};
void summary_count(enum function function, uint64_t bytes, bool carried);
/* On rank 0, if ESP_MPI_SUMMARY is set: all ranks take part. */
void summary_print(MPI_Comm comm);

#endif
