/*
 * mpi_fault.c - MPI_Allreduce in a loop without an end, to see what becomes of the job when one of its ranks is killed or stopped.
 *
 *     mpirun -n 3 mpi_fault FOLDER COUNT
 *
 * Each rank writes its process id to FOLDER/RANK once it has made some calls; scripts/bench-faults does the rest.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void tell(const char *folder, int rank)
{
	char path[4000], whole[4010];

	snprintf(path, sizeof(path), "%s/%d", folder, rank);
	snprintf(whole, sizeof(whole), "%s.new", path);
	FILE *file = fopen(whole, "w");
	if (!file || fprintf(file, "%ld\n", (long)getpid()) < 0 || fclose(file) != 0 || rename(whole, path) != 0) {
		perror(path);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
}

int main(int argc, char **argv)
{
	int rank, ranks, count = argc > 2 ? atoi(argv[2]) : 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	float *data = count > 0 ? malloc((size_t)count * sizeof(float)) : NULL;
	if (!data) {
		fputs("usage: mpi_fault FOLDER COUNT\n", stderr);
		MPI_Abort(MPI_COMM_WORLD, 2);
		return 2;
	}
	for (unsigned call = 0;; call++) {
		for (int i = 0; i < count; i++)
			data[i] = 1;
		MPI_Allreduce(MPI_IN_PLACE, data, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		for (int i = 0; i < count; i++) {
			if (data[i] != (float)ranks) {
				fprintf(stderr, "mpi_fault: a wrong sum on rank %d\n", rank);
				MPI_Abort(MPI_COMM_WORLD, 3);
			}
		}
		if (call == 3)
			tell(argv[1], rank);
	}
}
