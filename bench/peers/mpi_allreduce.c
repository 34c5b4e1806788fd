/*
 * mpi_allreduce.c - MPI_Allreduce of floats, for any MPI. contest.h tells what is measured.
 *
 *     mpirun -n 8 mpi_allreduce --sizes 4,1K,1M --peer openmpi --variant shm
 */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

#include "contest.h"

#define GOODBYE_SECONDS 3

static void allreduce(void *context, const float *in, float *out, size_t count)
{
	(void)context;
	MPI_Allreduce(in == out ? MPI_IN_PLACE : in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void barrier(void *context)
{
	(void)context;
	MPI_Barrier(MPI_COMM_WORLD);
}

static int64_t total(void *context, int64_t value)
{
	int64_t sum;

	(void)context;
	MPI_Allreduce(&value, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	return sum;
}

int main(int argc, char **argv)
{
	struct contestant contestant = {.allreduce = allreduce, .barrier = barrier, .total = total};
	struct contest_options options;
	int64_t wrong;

	MPI_Init(&argc, &argv); /* an error in any call ends the job: MPI_ERRORS_ARE_FATAL */
	options = contest_parse(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &contestant.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &contestant.ranks);
	if (options.ranks != 0 && options.ranks != contestant.ranks) {
		fprintf(stderr, "mpi_allreduce: started as %d ranks, not %d\n", contestant.ranks, options.ranks);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	wrong = contest(&contestant, &options);
	/* Over UCX's TCP and with more ranks than cores, MPICH 4.0 may never come back; all is said by now. */
	alarm(GOODBYE_SECONDS);
	MPI_Finalize();
	return wrong != 0;
}
