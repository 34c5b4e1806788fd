/*
 * same_test.c - every collective, as the shim does it and as the MPI library does it: the results are the same.
 *
 * The shim's functions are MPI_*, the library's PMPI_*. Run by run_test.py under an mpirun with the shim preloaded: same_test SEED
 * ROUNDS. Values are small whole numbers, so that every order of addition gives the same bits.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, comm_rank, comm_size;
static uint64_t state;
static long checks;

/* The same on all ranks: what is decided together. */
static uint32_t pick(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((state >> 33) % below);
}

static void fail(const char *what)
{
	fprintf(stderr, "same_test: rank %d: %s differs from the library's own result\n", rank, what);
	PMPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

struct kind {
	const char *name;
	int bytes;
	int is_float;
};

static MPI_Datatype type_at(int i, struct kind *kind)
{
	switch (i) {
	case 0: *kind = (struct kind){"MPI_FLOAT", 4, 1}; return MPI_FLOAT;
	case 1: *kind = (struct kind){"MPI_DOUBLE", 8, 1}; return MPI_DOUBLE;
	case 2: *kind = (struct kind){"MPI_INT", 4, 0}; return MPI_INT;
	case 3: *kind = (struct kind){"MPI_LONG_LONG", 8, 0}; return MPI_LONG_LONG;
	case 4: *kind = (struct kind){"MPI_UINT16_T", 2, 0}; return MPI_UINT16_T;
	case 5: *kind = (struct kind){"MPI_UNSIGNED_CHAR", 1, 0}; return MPI_UNSIGNED_CHAR;
	default: *kind = (struct kind){"MPI_LONG_DOUBLE", sizeof(long double), 1}; return MPI_LONG_DOUBLE; /* MPI carries it */
	}
}

static MPI_Op op_at(int i)
{
	MPI_Op ops[] = {MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD, MPI_BAND, MPI_BXOR, MPI_LOR};

	return ops[i];
}

static void fill(void *memory, size_t count, int type)
{
	for (size_t i = 0; i < count; i++) {
		int value = 1 + (int)((i * 7 + (size_t)rank * 3 + (size_t)type) % 3);

		switch (type) {
		case 0: ((float *)memory)[i] = (float)value; break;
		case 1: ((double *)memory)[i] = value; break;
		case 2: ((int *)memory)[i] = value; break;
		case 3: ((long long *)memory)[i] = value; break;
		case 4: ((uint16_t *)memory)[i] = (uint16_t)value; break;
		case 5: ((unsigned char *)memory)[i] = (unsigned char)value; break;
		default: ((long double *)memory)[i] = value; break;
		}
	}
}

#define ALLOCATED_MOST 16
static void *allocated[ALLOCATED_MOST]; /* by MPI */

/* Each rank for itself: what memory a call is made on is its own matter. */
static int toss(void)
{
	static uint64_t own;

	own = (own + 1 + (uint64_t)rank) * 6364136223846793005u + 1442695040888963407u;
	return own >> 60 & 1;
}

/* Bytes that are not values of the type, so that holes stay as they were; in memory of one kind or the other. */
static void *make(size_t bytes)
{
	uint8_t *memory = NULL;
	int is_mpis = toss();

	for (int i = 0; is_mpis && !memory && i < ALLOCATED_MOST; i++) {
		if (!allocated[i] && MPI_Alloc_mem((MPI_Aint)bytes + 16, MPI_INFO_NULL, &memory) == MPI_SUCCESS)
			allocated[i] = memory;
	}
	if (!memory)
		memory = malloc(bytes + 16);
	if (!memory)
		abort();
	memset(memory, 0xa5, bytes + 16);
	return memory;
}

static void drop(void *memory)
{
	for (int i = 0; i < ALLOCATED_MOST; i++) {
		if (allocated[i] != memory)
			continue;
		allocated[i] = NULL;
		if (MPI_Free_mem(memory) != MPI_SUCCESS)
			fail("MPI_Free_mem");
		return;
	}
	free(memory);
}

/* What MPI_Alloc_mem gives lies in the memory that the ranks of a host share. */
static void memory_is_shared(void)
{
	char line[512];
	uint8_t *memory;
	int is_shared = 0;

	MPI_Alloc_mem(100000, MPI_INFO_NULL, &memory);
	FILE *maps = fopen("/proc/self/maps", "r");
	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long long from, to;

		if (sscanf(line, "%llx-%llx", &from, &to) == 2 && (uintptr_t)memory >= from && (uintptr_t)memory < to)
			is_shared = strstr(line, "memfd:espalier") != NULL;
	}
	if (maps)
		fclose(maps);
	if (!is_shared)
		fail("memory of MPI_Alloc_mem");
	memset(memory, 1, 100000);
	MPI_Free_mem(memory);
	PMPI_Alloc_mem(1000, MPI_INFO_NULL, &memory); /* of the library's own, and freed through the shim */
	memset(memory, 1, 1000);
	MPI_Free_mem(memory);
	checks++;
}

static void compare(const char *what, const void *ours, const void *theirs, size_t bytes)
{
	checks++;
	if (memcmp(ours, theirs, bytes + 16) != 0)
		fail(what);
}

static size_t pick_count(void)
{
	static const size_t most[] = {1, 20, 3000, 40000};

	return 1 + pick((uint32_t)most[pick(4)]);
}

static void wait_in_some_way(MPI_Request *request)
{
	int index, flag = 0, out;
	MPI_Status status;
	MPI_Request two[2] = {MPI_REQUEST_NULL, *request};

	switch (pick(8)) {
	case 0: MPI_Wait(request, &status); break;
	case 1:
		while (!flag)
			MPI_Test(request, &flag, MPI_STATUS_IGNORE);
		break;
	case 2: MPI_Waitall(2, two, MPI_STATUSES_IGNORE); break;
	case 3: MPI_Waitany(2, two, &index, MPI_STATUS_IGNORE); break;
	/* Past the shim, as other tools do, and Fortran in Open MPI. */
	case 4: PMPI_Wait(request, &status); break;
	case 5: PMPI_Waitall(2, two, MPI_STATUSES_IGNORE); break;
	case 6:
		while (!flag)
			PMPI_Test(request, &flag, MPI_STATUS_IGNORE);
		break;
	default: MPI_Waitsome(2, two, &out, &index, MPI_STATUSES_IGNORE); break;
	}
}

static void sums(MPI_Comm comm, int blocking)
{
	struct kind kind;
	int type = (int)pick(7), in_place = (int)pick(2), root = (int)pick((uint32_t)comm_size);
	MPI_Datatype datatype = type_at(type, &kind);
	MPI_Op op = op_at((int)pick(kind.is_float ? 4 : 7));
	size_t count = pick_count(), whole = count * (size_t)comm_size;
	uint8_t *mine = make(whole * (size_t)kind.bytes), *ours = make(whole * (size_t)kind.bytes), *theirs = make(whole * (size_t)kind.bytes);
	MPI_Request request;
	int *counts = malloc((size_t)comm_size * sizeof(int)), n = (int)count;

	in_place = in_place && type != 6; /* what goes to the library: see MPI_Reduce below */
	fill(mine, whole, type);
	if (in_place) {
		fill(ours, whole, type);
		fill(theirs, whole, type);
	}
	const void *from = in_place ? MPI_IN_PLACE : mine;
	switch (pick(4)) {
	case 0:
		if (blocking) {
			MPI_Allreduce(from, ours, n, datatype, op, comm);
		} else {
			MPI_Iallreduce(from, ours, n, datatype, op, comm, &request);
			wait_in_some_way(&request);
		}
		PMPI_Allreduce(from, theirs, n, datatype, op, comm);
		compare("MPI_Allreduce", ours, theirs, whole * (size_t)kind.bytes);
		break;
	case 1:
		from = in_place && comm_rank == root ? MPI_IN_PLACE : mine;
		if (blocking) {
			MPI_Reduce(from, ours, n, datatype, op, root, comm);
		} else {
			MPI_Ireduce(from, ours, n, datatype, op, root, comm, &request);
			wait_in_some_way(&request);
		}
		PMPI_Reduce(mine, theirs, n, datatype, op, root, comm); /* in place, MPICH 4.0 crashes where root is not 0 */
		if (comm_rank == root)
			compare("MPI_Reduce", ours, theirs, whole * (size_t)kind.bytes);
		break;
	case 2:
		if (blocking) {
			MPI_Reduce_scatter_block(from, ours, n, datatype, op, comm);
		} else {
			MPI_Ireduce_scatter_block(from, ours, n, datatype, op, comm, &request);
			wait_in_some_way(&request);
		}
		PMPI_Reduce_scatter_block(from, theirs, n, datatype, op, comm);
		compare("MPI_Reduce_scatter_block", ours, theirs, in_place ? count * (size_t)kind.bytes - 16 : whole * (size_t)kind.bytes);
		break;
	default:
		for (int i = 0; i < comm_size; i++)
			counts[i] = (int)pick((uint32_t)count + 1);
		if (blocking) {
			MPI_Reduce_scatter(from, ours, counts, datatype, op, comm);
		} else {
			MPI_Ireduce_scatter(from, ours, counts, datatype, op, comm, &request);
			wait_in_some_way(&request);
		}
		PMPI_Reduce_scatter(from, theirs, counts, datatype, op, comm);
		if (counts[comm_rank] > 0)
			checks++;
		if (counts[comm_rank] > 0 && memcmp(ours, theirs, (size_t)counts[comm_rank] * (size_t)kind.bytes) != 0)
			fail("MPI_Reduce_scatter");
		break;
	}
	drop(mine);
	drop(ours);
	drop(theirs);
	free(counts);
}

/* Ranks differ in how they describe the same bytes: every second int, in one piece of one piece, or as ints. */
static MPI_Datatype describe(int odd, int *count)
{
	MPI_Datatype made, copy;

	if (!odd)
		return MPI_INT;
	if (odd == 1) {
		PMPI_Type_vector(*count, 1, 2, MPI_INT, &made);
	} else {
		PMPI_Type_contiguous(*count, MPI_INT, &copy);
		PMPI_Type_dup(copy, &made);
		PMPI_Type_free(&copy);
	}
	PMPI_Type_commit(&made);
	*count = 1;
	return made;
}

static void moves(MPI_Comm comm, int blocking)
{
	size_t n = (size_t)comm_size, count = pick_count() % 5000, room = 0;
	int root = (int)pick((uint32_t)comm_size), odd = pick(2) ? comm_rank % 3 : 0, in_place = (int)pick(2), gap = (int)pick(3);
	int *counts = malloc(n * sizeof(int)), *displs = malloc(n * sizeof(int)), *rcounts = malloc(n * sizeof(int)),
	    *rdispls = malloc(n * sizeof(int));
	MPI_Request request;
	size_t most = (2 * count + 10) * n + 10 * n;
	int *mine = make(most * sizeof(int)), *ours = make(most * sizeof(int)), *theirs = make(most * sizeof(int));

	fill(mine, most, 2);
	for (size_t i = 0; i < most; i++)
		mine[i] += 1000 * comm_rank + (int)(i % 97) * 100000;
	switch (pick(5)) {
	case 0: {
		int elements = (int)count;
		MPI_Datatype type = describe(odd, &elements);

		memcpy(ours, mine, most * sizeof(int));
		memcpy(theirs, mine, most * sizeof(int));
		if (blocking) {
			MPI_Bcast(ours, elements, type, root, comm);
		} else {
			MPI_Ibcast(ours, elements, type, root, comm, &request);
			wait_in_some_way(&request);
		}
		PMPI_Bcast(theirs, elements, type, root, comm);
		compare("MPI_Bcast", ours, theirs, most * sizeof(int));
		if (type != MPI_INT)
			PMPI_Type_free(&type);
		break;
	}
	case 1:
		if (in_place) {
			memcpy(ours + (size_t)comm_rank * count, mine, count * sizeof(int));
			memcpy(theirs + (size_t)comm_rank * count, mine, count * sizeof(int));
		}
		if (blocking) {
			MPI_Allgather(in_place ? MPI_IN_PLACE : mine, (int)count, MPI_INT, ours, (int)count, MPI_INT, comm);
		} else {
			MPI_Iallgather(in_place ? MPI_IN_PLACE : mine, (int)count, MPI_INT, ours, (int)count, MPI_INT, comm, &request);
			wait_in_some_way(&request);
		}
		PMPI_Allgather(in_place ? MPI_IN_PLACE : mine, (int)count, MPI_INT, theirs, (int)count, MPI_INT, comm);
		compare("MPI_Allgather", ours, theirs, most * sizeof(int));
		break;
	case 2:
		for (size_t i = 0; i < n; i++) {
			counts[i] = (int)pick((uint32_t)count + 1);
			displs[i] = (int)room;
			room += (size_t)(counts[i] + gap);
		}
		if (in_place) {
			memcpy(ours + displs[comm_rank], mine, (size_t)counts[comm_rank] * sizeof(int));
			memcpy(theirs + displs[comm_rank], mine, (size_t)counts[comm_rank] * sizeof(int));
		}
		if (blocking) {
			MPI_Allgatherv(in_place ? MPI_IN_PLACE : mine, counts[comm_rank], MPI_INT, ours, counts, displs, MPI_INT, comm);
		} else {
			MPI_Iallgatherv(in_place ? MPI_IN_PLACE : mine, counts[comm_rank], MPI_INT, ours, counts, displs, MPI_INT, comm, &request);
			wait_in_some_way(&request);
		}
		PMPI_Allgatherv(in_place ? MPI_IN_PLACE : mine, counts[comm_rank], MPI_INT, theirs, counts, displs, MPI_INT, comm);
		compare("MPI_Allgatherv", ours, theirs, most * sizeof(int));
		break;
	case 3:
		if (in_place) {
			memcpy(ours, mine, count * n * sizeof(int));
			memcpy(theirs, mine, count * n * sizeof(int));
		}
		if (blocking) {
			MPI_Alltoall(in_place ? MPI_IN_PLACE : mine, (int)count, MPI_INT, ours, (int)count, MPI_INT, comm);
		} else { /* Open MPI 4.1 has no non-blocking one in place to compare with */
			MPI_Ialltoall(in_place ? MPI_IN_PLACE : mine, (int)count, MPI_INT, ours, (int)count, MPI_INT, comm, &request);
			wait_in_some_way(&request);
		}
		PMPI_Alltoall(in_place ? MPI_IN_PLACE : mine, (int)count, MPI_INT, theirs, (int)count, MPI_INT, comm);
		compare("MPI_Alltoall", ours, theirs, most * sizeof(int));
		break;
	default:
		for (size_t i = 0; i < n; i++) { /* (sender + 2 receiver) some bits each */
			counts[i] = (int)((size_t)comm_rank + 2 * i) % (int)(count + 1);
			rcounts[i] = (int)(i + 2 * (size_t)comm_rank) % (int)(count + 1);
		}
		for (size_t i = 0, at = 0, rat = 0; i < n; i++) {
			displs[i] = (int)at;
			rdispls[i] = (int)rat;
			at += (size_t)(counts[i] + gap);
			rat += (size_t)(rcounts[i] + gap);
		}
		if (blocking) {
			MPI_Alltoallv(mine, counts, displs, MPI_INT, ours, rcounts, rdispls, MPI_INT, comm);
		} else {
			MPI_Ialltoallv(mine, counts, displs, MPI_INT, ours, rcounts, rdispls, MPI_INT, comm, &request);
			if (pick(2)) /* others may have waited for it before they come here */
				MPI_Barrier(comm);
			wait_in_some_way(&request);
		}
		PMPI_Alltoallv(mine, counts, displs, MPI_INT, theirs, rcounts, rdispls, MPI_INT, comm);
		compare("MPI_Alltoallv", ours, theirs, most * sizeof(int));
		break;
	}
	free(counts);
	free(displs);
	free(rcounts);
	free(rdispls);
	drop(mine);
	drop(ours);
	drop(theirs);
}

/* A message that the sender must get rid of before it comes to the collective, and that moves only while the receiver is in MPI. */
static void messages_go_on(MPI_Comm comm)
{
	enum { MANY = 4 << 20 };
	int *data = make(MANY * sizeof(int)), from = (comm_rank + 1) % comm_size, to = (comm_rank + comm_size - 1) % comm_size, sum;
	MPI_Request request;

	if (comm_size < 2) {
		drop(data);
		return;
	}
	if (comm_rank % 2 == 0 && comm_rank + 1 < comm_size) {
		PMPI_Irecv(data, MANY, MPI_INT, from, 5, comm, &request);
		MPI_Allreduce(&comm_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		if (comm_rank % 2 == 1)
			PMPI_Send(data, MANY, MPI_INT, to, 5, comm);
		MPI_Allreduce(&comm_rank, &sum, 1, MPI_INT, MPI_SUM, comm);
	}
	if (sum != comm_size * (comm_size - 1) / 2)
		fail("the sum beside a message");
	drop(data);
	checks++;
}

/* Several under way at once, beside a receive, waited for together. */
static void many_requests(MPI_Comm comm)
{
	enum { MANY = 9 };
	int in[MANY], out[MANY], got = -1;
	MPI_Request requests[MANY + 1];

	PMPI_Irecv(&got, 1, MPI_INT, (comm_rank + comm_size - 1) % comm_size, 6, comm, &requests[MANY]);
	for (int i = 0; i < MANY; i++) {
		in[i] = i + comm_rank;
		MPI_Iallreduce(&in[i], &out[i], 1, MPI_INT, MPI_MAX, comm, &requests[i]);
	}
	PMPI_Send(&comm_rank, 1, MPI_INT, (comm_rank + 1) % comm_size, 6, comm);
	MPI_Waitall(MANY + 1, requests, MPI_STATUSES_IGNORE);
	for (int i = 0; i < MANY; i++) {
		if (out[i] != i + comm_size - 1)
			fail("one of many requests");
	}
	if (got != (comm_rank + comm_size - 1) % comm_size)
		fail("the message among them");
	checks++;
}

/* A type and a communicator may be freed while a call is under way that uses them. */
static void freed_meanwhile(MPI_Comm comm)
{
	int data[20], got[20], counts[20], displs[20];
	MPI_Datatype every_second, other;
	MPI_Comm brief;
	MPI_Request request;

	for (int i = 0; i < 20; i++)
		data[i] = comm_rank == 0 ? i : -1;
	PMPI_Type_vector(10, 1, 2, MPI_INT, &every_second);
	PMPI_Type_commit(&every_second);
	MPI_Ibcast(data, 1, every_second, 0, comm, &request);
	PMPI_Type_free(&every_second);
	PMPI_Type_contiguous(3, MPI_INT, &other);
	PMPI_Type_commit(&other);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	PMPI_Type_free(&other);
	for (int i = 0; i < 20; i += 2) {
		if (data[i] != i)
			fail("a broadcast of a type that was freed");
	}
	if (comm_size > 10)
		return;
	for (int i = 0; i < comm_size; i++) {
		counts[i] = 1;
		displs[i] = i;
		data[i] = 100 * comm_rank + i;
		got[i] = -1;
	}
	MPI_Comm_dup(comm, &brief);
	MPI_Ialltoallv(data, counts, displs, MPI_INT, got, counts, displs, MPI_INT, brief, &request);
	if (comm_rank % 2) { /* some before, some after */
		MPI_Comm_free(&brief);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		MPI_Wait(&request, MPI_STATUS_IGNORE);
		MPI_Comm_free(&brief);
	}
	for (int i = 0; i < comm_size; i++) {
		if (got[i] != 100 * i + comm_rank)
			fail("an alltoallv on a communicator that was freed");
	}
	checks++;
}

static void round_on(MPI_Comm comm)
{
	PMPI_Comm_rank(comm, &comm_rank);
	PMPI_Comm_size(comm, &comm_size);
	if (pick(2))
		sums(comm, (int)pick(2));
	else
		moves(comm, (int)pick(2));
}

int main(int argc, char **argv)
{
	int provided, rounds = argc > 2 ? atoi(argv[2]) : 100;
	MPI_Comm half, copy, square, some = MPI_COMM_NULL;
	MPI_Group world, part;
	int dims[1] = {0}, periods[1] = {0}, range[1][3] = {{0, 0, 1}};

	MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_dup(MPI_COMM_WORLD, &copy);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
	PMPI_Dims_create(size, 1, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 1, &square);
	PMPI_Comm_group(MPI_COMM_WORLD, &world);
	range[0][1] = size / 2;
	PMPI_Group_range_incl(world, 1, range, &part);
	if (rank <= size / 2) /* the others know nothing of it */
		MPI_Comm_create_group(MPI_COMM_WORLD, part, 3, &some);
	for (int i = 0; i < rounds; i++) {
		state = strtoull(argc > 1 ? argv[1] : "1", NULL, 10) * 1000003u + (uint64_t)i;
		pick(2);
		switch (pick(6)) {
		case 0: round_on(half); break;
		case 1: round_on(copy); break;
		case 2: round_on(square); break;
		case 3:
			if (some != MPI_COMM_NULL)
				round_on(some);
			break;
		default: round_on(MPI_COMM_WORLD); break;
		}
	}
	PMPI_Comm_rank(copy, &comm_rank);
	PMPI_Comm_size(copy, &comm_size);
	memory_is_shared();
	messages_go_on(copy);
	many_requests(copy);
	freed_meanwhile(copy);
	for (int i = 0; i < 50; i++) { /* communicators come and go */
		MPI_Comm brief;

		MPI_Comm_dup(half, &brief);
		MPI_Barrier(brief);
		MPI_Comm_free(&brief);
	}
	MPI_Comm_free(&half);
	MPI_Comm_free(&copy);
	PMPI_Group_free(&world);
	PMPI_Group_free(&part);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("same: %ld checks\n", checks);
	MPI_Finalize();
	return 0;
}
