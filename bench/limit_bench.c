/*
 * limit_bench.c - what the machine's memory lets an allreduce in place take at the least: milliseconds.
 *
 *     limit_bench [--threads N] [--rounds N] [--chunk BYTES] [--copied BYTES] [--skew BYTES] [--piece BYTES]
 *
 * Threads (2 by default) sum eight, four and two buffers of 1, 16 and 100 MiB in place, with the library's kernels, in four ways:
 *
 *     stored   each thread has a share of the elements, sums a few lines, and stores them to all buffers. There are no copies
 *              between ranks, no messages, and nobody waits but at the end. --piece: so many bytes at a time, by a sum and then copies.
 *     pulled   as ranks may that never write into each other's memory: every buffer is a rank's, whose part a thread plays. A rank sums its
 *              chunk (256 KiB, or an equal share if there is less) of each segment into its own buffer, 16 KiB at a time, of up to four buffers 4 KiB; then, when all have, it copies the others' from theirs.
 *     copied   as ranks must whose buffers nobody else can touch. A rank copies its segment (a chunk for every rank) to where all can read it; when all have,
 *              it sums its chunk of it, and when all have, it copies the sums into its buffer. --copied says how large these chunks are (64 KiB).
 *     piped    the same, but a rank copies its next segment and the sums of the one before in one pass, line by line, and the sums around the caches: memory is read
 *              and written at the same time.
 *
 * Buffers begin at the same place of their huge pages, or each --skew bytes further than the one before it.
 *
 * All ways in turn. Medians of the rounds are shown, and the fastest.
 */
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/clock.h"
#include "base/fence.h"
#include "math/math.h"

#define BUFFERS 8u
#define LARGEST (UINT64_C(100) << 20)
#define HUGE_PAGE (UINT64_C(2) << 20)
#define ROOM (LARGEST + 2 * HUGE_PAGE) /* with what is skewed */
#define PIECE_MOST 16384u /* bytes */
#define THREADS 64u
#define ROUNDS 101u

enum way { STORED, PULLED, COPIED, PIPED, WAYS };

struct race {
	void *memory[BUFFERS];
	float *buffers[BUFFERS];
	unsigned count;
	uint64_t elements;
	uint64_t chunk, copied; /* elements */
	float *shared[BUFFERS], *sums; /* COPIED, PIPED: the ranks' segments, and one of sums */
	uint64_t skew;	/* bytes */
	uint64_t piece; /* bytes; 0: as it suits; of STORED: some lines of a cache */
	unsigned threads;
	enum way way;
	atomic_uint met, meetings; /* of the threads, within a round */
	pthread_barrier_t start, end;
	bool is_over;
};

struct runner {
	struct race *race;
	unsigned number;
	pthread_t thread;
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "limit_bench: %s\n", what);
	exit(1);
}

static _Noreturn void explain(void)
{
	fprintf(stderr, "usage: limit_bench [--threads 1..%u] [--rounds 1..%u] [--chunk BYTES] [--copied BYTES] [--skew BYTES] [--piece BYTES]\n", THREADS, ROUNDS);
	exit(2);
}

/* To all buffers, a few lines at a time. */
static void store_lines(const struct race *race, uint64_t first, uint64_t end)
{
	void *places[BUFFERS];

	for (unsigned i = 0; i < race->count; i++)
		places[i] = race->buffers[i] + first;
	math_spread(&(struct math_spread){.type = ESP_F32, .op = ESP_SUM, .sources = (const void *const *)places, .source_count = race->count,
	                                  .places = places, .place_count = race->count}, end - first);
}

/* Into the buffers from `begin` to `end`. */
static void sum_piece(const struct race *race, uint64_t first, uint64_t count, unsigned begin, unsigned end)
{
	float sum[PIECE_MOST / sizeof(float)];
	const void *sources[BUFFERS];

	for (unsigned i = 0; i < race->count; i++)
		sources[i] = race->buffers[i] + first;
	math_fold_many(ESP_F32, ESP_SUM, sum, sources, race->count, count);
	for (unsigned i = begin; i < end; i++)
		memcpy(race->buffers[i] + first, sum, count * sizeof(float));
}

static void sum_pieces(const struct race *race, uint64_t first, uint64_t end, unsigned into_begin, unsigned into_end)
{
	uint64_t usual = race->count > 4 ? PIECE_MOST : PIECE_MOST / 4, piece = (race->piece ? race->piece : usual) / sizeof(float);

	for (uint64_t at = first; at < end; at += piece)
		sum_piece(race, at, end - at < piece ? end - at : piece, into_begin, into_end);
}

static void store(const struct race *race, unsigned thread)
{
	uint64_t first = race->elements * thread / race->threads, end = race->elements * (thread + 1) / race->threads;

	if (race->piece > 0)
		sum_pieces(race, first, end, 0, race->count);
	else
		store_lines(race, first, end);
}

/* Without the kernel: threads are as many as cores, and meet within microseconds. */
static void meet(struct race *race)
{
	unsigned meeting = atomic_load(&race->meetings);

	if (atomic_fetch_add(&race->met, 1) + 1 == race->threads) {
		atomic_store(&race->met, 0);
		atomic_store(&race->meetings, meeting + 1);
	}
	for (unsigned turns = 0; atomic_load(&race->meetings) == meeting; turns++) {
		if (turns > 1000)
			sched_yield();
	}
}

static void pull(struct race *race, unsigned thread)
{
	uint64_t most = race->chunk * race->count;

	for (uint64_t segment = 0; segment < race->elements; segment += most) {
		uint64_t here = race->elements - segment < most ? race->elements - segment : most;

		for (unsigned rank = thread; rank < race->count; rank += race->threads)
			/* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a rank is less than the count */
			sum_pieces(race, segment + here * rank / race->count, segment + here * (rank + 1) / race->count, rank, rank + 1);
		meet(race);
		for (unsigned rank = thread; rank < race->count; rank += race->threads) {
			for (unsigned i = 1; i < race->count; i++) {
				unsigned from = (rank + i) % race->count;
				uint64_t first = segment + here * from / race->count, end = segment + here * (from + 1) / race->count;

				memcpy(race->buffers[rank] + first, race->buffers[from] + first, (end - first) * sizeof(float));
			}
		}
	}
}

/* The ranks' chunks of a segment that all have copied. */
static void sum_shared(const struct race *race, unsigned thread, uint64_t here)
{
	for (unsigned rank = thread; rank < race->count; rank += race->threads) {
		/* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): a rank is less than the count */
		uint64_t first = here * rank / race->count, end = here * (rank + 1) / race->count;
		const void *sources[BUFFERS];

		for (unsigned i = 0; i < race->count; i++)
			sources[i] = race->shared[i] + first;
		math_fold_many(ESP_F32, ESP_SUM, race->sums + first, sources, race->count, end - first);
	}
}

static void copy(struct race *race, unsigned thread)
{
	uint64_t most = race->copied * race->count;

	for (uint64_t segment = 0; segment < race->elements; segment += most) {
		uint64_t here = race->elements - segment < most ? race->elements - segment : most;

		for (unsigned rank = thread; rank < race->count; rank += race->threads)
			memcpy(race->shared[rank], race->buffers[rank] + segment, here * sizeof(float));
		meet(race);
		sum_shared(race, thread, here);
		meet(race);
		for (unsigned rank = thread; rank < race->count; rank += race->threads)
			memcpy(race->buffers[rank] + segment, race->sums, here * sizeof(float));
	}
}

#define LINES 32u /* floats: two lines of a cache */

/* Around the caches where the processor can. Both begin at a line. */
static void store_around(float *to, const float *from)
{
#ifdef __SSE2__
	for (unsigned i = 0; i < LINES; i += 4)
		_mm_stream_ps(to + i, _mm_load_ps(from + i));
#else
	memcpy(to, from, LINES * sizeof(float));
#endif
}

/* Two copies in one pass; of the longer one the rest follows. */
static void move_both(float *in_to, const float *in_from, uint64_t in_count, float *out_to, const float *out_from, uint64_t out_count)
{
	uint64_t both = (in_count < out_count ? in_count : out_count) / LINES * LINES;

	for (uint64_t i = 0; i < both; i += LINES) {
		__builtin_prefetch(in_from + i + 16 * LINES);
		__builtin_prefetch(in_from + i + 16 * LINES + LINES / 2);
		memcpy(in_to + i, in_from + i, LINES * sizeof(float));
		store_around(out_to + i, out_from + i);
	}
	if (in_count > both)
		memcpy(in_to + both, in_from + both, (in_count - both) * sizeof(float));
	if (out_count > both)
		memcpy(out_to + both, out_from + both, (out_count - both) * sizeof(float));
	full_fence(); /* those stores are ordered by nothing less */
}

static void pipe_through(struct race *race, unsigned thread)
{
	uint64_t most = race->copied * race->count, before = 0;

	for (uint64_t segment = 0; segment < race->elements || before > 0; segment += most) {
		uint64_t left = segment < race->elements ? race->elements - segment : 0, here = left < most ? left : most;

		for (unsigned rank = thread; rank < race->count; rank += race->threads) {
			float *buffer = race->buffers[rank] + segment;

			move_both(race->shared[rank], buffer, here, before > 0 ? buffer - most : buffer, race->sums, before);
		}
		meet(race);
		sum_shared(race, thread, here);
		meet(race);
		before = here;
	}
}

static void *run(void *argument)
{
	const struct runner *runner = argument;
	struct race *race = runner->race;

	for (;;) {
		pthread_barrier_wait(&race->start);
		if (race->is_over)
			return NULL;
		if (race->way == STORED)
			store(race, runner->number);
		else if (race->way == PULLED)
			pull(race, runner->number);
		else if (race->way == COPIED)
			copy(race, runner->number);
		else
			pipe_through(race, runner->number);
		pthread_barrier_wait(&race->end);
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * Numbers, as zeros are moved up to a fourth faster here. Small enough that none gets infinite although every sum in place makes them larger, by up to eight
 * times in each of fifty calls.
 */
static void fill(const struct race *race)
{
	for (unsigned i = 0; i < race->count; i++) {
		uint32_t bits = i + 1;

		for (uint64_t at = 0; at < race->elements; at++) {
			bits = bits * 1664525u + 1013904223u;
			race->buffers[i][at] = (float)((double)(bits >> 8 | 1u << 24) * 0x1p-144);
		}
	}
}

/* Small buffers are summed over and over, as their time would be that of the start. */
static void measure(struct race *race, unsigned count, uint64_t bytes, unsigned rounds)
{
	double times_ms[WAYS][ROUNDS] = {0};
	unsigned batch = bytes < LARGEST / 16 ? 50 : 1;

	race->count = count;
	race->elements = bytes / sizeof(float);
	for (unsigned round = 0; round < WAYS * (rounds + 1); round++) {
		fill(race);
		uint64_t begin_ns = clock_now_ns();

		race->way = round % WAYS;
		for (unsigned i = 0; i < batch; i++) {
			pthread_barrier_wait(&race->start);
			pthread_barrier_wait(&race->end);
		}
		if (round >= WAYS)
			times_ms[race->way][round / WAYS - 1] = (double)(clock_now_ns() - begin_ns) / batch * 1e-6;
	}
	printf("%7u  %8llu MiB", count, (unsigned long long)(bytes >> 20));
	for (unsigned way = 0; way < WAYS; way++) {
		qsort(times_ms[way], rounds, sizeof(double), by_value);
		printf("  %9.3f  %9.3f", times_ms[way][rounds / 2], times_ms[way][0]);
	}
	printf("\n");
}

static void open_race(struct race *race, struct runner *runners)
{
	for (unsigned i = 0; i < BUFFERS; i++) {
		uint8_t *memory = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			die("no memory");
		(void)madvise(memory, ROOM, MADV_HUGEPAGE); /* as esp_alloc() does */
		race->memory[i] = memory;
		memory += (HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE) % HUGE_PAGE;
		race->buffers[i] = (void *)(memory + i * race->skew);
	}
	for (unsigned i = 0; i <= BUFFERS; i++) {
		float *segment = aligned_alloc(HUGE_PAGE, (race->copied * BUFFERS * sizeof(float) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);

		if (!segment)
			die("no memory");
		if (i < BUFFERS)
			race->shared[i] = segment;
		else
			race->sums = segment;
	}
	pthread_barrier_init(&race->start, NULL, race->threads + 1);
	pthread_barrier_init(&race->end, NULL, race->threads + 1);
	for (unsigned i = 0; i < race->threads; i++) {
		runners[i] = (struct runner){race, i, 0};
		if (pthread_create(&runners[i].thread, NULL, run, &runners[i]) != 0)
			die("no thread");
	}
}

static void close_race(struct race *race, struct runner *runners)
{
	race->is_over = true;
	pthread_barrier_wait(&race->start);
	for (unsigned i = 0; i < race->threads; i++)
		pthread_join(runners[i].thread, NULL);
	for (unsigned i = 0; i < BUFFERS; i++)
		munmap(race->memory[i], ROOM);
	for (unsigned i = 0; i < BUFFERS; i++)
		free(race->shared[i]);
	free(race->sums);
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"threads", required_argument, NULL, 't'}, {"rounds", required_argument, NULL, 'r'}, {"chunk", required_argument, NULL, 'c'}, {"skew", required_argument, NULL, 's'},
		{"piece", required_argument, NULL, 'p'}, {"copied", required_argument, NULL, 'o'}, {NULL, 0, NULL, 0}};
	static const uint64_t sizes[] = {UINT64_C(1) << 20, UINT64_C(16) << 20, LARGEST};
	struct race race = {.threads = 2, .chunk = (256u << 10) / sizeof(float), .copied = (64u << 10) / sizeof(float)};
	struct runner runners[THREADS];
	unsigned rounds = 21;

	for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
		if (c == 't')
			race.threads = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'r')
			rounds = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'c')
			race.chunk = strtoull(optarg, NULL, 10) / sizeof(float);
		else if (c == 'o')
			race.copied = strtoull(optarg, NULL, 10) / sizeof(float);
		else if (c == 's')
			race.skew = strtoull(optarg, NULL, 10);
		else if (c == 'p')
			race.piece = strtoull(optarg, NULL, 10);
		else
			explain();
	}
	if (race.chunk < 1 || race.chunk > LARGEST || race.copied < 1 || race.copied > LARGEST / BUFFERS)
		die("--chunk and --copied take 4 bytes to some MiB");
	if (race.skew % 64 != 0 || race.skew * BUFFERS > HUGE_PAGE)
		die("--skew takes a multiple of 64, 262144 at most");
	if (race.piece % 64 != 0 || race.piece > PIECE_MOST)
		die("--piece takes a multiple of 64, 16384 at most");
	if (race.threads < 1 || race.threads > THREADS || rounds < 1 || rounds > ROUNDS)
		die("--threads takes 1 to 64, --rounds 1 to 101");
	open_race(&race, runners);
	printf("%7s  %12s  %9s  %9s  %9s  %9s  %9s  %9s  %9s  %9s   (ms, %u threads)\n", "buffers", "each", "stored", "fastest", "pulled", "fastest", "copied", "fastest",
	       "piped", "fastest", race.threads);
	for (unsigned count = BUFFERS; count >= 2; count /= 2) {
		for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			measure(&race, count, sizes[i], rounds);
	}
	close_race(&race, runners);
	return 0;
}
