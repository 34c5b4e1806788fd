/*
 * Folds of many terms give what folds of two give, and copies copy: every level, type and
 * operation, any number of terms, any length and alignment, dst apart from the terms or
 * equal to what it may be equal to, through the caches or around them, with guards. So do
 * sums that are stored to many places.
 */
#include "base/check.h"
#include "math/fpenv.h"
#include "math/kernels.h"
#include "support/math_reference.h"

#define MAX_TERMS 9u
#define MAX_COUNT 4100u /* of elements: some blocks of every type */
#define GUARD 64u
#define MAX_OFFSET 64u
#define ROOM (GUARD + MAX_OFFSET + MAX_COUNT * 8 + GUARD)

typedef void many_fn(const struct math_kernels *kernels, const struct math_many *many, void *dst, size_t count);
static many_fn *const ways[] = {math_kernels_fold_many, math_kernels_fold_many_streaming};
static const char *const way_names[] = {"many", "many streaming"};

enum place { APART, ON_FIRST, ON_SECOND, ON_BOTH, PLACES };

struct job {
	enum math_level level;
	enum esp_type type;
	enum esp_op op;
	size_t terms, count;
	enum place place;
	/* The buffer of each term, and where in it the term starts; buffer MAX_TERMS is dst's if it is apart. */
	size_t buffer[MAX_TERMS], offset[MAX_TERMS + 1];
};

static char before[MAX_TERMS + 1][ROOM], want[MAX_TERMS + 1][ROOM], room[MAX_TERMS + 1][ROOM];

/* ---- jobs ---- */

static size_t target(const struct job *job)
{
	return job->place == APART ? MAX_TERMS : job->buffer[job->place == ON_SECOND];
}

static char *start(char buffers[][ROOM], const struct job *job, size_t buffer)
{
	return buffers[buffer] + GUARD + job->offset[buffer];
}

/* The guards and everything else within reach. */
static size_t span(const struct job *job)
{
	return GUARD + MAX_OFFSET + job->count * math_type_bytes(job->type) + GUARD;
}

/* Terms may share memory with each other, but those from the third on not with dst. */
static void choose_buffers(struct job *job, struct rng *rng)
{
	for (size_t i = 0; i <= MAX_TERMS; i++)
		job->offset[i] = rng_chance(rng, 1, 3) ? 0 : rng_below(rng, MAX_OFFSET);
	for (size_t i = 0; i < job->terms; i++)
		job->buffer[i] = i;
	if (job->place == ON_BOTH)
		job->buffer[1] = job->buffer[0];
	else if (rng_chance(rng, 1, 4) && job->terms > 3)
		job->buffer[job->terms - 1] = 2;
}

static void fill(const struct job *job, struct rng *rng)
{
	for (size_t i = 0; i <= MAX_TERMS; i++) {
		memset(before[i], 0xa5, span(job));
		ref_fill(job->type, start(before, job, i), job->count, rng);
		memcpy(want[i], before[i], span(job));
	}
	math_fold_fn *fold = math_fold_at(job->level, job->type, job->op);
	char *sum = start(want, job, target(job));
	fold(sum, start(before, job, job->buffer[0]), start(before, job, job->buffer[1]), job->count);
	for (size_t i = 2; i < job->terms; i++)
		fold(sum, sum, start(before, job, job->buffer[i]), job->count);
}

/* Elements may differ in which NaN they are; every other byte must be the same. */
static void compare(const struct job *job, const char *way)
{
	size_t bytes = math_type_bytes(job->type);
	char *got = start(room, job, target(job)), *expected = start(want, job, target(job));

	for (size_t i = 0; i < job->count; i++)
		CHECK_MSG(ref_same(job->type, got + i * bytes, expected + i * bytes),
		          "%s %s %s %s: element %zu of %zu, %zu terms, place %d", math_level_name(job->level), way,
		          math_type_name(job->type), math_op_name(job->op), i, job->count, job->terms, (int)job->place);
	memcpy(got, expected, job->count * bytes);
	for (size_t i = 0; i <= MAX_TERMS; i++)
		CHECK_MSG(memcmp(room[i], want[i], span(job)) == 0, "%s %s %s %s: wrote outside, %zu terms of %zu",
		          math_level_name(job->level), way, math_type_name(job->type), math_op_name(job->op), job->terms,
		          job->count);
}

static void run_way(const struct job *job, many_fn *way, const char *name)
{
	const void *sources[MAX_TERMS] = {0};
	struct math_many many = {job->type, job->op, sources, job->terms};

	for (size_t i = 0; i <= MAX_TERMS; i++)
		memcpy(room[i], before[i], span(job));
	for (size_t i = 0; i < job->terms; i++)
		sources[i] = start(room, job, job->buffer[i]);
	way(math_kernels_at(job->level), &many, start(room, job, target(job)), job->count);
	compare(job, name);
}

static size_t choose_count(enum esp_type type, struct rng *rng)
{
	size_t block = 2048 / math_type_bytes(type), line = 64 / math_type_bytes(type);

	switch (rng_below(rng, 4)) {
	case 0: return rng_below(rng, 4); /* 0 and 1, too */
	case 1: return rng_below(rng, 4 * line);
	case 2: return block - line + rng_below(rng, 2 * line);
	default: return rng_below(rng, MAX_COUNT + 1);
	}
}

static void test_folds(struct rng *rng)
{
	for (int kind = 0; kind < MATH_LEVEL_COUNT * ESP_TYPE_COUNT * ESP_OP_COUNT; kind++) {
		struct job job = {
			.level = (enum math_level)(kind / (ESP_TYPE_COUNT * ESP_OP_COUNT)),
			.type = (enum esp_type)(kind / ESP_OP_COUNT % ESP_TYPE_COUNT),
			.op = (enum esp_op)(kind % ESP_OP_COUNT),
		};
		if (!math_fold_at(job.level, job.type, job.op))
			continue;
		for (int i = 0; i < 24; i++) {
			job.terms = 2 + rng_below(rng, MAX_TERMS - 1);
			job.count = choose_count(job.type, rng);
			job.place = (enum place)(i % PLACES);
			choose_buffers(&job, rng);
			fill(&job, rng);
			for (int way = 0; way < 2; way++)
				run_way(&job, ways[way], way_names[way]);
		}
	}
}

/* Every alignment of dst, and every length of what is left behind the last whole line. */
static void test_alignments(struct rng *rng)
{
	struct job job = {.op = ESP_SUM, .terms = 3};

	for (int level = 0; level <= (int)math_level_best(); level++)
		for (int type = 0; type < ESP_BYTES; type++)
			for (size_t i = 0; i < MAX_OFFSET; i++) {
				job.level = (enum math_level)level;
				job.type = (enum esp_type)type;
				job.count = 600 + i;
				choose_buffers(&job, rng);
				job.offset[MAX_TERMS] = i;
				fill(&job, rng);
				run_way(&job, ways[1], way_names[1]);
			}
}

/* ---- sums that are wanted at many places ---- */

/* Of each term: is the sum stored over it? Then places of its own; each place may be near or far. */
struct spread_job {
	struct job job;
	bool is_place[MAX_TERMS + 1], is_far[MAX_TERMS + 1];
	bool finishes;
	double factor;
};

static void fill_spread(struct spread_job *spread, struct rng *rng)
{
	struct job *job = &spread->job;
	size_t bytes = job->count * math_type_bytes(job->type);

	job->place = APART;
	choose_buffers(job, rng);
	fill(job, rng);
	spread->finishes = rng_chance(rng, 1, 2);
	spread->factor = 3;
	char *sum = start(want, job, MAX_TERMS);
	if (spread->finishes)
		math_finish(sum, job->count, job->type, job->op, spread->factor, (uint32_t)job->terms);
	for (size_t i = 0; i <= MAX_TERMS; i++) {
		spread->is_place[i] = (i == MAX_TERMS || job->buffer[i] == i) && rng_chance(rng, 2, 3);
		spread->is_far[i] = rng_chance(rng, 1, 3);
		if (i < MAX_TERMS && spread->is_place[i])
			memcpy(start(want, job, i), sum, bytes);
	}
	if (!spread->is_place[MAX_TERMS])
		memcpy(sum, start(before, job, MAX_TERMS), bytes);
}

static void run_spread(const struct spread_job *wanted, bool is_public)
{
	const struct job *job = &wanted->job;
	const void *sources[MAX_TERMS];
	void *places[MAX_TERMS + 1], *far[MAX_TERMS + 1];
	struct math_spread spread = {
		.type = job->type,
		.op = job->op,
		.finishes = wanted->finishes,
		.contributors = (uint32_t)job->terms,
		.factor = wanted->factor,
		.sources = sources,
		.source_count = job->terms,
		.places = places,
		.far = far,
	};
	size_t bytes = math_type_bytes(job->type);

	for (size_t i = 0; i <= MAX_TERMS; i++) {
		memcpy(room[i], before[i], span(job));
		if (i < job->terms)
			sources[i] = start(room, job, job->buffer[i]);
		if (wanted->is_place[i] && wanted->is_far[i])
			far[spread.far_count++] = start(room, job, i);
		else if (wanted->is_place[i])
			places[spread.place_count++] = start(room, job, i);
	}
	if (is_public)
		math_spread(&spread, job->count);
	else
		math_kernels_spread(math_kernels_at(job->level), &spread, job->count);
	math_fence();
	for (size_t i = 0; i <= MAX_TERMS; i++) {
		for (size_t k = 0; wanted->is_place[i] && k < job->count; k++) {
			char *got = start(room, job, i) + k * bytes, *expected = start(want, job, i) + k * bytes;

			CHECK_MSG(ref_same(job->type, got, expected), "%s spread %s %s: place %zu, element %zu of %zu, %zu terms",
			          math_level_name(job->level), math_type_name(job->type), math_op_name(job->op), i, k, job->count,
			          job->terms);
			memcpy(got, expected, bytes); /* another NaN */
		}
		CHECK_MSG(memcmp(room[i], want[i], span(job)) == 0, "%s spread %s %s: wrote outside, %zu terms of %zu",
		          math_level_name(job->level), math_type_name(job->type), math_op_name(job->op), job->terms,
		          job->count);
	}
}

static void test_spread(struct rng *rng)
{
	for (int kind = 0; kind < MATH_LEVEL_COUNT * ESP_TYPE_COUNT * ESP_OP_COUNT; kind++) {
		struct spread_job spread = {.job = {
			.level = (enum math_level)(kind / (ESP_TYPE_COUNT * ESP_OP_COUNT)),
			.type = (enum esp_type)(kind / ESP_OP_COUNT % ESP_TYPE_COUNT),
			.op = (enum esp_op)(kind % ESP_OP_COUNT),
		}};
		struct job *job = &spread.job;

		if (!math_fold_at(job->level, job->type, job->op))
			continue;
		for (int i = 0; i < 24; i++) {
			job->terms = 2 + rng_below(rng, MAX_TERMS - 1);
			job->count = choose_count(job->type, rng);
			fill_spread(&spread, rng);
			run_spread(&spread, false);
			if (job->level == math_level_best())
				run_spread(&spread, true);
		}
	}
}

/* The public functions take the best level. */
static void test_public(struct rng *rng)
{
	struct job job = {.level = math_level_best(), .type = ESP_BF16, .op = ESP_SUM, .terms = MAX_TERMS, .count = 3001};
	const void *sources[MAX_TERMS];

	choose_buffers(&job, rng);
	fill(&job, rng);
	memcpy(room, before, sizeof(room));
	for (size_t i = 0; i < job.terms; i++)
		sources[i] = start(room, &job, job.buffer[i]);
	math_fold_many(job.type, job.op, start(room, &job, MAX_TERMS), sources, job.terms, job.count);
	compare(&job, "math_fold_many()");
	memcpy(room, before, sizeof(room));
	math_fold_many_streaming(job.type, job.op, start(room, &job, MAX_TERMS), sources, job.terms, job.count);
	compare(&job, "math_fold_many_streaming()");
}

/* ---- the host's floating-point mode ---- */

#if defined(__x86_64__)
static const uint32_t modes[] = {0x9fc0, 0x7f80}; /* flush and take denormals as zero; round to zero */
#elif defined(__aarch64__)
static const uint32_t modes[] = {1u << 24, 3u << 22};
#else
static const uint32_t modes[] = {0, 0};
#endif

static uint32_t mode;

static void in_mode(many_fn *way, const struct math_kernels *kernels, const struct math_many *many, void *dst,
                    size_t count)
{
	uint32_t host = fpenv_read();

	fpenv_write(mode);
	way(kernels, many, dst, count);
	uint32_t after = fpenv_read();
	fpenv_write(host);
	CHECK_U64(after & ~FPENV_STICKY, mode & ~FPENV_STICKY);
}

static void many_in_mode(const struct math_kernels *kernels, const struct math_many *many, void *dst, size_t count)
{
	in_mode(ways[0], kernels, many, dst, count);
}

static void streaming_in_mode(const struct math_kernels *kernels, const struct math_many *many, void *dst, size_t count)
{
	in_mode(ways[1], kernels, many, dst, count);
}

static void test_modes(struct rng *rng)
{
	struct job job = {.terms = 5, .count = 1500};

	for (int level = 0; level <= (int)math_level_best(); level++)
		for (int type = 0; type < ESP_BYTES; type++)
			for (int op = ESP_SUM; ref_is_float((enum esp_type)type) && op <= ESP_MAX; op++) {
				job.level = (enum math_level)level;
				job.type = (enum esp_type)type;
				job.op = (enum esp_op)op;
				choose_buffers(&job, rng);
				fill(&job, rng);
				for (int i = 0; i < 2; i++) {
					mode = modes[i];
					run_way(&job, many_in_mode, "many in another mode");
					run_way(&job, streaming_in_mode, "streaming in another mode");
				}
			}
}

static void test_spread_modes(struct rng *rng)
{
	for (int level = 0; level <= (int)math_level_best(); level++)
		for (int type = 0; type < ESP_BYTES; type++)
			for (int i = 0; ref_is_float((enum esp_type)type) && i < 2; i++) {
				struct spread_job spread = {.job = {.level = (enum math_level)level,
				                                    .type = (enum esp_type)type,
				                                    .op = i ? ESP_AVG : ESP_SUM,
				                                    .terms = 5,
				                                    .count = 1500}};
				uint32_t host = fpenv_read();

				fill_spread(&spread, rng);
				fpenv_write(modes[i]);
				run_spread(&spread, false);
				uint32_t after = fpenv_read();
				fpenv_write(host);
				CHECK_U64(after & ~FPENV_STICKY, modes[i] & ~FPENV_STICKY);
			}
}

/* ---- copies ---- */

static void copy(math_copy_fn *copy_stream, size_t to, size_t from, size_t bytes)
{
	size_t all = GUARD + MAX_OFFSET + bytes + GUARD;

	memset(want[0], 0xa5, all);
	memcpy(room[0], want[0], all);
	memcpy(want[0] + GUARD + to, before[1] + from, bytes);
	copy_stream(room[0] + GUARD + to, before[1] + from, bytes);
	CHECK_MSG(memcmp(room[0], want[0], all) == 0, "a copy of %zu bytes from +%zu to +%zu", bytes, from, to);
}

static void test_copies(struct rng *rng)
{
	for (size_t i = 0; i < ROOM; i++)
		before[1][i] = (char)rng_below(rng, 256);
	for (int level = 0; level <= (int)math_level_best(); level++) {
		math_copy_fn *copy_stream = math_kernels_at((enum math_level)level)->copy_stream;

		for (size_t bytes = 0; bytes < 200; bytes++)
			copy(copy_stream, rng_below(rng, MAX_OFFSET), rng_below(rng, MAX_OFFSET), bytes);
		for (size_t i = 0; i < MAX_OFFSET * MAX_OFFSET; i++)
			copy(copy_stream, i / MAX_OFFSET, i % MAX_OFFSET, rng_below(rng, 5000));
	}
	copy(math_copy_streaming, 3, 5, 30001);
	copy(math_copy_unfenced, 3, 5, 30001); /* this thread sees what it has stored */
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	test_folds(&rng);
	test_alignments(&rng);
	test_spread(&rng);
	test_public(&rng);
	test_modes(&rng);
	test_spread_modes(&rng);
	test_copies(&rng);
	return 0;
}
