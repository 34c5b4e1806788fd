/*
 * share_test.c - large blocks of malloc(), which the shim shares behind the program's back: results are the library's own, and memory that is
 * freed, grown, or inherited by a child is as it would be without.
 *
 * Run by run_test.py under an mpirun with the shim preloaded: share_test on|off [fork], as ESP_MPI_SHARE is; after fork() nothing is shared any more.
 */
#include <malloc.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMES 25    /* calls on each block: it is shared in the eighth, and that has paid by the last, so that the next is as early */
#define SOME 131075 /* ints: neither end of them is the end of a page */

static int rank, size, is_on;
static atomic_long checks;

static void fail(const char *what)
{
	fprintf(stderr, "share_test: rank %d: %s\n", rank, what);
	PMPI_Abort(MPI_COMM_WORLD, 1);
	abort();
}

static void expect(int is_so, const char *what)
{
	checks++;
	if (!is_so)
		fail(what);
}

/* Does its first whole page lie in memory of Espalier's that is shared? What was, and has become private, does not count. */
static int is_shared(const void *memory)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = ((uintptr_t)memory + page - 1) / page * page;
	char line[512], may[5] = "";
	int found = 0;
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && fgets(line, sizeof(line), maps)) {
		unsigned long long from, to;

		if (sscanf(line, "%llx-%llx %4s", &from, &to, may) == 3 && at >= from && at < to)
			found = may[3] == 's' && strstr(line, "memfd:espalier") != NULL;
	}
	if (maps)
		fclose(maps);
	return found;
}

/* Where memory is pinned or locked, by MPI say, nothing is shared, and rightly. */
static int is_pinned(void)
{
	char line[256];
	int found = 0, kilobytes;
	FILE *status = fopen("/proc/self/status", "r");

	while (status && fgets(line, sizeof(line), status)) {
		if (sscanf(line, "VmPin: %d", &kilobytes) == 1 || sscanf(line, "VmLck: %d", &kilobytes) == 1)
			found |= kilobytes != 0;
	}
	if (status)
		fclose(status);
	return found;
}

static int value(size_t i, int round, int of)
{
	return (int)(i * 7 % 1009) + round * 1000003 + of * 10007;
}

static void fill(int *memory, size_t count, int round)
{
	for (size_t i = 0; i < count; i++)
		memory[i] = value(i, round, rank);
}

/* Is it what fill() has left there? */
static int is_filled(const int *memory, size_t count, int round)
{
	size_t i = 0;

	while (i < count && memory[i] == value(i, round, rank))
		i++;
	return i == count;
}

/* Is it the sum over all ranks? */
static int is_sum(const int *memory, size_t count, int round)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t sum = 0;

		for (int of = 0; of < size; of++)
			sum += (uint32_t)value(i, round, of);
		if ((uint32_t)memory[i] != sum)
			return 0;
	}
	return 1;
}

static int *take(size_t count)
{
	int *memory = malloc(count * sizeof(*memory));

	if (!memory)
		abort();
	return memory;
}

/* Every call with other values: what others read is what is there now. */
static void sum_often(int *in, int *out, size_t count, int round)
{
	for (int i = 0; i < TIMES; i++) {
		fill(in, count, round + i);
		MPI_Allreduce(in == out ? MPI_IN_PLACE : in, out, (int)count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		expect(is_sum(out, count, round + i), "a wrong sum");
		expect(in == out || is_filled(in, count, round + i), "what was given to a sum has changed");
	}
}

/* ---- blocks of all kinds ---- */

static void *of_kind(int kind, size_t bytes)
{
	void *memory = NULL;

	switch (kind) {
	case 0: return malloc(bytes);
	case 1: return calloc(1, bytes);
	case 2: return posix_memalign(&memory, 64, bytes) == 0 ? memory : NULL;
	case 3: return posix_memalign(&memory, 1024, bytes) == 0 ? memory : NULL;
	case 4: return realloc(malloc(bytes / 2), bytes);
	default: return posix_memalign(&memory, (size_t)sysconf(_SC_PAGESIZE), bytes) == 0 ? memory : NULL; /* nothing can be told of it, so it stays private */
	}
}

static void kinds(void)
{
	enum { KINDS = 6 };
	int *in[KINDS], *out[KINDS];

	for (int i = 0; i < KINDS; i++) {
		in[i] = of_kind(i, (SOME + 1000 * (size_t)i) * sizeof(int));
		out[i] = of_kind(i, (SOME + 1000 * (size_t)i) * sizeof(int));
		if (!in[i] || !out[i])
			abort();
		sum_often(in[i], out[i], SOME + 1000 * (size_t)i, i);
		sum_often(out[i], out[i], SOME + 1000 * (size_t)i, i + 1);
		expect(is_shared(in[i]) == (is_on && i < 5) && is_shared(out[i]) == (is_on && i < 5), "a block is shared that should not be, or the other way");
	}
	for (int i = 0; i < KINDS; i++) { /* in another order, and all of them are still there */
		int *one = in[(i * 5 + 2) % KINDS], *other = out[(i + 3) % KINDS];

		sum_often(one, other, SOME, i);
		expect(is_filled(one, SOME, i + TIMES - 1), "a block has changed");
	}
	for (int i = 0; i < KINDS; i++) {
		free(in[i]);
		free(out[KINDS - 1 - i]);
	}
}

/* ---- parts of a block ---- */

static void parts(void)
{
	int *block = take(4 * SOME), *out = take(4 * SOME);

	fill(block, 4 * SOME, 77);
	sum_often(block, block, SOME, 0);
	expect(is_shared(block) == is_on, "the beginning of a block is not as it should be");
	expect(!is_shared(block + 2 * SOME), "more of a block is shared than calls use");
	for (size_t i = SOME; i < 4 * SOME; i++)
		expect(block[i] == value(i, 77, rank), "the rest of a block has changed");
	for (int i = 0; i < 2; i++) { /* parts that are shared, in part, and not at all; any alignment */
		sum_often(block + 3 + i, out + 1, SOME / 2, i);
		sum_often(block + SOME - 5000, out + 2, 9000, i);
		sum_often(block + SOME / 2 + i, out, SOME, i);
		sum_often(block + 2 * SOME + 1, block + 2 * SOME + 1, SOME, i);
	}
	sum_often(block, out, 4 * SOME, 1); /* more than is shared: all of it, then */
	sum_often(block, out, 4 * SOME, 2);
	expect(is_shared(block + 2 * SOME) == is_on, "a block on which larger calls are made is not as it should be");
	sum_often(block + 7, out + 9, 2 * SOME, 3);
	free(block);
	free(out);
}

/* ---- other collectives ---- */

static void compare(const char *what, const int *ours, const int *theirs, size_t count)
{
	checks++;
	if (memcmp(ours, theirs, count * sizeof(*ours)) != 0)
		fail(what);
}

static void one_of_each(int *in, int *ours, int *theirs, int round)
{
	size_t n = (size_t)size, all = n * SOME;
	MPI_Request request;

	fill(in, all, round);
	memset(ours, 0x5a, all * sizeof(*ours));
	memset(theirs, 0x5a, all * sizeof(*theirs));
	MPI_Allgather(in, SOME, MPI_INT, ours, SOME, MPI_INT, MPI_COMM_WORLD);
	PMPI_Allgather(in, SOME, MPI_INT, theirs, SOME, MPI_INT, MPI_COMM_WORLD);
	compare("MPI_Allgather", ours, theirs, all);
	MPI_Alltoall(in, SOME, MPI_INT, ours, SOME, MPI_INT, MPI_COMM_WORLD);
	PMPI_Alltoall(in, SOME, MPI_INT, theirs, SOME, MPI_INT, MPI_COMM_WORLD);
	compare("MPI_Alltoall", ours, theirs, all);
	MPI_Reduce_scatter_block(in, ours, SOME, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	PMPI_Reduce_scatter_block(in, theirs, SOME, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	compare("MPI_Reduce_scatter_block", ours, theirs, all);
	MPI_Reduce(in, ours, SOME, MPI_INT, MPI_SUM, round % size, MPI_COMM_WORLD);
	PMPI_Reduce(in, theirs, SOME, MPI_INT, MPI_SUM, round % size, MPI_COMM_WORLD);
	compare("MPI_Reduce", ours, theirs, all);
	MPI_Iallreduce(in, ours, SOME, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	PMPI_Allreduce(in, theirs, SOME, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	compare("MPI_Iallreduce", ours, theirs, all);
	memcpy(theirs, in, all * sizeof(*in));
	MPI_Bcast(in, (int)all, MPI_INT, (round + 1) % size, MPI_COMM_WORLD);
	PMPI_Bcast(theirs, (int)all, MPI_INT, (round + 1) % size, MPI_COMM_WORLD);
	compare("MPI_Bcast", in, theirs, all);
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, in, SOME, MPI_INT, MPI_COMM_WORLD);
	PMPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, theirs, SOME, MPI_INT, MPI_COMM_WORLD);
	compare("MPI_Allgather in place", in, theirs, all);
}

static void collectives(void)
{
	size_t all = (size_t)size * SOME;
	int *in = take(all), *ours = take(all), *theirs = take(all);

	for (int i = 0; i < 6; i++)
		one_of_each(in, ours, theirs, i);
	expect(is_shared(in) == is_on && is_shared(ours) == is_on && !is_shared(theirs), "a block of several collectives is not as it should be");
	free(in);
	free(ours);
	free(theirs);
}

/* While a call is under way nothing is moved, whatever else is called; its memory may be shared later. */
static void while_one_is_under_way(void)
{
	int *in = take(SOME), *out = take(SOME), *other = take(SOME), one = 1, sum = 0;
	MPI_Request request;

	MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	sum_often(in, out, SOME, 1);
	expect(!is_shared(in) && !is_shared(out), "a block was shared while a call was under way");
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	expect(sum == size, "a wrong sum beside others");
	sum_often(in, out, SOME, 2);
	expect(is_shared(in) == is_on && is_shared(out) == is_on, "a block is not as it should be after a call was under way");
	fill(in, SOME, 3);
	MPI_Iallreduce(in, out, SOME, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
	sum_often(other, other, SOME, 4);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	expect(is_sum(out, SOME, 3), "a wrong sum of shared memory");
	free(in);
	free(out);
	free(other);
}

/* ---- memory that goes ---- */

static void *free_it(void *memory)
{
	free(memory);
	return NULL;
}

static void free_elsewhere(void *memory)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, free_it, memory) != 0)
		abort();
	pthread_join(thread, NULL);
}

/* What comes to lie where a shared block was is memory like any other. Returns how often something did. */
static int freed(void)
{
	int same_place = 0;

	for (int i = 0; i < 6; i++) {
		int *block = take(SOME), *out = take(SOME);
		uintptr_t place = (uintptr_t)block;

		sum_often(block, out, SOME, i);
		expect(is_shared(block) == is_on && is_shared(out) == is_on, "a block is not as it should be where others were before");
		if (i % 2)
			free_elsewhere(block);
		else
			free(block);
		block = take(SOME);
		same_place += (uintptr_t)block == place;
		expect(!is_shared(block), "what was freed is still shared");
		sum_often(block, out, SOME, 100 + i);
		sum_often(block, block, SOME, 200 + i);
		free(block);
		free(out);
	}
	return same_place;
}

static void grown_and_shrunk(void)
{
	static const size_t counts[] = {3 * SOME, SOME / 2, 2 * SOME, SOME, 5 * SOME, SOME};
	size_t count = SOME;
	int *block = take(count);

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		sum_often(block, block, count, (int)i);
		expect(is_shared(block) == is_on, "a block that was grown or shrunk is not as it should be");
		size_t least = count < counts[i] ? count : counts[i];
		fill(block, count, 50);
		count = counts[i];
		block = i % 2 ? reallocarray(block, count, sizeof(*block)) : realloc(block, count * sizeof(*block));
		if (!block)
			abort();
		expect(!is_shared(block), "what was grown or shrunk is still shared");
		expect(is_filled(block, least, 50), "what was grown or shrunk has changed");
	}
	free(block);
}

/* A program that takes new memory for each call gains nothing, and loses nothing. */
static void short_lives(void)
{
	for (int i = 0; i < 40; i++) {
		int *block = take(SOME);

		fill(block, SOME, i);
		MPI_Allreduce(MPI_IN_PLACE, block, SOME, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		expect(is_sum(block, SOME, i), "a wrong sum in memory that is new each time");
		free(block);
	}
}

/* ---- another thread ---- */

#define PILE 16

static atomic_int is_enough;

/* Takes and frees memory, small and large, and grows it; all of it keeps what it holds. */
static void *take_and_free(void *seed)
{
	size_t *pile[PILE] = {NULL}, words[PILE] = {0};
	uint64_t state = (uint64_t)(uintptr_t)seed;

	while (!atomic_load(&is_enough)) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		size_t i = state >> 60, more = 2 + (state >> 33) % (state >> 32 & 1 ? 200000 : 200);

		expect(!pile[i] || (pile[i][0] == words[i] && pile[i][words[i] - 1] == words[i]), "memory of another thread has changed");
		if (state >> 59 & 1) {
			free(pile[i]);
			pile[i] = NULL;
		}
		pile[i] = realloc(pile[i], more * sizeof(*pile[i]));
		if (!pile[i])
			abort();
		expect(state >> 59 & 1 || more < words[i] || words[i] == 0 || pile[i][0] == words[i], "memory of another thread was lost as it was grown");
		words[i] = pile[i][0] = pile[i][more - 1] = more;
	}
	for (int i = 0; i < PILE; i++)
		free(pile[i]);
	return NULL;
}

static void beside_another_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, take_and_free, (void *)(uintptr_t)17) != 0)
		abort();
	(void)freed();
	grown_and_shrunk();
	atomic_store(&is_enough, 1);
	pthread_join(thread, NULL);
}

/* ---- fork() ---- */

/* In the child: the parent has changed everything since. Exit status 0: here it is as it was. */
static void look_in_child(int from_parent, int *in, int *out)
{
	char go;

	if (read(from_parent, &go, 1) != 1)
		_exit(2);
	if (!is_filled(in, SOME, 60) || !is_sum(out, SOME, 60))
		_exit(3);
	if (is_shared(in) || is_shared(out))
		_exit(4);
	fill(in, SOME, 61); /* which the parent is not to see */
	in = realloc(in, 2 * SOME * sizeof(*in));
	if (!in || !is_filled(in, SOME, 61))
		_exit(5);
	free(in);
	free(out);
	_exit(0);
}

static void forked(int *in, int *out)
{
	int to_child[2], status;

	sum_often(in, out, SOME, 60 - TIMES + 1); /* the last one is 60 */
	expect(is_shared(in) == is_on && is_shared(out) == is_on, "a block is not as it should be before fork()");
	if (pipe(to_child) != 0)
		abort();
	pid_t child = fork();
	if (child == 0)
		look_in_child(to_child[0], in, out);
	expect(is_filled(in, SOME, 60) && is_sum(out, SOME, 60), "a block has changed in fork()");
	sum_often(in, out, SOME, 70);
	fill(in, SOME, 71);
	expect(write(to_child[1], "g", 1) == 1, "the child has gone");
	expect(waitpid(child, &status, 0) == child, "there is no child");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "share_test: rank %d: the child ends with %x\n", rank, (unsigned)status);
		fail("a child has something else than its parent had");
	}
	expect(is_filled(in, SOME, 71), "a child writes into its parent's memory");
	close(to_child[0]);
	close(to_child[1]);
	sum_often(in, out, SOME, 72);
	sum_often(out, out, SOME, 73);
	free(in);
	in = take(SOME);
	sum_often(in, out, SOME, 74);
	sum_often(in, in, SOME, 75);
	expect(!is_shared(in), "a program that forks still has its memory shared");
	free(in);
	free(out);
}

int main(int argc, char **argv)
{
	int *in, *out, provided;

	/* However large the blocks were that had been freed before: the next one has pages of its own. */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
	PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &size);
	is_on = argc > 1 && strcmp(argv[1], "on") == 0 && !is_pinned();
	expect(freed() > 0, "no block came to lie where another was: nothing has been tested");
	kinds();
	parts();
	while_one_is_under_way();
	grown_and_shrunk();
	beside_another_thread();
	in = take(SOME);
	out = take(SOME);
	sum_often(in, out, SOME, 1);
	if (argc > 2)
		forked(take(SOME), take(SOME));
	else
		collectives();
	short_lives();
	sum_often(in, out, SOME, 2);
	if (rank == 0)
		printf("share: %ld checks, %s\n", atomic_load(&checks), is_on ? "on" : "off");
	MPI_Finalize();
	expect(is_filled(in, SOME, 2 + TIMES - 1) && is_sum(out, SOME, 2 + TIMES - 1), "memory is not as it was before MPI_Finalize()");
	int *more = realloc(in, 3 * SOME * sizeof(*in));
	expect(more && is_filled(more, SOME, 2 + TIMES - 1), "memory cannot be grown after MPI_Finalize()");
	free(more);
	free(out);
	return 0;
}
