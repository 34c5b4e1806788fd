/*
 * Quantizing, sums and back, at every level, against arithmetic in doubles and wide integers: what fixed.h says of
 * single values, of sums of 1 to 1,024 workers, of exponents that do not fit, and of NaN and infinity.
 */
#include "math/fixed.h"

#include <math.h>

#include "base/check.h"
#include "math/fpenv.h"
#include "math/kernels.h"
#include "support/math_reference.h"

#define COUNT 700u /* two blocks and a part of one */
#define BLOCKS 3u
#define GUARD 64u
#define NOT_DEFAULT_MODE 0xff40u /* flush denormals, round towards zero, where the machine is x86 */

static const enum esp_type types[] = {ESP_F32, ESP_F16, ESP_BF16};
static const uint32_t crowds[] = {1, 2, 3, 4, 7, 8, 16, 31, 32, 33, 64, 100, 128, 129, 256, 512, 1000, 1024};
#define CROWDS (sizeof(crowds) / sizeof(crowds[0]))

/* ---- the reference: one value ---- */

static int ref_log2_up(uint32_t workers)
{
	int bits = 0;
	while ((UINT64_C(1) << bits) < workers)
		bits++;
	return bits;
}

static int ref_field(const struct fixed *fixed)
{
	return (fixed->form == FIXED_32 ? 31 : 15) - ref_log2_up(fixed->workers);
}

/* The largest whole number below 2^field that a float holds. */
static double ref_bound(const struct fixed *fixed)
{
	int field = ref_field(fixed);
	return field > 24 ? ldexp(1, field) - ldexp(1, field - 24) : ldexp(1, field) - 1;
}

static int64_t ref_quantize(const struct fixed *fixed, double value, uint8_t exponent)
{
	double scaled = nearbyint(ldexp(value, ref_field(fixed) - (exponent - 126))), bound = ref_bound(fixed);
	return (int64_t)(isnan(scaled) || fabs(scaled) > bound ? copysign(bound, value) : scaled);
}

static uint64_t ref_dequantize(const struct fixed *fixed, int64_t sum, uint8_t exponent, uint32_t divisor)
{
	float quotient = (float)sum / (float)divisor;
	float value = (float)ldexp(quotient, exponent - 126 - ref_field(fixed));
	return fixed->type == ESP_F32 ? ref_encode(ESP_F32, value) : ref_round_half(fixed->type, value);
}

/* ---- one set of buffers ---- */

struct room {
	struct fixed fixed;
	size_t count;
	uint8_t exponents[BLOCKS];
	char data[COUNT * 4 + GUARD], numbers[COUNT * 4 + GUARD], back[COUNT * 4 + GUARD];
};

static size_t data_bytes(const struct room *room)
{
	return room->count * math_type_bytes(room->fixed.type);
}

static double value_at(const struct room *room, size_t i)
{
	size_t bytes = math_type_bytes(room->fixed.type);
	return ref_decode(room->fixed.type, ref_load(room->fixed.type, room->data + i * bytes));
}

static int64_t number_at(const struct room *room, size_t i)
{
	int32_t whole;
	uint16_t half;

	if (room->fixed.form == FIXED_32) {
		memcpy(&whole, room->numbers + i * 4, 4);
		return whole;
	}
	memcpy(&half, room->numbers + i * 2, 2);
	return (int64_t)half - (INT64_C(1) << ref_field(&room->fixed));
}

/* Finite values over a range of exponents that begins anywhere; now and then zeros and the largest of all. */
static void draw_data(struct room *room, struct rng *rng)
{
	size_t bytes = math_type_bytes(room->fixed.type);
	int base = (int)rng_below(rng, 270) - 150, spread = 1 + (int)rng_below(rng, 40);

	for (size_t i = 0; i < room->count; i++) {
		double value = ldexp(rng_unit(rng) * 2 - 1, base + (int)rng_below(rng, (uint64_t)spread));
		uint64_t bits = ref_encode(room->fixed.type, rng_chance(rng, 1, 16) ? 0 : value);
		if ((bits & ~ref_sign(room->fixed.type)) >= ref_infinity(room->fixed.type))
			bits = ref_infinity(room->fixed.type) - 1;
		memcpy(room->data + i * bytes, &bits, bytes);
	}
}

static void draw_room(struct room *room, struct rng *rng)
{
	room->fixed.type = types[rng_below(rng, 3)];
	room->fixed.form = rng_chance(rng, 1, 2) ? FIXED_32 : FIXED_16;
	do
		room->fixed.workers = crowds[rng_below(rng, CROWDS)];
	while (!fixed_valid(&room->fixed));
	room->count = rng_chance(rng, 1, 4) ? COUNT : rng_below(rng, COUNT + 1);
	memset(room->numbers, 0x5a, sizeof(room->numbers));
	memset(room->back, 0x5a, sizeof(room->back));
	draw_data(room, rng);
}

static void check_guard(const char *at, const char *end)
{
	for (; at < end; at++)
		CHECK(*at == 0x5a);
}

/* ---- single values ---- */

static void check_exponents(const struct room *room)
{
	for (size_t block = 0; block < fixed_blocks(room->count); block++) {
		double most = 0;
		for (size_t i = block * FIXED_BLOCK; i < room->count && i < (block + 1) * FIXED_BLOCK; i++)
			most = fmax(most, fabs(value_at(room, i)));
		/* The least exponent whose power of two is above all values; 0 stands for all that are denormal. */
		int exponent = most < 0x1p-126 ? 0 : ilogb(most) + 127;
		CHECK_U64(room->exponents[block], exponent);
		CHECK(most < ldexp(1, room->exponents[block] - 126));
	}
}

static void check_numbers(const struct room *room)
{
	for (size_t i = 0; i < room->count; i++) {
		int64_t expected = ref_quantize(&room->fixed, value_at(room, i), room->exponents[i / FIXED_BLOCK]);
		CHECK_MSG(number_at(room, i) == expected, "%s, %u workers, exponent %u: %a is %" PRId64 ", not %" PRId64,
		          math_type_name(room->fixed.type), room->fixed.workers, room->exponents[i / FIXED_BLOCK],
		          value_at(room, i), number_at(room, i), expected);
	}
	if (room->fixed.form == FIXED_16 && room->count % 2 != 0)
		CHECK(number_at(room, room->count) == 0);
	check_guard(room->numbers + fixed_bytes(&room->fixed, room->count), room->numbers + sizeof(room->numbers));
}

/* All workers have contributed this, as far as 16-bit fields say: their sum has `workers` biases. */
static void make_sums(struct room *room)
{
	if (room->fixed.form == FIXED_32)
		return;
	for (size_t i = 0; i < room->count; i++) {
		uint16_t sum = (uint16_t)(number_at(room, i) + ((int64_t)room->fixed.workers << ref_field(&room->fixed)));
		memcpy(room->numbers + i * 2, &sum, 2);
	}
}

static int64_t sum_at(const struct room *room, size_t i)
{
	int64_t above = ((int64_t)room->fixed.workers - 1) << ref_field(&room->fixed);
	return number_at(room, i) - (room->fixed.form == FIXED_32 ? 0 : above);
}

static void check_back(const struct room *room, uint32_t divisor)
{
	size_t bytes = math_type_bytes(room->fixed.type);

	for (size_t i = 0; i < room->count; i++) {
		uint64_t want = ref_dequantize(&room->fixed, sum_at(room, i), room->exponents[i / FIXED_BLOCK], divisor);
		CHECK_MSG(ref_load(room->fixed.type, room->back + i * bytes) == want, "%s, sum %" PRId64 " / %u, exponent %u",
		          math_type_name(room->fixed.type), sum_at(room, i), divisor, room->exponents[i / FIXED_BLOCK]);
	}
	check_guard(room->back + data_bytes(room), room->back + sizeof(room->back));
}

static void run_level(struct room *room, enum math_level level, uint32_t divisor)
{
	const struct math_kernels *kernels = math_kernels_at(level);
	uint32_t host = fpenv_read();

#if defined(__x86_64__)
	fpenv_write(NOT_DEFAULT_MODE);
#endif
	uint32_t mode = fpenv_read();
	math_kernels_quantize(kernels, &room->fixed, room->data, room->count, room->exponents, room->numbers);
	CHECK_U64(fpenv_read() & ~FPENV_STICKY, mode & ~FPENV_STICKY);
	fpenv_write(host);
	check_numbers(room);
	make_sums(room);
#if defined(__x86_64__)
	fpenv_write(NOT_DEFAULT_MODE);
#endif
	math_kernels_dequantize(kernels, &room->fixed, room->numbers, room->count, room->exponents, divisor, room->back);
	fpenv_write(host);
	check_back(room, divisor);
}

static void test_values(struct rng *rng)
{
	struct room room;

	for (int round = 0; round < 600; round++) {
		draw_room(&room, rng);
		for (int level = 0; level < MATH_LEVEL_COUNT; level++) {
			if (!math_kernels_at((enum math_level)level))
				continue;
			memset(room.numbers, 0x5a, sizeof(room.numbers));
			math_kernels_exponents(math_kernels_at((enum math_level)level), room.fixed.type, room.data, room.count,
			                       room.exponents);
			check_exponents(&room);
			CHECK(fixed_finite(room.exponents, fixed_blocks(room.count)));
			run_level(&room, (enum math_level)level, round % 2 ? 1 : room.fixed.workers);
		}
	}
}

/* Exponents from nowhere, and patterns of all classes, NaN and infinity among them: numbers stay within the clamp. */
static void test_any_exponent(struct rng *rng)
{
	struct room room;

	for (int round = 0; round < 300; round++) {
		draw_room(&room, rng);
		ref_fill(room.fixed.type, room.data, room.count, rng);
		for (size_t i = 0; i < BLOCKS; i++)
			room.exponents[i] = (uint8_t)rng_next(rng);
		for (int level = 0; level < MATH_LEVEL_COUNT; level++)
			if (math_kernels_at((enum math_level)level)) {
				memset(room.numbers, 0x5a, sizeof(room.numbers));
				math_kernels_quantize(math_kernels_at((enum math_level)level), &room.fixed, room.data, room.count,
				                      room.exponents, room.numbers);
				check_numbers(&room);
			}
	}
}

static void test_not_finite(struct rng *rng)
{
	struct room room;

	for (int round = 0; round < 200; round++) {
		draw_room(&room, rng);
		if (room.count == 0)
			continue;
		size_t at = rng_below(rng, room.count), bytes = math_type_bytes(room.fixed.type);
		uint64_t bits = ref_infinity(room.fixed.type) | (rng_chance(rng, 1, 2) ? rng_below(rng, 64) : 0);
		bits |= rng_chance(rng, 1, 2) ? ref_sign(room.fixed.type) : 0;
		memcpy(room.data + at * bytes, &bits, bytes);
		fixed_exponents(room.fixed.type, room.data, room.count, room.exponents);
		for (size_t block = 0; block < fixed_blocks(room.count); block++)
			CHECK((room.exponents[block] == FIXED_NOT_FINITE) == (block == at / FIXED_BLOCK));
		CHECK(!fixed_finite(room.exponents, fixed_blocks(room.count)));
		CHECK(fixed_finite(room.exponents, at / FIXED_BLOCK));
	}
}

/* ---- sums ---- */

struct crowd {
	struct room room;
	uint8_t agreed[BLOCKS];
	double exact[COUNT];        /* of what was drawn */
	int64_t sums[COUNT];        /* of numbers: expected of the integers */
	uint32_t words[COUNT];      /* added word by word, as any plan adds them */
	uint32_t least_magnitude;   /* values are at least half of the largest power: the clamp is reached */
};

/* Each worker's data follow from its own seed, so that two passes see the same. */
static void draw_worker(struct crowd *crowd, uint64_t seed, uint32_t worker)
{
	struct rng rng;

	rng_init(&rng, seed * 4099 + worker);
	draw_data(&crowd->room, &rng);
	if (crowd->least_magnitude)
		for (size_t i = 0; i < crowd->room.count; i++) {
			uint64_t most = ref_infinity(crowd->room.fixed.type) - 1;
			size_t bytes = math_type_bytes(crowd->room.fixed.type);
			memcpy(crowd->room.data + i * bytes, &most, bytes);
		}
}

/* Scale agreement as ranks do it: the largest of each byte. */
static void agree(struct crowd *crowd, uint64_t seed)
{
	memset(crowd->agreed, 0, sizeof(crowd->agreed));
	for (uint32_t worker = 0; worker < crowd->room.fixed.workers; worker++) {
		draw_worker(crowd, seed, worker);
		fixed_exponents(crowd->room.fixed.type, crowd->room.data, crowd->room.count, crowd->room.exponents);
		math_fold(ESP_U8, ESP_MAX)(crowd->agreed, crowd->agreed, crowd->room.exponents,
		                           fixed_blocks(crowd->room.count));
	}
}

static void add_worker(struct crowd *crowd)
{
	struct room *room = &crowd->room;
	size_t words = fixed_bytes(&room->fixed, room->count) / 4;

	fixed_quantize(&room->fixed, room->data, room->count, crowd->agreed, room->numbers);
	for (size_t i = 0; i < room->count; i++) {
		crowd->exact[i] += value_at(room, i);
		crowd->sums[i] += number_at(room, i);
	}
	math_fold(ESP_U32, ESP_SUM)(crowd->words, crowd->words, room->numbers, words);
}

/* No field has overflowed into its neighbour or its sign: the words hold the sums. */
static void check_sums(struct crowd *crowd)
{
	struct room *room = &crowd->room;

	memcpy(room->numbers, crowd->words, fixed_bytes(&room->fixed, room->count));
	for (size_t i = 0; i < room->count; i++)
		CHECK_MSG(sum_at(room, i) == crowd->sums[i], "%u workers: field holds %" PRId64 ", the sum is %" PRId64,
		          room->fixed.workers, sum_at(room, i), crowd->sums[i]);
}

static void check_error(struct crowd *crowd)
{
	struct room *room = &crowd->room;
	size_t bytes = math_type_bytes(room->fixed.type);
	/* of the type's own rounding, with room for a second one */
	double last = ldexp(1, -ref_fraction_bits(room->fixed.type));

	fixed_dequantize(&room->fixed, room->numbers, room->count, crowd->agreed, 1, room->back);
	for (size_t i = 0; i < room->count; i++) {
		double got = ref_decode(room->fixed.type, ref_load(room->fixed.type, room->back + i * bytes));
		double bound = fixed_error(&room->fixed, crowd->agreed[i / FIXED_BLOCK]);
		double rounding = last * (fabs(crowd->exact[i]) + bound) + ldexp(1, room->fixed.type == ESP_F16 ? -24 : -133);
		double most = room->fixed.type == ESP_F16 ? 65504 : 0x1.fep127;
		if (fabs(crowd->exact[i]) + bound < most)
			CHECK_MSG(fabs(got - crowd->exact[i]) <= bound + rounding, "%s, %u workers: %a for %a, bound %a",
			          math_type_name(room->fixed.type), room->fixed.workers, got, crowd->exact[i], bound);
	}
}

static void test_crowd(struct crowd *crowd, uint64_t seed)
{
	agree(crowd, seed);
	memset(crowd->exact, 0, sizeof(crowd->exact));
	memset(crowd->sums, 0, sizeof(crowd->sums));
	memset(crowd->words, 0, sizeof(crowd->words));
	for (uint32_t worker = 0; worker < crowd->room.fixed.workers; worker++) {
		draw_worker(crowd, seed, worker);
		add_worker(crowd);
	}
	check_sums(crowd);
	check_error(crowd);
}

static void test_sums(struct rng *rng)
{
	static struct crowd crowd;

	for (size_t c = 0; c < CROWDS; c++)
		for (int round = 0; round < 12; round++) {
			crowd.room.fixed = (struct fixed){round % 2 ? FIXED_32 : FIXED_16, types[round / 2 % 3], crowds[c]};
			crowd.room.count = 257;
			crowd.least_magnitude = round >= 6;
			if (fixed_valid(&crowd.room.fixed))
				test_crowd(&crowd, rng_next(rng));
		}
}

/* The bound is not idle: some value of a sum lies beyond a quarter of it. */
static void test_error_is_near(struct rng *rng)
{
	struct fixed fixed = {FIXED_16, ESP_F32, 4};
	double worst = 0;

	for (int round = 0; round < 2000; round++) {
		float values[4], sum = 0;
		uint16_t words[4], all[2] = {0, 0};
		uint8_t exponent = 127;
		double exact = 0;
		for (int w = 0; w < 4; w++) {
			values[w] = (float)(rng_unit(rng) * 2 - 1);
			exact += values[w];
			fixed_quantize(&fixed, &values[w], 1, &exponent, words);
			all[0] = (uint16_t)(all[0] + words[0]);
		}
		fixed_dequantize(&fixed, all, 1, &exponent, 1, &sum);
		worst = fmax(worst, fabs(sum - exact) / fixed_error(&fixed, exponent));
	}
	CHECK_MSG(worst > 0.25 && worst <= 1, "worst is %g of the bound", worst);
}

/* ---- rules ---- */

static void test_valid(void)
{
	CHECK(fixed_valid(&(struct fixed){FIXED_32, ESP_F32, 1}) && fixed_valid(&(struct fixed){FIXED_32, ESP_BF16, 1024}));
	CHECK(fixed_valid(&(struct fixed){FIXED_16, ESP_F16, 32}) && !fixed_valid(&(struct fixed){FIXED_16, ESP_F16, 33}));
	CHECK(fixed_valid(&(struct fixed){FIXED_32, ESP_F32, 65536}) &&
	      !fixed_valid(&(struct fixed){FIXED_32, ESP_F32, 65537}));
	CHECK(!fixed_valid(&(struct fixed){FIXED_32, ESP_F64, 2}) && !fixed_valid(&(struct fixed){FIXED_32, ESP_I32, 2}));
	CHECK(!fixed_valid(&(struct fixed){FIXED_32, ESP_F32, 0}) &&
	      !fixed_valid(&(struct fixed){(enum fixed_form)2, ESP_F32, 2}));
	CHECK_U64(fixed_blocks(0), 0);
	CHECK_U64(fixed_blocks(256), 1);
	CHECK_U64(fixed_blocks(257), 2);
	CHECK_U64(fixed_bytes(&(struct fixed){FIXED_16, ESP_F32, 2}, 5), 12);
	CHECK_U64(fixed_bytes(&(struct fixed){FIXED_32, ESP_F32, 2}, 5), 20);
}

static void test_in_place(struct rng *rng)
{
	struct room room;

	for (int round = 0; round < 50; round++) {
		draw_room(&room, rng);
		room.fixed = (struct fixed){FIXED_32, ESP_F32, 8};
		draw_data(&room, rng);
		fixed_exponents(ESP_F32, room.data, room.count, room.exponents);
		memcpy(room.numbers, room.data, sizeof(room.data));
		fixed_quantize(&room.fixed, room.numbers, room.count, room.exponents, room.numbers);
		memset(room.numbers + data_bytes(&room), 0x5a, sizeof(room.numbers) - data_bytes(&room));
		check_numbers(&room);
		memcpy(room.back, room.numbers, sizeof(room.back));
		fixed_dequantize(&room.fixed, room.back, room.count, room.exponents, 8, room.back);
		check_back(&room, 8);
	}
}

static void test_integers(struct rng *rng)
{
	for (int round = 0; round < 2000; round++) {
		uint32_t workers = crowds[rng_below(rng, CROWDS)],
		    value = (uint32_t)(rng_next(rng) >> (32 + rng_below(rng, 32)));
		enum esp_type type = rng_chance(rng, 1, 2) ? ESP_I32 : ESP_U32;
		int64_t number = type == ESP_I32 ? (int32_t)value : (int64_t)value;
		bool fits = fixed_integer_fits(type, fixed_integer_bits(type, &value, 1), workers);
		int64_t sum = number * workers;
		bool right = type == ESP_I32 ? sum == (int32_t)sum : sum == (uint32_t)sum;
		CHECK_MSG(!fits || right, "%" PRId64 " by %u", number, workers);
		/* It refuses too much by a factor of four at most. */
		int64_t larger = sum * 4;
		CHECK(fits || (type == ESP_I32 ? larger != (int32_t)larger : larger != (uint32_t)larger));
	}
	const int32_t several[] = {3, -9, 0, 4};
	CHECK_U64(fixed_integer_bits(ESP_I32, several, 4), 4);
	CHECK_U64(fixed_integer_bits(ESP_U32, several, 4), 32);
	CHECK_U64(fixed_integer_bits(ESP_I32, several, 0), 0);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	test_valid();
	test_values(&rng);
	test_any_exponent(&rng);
	test_not_finite(&rng);
	test_sums(&rng);
	test_error_is_near(&rng);
	test_in_place(&rng);
	test_integers(&rng);
	return 0;
}
