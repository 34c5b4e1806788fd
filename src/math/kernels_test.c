/*
 * Every level, type and operation against the reference: all short lengths, all
 * alignments, in place on either side, with guards around what may be written.
 */
#include "base/check.h"
#include "math/fpenv.h"
#include "math/kernels.h"
#include "support/math_reference.h"

#define MAX_COUNT 65537
#define GUARD 64
#define MAX_OFFSET 64
#define ROOM (GUARD + MAX_OFFSET + MAX_COUNT * 8 + GUARD)

enum place { APART, ON_A, ON_B, PLACES };
enum side { DST, A, B, SIDES };

struct job {
	enum esp_type type;
	enum esp_op op;
	size_t count;
	enum place place;
	size_t offset[SIDES];
};

/* before: what the buffers hold; want: what they must hold; room: where kernels run. */
static char before[SIDES][ROOM], want[SIDES][ROOM], room[SIDES][ROOM];

static void fail_at(const struct job *job, enum math_level level, size_t at)
{
	check_fail(__FILE__, __LINE__, "%s %s %s: element %zu of %zu, place %d, offsets %zu %zu %zu",
	           math_level_name(level), math_type_name(job->type), math_op_name(job->op), at, job->count, job->place,
	           job->offset[DST], job->offset[A], job->offset[B]);
}

static enum side target(const struct job *job)
{
	return job->place == ON_A ? A : job->place == ON_B ? B : DST;
}

static char *start(char buffers[SIDES][ROOM], const struct job *job, enum side side)
{
	return buffers[side] + GUARD + job->offset[side];
}

/* The guards and everything else within reach. */
static size_t span(const struct job *job)
{
	return GUARD + MAX_OFFSET + job->count * math_type_bytes(job->type) + GUARD;
}

static void prepare(const struct job *job, struct rng *rng)
{
	size_t bytes = math_type_bytes(job->type);

	for (int side = 0; side < SIDES; side++) {
		memset(before[side], 0xa5, span(job));
		ref_fill(job->type, start(before, job, (enum side)side), job->count, rng);
		memcpy(want[side], before[side], span(job));
	}
	for (size_t i = 0; i < job->count; i++)
		ref_fold(job->type, job->op, start(want, job, target(job)) + i * bytes,
		         start(before, job, A) + i * bytes, start(before, job, B) + i * bytes);
}

/* Elements may differ in which NaN they are; every other byte must be the same. */
static void compare(const struct job *job, enum math_level level)
{
	size_t bytes = math_type_bytes(job->type);
	char *got = start(room, job, target(job)), *expected = start(want, job, target(job));

	for (size_t i = 0; i < job->count; i++)
		if (!ref_same(job->type, got + i * bytes, expected + i * bytes))
			fail_at(job, level, i);
	memcpy(got, expected, job->count * bytes);
	for (int side = 0; side < SIDES; side++)
		CHECK_MSG(memcmp(room[side], want[side], span(job)) == 0, "%s %s %s: wrote outside, count %zu",
		          math_level_name(level), math_type_name(job->type), math_op_name(job->op), job->count);
}

static void run(const struct job *job, struct rng *rng)
{
	prepare(job, rng);
	for (int level = 0; level < MATH_LEVEL_COUNT; level++) {
		math_fold_fn *fold = math_fold_at((enum math_level)level, job->type, job->op);
		if (!fold)
			continue;
		for (int side = 0; side < SIDES; side++)
			memcpy(room[side], before[side], span(job));
		fold(start(room, job, target(job)), start(room, job, A), start(room, job, B), job->count);
		compare(job, (enum math_level)level);
	}
}

static void run_lengths(struct job job, struct rng *rng)
{
	static const size_t large[] = {1000, 4099, MAX_COUNT};

	for (size_t count = 0; count <= 130 + sizeof(large) / sizeof(large[0]); count++) {
		job.count = count <= 130 ? count : large[count - 131];
		job.place = (enum place)rng_below(rng, PLACES);
		for (int side = 0; side < SIDES; side++)
			job.offset[side] = rng_below(rng, MAX_OFFSET);
		run(&job, rng);
	}
}

/* Each pointer takes every offset, in each place. */
static void run_offsets(struct job job, struct rng *rng)
{
	for (size_t i = 0; i < MAX_OFFSET * PLACES; i++) {
		job.count = 60 + rng_below(rng, 20);
		job.place = (enum place)(i % PLACES);
		job.offset[DST] = i / PLACES;
		job.offset[A] = i / PLACES * 5 % MAX_OFFSET;
		job.offset[B] = i / PLACES * 11 % MAX_OFFSET;
		run(&job, rng);
	}
}

static void test_folds(struct rng *rng)
{
	for (int type = 0; type < ESP_TYPE_COUNT; type++)
		for (int op = 0; op < ESP_OP_COUNT; op++) {
			struct job job = {.type = (enum esp_type)type, .op = (enum esp_op)op};
			if (!math_op_defined(job.type, job.op))
				continue;
			run_lengths(job, rng);
			run_offsets(job, rng);
		}
}

static void check_commutes(math_fold_fn *fold, enum esp_type type)
{
	for (unsigned pair = 0; pair < REF_SPECIALS * REF_SPECIALS; pair++) {
		uint64_t a = ref_special(type, pair / REF_SPECIALS), b = ref_special(type, pair % REF_SPECIALS);
		uint64_t ab = 0, ba = 0;
		fold(&ab, &a, &b, 1);
		fold(&ba, &b, &a, 1);
		CHECK(ref_same(type, &ab, &ba));
	}
}

/* Every pair of special values, both ways round: the order must be one of the values alone. */
static void test_order_commutes(void)
{
	for (int level = 0; level < MATH_LEVEL_COUNT; level++)
		for (int type = 0; type < ESP_BYTES; type++)
			for (int op = ESP_MIN; op <= ESP_MAX; op++) {
				math_fold_fn *fold =
					math_fold_at((enum math_level)level, (enum esp_type)type, (enum esp_op)op);
				if (fold)
					check_commutes(fold, (enum esp_type)type);
			}
}

/* ---- finishing ---- */

static double random_operand(enum esp_type type, enum esp_op op, struct rng *rng)
{
	for (;;) {
		uint64_t bits = ref_random(type, rng) & (UINT64_MAX >> (64 - 8 * math_type_bytes(type)));
		double factor = ref_is_float(type) ? ref_decode(type, bits) : (double)ref_integer(type, bits);
		if (op == ESP_AVG)
			return (double)(rng_chance(rng, 1, 2) ? 1 + rng_below(rng, 300) : 1 + rng_below(rng, UINT32_MAX));
		if (math_finish_valid(type, op, factor, 1))
			return factor;
	}
}

/* Where truncation is decided: multiples of the divisor and their neighbours. */
static void fill_multiples(const struct job *job, double divisor, struct rng *rng)
{
	size_t bytes = math_type_bytes(job->type);
	uint64_t limit = (UINT64_MAX - 1) >> (64 - 8 * bytes);

	for (size_t i = 0; i < job->count; i++) {
		uint64_t bits = (uint64_t)divisor * rng_below(rng, limit / (uint64_t)divisor + 1) + rng_below(rng, 3) - 1;
		memcpy(start(before, job, DST) + i * bytes, &bits, bytes);
	}
}

static void run_finish(enum esp_type type, enum esp_op op, size_t count, struct rng *rng)
{
	struct job job = {.type = type, .op = op, .count = count, .offset = {rng_below(rng, MAX_OFFSET)}};
	double operand = random_operand(type, op, rng);

	prepare(&job, rng);
	if (op == ESP_AVG && !ref_is_float(type) && rng_chance(rng, 3, 4))
		fill_multiples(&job, operand, rng);
	memcpy(want[DST], before[DST], span(&job));
	for (size_t i = 0; i < count; i++)
		ref_finish(type, op, start(want, &job, DST) + i * math_type_bytes(type), operand);
	for (int level = 0; level < MATH_LEVEL_COUNT; level++) {
		const struct math_kernels *kernels = math_kernels_at((enum math_level)level);
		if (!kernels)
			continue;
		memcpy(room, before, sizeof(room));
		(op == ESP_AVG ? kernels->divide : kernels->multiply)[type](start(room, &job, DST), count, operand);
		compare(&job, (enum math_level)level);
	}
}

static void test_finish(struct rng *rng)
{
	for (int type = 0; type < ESP_BYTES; type++)
		for (size_t count = 0; count <= 130; count++) {
			run_finish((enum esp_type)type, ESP_AVG, count, rng);
			run_finish((enum esp_type)type, ESP_SCALED, count, rng);
		}
}

/* ---- the host's floating-point mode ---- */

#if defined(__x86_64__)
/* flush and take denormals as zero; round up, down, to zero; trap on everything */
static const uint32_t modes[] = {0x9fc0, 0x5f80, 0x3f80, 0x7f80, 0x0000};
#elif defined(__aarch64__)
static const uint32_t modes[] = {1u << 24, 1u << 22, 2u << 22, 3u << 22, 1u << 25};
#else
static const uint32_t modes[] = {0};
#endif

#define MODE_COUNT (sizeof(modes) / sizeof(modes[0]))
#define MODE_ELEMENTS 1000

struct mode_case {
	enum esp_type type;
	uint64_t a[MODE_ELEMENTS], b[MODE_ELEMENTS], plain[MODE_ELEMENTS], got[MODE_ELEMENTS];
};

static void compare_mode(struct mode_case *c, uint32_t mode, const char *what)
{
	for (size_t i = 0; i < MODE_ELEMENTS; i++) {
		size_t at = i * math_type_bytes(c->type);
		CHECK_MSG(ref_same(c->type, (char *)c->got + at, (char *)c->plain + at), "%s %s: mode %x shows in element %zu",
		          math_type_name(c->type), what, mode, i);
	}
}

static void fold_in_mode(struct mode_case *c, math_fold_fn *fold, uint32_t mode)
{
	uint32_t host = fpenv_read();
	fpenv_write(mode);
	fold(c->got, c->a, c->b, MODE_ELEMENTS);
	uint32_t after = fpenv_read();
	fpenv_write(host);
	CHECK_U64(after & ~FPENV_STICKY, mode & ~FPENV_STICKY);
}

static void finish_in_mode(struct mode_case *c, math_finish_fn *finish, double operand, uint32_t mode)
{
	uint32_t host = fpenv_read();
	memcpy(c->got, c->a, sizeof(c->got));
	fpenv_write(mode);
	finish(c->got, MODE_ELEMENTS, operand);
	uint32_t after = fpenv_read();
	fpenv_write(host);
	CHECK_U64(after & ~FPENV_STICKY, mode & ~FPENV_STICKY);
}

static void test_modes_at(enum math_level level, struct mode_case *c, struct rng *rng)
{
	const struct math_kernels *kernels = math_kernels_at(level);
	const double operands[] = {3, 1e-40, 16777217}; /* the second is denormal as a float, the third not a float */

	ref_fill(c->type, c->a, MODE_ELEMENTS, rng);
	ref_fill(c->type, c->b, MODE_ELEMENTS, rng);
	for (size_t m = 0; m < MODE_COUNT; m++) {
		for (int op = ESP_SUM; op <= ESP_MAX; op++) {
			kernels->fold[c->type][op](c->plain, c->a, c->b, MODE_ELEMENTS);
			fold_in_mode(c, kernels->fold[c->type][op], modes[m]);
			compare_mode(c, modes[m], math_op_name((enum esp_op)op));
		}
		for (int i = 0; i < 3; i++) {
			math_finish_fn *finish = (i == 1 ? kernels->multiply : kernels->divide)[c->type];
			memcpy(c->plain, c->a, sizeof(c->a));
			finish(c->plain, MODE_ELEMENTS, operands[i]);
			finish_in_mode(c, finish, operands[i], modes[m]);
			compare_mode(c, modes[m], "finish");
		}
	}
}

static void test_modes(struct rng *rng)
{
	static struct mode_case c;

	for (int level = 0; level < MATH_LEVEL_COUNT; level++)
		for (int type = 0; type < ESP_BYTES; type++) {
			c.type = (enum esp_type)type;
			if (math_kernels_at((enum math_level)level) && ref_is_float(c.type))
				test_modes_at((enum math_level)level, &c, rng);
		}
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	test_folds(&rng);
	test_order_commutes();
	test_finish(&rng);
	test_modes(&rng);
	return 0;
}
