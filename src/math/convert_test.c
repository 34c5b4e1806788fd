/*
 * Every half as a float and back, and floats at every place where rounding decides, at each level of kernels.
 */
#include "base/check.h"
#include "math/kernels.h"
#include "support/math_reference.h"

#define PATTERNS 65536

static const enum esp_type halves[] = {ESP_F16, ESP_BF16};

static uint16_t every[PATTERNS], got[PATTERNS];
static float floats[PATTERNS];

static bool same_float(float a, double b)
{
	return (isnan(a) && isnan(b)) || ((double)a == b && !signbit(a) == !signbit(b));
}

static void test_widen(const struct math_kernels *kernels, enum esp_type type)
{
	kernels->widen[type](floats, every, PATTERNS);
	for (int i = 0; i < PATTERNS; i++)
		CHECK_MSG(same_float(floats[i], ref_decode(type, every[i])), "%s %04x is %a", math_type_name(type), every[i],
		          (double)floats[i]);
	kernels->narrow[type](got, floats, PATTERNS);
	for (int i = 0; i < PATTERNS; i++)
		CHECK(ref_same(type, &got[i], &every[i]));
}

/* Each half, the middle between it and the next, and the floats beside that. */
static void test_narrow(const struct math_kernels *kernels, enum esp_type type)
{
	for (int way = -1; way <= 1; way++) {
		for (int i = 0; i < PATTERNS; i++) {
			uint64_t infinity = ref_infinity(type), bits = every[i] & (ref_sign(type) - 1);
			double low = ref_magnitude(type, bits < infinity ? bits : 0);
			double middle = (low + ref_magnitude(type, bits < infinity ? bits + 1 : 1)) / 2;
			float value = (float)middle;

			value = way == 0 ? value : nextafterf(value, way < 0 ? 0 : INFINITY);
			floats[i] = every[i] & ref_sign(type) ? -value : value;
		}
		kernels->narrow[type](got, floats, PATTERNS);
		for (int i = 0; i < PATTERNS; i++)
			CHECK_MSG(got[i] == ref_round_half(type, floats[i]), "%s of %a is %04x", math_type_name(type),
			          (double)floats[i], got[i]);
	}
}

static void test_any(const struct math_kernels *kernels, enum esp_type type, struct rng *rng)
{
	for (int i = 0; i < PATTERNS; i++) {
		uint32_t bits = (uint32_t)rng_next(rng);

		memcpy(&floats[i], &bits, sizeof(bits));
	}
	kernels->narrow[type](got, floats, PATTERNS);
	for (int i = 0; i < PATTERNS; i++) {
		uint16_t expected = (uint16_t)ref_round_half(type, floats[i]);

		CHECK(ref_same(type, &got[i], &expected) && isnan(floats[i]) == ref_is_nan(type, got[i]));
	}
}

/* The public functions, at odd addresses. */
static void test_public(enum esp_type type)
{
	uint8_t bytes[2 * 100 + 1], back[2 * 100 + 1];
	float values[100], copy[100];

	memcpy(bytes + 1, every + 0x3c00, sizeof(bytes) - 1);
	math_widen(type, values, bytes + 1, 100);
	math_narrow(type, back + 1, values, 100);
	CHECK(memcmp(bytes + 1, back + 1, sizeof(bytes) - 1) == 0);
	math_widen(ESP_F32, copy, values, 100);
	CHECK(memcmp(copy, values, sizeof(values)) == 0);
	math_narrow(ESP_F32, copy, values, 50);
	CHECK(memcmp(copy, values, sizeof(values)) == 0);
}

int main(void)
{
	struct rng rng;

	rng_init(&rng, 1);
	for (int i = 0; i < PATTERNS; i++)
		every[i] = (uint16_t)i;
	for (int level = 0; level < MATH_LEVEL_COUNT; level++) {
		const struct math_kernels *kernels = math_kernels_at((enum math_level)level);

		for (size_t t = 0; kernels && t < sizeof(halves) / sizeof(halves[0]); t++) {
			test_widen(kernels, halves[t]);
			test_narrow(kernels, halves[t]);
			test_any(kernels, halves[t], &rng);
		}
	}
	for (size_t t = 0; t < sizeof(halves) / sizeof(halves[0]); t++)
		test_public(halves[t]);
	return 0;
}
