/*
 * loop.c - a plain MPI program: loop BYTES TIMES [VICTIM]: sums floats TIMES times and checks them; rank VICTIM kills itself
 * half-way. Prints microseconds per call.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, size, count = argc > 1 ? atoi(argv[1]) / 4 : 1, times = argc > 2 ? atoi(argv[2]) : 1, victim = argc > 3 ? atoi(argv[3]) : -1;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	float *in = malloc((size_t)count * sizeof(*in)), *out = malloc((size_t)count * sizeof(*out));
	for (int i = 0; i < count; i++)
		in[i] = (float)(rank + i % 5);
	double began = MPI_Wtime();
	for (int i = 0; i < times; i++) {
		if (rank == victim && i == (times < 20 ? times / 2 : 10))
			kill(getpid(), SIGKILL);
		MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
	}
	double took = MPI_Wtime() - began;
	for (int i = 0; i < count; i++) {
		if (out[i] != (float)(size * (i % 5) + size * (size - 1) / 2)) {
			fprintf(stderr, "loop: rank %d: a wrong sum\n", rank);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	if (rank == 0)
		printf("%d bytes: %.2f us\n", count * 4, took / times * 1e6);
	free(in);
	free(out);
	MPI_Finalize();
	return 0;
}
