/*
 * errors_test.c - mistakes of a program that MPI's own library would report or die of: the shim reports them too, and writes
 * nowhere that it was not told to. Run by run_test.py under an mpirun with the shim preloaded, with two ranks or more.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

static void fail(const char *what)
{
	fprintf(stderr, "errors_test: rank %d: %s\n", rank, what);
	PMPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

/* A communicator of its own, as it has failed afterwards; nobody frees it then, for ranks do not hear of it at the same time. */
static MPI_Comm make_comm(void)
{
	MPI_Comm made;

	MPI_Comm_dup(MPI_COMM_WORLD, &made);
	MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN);
	return made;
}

static void expect(int code, const char *words, const char *what)
{
	char said[MPI_MAX_ERROR_STRING + 1] = "";
	int length;

	if (code == MPI_SUCCESS)
		fail(what);
	MPI_Error_string(code, said, &length);
	if (!strstr(said, words)) {
		fprintf(stderr, "errors_test: rank %d: \"%s\" does not say \"%s\"\n", rank, said, words);
		fail(what);
	}
}

static void *filled(size_t bytes)
{
	void *memory = malloc(bytes);

	memset(memory, 0x5a, bytes);
	return memory;
}

static void check_untouched(const char *memory, size_t from, size_t bytes, const char *what)
{
	for (size_t i = from; i < bytes; i++) {
		if (memory[i] != 0x5a)
			fail(what);
	}
}

/* A negative count of one rank: it is told, and so are the others, who would wait for it. */
static void negative_count(int call)
{
	MPI_Comm comm = make_comm();
	int data[64] = {0}, code = MPI_SUCCESS, one = rank == 1 ? -1 : 1;
	int *counts = calloc((size_t)size, sizeof(int)), *displs = calloc((size_t)size, sizeof(int));
	MPI_Request request = MPI_REQUEST_NULL;

	for (int i = 0; i < size; i++) { /* so that everybody needs everybody */
		counts[i] = i == size - 1 ? one : 1;
		displs[i] = i;
	}
	switch (call) {
	case 0: code = MPI_Allreduce(data, data + 32, one, MPI_INT, MPI_SUM, comm); break;
	case 1: code = MPI_Reduce_scatter(data, data + 32, counts, MPI_INT, MPI_SUM, comm); break;
	case 2: code = MPI_Allgatherv(data, 1, MPI_INT, data + 32, counts, displs, MPI_INT, comm); break;
	case 3: code = MPI_Alltoallv(data, counts, displs, MPI_INT, data + 32, counts, displs, MPI_INT, comm); break;
	case 4: code = MPI_Allgather(data, one, MPI_INT, data + 32, 1, MPI_INT, comm); break;
	default:
		code = MPI_Ireduce_scatter(data, data + 32, counts, MPI_INT, MPI_SUM, comm, &request);
		if (code == MPI_SUCCESS)
			code = MPI_Wait(&request, MPI_STATUS_IGNORE);
		break;
	}
	expect(code, "rank 1", "a call with a negative count");
	free(counts);
	free(displs);
}

/* Rank 1 gives more than anybody has room for. */
static void too_much(int blocking)
{
	MPI_Comm comm = make_comm();
	MPI_Request request = MPI_REQUEST_NULL;
	int code, given = rank == 1 ? 8 : 1;
	size_t room = (size_t)size * sizeof(int);
	char *mine = filled(64 * sizeof(int)), *all = filled(room + 4096);

	if (blocking) {
		code = MPI_Allgather(mine, given, MPI_INT, all, 1, MPI_INT, comm);
	} else {
		code = MPI_Iallgather(mine, given, MPI_INT, all, 1, MPI_INT, comm, &request);
		if (code == MPI_SUCCESS)
			code = MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	expect(code, "rank 1", "an allgather of which one rank gives too much");
	check_untouched(all, room, room + 4096, "an allgather has written beyond its buffer");
	/* The memory stays: the communicator has failed, and its ranks may be at different places. */
}

/* Rank 1 sends more to everybody than they expect. */
static void too_much_to_all(int blocking)
{
	MPI_Comm comm = make_comm();
	MPI_Request request = MPI_REQUEST_NULL;
	int code, *counts = calloc((size_t)size, sizeof(int)), *rcounts = calloc((size_t)size, sizeof(int)), *displs = calloc((size_t)size, sizeof(int));
	size_t room = (size_t)size * sizeof(int);
	char *mine = filled((size_t)size * 64 * sizeof(int)), *all = filled(room + 4096);

	for (int i = 0; i < size; i++) {
		counts[i] = rank == 1 ? 8 : 1;
		rcounts[i] = 1;
		displs[i] = i;
	}
	if (blocking) {
		code = MPI_Alltoallv(mine, counts, displs, MPI_INT, all, rcounts, displs, MPI_INT, comm);
	} else {
		code = MPI_Ialltoallv(mine, counts, displs, MPI_INT, all, rcounts, displs, MPI_INT, comm, &request);
		if (code == MPI_SUCCESS)
			code = MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	expect(code, "rank 1 sends 32 bytes", "an alltoall of which one rank gives too much");
	check_untouched(all, room, room + 4096, "an alltoall has written beyond its buffer");
}

/* A type that is larger than an int can say, of which nothing is sent: others say the same with a small one. */
static void a_large_type(void)
{
	MPI_Datatype part, large;
	int nothing = 0, sum = 0;

	MPI_Type_contiguous(1 << 20, MPI_INT, &part);
	MPI_Type_vector(3000, 1, 2, part, &large);
	MPI_Type_commit(&large);
	MPI_Bcast(&nothing, 0, rank % 2 ? large : MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (sum != size * (size - 1) / 2)
		fail("a sum behind a broadcast of a large type");
	MPI_Type_free(&large);
	MPI_Type_free(&part);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	a_large_type();
	for (int call = 0; call < 6; call++)
		negative_count(call);
	for (int blocking = 0; blocking < 2; blocking++) {
		too_much(blocking);
		too_much_to_all(blocking);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("errors: all reported\n");
	MPI_Finalize();
	return 0;
}
