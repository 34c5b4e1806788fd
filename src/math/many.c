/*
 * many.c - folds of many terms, what is written around the caches, and sums that are stored to many places.
 *
 * A fold of k terms by pairs passes its result through the load and store units k - 1
 * times. Taking three terms at a time halves that, and doing so block by block keeps the
 * block in the first-level cache. Kernels of more terms gain little or lose (docs/math.md).
 */
#include <assert.h>
#include <string.h>

#include "math/kernels.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#define BLOCK_BYTES 2048u /* of each term: bench/math_bench --many */

static const char *source_at(const struct math_many *many, size_t index, size_t at)
{
	return (const char *)many->sources[index] + at;
}

/*
 * The fold of the first `terms` of the sources into dst, for the count elements that stand `at` bytes from the start.
 */
static void fold_block(const struct math_kernels *kernels, const struct math_many *many, size_t terms, void *dst,
                       size_t at, size_t count)
{
	math_fold3_fn *fold3 = kernels->fold3[many->type][many->op];
	size_t next = terms % 2 == 0 ? 2 : 3;

	if (next == 2)
		kernels->fold[many->type][many->op](dst, source_at(many, 0, at), source_at(many, 1, at), count);
	else
		fold3(dst, source_at(many, 0, at), source_at(many, 1, at), source_at(many, 2, at), count);
	for (; next < terms; next += 2)
		fold3(dst, dst, source_at(many, next, at), source_at(many, next + 1, at), count);
}

/* Elements in the next block. With two terms nothing passes through twice, and there is one block. */
static size_t block_count(const struct math_many *many, size_t most, size_t left)
{
	return many->source_count == 2 || most > left ? left : most;
}

void math_kernels_fold_many(const struct math_kernels *kernels, const struct math_many *many, void *dst, size_t count)
{
	size_t element_bytes = math_type_bytes(many->type), block;

	for (size_t done = 0; done < count; done += block) {
		size_t at = done * element_bytes;

		/*
		 * From the second one on, blocks begin where a line of dst does, if elements do not lie across lines: in
		 * general all operands lie in theirs alike, and an access would touch two.
		 */
		size_t into_line = ((uintptr_t)dst + at) % MATH_LINE;

		block = block_count(many, (BLOCK_BYTES - into_line) / element_bytes, count - done);
		fold_block(kernels, many, many->source_count, (char *)dst + at, at, block);
	}
}

/* All terms but the last are summed in scratch memory, from where the last step writes around the caches. */
static void stream_block(const struct math_kernels *kernels, const struct math_many *many, char *dst, size_t at,
                         size_t count)
{
	_Alignas(MATH_LINE) char sum[BLOCK_BYTES];
	const void *first = source_at(many, 0, at);

	if (many->source_count > 2) {
		fold_block(kernels, many, many->source_count - 1, sum, at, count);
		first = sum;
	}
	kernels->fold_stream[many->type][many->op](dst + at, first, source_at(many, many->source_count - 1, at), count);
}

/* Stores around the caches are ordered by this alone. */
static void stream_fence(void)
{
#if defined(__x86_64__)
	_mm_sfence();
#endif
}

void math_kernels_fold_many_streaming(const struct math_kernels *kernels, const struct math_many *many, void *dst,
                                      size_t count)
{
	size_t element_bytes = math_type_bytes(many->type), block;

	for (size_t done = 0; done < count; done += block) {
		size_t at = done * element_bytes;
		size_t into_line = ((uintptr_t)dst + at) % MATH_LINE;

		/* Blocks end where a line of dst does, so that only the first and the last have a part of one. */
		block = block_count(many, (BLOCK_BYTES - into_line) / element_bytes, count - done);
		stream_block(kernels, many, dst, at, block);
	}
	stream_fence();
}

/* ---- sums that are stored to many places ---- */

/* By folds and copies: what there is no kernel for, and what is less than a block of one. */
static void spread_block(const struct math_kernels *kernels, const struct math_spread *spread,
                         const struct math_finisher *finisher, size_t at, size_t count)
{
	_Alignas(MATH_LINE) char sum[BLOCK_BYTES];
	const struct math_many many = {spread->type, spread->op, spread->sources, spread->source_count};
	size_t bytes = count * math_type_bytes(spread->type);

	fold_block(kernels, &many, many.source_count, sum, at, count);
	if (finisher->run)
		finisher->run(sum, count, finisher->operand);
	for (size_t i = 0; i < spread->place_count; i++)
		memcpy((char *)spread->places[i] + at, sum, bytes);
	for (size_t i = 0; i < spread->far_count; i++)
		kernels->copy_stream((char *)spread->far[i] + at, sum, bytes);
}

void math_kernels_spread(const struct math_kernels *kernels, const struct math_spread *spread, size_t count)
{
	size_t element_bytes = math_type_bytes(spread->type), per_block = BLOCK_BYTES / element_bytes, done = 0, block;
	struct math_finisher finisher = {NULL, 0};
	bool is_sum = spread->op == ESP_SUM || math_finish_needed(spread->op);

	if (spread->finishes)
		finisher = math_kernels_finisher(kernels, spread->type, spread->op, spread->factor, spread->contributors);
	if (is_sum && kernels->spread[spread->type])
		done = kernels->spread[spread->type](spread, count, finisher.run, finisher.operand);
	for (; done < count; done += block) {
		block = count - done < per_block ? count - done : per_block;
		spread_block(kernels, spread, &finisher, done * element_bytes, block);
	}
}

void math_spread(const struct math_spread *spread, size_t count)
{
	assert(math_op_defined(spread->type, spread->op) && spread->source_count >= 2);
	math_kernels_spread(math_kernels_at(math_level_best()), spread, count);
}

void math_fold_many(enum esp_type type, enum esp_op op, void *dst, const void *const *sources, size_t source_count,
                    size_t count)
{
	const struct math_many many = {type, op, sources, source_count};

	assert(math_op_defined(type, op) && source_count >= 2);
	math_kernels_fold_many(math_kernels_at(math_level_best()), &many, dst, count);
}

void math_fold_many_streaming(enum esp_type type, enum esp_op op, void *dst, const void *const *sources,
                              size_t source_count, size_t count)
{
	const struct math_many many = {type, op, sources, source_count};

	assert(math_op_defined(type, op) && source_count >= 2);
	math_kernels_fold_many_streaming(math_kernels_at(math_level_best()), &many, dst, count);
}

void math_copy_unfenced(void *dst, const void *src, size_t bytes)
{
	math_kernels_at(math_level_best())->copy_stream(dst, src, bytes);
}

void math_fence(void)
{
	stream_fence();
}

void math_copy_streaming(void *dst, const void *src, size_t bytes)
{
	math_copy_unfenced(dst, src, bytes);
	math_fence();
}
