/*
 * f16 and bf16 without gaps: every pattern, and every place where rounding decides.
 *
 * With --exhaustive also every pair of patterns, in which case the levels are compared
 * with each other (minutes).
 */
#include "base/check.h"
#include "math/kernels.h"
#include "support/math_reference.h"

#define PATTERNS 65536

static const enum esp_type halves[] = {ESP_F16, ESP_BF16};

static uint16_t every[PATTERNS], splat[PATTERNS], got[PATTERNS], want[PATTERNS];

static uint16_t one_of(enum esp_type type)
{
	return type == ESP_F16 ? 0x3c00 : 0x3f80;
}

static void splat_fill(uint16_t bits)
{
	for (int i = 0; i < PATTERNS; i++)
		splat[i] = bits;
}

static void compare(enum math_level level, enum esp_type type, const char *what)
{
	for (int i = 0; i < PATTERNS; i++)
		CHECK_MSG(ref_same(type, &got[i], &want[i]), "%s %s %s: %04x and %04x give %04x, expected %04x",
		          math_level_name(level), math_type_name(type), what, every[i], splat[i], got[i], want[i]);
}

/* x * 1 and x + -0 are x: what is read is what is written, for every pattern. */
static void test_identity(enum math_level level, enum esp_type type)
{
	memcpy(want, every, sizeof(want));
	splat_fill(one_of(type));
	math_fold_at(level, type, ESP_PROD)(got, every, splat, PATTERNS);
	compare(level, type, "prod");
	splat_fill(0x8000);
	math_fold_at(level, type, ESP_SUM)(got, every, splat, PATTERNS);
	compare(level, type, "sum");
}

static void test_quiet(enum math_level level, enum esp_type type)
{
	uint16_t quiet = type == ESP_F16 ? 0x0200 : 0x0040;

	splat_fill(one_of(type));
	math_fold_at(level, type, ESP_PROD)(got, every, splat, PATTERNS);
	for (int i = 0; i < PATTERNS; i++)
		CHECK(!ref_is_nan(type, every[i]) || (got[i] & quiet));
}

/* Any float can be had as 1 * factor. */
static void check_round(enum math_level level, enum esp_type type, float value)
{
	uint16_t bits = one_of(type), expected = (uint16_t)ref_round_half(type, value);

	math_kernels_at(level)->multiply[type](&bits, 1, value);
	CHECK_MSG(bits == expected, "%s %s: %a rounds to %04x, expected %04x", math_level_name(level),
	          math_type_name(type), (double)value, bits, expected);
}

/* Between each two neighbours: the one, the middle, and the floats next to the middle. */
static void test_rounding(enum math_level level, enum esp_type type)
{
	for (uint64_t low = 0; low < ref_infinity(type); low++) {
		float middle = (float)((ref_magnitude(type, low) + ref_magnitude(type, low + 1)) / 2);
		const float values[] = {(float)ref_magnitude(type, low), middle, nextafterf(middle, 0),
		                        nextafterf(middle, INFINITY)};
		for (int i = 0; i < 4; i++) {
			check_round(level, type, values[i]);
			check_round(level, type, -values[i]);
		}
	}
	check_round(level, type, 0x1.fffffep127f);
	check_round(level, type, 0x1p-149f);
}

/* Every pattern with each special one, against the reference. */
static void test_specials(enum math_level level, enum esp_type type, enum esp_op op)
{
	for (unsigned special = 0; special < REF_SPECIALS; special += 2) {
		splat_fill((uint16_t)ref_special(type, special));
		for (int i = 0; i < PATTERNS; i++)
			ref_fold(type, op, &want[i], &every[i], &splat[i]);
		math_fold_at(level, type, op)(got, every, splat, PATTERNS);
		compare(level, type, math_op_name(op));
	}
}

/* Every step-th pattern with every pattern, against the portable level. */
static void test_pairs(enum math_level level, enum esp_type type, enum esp_op op, int step)
{
	for (int bits = 0; bits < PATTERNS; bits += step) {
		splat_fill((uint16_t)bits);
		math_fold_at(MATH_PORTABLE, type, op)(want, every, splat, PATTERNS);
		math_fold_at(level, type, op)(got, every, splat, PATTERNS);
		if (memcmp(got, want, sizeof(got)) != 0)
			compare(level, type, math_op_name(op));
	}
}

static void test_level(enum math_level level, enum esp_type type, int step)
{
	static const enum esp_op ops[] = {ESP_SUM, ESP_PROD, ESP_MIN, ESP_MAX};

	test_identity(level, type);
	test_quiet(level, type);
	test_rounding(level, type);
	for (int i = 0; i < 4; i++) {
		if (level == math_level_best()) /* slow; the pairs carry it over to the other levels */
			test_specials(level, type, ops[i]);
		test_pairs(level, type, ops[i], step);
	}
}

int main(int argc, char **argv)
{
	int step = argc > 1 && strcmp(argv[1], "--exhaustive") == 0 ? 1 : 1009;

	for (int i = 0; i < PATTERNS; i++)
		every[i] = (uint16_t)i;
	for (int level = 0; level < MATH_LEVEL_COUNT; level++)
		for (int i = 0; i < 2; i++)
			if (math_kernels_at((enum math_level)level))
				test_level((enum math_level)level, halves[i], step);
	return 0;
}
