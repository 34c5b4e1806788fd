#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim.h"

#define CLASSES 40u /* by powers of two of bytes; the first is zero bytes */

static const char *const names[FUNCTION_COUNT] = {
	"MPI_Allreduce", "MPI_Reduce", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block", "MPI_Allgather", "MPI_Allgatherv", "MPI_Bcast",
	"MPI_Barrier", "MPI_Alltoall", "MPI_Alltoallv",
};

enum { CARRIED, HANDED_ON };
static _Atomic uint64_t counts[FUNCTION_COUNT][CLASSES][2];

void summary_count(enum function function, uint64_t bytes, bool carried)
{
	unsigned class = bytes == 0 ? 0 : 64u - (unsigned)__builtin_clzll(bytes);

	class = class < CLASSES ? class : CLASSES - 1;
	/* One thread at a time makes most calls: no need for a locked instruction, and a lost count is no harm. */
	_Atomic uint64_t *count = &counts[function][class][carried ? CARRIED : HANDED_ON];
	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1, memory_order_relaxed);
}

static void print_row(const char *name, unsigned class, const uint64_t row[2])
{
	uint64_t least = class == 0 ? 0 : UINT64_C(1) << (class - 1), most = class == 0 ? 0 : (UINT64_C(1) << class) - 1;

	fprintf(stderr, "espalier: %-24s %12llu..%-12llu %12llu %12llu  %5.1f %%\n", name, (unsigned long long)least,
	        (unsigned long long)most, (unsigned long long)row[CARRIED], (unsigned long long)row[HANDED_ON],
	        100.0 * (double)row[CARRIED] / (double)(row[CARRIED] + row[HANDED_ON]));
}

void summary_print(MPI_Comm comm)
{
	static uint64_t mine[FUNCTION_COUNT][CLASSES][2], sum[FUNCTION_COUNT][CLASSES][2];
	const char *wish = getenv("ESP_MPI_SUMMARY");
	uint64_t shared[2], shared_sum[2];
	int rank, wanted = wish && *wish && !(wish[0] == '0' && wish[1] == '\0');

	PMPI_Comm_rank(comm, &rank);
	PMPI_Bcast(&wanted, 1, MPI_INT, 0, comm);
	if (!wanted)
		return;
	for (unsigned f = 0; f < FUNCTION_COUNT; f++) {
		for (unsigned c = 0; c < CLASSES; c++) {
			mine[f][c][CARRIED] = atomic_load(&counts[f][c][CARRIED]);
			mine[f][c][HANDED_ON] = atomic_load(&counts[f][c][HANDED_ON]);
		}
	}
	PMPI_Reduce(mine, sum, sizeof(sum) / sizeof(sum[0][0][0]), MPI_UINT64_T, MPI_SUM, 0, comm);
	share_count(&shared[0], &shared[1]);
	PMPI_Reduce(shared, shared_sum, 2, MPI_UINT64_T, MPI_SUM, 0, comm);
	if (rank != 0)
		return;
	fprintf(stderr, "espalier: %-24s %12s  %-12s %12s %12s\n", "calls of all ranks", "bytes", "", "carried", "by MPI");
	for (unsigned f = 0; f < FUNCTION_COUNT; f++) {
		for (unsigned c = 0; c < CLASSES; c++) {
			if (sum[f][c][CARRIED] + sum[f][c][HANDED_ON] > 0)
				print_row(names[f], c, sum[f][c]);
		}
	}
	if (shared_sum[0] > 0)
		fprintf(stderr, "espalier: %llu blocks of malloc() were shared, %.1f MiB\n", (unsigned long long)shared_sum[0],
		        (double)shared_sum[1] / (1 << 20));
}
