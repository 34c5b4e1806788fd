/*
 * Names, which operations exist, the choice of a level, and the rules of finishing.
 */
#include <float.h>
#include <math.h>

#include "base/check.h"
#include "math/math.h"

static void test_names(void)
{
	enum esp_type type = ESP_I64;
	enum esp_op op = ESP_LXOR;

	for (int i = 0; i < ESP_TYPE_COUNT; i++) {
		CHECK(math_type_parse(math_type_name((enum esp_type)i), &type));
		CHECK_U64(type, i);
	}
	for (int i = 0; i < ESP_OP_COUNT; i++) {
		CHECK(math_op_parse(math_op_name((enum esp_op)i), &op));
		CHECK_U64(op, i);
	}
	CHECK_STR(math_type_name(ESP_BF16), "bf16");
	CHECK_STR(math_op_name(ESP_SCALED), "scaled");
}

static void test_unknown(void)
{
	static const char *const wrong[] = {"", "f3", "f320", "F32", " f32", "float"};
	enum esp_type type = ESP_I64;
	enum esp_op op = ESP_LXOR;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(!math_type_parse(wrong[i], &type) && !math_op_parse(wrong[i], &op));
	CHECK(type == ESP_I64 && op == ESP_LXOR);
	for (int i = 0; i < 2; i++) {
		int value = i ? -1 : 1000;
		CHECK(!math_type_name((enum esp_type)value) && !math_op_name((enum esp_op)value));
		CHECK(math_type_bytes((enum esp_type)value) == 0);
		CHECK(!math_op_defined((enum esp_type)value, ESP_SUM) && !math_op_defined(ESP_F32, (enum esp_op)value));
		CHECK(!math_fold((enum esp_type)value, ESP_SUM) && !math_fold(ESP_F32, (enum esp_op)value));
		CHECK(!math_fold_at((enum math_level)value, ESP_F32, ESP_SUM));
		CHECK(!math_level_name((enum math_level)value));
	}
}

static void test_bytes(void)
{
	static const size_t bytes[ESP_TYPE_COUNT] = {4, 8, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8, 1};

	for (int i = 0; i < ESP_TYPE_COUNT; i++)
		CHECK_U64(math_type_bytes((enum esp_type)i), bytes[i]);
}

static void test_defined(void)
{
	for (int type = 0; type < ESP_TYPE_COUNT; type++)
		for (int op = 0; op < ESP_OP_COUNT; op++) {
			bool of_bits = op >= ESP_BAND && op <= ESP_LXOR;
			bool expected = type != ESP_BYTES && !(of_bits && type <= ESP_BF16);
			CHECK(math_op_defined((enum esp_type)type, (enum esp_op)op) == expected);
			CHECK((math_fold((enum esp_type)type, (enum esp_op)op) != NULL) == expected);
		}
}

static void test_levels(void)
{
	enum math_level best = math_level_best();

	printf("level %s\n", math_level_name(best));
	for (int level = 0; level < MATH_LEVEL_COUNT; level++)
		CHECK((math_fold_at((enum math_level)level, ESP_F32, ESP_SUM) != NULL) == (level <= (int)best));
	CHECK(math_fold(ESP_F32, ESP_SUM) == math_fold_at(best, ESP_F32, ESP_SUM));
	CHECK(math_fold(ESP_F32, ESP_AVG) == math_fold(ESP_F32, ESP_SUM));
	CHECK(math_fold(ESP_F32, ESP_SCALED) == math_fold(ESP_F32, ESP_SUM));
}

static bool scaled_valid(enum esp_type type, double factor)
{
	return math_finish_valid(type, ESP_SCALED, factor, 0);
}

static void test_factors(void)
{
	CHECK(scaled_valid(ESP_F32, 0.5) && scaled_valid(ESP_F32, FLT_MAX) && !scaled_valid(ESP_F32, 1e39));
	CHECK(scaled_valid(ESP_F64, 1e39) && scaled_valid(ESP_F16, 1e6) && !scaled_valid(ESP_BF16, 1e39));
	CHECK(!scaled_valid(ESP_F64, NAN) && !scaled_valid(ESP_F64, INFINITY) && !scaled_valid(ESP_F32, -INFINITY));
	CHECK(scaled_valid(ESP_I8, 127) && !scaled_valid(ESP_I8, 128));
	CHECK(scaled_valid(ESP_I8, -128) && !scaled_valid(ESP_I8, -129));
	CHECK(scaled_valid(ESP_U8, 255) && !scaled_valid(ESP_U8, 256));
	CHECK(scaled_valid(ESP_U8, 0) && !scaled_valid(ESP_U8, -1));
	CHECK(!scaled_valid(ESP_I32, 0.5) && !scaled_valid(ESP_I32, NAN) && !scaled_valid(ESP_U64, INFINITY));
	CHECK(scaled_valid(ESP_I64, -0x1p63) && !scaled_valid(ESP_I64, 0x1p63));
	CHECK(scaled_valid(ESP_U64, 0x1p63) && !scaled_valid(ESP_U64, 0x1p64));
}

static void test_valid(void)
{
	CHECK(math_finish_needed(ESP_AVG) && math_finish_needed(ESP_SCALED));
	CHECK(!math_finish_needed(ESP_SUM) && !math_finish_needed(ESP_LXOR));
	CHECK(math_finish_valid(ESP_F32, ESP_AVG, NAN, 1) && !math_finish_valid(ESP_F32, ESP_AVG, 1, 0));
	CHECK(math_finish_valid(ESP_F32, ESP_SUM, NAN, 0) && math_finish_valid(ESP_I8, ESP_BAND, 0.5, 0));
	CHECK(!math_finish_valid(ESP_F32, ESP_BAND, 1, 1) && !math_finish_valid(ESP_BYTES, ESP_SUM, 1, 1));
}

static void test_finish(void)
{
	float f32[] = {1, -9, 0.5f};
	int8_t i8[] = {-7, 7, -128};
	uint64_t u64[] = {UINT64_MAX, 10};

	math_finish(f32, 3, ESP_F32, ESP_AVG, NAN, 3);
	CHECK(f32[0] == 1.0f / 3 && f32[1] == -3 && f32[2] == 0.5f / 3);
	math_finish(f32, 1, ESP_F32, ESP_SCALED, 6, 0);
	CHECK(f32[0] == 2 && f32[1] == -3);
	math_finish(i8, 3, ESP_I8, ESP_AVG, 0, 2);
	CHECK(i8[0] == -3 && i8[1] == 3 && i8[2] == -64);
	math_finish(i8, 3, ESP_I8, ESP_AVG, 0, UINT32_MAX);
	CHECK(i8[0] == 0 && i8[1] == 0 && i8[2] == 0);
	math_finish(u64, 2, ESP_U64, ESP_SCALED, 0x1p63, 0);
	CHECK(u64[0] == UINT64_C(1) << 63 && u64[1] == 0);
	math_finish(u64, 2, ESP_U64, ESP_MAX, 0, 0);
	CHECK(u64[0] == UINT64_C(1) << 63 && u64[1] == 0);
}

int main(void)
{
	test_names();
	test_unknown();
	test_bytes();
	test_defined();
	test_levels();
	test_factors();
	test_valid();
	test_finish();
	return 0;
}
