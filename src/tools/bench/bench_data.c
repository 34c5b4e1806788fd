#include "tools/bench/bench_data.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "tools/bench/bench_fixed.h"

#define PERIOD 509u     /* elements until the data repeats: a prime */
#define ELEMENT_MAX 8u  /* bytes */
#define SPOILED 0xa5
#define SUM_TERMS 32u   /* 32 terms of at most 3: a sum of 96 is exact in every type, even i8 */
#define PRODUCT_TERMS 6 /* 2^6 is exact, too */

/* The data of one rank, or of all of them combined, up to the element where it repeats. */
struct pattern {
	uint32_t element; /* bytes */
	uint8_t bytes[PERIOD * ELEMENT_MAX];
};

/* ---- shapes ---- */

bool bench_reduces(enum esp_collective collective)
{
	return collective == ESP_ALLREDUCE || collective == ESP_REDUCE_SCATTER || collective == ESP_REDUCE;
}

bool bench_has_root(enum esp_collective collective)
{
	return collective == ESP_BROADCAST || collective == ESP_REDUCE || collective == ESP_GATHER ||
	       collective == ESP_SCATTER;
}

bool bench_has_mode(enum esp_collective collective, enum bench_mode mode)
{
	if (collective == ESP_ALLTOALL || collective == ESP_BARRIER)
		return mode == BENCH_OUT_OF_PLACE;
	return collective != ESP_BROADCAST || mode == BENCH_IN_PLACE;
}

/* Number of blocks in a rank's input and output; 0: the buffer is not used. */
static uint32_t in_blocks(const struct bench_shape *shape)
{
	switch (shape->collective) {
	case ESP_REDUCE_SCATTER:
	case ESP_ALLTOALL:
		return shape->ranks;
	case ESP_SCATTER:
		return shape->rank == shape->root ? shape->ranks : 0;
	case ESP_BROADCAST:
		return shape->rank == shape->root;
	case ESP_BARRIER:
		return 0;
	default:
		return 1;
	}
}

static uint32_t out_blocks(const struct bench_shape *shape)
{
	switch (shape->collective) {
	case ESP_ALLGATHER:
	case ESP_ALLTOALL:
		return shape->ranks;
	case ESP_GATHER:
		return shape->rank == shape->root ? shape->ranks : 0;
	case ESP_REDUCE:
		return shape->rank == shape->root;
	case ESP_BARRIER:
		return 0;
	default:
		return 1;
	}
}

/* Number of blocks in the larger of the two buffers. */
static uint32_t most_blocks(enum esp_collective collective, uint32_t ranks)
{
	switch (collective) {
	case ESP_ALLREDUCE:
	case ESP_BROADCAST:
	case ESP_REDUCE:
		return 1;
	case ESP_BARRIER:
		return 0;
	default:
		return ranks;
	}
}

uint64_t bench_count(enum esp_collective collective, enum esp_type type, uint32_t ranks, uint64_t bytes)
{
	uint32_t blocks = most_blocks(collective, ranks);

	if (blocks == 0)
		return 0;
	uint64_t count = bytes / blocks / esp_type_bytes(type);
	return count ? count : 1;
}

uint64_t bench_bytes(const struct bench_shape *shape)
{
	return most_blocks(shape->collective, shape->ranks) * shape->count * esp_type_bytes(shape->type);
}

struct bench_place bench_place(const struct bench_shape *shape, enum bench_mode mode, void *first, void *second)
{
	char *mine = (char *)second + shape->rank * shape->count * esp_type_bytes(shape->type);

	if (mode == BENCH_OUT_OF_PLACE)
		return (struct bench_place){first, second};
	switch (shape->collective) {
	case ESP_ALLGATHER:
	case ESP_GATHER:
		return (struct bench_place){mine, second};
	case ESP_REDUCE_SCATTER:
	case ESP_SCATTER:
		return (struct bench_place){second, mine};
	default:
		return (struct bench_place){second, second};
	}
}

/* ---- numbers ---- */

static uint64_t random_bits(uint64_t seed, uint32_t rank, uint32_t index)
{
	uint64_t state = seed * UINT64_C(0xd1342543de82ef95) + ((uint64_t)rank << 32) + index;
	return rng_splitmix(&state);
}

/* Chooses at most `most` of the ranks for each element, and every rank for some elements. */
static bool is_chosen(uint32_t rank, uint32_t ranks, uint32_t index, uint32_t most)
{
	return (rank + index) % ((ranks + most - 1) / most) == 0;
}

/* A rank's term of a reduction: small, not negative, and such that results vary from element to element. */
static uint64_t term(const struct bench_shape *shape, uint64_t seed, uint32_t rank, uint32_t index)
{
	uint64_t bits = random_bits(seed, rank, index);
	bool rare = bits % (2 * (uint64_t)shape->ranks) == 0;
	uint64_t one_bit = UINT64_C(1) << (bits >> 32) % 7;

	switch (shape->op) {
	case ESP_PROD:
		return is_chosen(rank, shape->ranks, index, PRODUCT_TERMS) ? 1 + bits % 2 : 1;
	case ESP_MIN:
	case ESP_MAX:
		return bits % 97;
	case ESP_BAND:
		return rare ? 127 - one_bit : 127;
	case ESP_BOR:
		return rare ? one_bit : 0;
	case ESP_BXOR:
		return bits % 128;
	case ESP_LAND:
		return rare ? 0 : one_bit;
	case ESP_LOR:
		return rare ? one_bit : 0;
	case ESP_LXOR:
		return bits % 2 ? one_bit : 0;
	default:
		return is_chosen(rank, shape->ranks, index, SUM_TERMS) ? 1 + bits % 3 : 0;
	}
}

static uint64_t fold(enum esp_op op, uint64_t a, uint64_t b)
{
	switch (op) {
	case ESP_PROD:
		return a * b;
	case ESP_MIN:
		return a < b ? a : b;
	case ESP_MAX:
		return a > b ? a : b;
	case ESP_BAND:
		return a & b;
	case ESP_BOR:
		return a | b;
	case ESP_BXOR:
		return a ^ b;
	case ESP_LAND:
		return a && b;
	case ESP_LOR:
		return a || b;
	case ESP_LXOR:
		return !a != !b;
	default:
		return a + b;
	}
}

/* Rounded to nearest even, as f16 or bf16. */
static uint64_t encode_half(float value, int fraction_bits, int exponent_bits)
{
	if (value < 0)
		return UINT64_C(1) << 15 | encode_half(-value, fraction_bits, exponent_bits);
	int bias = (1 << (exponent_bits - 1)) - 1, exponent;

	if (value == 0)
		return 0;
	frexpf(value, &exponent);
	exponent = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
	/* The significand includes the hidden bit, which adds one to the exponent, except for subnormal numbers. */
	uint64_t significand = (uint64_t)rint(ldexp((double)value, fraction_bits - exponent));
	return ((uint64_t)(exponent + bias - 1) << fraction_bits) + significand;
}

static bool is_float(enum esp_type type)
{
	return type == ESP_F32 || type == ESP_F64 || type == ESP_F16 || type == ESP_BF16;
}

static uint64_t encode(enum esp_type type, double value)
{
	uint64_t bits = 0;
	float single = (float)value;

	if (type == ESP_F64)
		memcpy(&bits, &value, sizeof(value));
	else if (type == ESP_F32)
		memcpy(&bits, &single, sizeof(single));
	else if (type == ESP_F16)
		bits = encode_half(single, 10, 5);
	else if (type == ESP_BF16)
		bits = encode_half(single, 7, 8);
	else
		bits = (uint64_t)value;
	return bits;
}

/* The last step of a reduction, done once. f32, f16 and bf16 divide as floats. */
static uint64_t finish(const struct bench_shape *shape, uint64_t result)
{
	double value = (double)result;

	assert(shape->ranks > 0);
	if (shape->op == ESP_SCALED)
		return encode(shape->type, value * BENCH_SCALE);
	if (shape->op != ESP_AVG)
		return encode(shape->type, value);
	if (!is_float(shape->type))
		return result / shape->ranks;
	return encode(shape->type, shape->type == ESP_F64 ? value / shape->ranks : (float)value / (float)shape->ranks);
}

/* ---- patterns ---- */

/* All supported machines are little-endian: the low bytes come first. */
static void pattern_set(struct pattern *pattern, uint32_t index, uint64_t bits)
{
	memcpy(pattern->bytes + index * pattern->element, &bits, pattern->element);
}

static void pattern_of_rank(const struct bench_shape *shape, uint64_t seed, uint32_t rank, struct pattern *out)
{
	out->element = (uint32_t)esp_type_bytes(shape->type);
	for (uint32_t i = 0; i < PERIOD; i++) {
		if (bench_is_fixed(shape))
			pattern_set(out, i, encode(shape->type, bench_fixed_term(shape->type, random_bits(seed, rank, i))));
		else if (bench_reduces(shape->collective))
			pattern_set(out, i, encode(shape->type, (double)term(shape, seed, rank, i)));
		else
			pattern_set(out, i, random_bits(seed, rank, i));
	}
}

static void pattern_of_all(const struct bench_shape *shape, uint64_t seed, struct pattern *out)
{
	out->element = (uint32_t)esp_type_bytes(shape->type);
	for (uint32_t i = 0; i < PERIOD; i++) {
		uint64_t result = term(shape, seed, 0, i);
		for (uint32_t rank = 1; rank < shape->ranks; rank++)
			result = fold(shape->op, result, term(shape, seed, rank, i));
		pattern_set(out, i, finish(shape, result));
	}
}

/* The number of elements from `first` on until the pattern repeats or `count` is reached. */
static uint64_t run_length(uint64_t first, uint64_t count)
{
	uint64_t run = PERIOD - first % PERIOD;
	return run < count ? run : count;
}

static const uint8_t *pattern_at(const struct pattern *pattern, uint64_t first)
{
	return pattern->bytes + first % PERIOD * pattern->element;
}

static void write_data(const struct pattern *pattern, uint64_t first, uint64_t count, uint8_t *data)
{
	for (uint64_t run; count > 0; count -= run, first += run) {
		run = run_length(first, count);
		memcpy(data, pattern_at(pattern, first), run * pattern->element);
		data += run * pattern->element;
	}
}

static uint64_t count_wrong(const struct pattern *pattern, uint64_t first, uint64_t count, const uint8_t *data)
{
	uint64_t wrong = 0;
	uint32_t element = pattern->element;

	for (uint64_t run; count > 0; count -= run, first += run) {
		run = run_length(first, count);
		const uint8_t *wanted = pattern_at(pattern, first);
		if (memcmp(data, wanted, run * element) != 0) {
			for (uint64_t i = 0; i < run; i++)
				wrong += memcmp(data + i * element, wanted + i * element, element) != 0;
		}
		data += run * element;
	}
	return wrong;
}

/* The exact results, up to the element where they repeat. */
static void exact_of_all(const struct bench_shape *shape, uint64_t seed, double out[PERIOD])
{
	for (uint32_t i = 0; i < PERIOD; i++) {
		out[i] = 0;
		for (uint32_t rank = 0; rank < shape->ranks; rank++)
			out[i] += bench_fixed_term(shape->type, random_bits(seed, rank, i));
		out[i] /= shape->op == ESP_AVG ? shape->ranks : 1;
	}
}

static uint64_t count_beyond_bound(const struct bench_shape *shape, uint64_t seed, const uint8_t *data)
{
	double exact[PERIOD], tolerance[PERIOD];
	size_t element = esp_type_bytes(shape->type);
	uint64_t wrong = 0;

	exact_of_all(shape, seed, exact);
	for (uint32_t i = 0; i < PERIOD; i++)
		tolerance[i] = bench_fixed_tolerance(shape, exact[i]);
	for (uint64_t i = 0; i < shape->count; i++) {
		double error = fabs(bench_fixed_read(shape->type, data + i * element) - exact[i % PERIOD]);
		wrong += !(error <= tolerance[i % PERIOD]); /* a NaN is wrong */
	}
	return wrong;
}

/* ---- buffers ---- */

void bench_fill(const struct bench_shape *shape, uint64_t seed, struct bench_place place)
{
	bool one_of_many = shape->collective == ESP_ALLGATHER || shape->collective == ESP_GATHER;
	uint64_t block_bytes = shape->count * esp_type_bytes(shape->type);
	struct pattern pattern;

	assert(shape->rank < shape->ranks);
	if (out_blocks(shape) > 0)
		memset(place.out, SPOILED, out_blocks(shape) * block_bytes);
	if (in_blocks(shape) == 0)
		return;
	pattern_of_rank(shape, seed, shape->rank, &pattern);
	write_data(&pattern, one_of_many ? shape->rank * shape->count : 0, in_blocks(shape) * shape->count, place.in);
}

/* The expected content of block `block` of the result: *out, from its element *out_first on. */
static void expect(const struct bench_shape *shape, uint64_t seed, uint32_t block, struct pattern *out,
                   uint64_t *out_first)
{
	uint64_t mine = shape->rank * shape->count;

	switch (shape->collective) {
	case ESP_ALLGATHER:
	case ESP_GATHER:
		*out_first = block * shape->count;
		pattern_of_rank(shape, seed, block, out);
		break;
	case ESP_ALLTOALL:
		*out_first = mine;
		pattern_of_rank(shape, seed, block, out);
		break;
	case ESP_BROADCAST:
	case ESP_SCATTER:
		*out_first = shape->collective == ESP_SCATTER ? mine : 0;
		pattern_of_rank(shape, seed, shape->root, out);
		break;
	default:
		*out_first = shape->collective == ESP_REDUCE_SCATTER ? mine : 0;
		pattern_of_all(shape, seed, out);
		break;
	}
}

uint64_t bench_wrong(const struct bench_shape *shape, uint64_t seed, struct bench_place place)
{
	uint64_t block_bytes = shape->count * esp_type_bytes(shape->type), wrong = 0;
	const uint8_t *out = place.out;
	struct pattern pattern;

	assert(shape->rank < shape->ranks);
	if (bench_is_fixed(shape))
		return count_beyond_bound(shape, seed, out);
	for (uint32_t block = 0; block < out_blocks(shape); block++) {
		uint64_t first = 0;
		expect(shape, seed, block, &pattern, &first);
		wrong += count_wrong(&pattern, first, shape->count, out + block * block_bytes);
	}
	return wrong;
}
