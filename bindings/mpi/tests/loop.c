/*
 * loop.c - a plain MPI program: loop [-a] BYTES TIMES [VICTIM [FOLDER]]: sums floats TIMES times and checks them; rank VICTIM kills itself
 * half-way. Prints microseconds per call, without the first, in which MPI makes its connections and memory is touched for the first time.
 * -a: in memory from MPI_Alloc_mem instead of malloc. With FOLDER, errors are returned, and every rank leaves a file there: when it was killed, or
 * when it was told of that, and what.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void leave(const char *folder, const char *name, const char *text)
{
	char path[4096];
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *file = fopen(path, "w");
	if (!file)
		abort();
	fprintf(file, "%lld.%09ld\n%s", (long long)now.tv_sec, now.tv_nsec, text);
	(void)fclose(file);
}

/* The call has failed, and was not fatal. */
static void tell(const char *folder, int rank, int code)
{
	char said[MPI_MAX_ERROR_STRING + 1] = "", text[MPI_MAX_ERROR_STRING + 32], name[32];
	int length;

	MPI_Error_string(code, said, &length);
	(void)snprintf(text, sizeof(text), "MPI_Error_string\n%s\n", said);
	(void)snprintf(name, sizeof(name), "rank%d", rank);
	leave(folder, name, text);
	_exit(3);
}

static float *take(size_t count, int from_mpi)
{
	float *memory = NULL;

	if (!from_mpi)
		memory = malloc(count * sizeof(*memory));
	else if (MPI_Alloc_mem((MPI_Aint)(count * sizeof(*memory)), MPI_INFO_NULL, &memory) != MPI_SUCCESS)
		memory = NULL;
	if (!memory)
		abort();
	memset(memory, 0, count * sizeof(*memory));
	return memory;
}

int main(int argc, char **argv)
{
	int from_mpi = argc > 1 && strcmp(argv[1], "-a") == 0;
	argc -= from_mpi;
	argv += from_mpi;
	int rank, size, count = argc > 1 ? atoi(argv[1]) / 4 : 1, times = argc > 2 ? atoi(argv[2]) : 1, victim = argc > 3 ? atoi(argv[3]) : -1;
	const char *folder = argc > 4 ? argv[4] : NULL;

	if (folder) /* with which MPICH's mpirun tells the others of a death: by default they would die of it */
		(void)signal(SIGUSR1, SIG_IGN);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (folder)
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	float *in = take((size_t)count, from_mpi), *out = take((size_t)count, from_mpi);
	for (int i = 0; i < count; i++)
		in[i] = (float)(rank + i % 5);
	double began = MPI_Wtime();
	for (int i = 0; i < times + 1; i++) {
		if (i == 1)
			began = MPI_Wtime();
		if (rank == victim && i == (times < 20 ? times / 2 : 10)) {
			if (folder)
				leave(folder, "killed", "");
			kill(getpid(), SIGKILL);
		}
		int code = MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
		if (code != MPI_SUCCESS && folder)
			tell(folder, rank, code);
	}
	double took = MPI_Wtime() - began;
	for (int i = 0; i < count; i++) {
		int expected = size * (i % 5) + size * (size - 1) / 2;

		if (out[i] != (float)expected) {
			fprintf(stderr, "loop: rank %d: a wrong sum\n", rank);
			MPI_Abort(MPI_COMM_WORLD, 1);
		}
	}
	if (rank == 0)
		printf("%d bytes: %.2f us\n", count * 4, took / times * 1e6);
	if (from_mpi) {
		MPI_Free_mem(in);
		MPI_Free_mem(out);
	} else {
		free(in);
		free(out);
	}
	MPI_Finalize();
	return 0;
}
