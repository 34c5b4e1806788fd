#include "tools/bench/bench_data.h"

#include "base/check.h"
#include "math/fixed.h"
#include "math/math.h"
#include "tools/bench/bench_fixed.h"

/* Every collective, computed here on the buffers of all ranks, on the data of bench_fill(). */

#define RANKS_MAX 70
#define COUNT_MAX 1200
#define AREA ((size_t)RANKS_MAX * COUNT_MAX * 8)

static uint8_t *areas[RANKS_MAX][2];
static uint8_t *whole; /* a whole result, before it is distributed */
static struct bench_place places[RANKS_MAX];

struct scene {
	struct bench_shape shape; /* of rank 0; the shapes of other ranks differ in the rank only */
	enum bench_mode mode;
	uint64_t seed;
	bool backwards; /* the order of addition */
};

static struct bench_shape shape_of(const struct scene *scene, uint32_t rank)
{
	struct bench_shape shape = scene->shape;
	shape.rank = rank;
	return shape;
}

static size_t block_bytes(const struct scene *scene)
{
	return scene->shape.count * esp_type_bytes(scene->shape.type);
}

static void fill(const struct scene *scene)
{
	for (uint32_t rank = 0; rank < scene->shape.ranks; rank++) {
		struct bench_shape shape = shape_of(scene, rank);
		places[rank] = bench_place(&shape, scene->mode, areas[rank][0], areas[rank][1]);
		bench_fill(&shape, scene->seed, places[rank]);
	}
}

/* whole = the combination of `blocks` blocks of all ranks except `without`, if that is a rank. */
static void combine(const struct scene *scene, uint32_t blocks, uint32_t without)
{
	const struct bench_shape *shape = &scene->shape;
	uint64_t count = blocks * shape->count;
	bool first = true;

	for (uint32_t i = 0; i < shape->ranks; i++) {
		uint32_t rank = scene->backwards ? shape->ranks - 1 - i : i;
		if (rank == without)
			continue;
		if (first)
			memcpy(whole, places[rank].in, count * esp_type_bytes(shape->type));
		else
			CHECK(esp_reduce_local(whole, whole, places[rank].in, count, shape->type, shape->op) == ESP_OK);
		first = false;
	}
	math_finish(whole, count, shape->type, shape->op, BENCH_SCALE, shape->ranks);
}

static void collect(const struct scene *scene)
{
	for (uint32_t rank = 0; rank < scene->shape.ranks; rank++)
		memcpy(whole + rank * block_bytes(scene), places[rank].in, block_bytes(scene));
}

static void hand_out(const struct scene *scene, uint32_t rank, uint32_t first_block, uint32_t blocks)
{
	memcpy(places[rank].out, whole + first_block * block_bytes(scene), blocks * block_bytes(scene));
}

static void exchange(const struct scene *scene)
{
	uint32_t ranks = scene->shape.ranks;
	size_t bytes = block_bytes(scene);

	for (uint32_t from = 0; from < ranks; from++)
		for (uint32_t to = 0; to < ranks; to++)
			memcpy((uint8_t *)places[to].out + from * bytes, (uint8_t *)places[from].in + to * bytes, bytes);
}

static void perform(const struct scene *scene, uint32_t without)
{
	uint32_t ranks = scene->shape.ranks, root = scene->shape.root;

	switch (scene->shape.collective) {
	case ESP_ALLREDUCE:
	case ESP_REDUCE:
		combine(scene, 1, without);
		for (uint32_t rank = 0; rank < ranks; rank++)
			if (scene->shape.collective == ESP_ALLREDUCE || rank == root)
				hand_out(scene, rank, 0, 1);
		break;
	case ESP_REDUCE_SCATTER:
		combine(scene, ranks, without);
		for (uint32_t rank = 0; rank < ranks; rank++)
			hand_out(scene, rank, rank, 1);
		break;
	case ESP_ALLGATHER:
	case ESP_GATHER:
		collect(scene);
		for (uint32_t rank = 0; rank < ranks; rank++)
			if (scene->shape.collective == ESP_ALLGATHER || rank == root)
				hand_out(scene, rank, 0, ranks);
		break;
	case ESP_BROADCAST:
		memcpy(whole, places[root].out, block_bytes(scene));
		for (uint32_t rank = 0; rank < ranks; rank++)
			hand_out(scene, rank, 0, 1);
		break;
	case ESP_SCATTER:
		memcpy(whole, places[root].in, ranks * block_bytes(scene));
		for (uint32_t rank = 0; rank < ranks; rank++)
			hand_out(scene, rank, rank, 1);
		break;
	case ESP_ALLTOALL:
		exchange(scene);
		break;
	case ESP_BARRIER:
		break;
	}
}

static uint64_t wrong_of(const struct scene *scene, uint32_t rank)
{
	struct bench_shape shape = shape_of(scene, rank);
	return bench_wrong(&shape, scene->seed, places[rank]);
}

static uint64_t wrong(const struct scene *scene)
{
	uint64_t total = 0;
	for (uint32_t rank = 0; rank < scene->shape.ranks; rank++)
		total += wrong_of(scene, rank);
	return total;
}

static const char *describe(const struct scene *scene)
{
	static char text[128];
	const struct bench_shape *shape = &scene->shape;
	snprintf(text, sizeof(text), "%s %s %s, %u ranks, root %u, count %" PRIu64 ", mode %d",
	         esp_collective_name(shape->collective), esp_op_name(shape->op), esp_type_name(shape->type), shape->ranks,
	         shape->root, shape->count, (int)scene->mode);
	return text;
}

static void try_scene(const struct scene *scene)
{
	uint32_t ranks = scene->shape.ranks;

	fill(scene);
	if (scene->shape.collective == ESP_BARRIER) {
		CHECK_U64(wrong(scene), 0);
		return;
	}
	/* Before the call, the output may not look right, except where the input is the output. */
	if (ranks > 1 && scene->shape.count > 1 && !bench_reduces(scene->shape.collective))
		CHECK_MSG(wrong(scene) > 0, "unnoticed: nothing done; %s", describe(scene));
	perform(scene, UINT32_MAX);
	CHECK_MSG(wrong(scene) == 0, "%" PRIu64 " wrong: %s", wrong(scene), describe(scene));
	uint8_t *last = (uint8_t *)places[scene->shape.root].out + block_bytes(scene) - 1;
	*last ^= 1;
	CHECK_MSG(wrong_of(scene, scene->shape.root) == 1, "unnoticed: a flipped bit; %s", describe(scene));
	*last ^= 1;
}

static const uint32_t rank_counts[] = {1, 2, 3, 7};
static const uint64_t counts[] = {1, 2, 508, 1200};

static void try_size(struct scene *scene, uint32_t ranks, uint64_t count)
{
	bool barrier = scene->shape.collective == ESP_BARRIER;

	scene->shape.ranks = ranks;
	scene->shape.count = barrier ? 0 : count;
	scene->shape.root = bench_has_root(scene->shape.collective) ? ranks - 1 : 0;
	scene->backwards = !scene->backwards;
	scene->seed++;
	try_scene(scene);
}

static void try_sizes(struct scene *scene)
{
	for (size_t r = 0; r < sizeof(rank_counts) / sizeof(rank_counts[0]); r++)
		for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
			try_size(scene, rank_counts[r], counts[c]);
}

static void test_reductions(void)
{
	static const enum esp_collective collectives[] = {ESP_ALLREDUCE, ESP_REDUCE_SCATTER, ESP_REDUCE};

	for (int type = 0; type < ESP_TYPE_COUNT; type++) {
		for (int op = 0; op < ESP_OP_COUNT; op++) {
			if (!math_op_defined((enum esp_type)type, (enum esp_op)op))
				continue;
			struct scene scene = {.shape = {.type = (enum esp_type)type, .op = (enum esp_op)op}};
			scene.shape.collective = collectives[(type + op) % 3];
			scene.mode = (enum bench_mode)((type + op) % 2);
			try_sizes(&scene);
		}
	}
}

static void test_collectives(void)
{
	static const enum esp_type types[] = {ESP_F32, ESP_BYTES, ESP_U16};

	for (int collective = 0; collective <= ESP_BARRIER; collective++) {
		for (int mode = 0; mode < BENCH_MODE_COUNT; mode++) {
			for (size_t t = 0; t < 3; t++) {
				struct scene scene = {.shape = {.collective = (enum esp_collective)collective, .type = types[t]}};
				scene.mode = (enum bench_mode)mode;
				if (bench_reduces(scene.shape.collective) && types[t] == ESP_BYTES)
					continue;
				if (bench_has_mode(scene.shape.collective, scene.mode))
					try_sizes(&scene);
			}
		}
	}
}

/* So many ranks that some give zero to a sum. */
static void test_many_ranks(void)
{
	static const enum esp_type types[] = {ESP_I8, ESP_BF16, ESP_F16, ESP_F32};

	for (size_t t = 0; t < 4; t++) {
		for (int op = ESP_SUM; op <= ESP_PROD; op++) {
			struct scene scene = {.shape = {.collective = ESP_REDUCE, .type = types[t], .op = (enum esp_op)op}};
			try_size(&scene, RANKS_MAX, 600);
			try_size(&scene, RANKS_MAX - 1, 600);
		}
	}
	struct scene scene = {.shape = {.collective = ESP_ALLTOALL, .type = ESP_U32}};
	try_size(&scene, RANKS_MAX, 5);
}

/* A sum that lacks a rank is detected, for each rank and every operation, within one period of the pattern. */
static void test_missing_rank(void)
{
	for (uint32_t without = 0; without < 7; without++) {
		for (int op = 0; op < ESP_OP_COUNT; op++) {
			struct scene scene = {.shape = {.type = ESP_I32, .op = (enum esp_op)op, .ranks = 7, .count = 600}};
			fill(&scene);
			perform(&scene, without);
			CHECK_MSG(wrong(&scene) > 0, "unnoticed: rank %u is missing; %s", without, describe(&scene));
		}
	}
}

static void test_wrong_block(void)
{
	struct scene scene = {.shape = {.collective = ESP_ALLGATHER, .type = ESP_F16, .ranks = 3, .count = 64}};

	fill(&scene);
	perform(&scene, UINT32_MAX);
	memcpy(places[1].out, (uint8_t *)places[1].out + block_bytes(&scene), block_bytes(&scene));
	CHECK(wrong_of(&scene, 1) >= 60 && wrong_of(&scene, 1) <= 64 && wrong_of(&scene, 0) == 0);
	scene.seed++; /* the result of an earlier call counts as wrong */
	CHECK(wrong_of(&scene, 0) > 150);
}

/* The sum in fixed point of all ranks' data, as the library makes it. */
static void perform_fixed(const struct scene *scene)
{
	const struct bench_shape *shape = &scene->shape;
	struct fixed fixed = {shape->numerics == ESP_NUMERICS_FIXED16 ? FIXED_16 : FIXED_32, shape->type, shape->ranks};
	uint8_t exponents[COUNT_MAX / FIXED_BLOCK + 1] = {0}, own[sizeof(exponents)];
	static uint32_t sum[COUNT_MAX], words[COUNT_MAX];

	memset(sum, 0, sizeof(sum));
	for (uint32_t rank = 0; rank < shape->ranks; rank++) {
		fixed_exponents(shape->type, places[rank].in, shape->count, own);
		for (size_t i = 0; i < fixed_blocks(shape->count); i++)
			exponents[i] = own[i] > exponents[i] ? own[i] : exponents[i];
	}
	for (uint32_t rank = 0; rank < shape->ranks; rank++) {
		fixed_quantize(&fixed, places[rank].in, shape->count, exponents, words);
		for (size_t i = 0; i < fixed_bytes(&fixed, shape->count) / 4; i++)
			sum[i] += words[i];
	}
	for (uint32_t rank = 0; rank < shape->ranks; rank++)
		fixed_dequantize(&fixed, sum, shape->count, exponents, shape->op == ESP_AVG ? shape->ranks : 1,
		                 places[rank].out);
}

/* Results in fixed point lie within the bound; one that does not is found. */
static void test_fixed(void)
{
	static const enum esp_type types[] = {ESP_F32, ESP_F16, ESP_BF16};

	for (int way = 0; way < 12; way++) {
		for (uint32_t ranks = 2; ranks <= 32; ranks *= 2) {
			struct scene scene = {.shape = {.type = types[way % 3], .ranks = ranks, .count = 1100},
			                      .mode = way % 2 ? BENCH_IN_PLACE : BENCH_OUT_OF_PLACE,
			                      .seed = (uint64_t)way};
			size_t element = esp_type_bytes(scene.shape.type);

			scene.shape.op = way / 3 % 2 ? ESP_AVG : ESP_SUM;
			scene.shape.numerics = way / 6 ? ESP_NUMERICS_FIXED16 : ESP_NUMERICS_FIXED;
			CHECK(bench_is_fixed(&scene.shape));
			fill(&scene);
			perform_fixed(&scene);
			CHECK_MSG(wrong(&scene) == 0, "%u ranks, way %d: some are wrong", ranks, way);
			memset((uint8_t *)places[1].out + 700 * element, 0x7f, element);
			CHECK(wrong_of(&scene, 1) == 1);
			scene.seed++;
			CHECK(wrong_of(&scene, 0) > 900);
		}
	}
}

static void test_sizes(void)
{
	struct bench_shape shape = {.collective = ESP_ALLREDUCE, .type = ESP_F64, .ranks = 3, .count = 5};

	CHECK_U64(bench_bytes(&shape), 40);
	shape.collective = ESP_SCATTER;
	CHECK_U64(bench_bytes(&shape), 120);
	CHECK_U64(bench_count(ESP_ALLREDUCE, ESP_F32, 4, 1024), 256);
	CHECK_U64(bench_count(ESP_ALLREDUCE, ESP_F32, 4, 3), 1);
	CHECK_U64(bench_count(ESP_ALLGATHER, ESP_F32, 4, 1024), 64);
	CHECK_U64(bench_count(ESP_ALLTOALL, ESP_F32, 4, 4), 1);
	CHECK_U64(bench_count(ESP_BROADCAST, ESP_BYTES, 4, 4), 4);
	CHECK_U64(bench_count(ESP_BARRIER, ESP_F32, 4, 1024), 0);
}

int main(void)
{
	for (uint32_t rank = 0; rank < RANKS_MAX; rank++)
		for (int i = 0; i < 2; i++)
			CHECK(areas[rank][i] = malloc(AREA));
	CHECK(whole = malloc(AREA));
	test_sizes();
	test_reductions();
	test_collectives();
	test_many_ranks();
	test_missing_rank();
	test_wrong_block();
	test_fixed();
	for (uint32_t rank = 0; rank < RANKS_MAX; rank++)
		for (int i = 0; i < 2; i++)
			free(areas[rank][i]);
	free(whole);
	return 0;
}
