/*
 * smpi_allreduce.c - one MPI_Allreduce of floats, in the virtual time of SimGrid's SMPI; prints how long the slowest rank took.
 *
 *     smpirun -np 8 -platform FILE -hostfile FILE smpi_allreduce 1048576          # floats; every result is checked
 *     smpirun -np 8 -platform FILE -hostfile FILE smpi_allreduce 1048576 folded   # all ranks share one buffer's memory
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD 17

/* Small whole numbers, so that the sum is exact in any order. */
static float term(int rank, int i)
{
	return (float)((rank + i) % PERIOD);
}

static void fill(float *in, int count, int rank)
{
	for (int i = 0; i < count; i++)
		in[i] = term(rank, i);
}

static int count_wrong(const float *out, int count, int ranks)
{
	float sums[PERIOD] = {0};
	int wrong = 0;

	for (int i = 0; i < PERIOD; i++)
		for (int rank = 0; rank < ranks; rank++)
			sums[i] += term(rank, i);
	for (int i = 0; i < count; i++)
		wrong += out[i] != sums[i % PERIOD];
	return wrong;
}

int main(int argc, char **argv)
{
	int rank, ranks, wrong = 0, wrong_anywhere;
	double seconds, slowest;
	float *in, *out;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	int count = argc > 1 ? atoi(argv[1]) : 0;
	int is_folded = argc > 2 && strcmp(argv[2], "folded") == 0;

	if (count < ranks) {
		fprintf(stderr, "smpi_allreduce: needs a number of floats, one for each rank at least\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	size_t bytes = (size_t)count * sizeof *in;
	in = is_folded ? SMPI_SHARED_MALLOC(bytes) : malloc(bytes);
	out = is_folded ? SMPI_SHARED_MALLOC(bytes) : malloc(bytes);
	if (!in || !out) {
		fprintf(stderr, "smpi_allreduce: no memory\n");
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	if (!is_folded)
		fill(in, count, rank);
	/* No barrier: filling takes no virtual time, so that all begin at the same moment. Behind a barrier they would not. */
	seconds = MPI_Wtime();
	MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	seconds = MPI_Wtime() - seconds;
	if (!is_folded)
		wrong = count_wrong(out, count, ranks);
	MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	MPI_Reduce(&wrong, &wrong_anywhere, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("seconds %.12f wrong %d\n", slowest, wrong_anywhere);
	if (is_folded) {
		SMPI_SHARED_FREE(in);
		SMPI_SHARED_FREE(out);
	} else {
		free(in);
		free(out);
	}
	MPI_Finalize();
	return 0;
}
