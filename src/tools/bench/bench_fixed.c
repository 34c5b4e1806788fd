#include "tools/bench/bench_fixed.h"

#include <math.h>
#include <string.h>

#include "math/fixed.h"

#define MAGNITUDES 6       /* powers of two that the data spans */
#define LARGEST_EXPONENT 126 /* biased, of numbers below 1 */

bool bench_is_fixed(const struct bench_shape *shape)
{
	bool has_form = shape->numerics == ESP_NUMERICS_FIXED || shape->numerics == ESP_NUMERICS_FIXED16;
	bool has_type = shape->type == ESP_F32 || shape->type == ESP_F16 || shape->type == ESP_BF16;

	return has_form && has_type && shape->collective == ESP_ALLREDUCE && shape->ranks > 1 &&
	       (shape->op == ESP_SUM || shape->op == ESP_AVG);
}

/* Digits of a number of this type, the first one included. */
static int digits(enum esp_type type)
{
	return type == ESP_F32 ? 24 : type == ESP_F16 ? 11 : 8;
}

double bench_fixed_term(enum esp_type type, uint64_t bits)
{
	uint64_t top = UINT64_C(1) << (digits(type) - 1);
	double value = (double)(top + bits % top);

	value = ldexp(value, -digits(type) - (int)(bits >> 40) % MAGNITUDES);
	return bits >> 63 ? -value : value;
}

double bench_fixed_tolerance(const struct bench_shape *shape, double exact)
{
	struct fixed fixed = {.form = shape->numerics == ESP_NUMERICS_FIXED16 ? FIXED_16 : FIXED_32, .type = shape->type,
	                      .workers = shape->ranks};
	double divisor = shape->op == ESP_AVG ? shape->ranks : 1;
	double error = fixed_error(&fixed, LARGEST_EXPONENT) / divisor;

	/* The integer becomes a float, is divided as one, and rounded to the type. */
	return error + (fabs(exact) + error) * (2 * ldexp(1, -24) + ldexp(1, -digits(shape->type)));
}

static double read_half(uint16_t bits, int fraction_bits, int exponent_bits)
{
	int bias = (1 << (exponent_bits - 1)) - 1, exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
	double fraction = bits & ((1 << fraction_bits) - 1), one = 1 << fraction_bits;
	double value = ldexp(exponent ? one + fraction : fraction, (exponent ? exponent : 1) - bias - fraction_bits);

	if (exponent == (1 << exponent_bits) - 1)
		value = NAN;
	return bits >> 15 ? -value : value;
}

double bench_fixed_read(enum esp_type type, const uint8_t *element)
{
	uint16_t half;
	float single;

	if (type == ESP_F32) {
		memcpy(&single, element, sizeof(single));
		return single;
	}
	memcpy(&half, element, sizeof(half));
	return type == ESP_F16 ? read_half(half, 10, 5) : read_half(half, 7, 8);
}
