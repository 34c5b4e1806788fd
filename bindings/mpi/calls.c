/*
 * calls.c - the collectives, blocking and not. Each pair shares a function that makes the trip; request is NULL for
 * the blocking one.
 */
#include <stdlib.h>

#include "trip.h"

/* Carried, or handed on? Counted either way; size is what the summary sorts by. */
#define HAND_ON(function, bytes, call)              \
	do {                                            \
		summary_count((function), (bytes), false);  \
		return (call);                              \
	} while (0)

static int go(struct trip *trip, enum function function, uint64_t bytes, const char *name, MPI_Request *request)
{
	summary_count(function, bytes, true);
	return request ? trip_start(trip, name, request) : trip_run(trip, name);
}

/* ---- sums ---- */

/* False: not ours to carry; nothing has happened. */
static bool begin_sum(struct trip *trip, MPI_Comm comm, enum esp_collective collective, MPI_Datatype datatype, MPI_Op op,
                      struct type *type)
{
	struct comm *known = comm_find(comm);
	enum esp_op number;

	if (!known || !type_find(datatype, type) || !op_find(op, type, &number))
		return false;
	trip_begin(trip, comm, known, collective);
	trip->call.type = type->type;
	trip->call.op = number;
	return true;
}

static void set_sides(struct trip *trip, const void *in, size_t in_bytes, void *out, size_t out_bytes)
{
	trip->call.in = in;
	trip->call.out = out;
	trip->reads = (struct piece){in, in_bytes};
	trip->writes = (struct piece){out, out_bytes};
}

/*
 * Are these counts? Not every MPI looks at all of them, and some die of a negative one. It is trouble rather than MPI's to report, as
 * the other ranks wait.
 */
static bool are_counts(struct trip *trip, const int *counts, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (counts[i] < 0)
			trip_trouble(trip, "rank %u gives a count of %d", trip->known->rank, counts[i]);
	}
	return !trip->trouble[0];
}

static uint64_t guess_bytes(int count, MPI_Datatype datatype)
{
	int bytes = 0;

	return count > 0 && datatype != MPI_DATATYPE_NULL && PMPI_Type_size(datatype, &bytes) == MPI_SUCCESS && bytes > 0
	           ? (uint64_t)count * (uint64_t)bytes
	           : 0;
}

static bool try_allreduce(struct trip *trip, const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op,
                          MPI_Comm comm)
{
	struct type type;

	if (!begin_sum(trip, comm, ESP_ALLREDUCE, datatype, op, &type))
		return false;
	if (!are_counts(trip, &count, 1))
		return true;
	trip->call.count = (uint64_t)count;
	set_sides(trip, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, (size_t)count * type.bytes, recvbuf, (size_t)count * type.bytes);
	return true;
}

int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
	struct trip trip;

	if (!try_allreduce(&trip, sendbuf, recvbuf, count, datatype, op, comm))
		HAND_ON(F_ALLREDUCE, guess_bytes(count, datatype), NEXT(MPI_Allreduce)(sendbuf, recvbuf, count, datatype, op, comm));
	return go(&trip, F_ALLREDUCE, trip.call.count * esp_type_bytes(trip.call.type), "MPI_Allreduce", NULL);
}

int MPI_Iallreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                   MPI_Request *request)
{
	struct trip trip;

	if (!try_allreduce(&trip, sendbuf, recvbuf, count, datatype, op, comm))
		HAND_ON(F_ALLREDUCE, guess_bytes(count, datatype),
		        NEXT(MPI_Iallreduce)(sendbuf, recvbuf, count, datatype, op, comm, request));
	return go(&trip, F_ALLREDUCE, trip.call.count * esp_type_bytes(trip.call.type), "MPI_Iallreduce", request);
}

static bool try_reduce(struct trip *trip, const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root,
                       MPI_Comm comm)
{
	struct type type;

	if (!begin_sum(trip, comm, ESP_REDUCE, datatype, op, &type) || root < 0 || (uint32_t)root >= trip->known->size)
		return false;
	if (!are_counts(trip, &count, 1))
		return true;
	trip->call.root = (uint32_t)root;
	trip->call.count = (uint64_t)count;
	bool is_root = trip->known->rank == (uint32_t)root;
	size_t bytes = (size_t)count * type.bytes;
	set_sides(trip, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, bytes, is_root ? recvbuf : NULL, is_root ? bytes : 0);
	return true;
}

int MPI_Reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm)
{
	struct trip trip;

	if (!try_reduce(&trip, sendbuf, recvbuf, count, datatype, op, root, comm))
		HAND_ON(F_REDUCE, guess_bytes(count, datatype), NEXT(MPI_Reduce)(sendbuf, recvbuf, count, datatype, op, root, comm));
	return go(&trip, F_REDUCE, guess_bytes(count, datatype), "MPI_Reduce", NULL);
}

int MPI_Ireduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
                MPI_Request *request)
{
	struct trip trip;

	if (!try_reduce(&trip, sendbuf, recvbuf, count, datatype, op, root, comm))
		HAND_ON(F_REDUCE, guess_bytes(count, datatype),
		        NEXT(MPI_Ireduce)(sendbuf, recvbuf, count, datatype, op, root, comm, request));
	return go(&trip, F_REDUCE, guess_bytes(count, datatype), "MPI_Ireduce", request);
}


/* counts: elements per rank, or NULL: `count` each. */
static bool try_reduce_scatter(struct trip *trip, const void *sendbuf, void *recvbuf, const int *counts, int count,
                               MPI_Datatype datatype, MPI_Op op, MPI_Comm comm, uint64_t *out_bytes)
{
	struct type type;
	size_t before = 0, mine = (size_t)count;

	if (!begin_sum(trip, comm, ESP_REDUCE_SCATTER, datatype, op, &type))
		return false;
	struct comm *known = trip->known;
	size_t all = (size_t)count * known->size;
	if (!are_counts(trip, counts ? counts : &count, counts ? known->size : 1))
		return true;
	if (counts) {
		all = 0;
		for (uint32_t i = 0; i < known->size; i++) {
			if (i < known->rank)
				before += (size_t)counts[i];
			all += (size_t)counts[i];
		}
		mine = (size_t)counts[known->rank];
		trip_counts(trip, counts, known->size, 1);
	} else {
		before = mine * known->rank;
		trip->call.count = (uint64_t)count;
	}
	*out_bytes = all * type.bytes;
	set_sides(trip, sendbuf, all * type.bytes, recvbuf, mine * type.bytes);
	if (sendbuf == MPI_IN_PLACE) { /* Espalier leaves the block in its place, MPI wants it at the beginning */
		set_sides(trip, recvbuf, all * type.bytes, (uint8_t *)recvbuf + before * type.bytes, mine * type.bytes);
		trip->move_from = trip->call.out;
		trip->move_to = recvbuf;
		trip->move_bytes = mine * type.bytes;
	}
	return true;
}

int MPI_Reduce_scatter(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
	struct trip trip;
	uint64_t bytes = 0;

	if (!try_reduce_scatter(&trip, sendbuf, recvbuf, recvcounts, 0, datatype, op, comm, &bytes))
		HAND_ON(F_REDUCE_SCATTER, 0, NEXT(MPI_Reduce_scatter)(sendbuf, recvbuf, recvcounts, datatype, op, comm));
	return go(&trip, F_REDUCE_SCATTER, bytes, "MPI_Reduce_scatter", NULL);
}

int MPI_Ireduce_scatter(const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op,
                        MPI_Comm comm, MPI_Request *request)
{
	struct trip trip;
	uint64_t bytes = 0;

	if (!try_reduce_scatter(&trip, sendbuf, recvbuf, recvcounts, 0, datatype, op, comm, &bytes))
		HAND_ON(F_REDUCE_SCATTER, 0, NEXT(MPI_Ireduce_scatter)(sendbuf, recvbuf, recvcounts, datatype, op, comm, request));
	return go(&trip, F_REDUCE_SCATTER, bytes, "MPI_Ireduce_scatter", request);
}

int MPI_Reduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
	struct trip trip;
	uint64_t bytes = 0;

	if (!try_reduce_scatter(&trip, sendbuf, recvbuf, NULL, recvcount, datatype, op, comm, &bytes))
		HAND_ON(F_REDUCE_SCATTER_BLOCK, guess_bytes(recvcount, datatype),
		        NEXT(MPI_Reduce_scatter_block)(sendbuf, recvbuf, recvcount, datatype, op, comm));
	return go(&trip, F_REDUCE_SCATTER_BLOCK, bytes, "MPI_Reduce_scatter_block", NULL);
}

int MPI_Ireduce_scatter_block(const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                              MPI_Request *request)
{
	struct trip trip;
	uint64_t bytes = 0;

	if (!try_reduce_scatter(&trip, sendbuf, recvbuf, NULL, recvcount, datatype, op, comm, &bytes))
		HAND_ON(F_REDUCE_SCATTER_BLOCK, guess_bytes(recvcount, datatype),
		        NEXT(MPI_Ireduce_scatter_block)(sendbuf, recvbuf, recvcount, datatype, op, comm, request));
	return go(&trip, F_REDUCE_SCATTER_BLOCK, bytes, "MPI_Ireduce_scatter_block", request);
}

/* ---- data that is only moved: any type, as bytes ---- */

static bool begin_move(struct trip *trip, MPI_Comm comm, enum esp_collective collective)
{
	struct comm *known = comm_find(comm);

	if (!known)
		return false;
	trip_begin(trip, comm, known, collective);
	return true;
}

/*
 * Whether a rank carries such a call may not depend on how it describes its memory: another rank may describe the same bytes
 * otherwise. So all types are carried; a handle that is none is a mistake, which MPI shall report.
 */
static bool find_layout(struct trip *trip, void *base, MPI_Datatype datatype, int count, struct layout *out)
{
	*out = (struct layout){.base = base, .count = are_counts(trip, &count, 1) ? (size_t)count : 0};
	return type_find(datatype, &out->type);
}

static bool try_bcast(struct trip *trip, void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
	struct layout layout;

	if (!begin_move(trip, comm, ESP_BROADCAST) || !find_layout(trip, buffer, datatype, count, &layout) || root < 0 ||
	    (uint32_t)root >= trip->known->size)
		return false;
	trip->call.root = (uint32_t)root;
	trip->call.count = layout.count * layout.type.bytes;
	if (trip->known->rank == (uint32_t)root)
		trip->call.out = (void *)(uintptr_t)trip_source(trip, &layout);
	else
		trip->call.out = trip_target(trip, &layout);
	return true;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
	struct trip trip;

	if (!try_bcast(&trip, buffer, count, datatype, root, comm))
		HAND_ON(F_BCAST, guess_bytes(count, datatype), NEXT(MPI_Bcast)(buffer, count, datatype, root, comm));
	return go(&trip, F_BCAST, trip.call.count, "MPI_Bcast", NULL);
}

int MPI_Ibcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request *request)
{
	struct trip trip;

	if (!try_bcast(&trip, buffer, count, datatype, root, comm))
		HAND_ON(F_BCAST, guess_bytes(count, datatype), NEXT(MPI_Ibcast)(buffer, count, datatype, root, comm, request));
	return go(&trip, F_BCAST, trip.call.count, "MPI_Ibcast", request);
}

/* The place of this rank's block in a receive buffer: MPI_IN_PLACE means that it is there already. */
static struct layout own_block(const struct layout *all, uint32_t rank)
{
	struct layout one = {.base = all->base, .type = all->type};
	MPI_Aint at = all->blocks > 0 ? all->displs[rank] : (MPI_Aint)rank * (MPI_Aint)all->count;

	one.count = all->blocks > 0 ? (size_t)all->counts[rank] : all->count;
	one.base = (uint8_t *)all->base + at * all->type.extent;
	return one;
}

/* counts and displs: NULL: recvcount each. */
static bool try_allgather(struct trip *trip, const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                          const int *counts, const int *displs, MPI_Datatype recvtype, MPI_Comm comm, uint64_t *out_bytes)
{
	struct layout from, to;

	if (!begin_move(trip, comm, ESP_ALLGATHER) || !find_layout(trip, recvbuf, recvtype, counts ? 0 : recvcount, &to))
		return false;
	struct comm *known = trip->known;
	if (counts && !are_counts(trip, counts, known->size))
		return true;
	if (counts) {
		to.blocks = (int)known->size;
		to.counts = counts;
		to.displs = displs;
	}
	if (sendbuf == MPI_IN_PLACE)
		from = own_block(&to, known->rank);
	else if (!find_layout(trip, (void *)(uintptr_t)sendbuf, sendtype, sendcount, &from))
		return false;
	size_t gives = from.count * from.type.bytes, room = (counts ? (size_t)counts[known->rank] : to.count) * to.type.bytes;
	if (gives != room)
		trip_trouble(trip, "rank %u gives %zu bytes and expects %zu of itself", known->rank, gives, room);
	if (counts)
		trip_counts(trip, counts, known->size, to.type.bytes);
	else
		to.count *= known->size;
	trip->call.count = gives;
	trip->call.in = trip_source(trip, &from);
	trip->call.out = trip_target(trip, &to);
	*out_bytes = layout_elements(&to) * to.type.bytes;
	return true;
}

int MPI_Allgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                  MPI_Comm comm)
{
	struct trip trip;
	uint64_t bytes = 0;

	if (!try_allgather(&trip, sendbuf, sendcount, sendtype, recvbuf, recvcount, NULL, NULL, recvtype, comm, &bytes))
		HAND_ON(F_ALLGATHER, guess_bytes(recvcount, recvtype),
		        NEXT(MPI_Allgather)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));
	return go(&trip, F_ALLGATHER, bytes, "MPI_Allgather", NULL);
}

int MPI_Iallgather(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                   MPI_Comm comm, MPI_Request *request)
{
	struct trip trip;
	uint64_t bytes = 0;

	if (!try_allgather(&trip, sendbuf, sendcount, sendtype, recvbuf, recvcount, NULL, NULL, recvtype, comm, &bytes))
		HAND_ON(F_ALLGATHER, guess_bytes(recvcount, recvtype),
		        NEXT(MPI_Iallgather)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request));
	return go(&trip, F_ALLGATHER, bytes, "MPI_Iallgather", request);
}

int MPI_Allgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                   const int displs[], MPI_Datatype recvtype, MPI_Comm comm)
{
	struct trip trip;
	uint64_t bytes = 0;

	if (!try_allgather(&trip, sendbuf, sendcount, sendtype, recvbuf, 0, recvcounts, displs, recvtype, comm, &bytes))
		HAND_ON(F_ALLGATHERV, 0, NEXT(MPI_Allgatherv)(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm));
	return go(&trip, F_ALLGATHERV, bytes, "MPI_Allgatherv", NULL);
}

int MPI_Iallgatherv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
                    const int displs[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
	struct trip trip;
	uint64_t bytes = 0;

	if (!try_allgather(&trip, sendbuf, sendcount, sendtype, recvbuf, 0, recvcounts, displs, recvtype, comm, &bytes))
		HAND_ON(F_ALLGATHERV, 0,
		        NEXT(MPI_Iallgatherv)(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, request));
	return go(&trip, F_ALLGATHERV, bytes, "MPI_Iallgatherv", request);
}

static bool try_alltoall(struct trip *trip, const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount,
                         MPI_Datatype recvtype, MPI_Comm comm)
{
	struct layout from, to;

	if (!begin_move(trip, comm, ESP_ALLTOALL) || !find_layout(trip, recvbuf, recvtype, recvcount, &to))
		return false;
	trip->call.count = to.count * to.type.bytes;
	to.count *= trip->known->size;
	if (sendbuf == MPI_IN_PLACE) {
		trip->call.in = trip_put_aside(trip, &to) /* an alltoall cannot be in place */;
	} else {
		if (!find_layout(trip, (void *)(uintptr_t)sendbuf, sendtype, sendcount, &from))
			return false;
		if (from.count * from.type.bytes != trip->call.count)
			trip_trouble(trip, "rank %u gives %zu bytes to each and expects %zu of each", trip->known->rank, from.count * from.type.bytes,
			             (size_t)trip->call.count);
		from.count *= trip->known->size;
		trip->call.in = trip_source(trip, &from);
	}
	trip->call.out = trip_target(trip, &to);
	return true;
}

int MPI_Alltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                 MPI_Comm comm)
{
	struct trip trip;

	if (!try_alltoall(&trip, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
		HAND_ON(F_ALLTOALL, guess_bytes(recvcount, recvtype),
		        NEXT(MPI_Alltoall)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm));
	return go(&trip, F_ALLTOALL, trip.call.count * trip.known->size, "MPI_Alltoall", NULL);
}

int MPI_Ialltoall(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
                  MPI_Comm comm, MPI_Request *request)
{
	struct trip trip;

	if (!try_alltoall(&trip, sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
		HAND_ON(F_ALLTOALL, guess_bytes(recvcount, recvtype),
		        NEXT(MPI_Ialltoall)(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request));
	return go(&trip, F_ALLTOALL, trip.call.count * trip.known->size, "MPI_Ialltoall", request);
}

/* Bytes of each block, from malloc; NULL, with trouble: no memory. */
static uint64_t *row_of(struct trip *trip, const struct layout *layout)
{
	uint64_t *row = malloc(((size_t)layout->blocks + 1) * sizeof(*row));

	if (!row)
		trip_trouble(trip, "no memory for the counts of an alltoall");
	for (int i = 0; row && i < layout->blocks; i++)
		row[i] = (uint64_t)layout->counts[i] * layout->type.bytes;
	return row;
}

/* bytes: gets this rank's row of the table, from malloc. */
static bool try_alltoallv(struct trip *trip, const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,
                          void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm,
                          uint64_t **bytes, uint64_t *out_bytes)
{
	struct layout from, to;

	if (!begin_move(trip, comm, ESP_ALLTOALL) || !find_layout(trip, recvbuf, recvtype, 0, &to))
		return false;
	uint32_t size = trip->known->size;
	*bytes = NULL;
	if (!are_counts(trip, recvcounts, size) || (sendbuf != MPI_IN_PLACE && !are_counts(trip, sendcounts, size)))
		return true;
	to.blocks = (int)size;
	to.counts = recvcounts;
	to.displs = rdispls;
	if (sendbuf == MPI_IN_PLACE) {
		from = to;
		trip->call.in = trip_put_aside(trip, &to) /* an alltoall cannot be in place */;
	} else {
		if (!find_layout(trip, (void *)(uintptr_t)sendbuf, sendtype, 0, &from))
			return false;
		from.blocks = (int)size;
		from.counts = sendcounts;
		from.displs = sdispls;
		trip->call.in = trip_source(trip, &from);
	}
	trip->call.out = trip_target(trip, &to);
	*bytes = row_of(trip, &from);
	trip->expected = row_of(trip, &to);
	*out_bytes = layout_elements(&to) * to.type.bytes;
	return true;
}

int MPI_Alltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
                  const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm)
{
	struct trip trip;
	uint64_t *row, bytes = 0;

	if (!try_alltoallv(&trip, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, &row, &bytes))
		HAND_ON(F_ALLTOALLV, 0,
		        NEXT(MPI_Alltoallv)(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm));
	summary_count(F_ALLTOALLV, bytes, true);
	return trip_alltoallv(&trip, row, "MPI_Alltoallv", NULL);
}

int MPI_Ialltoallv(const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
                   const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request)
{
	struct trip trip;
	uint64_t *row, bytes = 0;

	if (!try_alltoallv(&trip, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, &row, &bytes))
		HAND_ON(F_ALLTOALLV, 0,
		        NEXT(MPI_Ialltoallv)(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request));
	summary_count(F_ALLTOALLV, bytes, true);
	return trip_alltoallv(&trip, row, "MPI_Ialltoallv", request);
}

int MPI_Barrier(MPI_Comm comm)
{
	struct trip trip;

	if (!begin_move(&trip, comm, ESP_BARRIER))
		HAND_ON(F_BARRIER, 0, NEXT(MPI_Barrier)(comm));
	return go(&trip, F_BARRIER, 0, "MPI_Barrier", NULL);
}

int MPI_Ibarrier(MPI_Comm comm, MPI_Request *request)
{
	struct trip trip;

	if (!begin_move(&trip, comm, ESP_BARRIER))
		HAND_ON(F_BARRIER, 0, NEXT(MPI_Ibarrier)(comm, request));
	return go(&trip, F_BARRIER, 0, "MPI_Ibarrier", request);
}
