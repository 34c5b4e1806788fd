#include "report/json.h"

#include <math.h>

#include "base/check.h"
#include "base/utf8.h"

static char written[4096];

static FILE *open_written(void)
{
	memset(written, 0, sizeof written);
	return fmemopen(written, sizeof written, "w");
}

static void test_shape(void)
{
	struct json json;
	FILE *out = open_written();
	json_init(&json, out);
	json_object_begin(&json);
	json_key(&json, "empty");
	json_object_begin(&json);
	json_object_end(&json);
	json_key(&json, "list");
	json_array_begin(&json);
	json_u64(&json, UINT64_MAX);
	json_i64(&json, INT64_MIN);
	json_array_begin(&json);
	json_array_end(&json);
	json_array_end(&json);
	json_key(&json, "yes");
	json_bool(&json, true);
	json_key(&json, "none");
	json_text(&json, NULL);
	json_object_end(&json);
	CHECK(json_fini(&json) == ESP_OK);
	fclose(out);
	CHECK_STR(written, "{\n"
	                   "  \"empty\": {},\n"
	                   "  \"list\": [\n"
	                   "    18446744073709551615,\n"
	                   "    -9223372036854775808,\n"
	                   "    []\n"
	                   "  ],\n"
	                   "  \"yes\": true,\n"
	                   "  \"none\": null\n"
	                   "}\n");
}

static const char *one_string(const char *text, size_t length)
{
	struct json json;
	FILE *out = open_written();
	json_init(&json, out);
	json_string_n(&json, text, length);
	CHECK(json_fini(&json) == ESP_OK);
	fclose(out);
	return written;
}

#define ONE_STRING(literal) one_string(literal, sizeof literal - 1)

/* Values below flat_depth stand on one line. */
static void test_flat(void)
{
	struct json json;
	FILE *out = open_written();
	json_init(&json, out);
	json.flat_depth = 1;
	json_array_begin(&json);
	for (int i = 0; i < 2; i++) {
		json_object_begin(&json);
		json_put_u64(&json, "a", 1);
		json_key(&json, "b");
		json_array_begin(&json);
		json_u64(&json, 2);
		json_array_end(&json);
		json_object_end(&json);
	}
	json_array_end(&json);
	CHECK(json_fini(&json) == ESP_OK);
	fclose(out);
	CHECK_STR(written, "[\n"
	                   "  {\"a\": 1, \"b\": [2]},\n"
	                   "  {\"a\": 1, \"b\": [2]}\n"
	                   "]\n");
}

static void test_strings(void)
{
	CHECK_STR(ONE_STRING("a\"b\\c/d"), "\"a\\\"b\\\\c/d\"\n");
	CHECK_STR(ONE_STRING("\n\r\t\x01\x1f\x7f"), "\"\\n\\r\\t\\u0001\\u001f\\u007f\"\n");
	CHECK_STR(ONE_STRING("a\0b"), "\"a\\u0000b\"\n");
	CHECK_STR(ONE_STRING("gr\xc3\xbc\xc3\x9f \xf0\x9f\x8c\xb3"), "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x8c\xb3\"\n");
	CHECK_STR(ONE_STRING("\xff""a\xc3"), "\"\\ufffda\\ufffd\"\n");
	CHECK_STR(ONE_STRING("\xe2\x82("), "\"\\ufffd\\ufffd(\"\n");
	CHECK_STR(ONE_STRING("\xc0\x80"), "\"\\ufffd\\ufffd\"\n");                   /* overlong */
	CHECK_STR(ONE_STRING("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\"\n");        /* surrogate */
	CHECK_STR(ONE_STRING("\xf4\x90\x80\x80"), "\"\\ufffd\\ufffd\\ufffd\\ufffd\"\n"); /* above U+10FFFF */
}

static const char *one_double(double value)
{
	struct json json;
	FILE *out = open_written();
	json_init(&json, out);
	json_double(&json, value);
	CHECK(json_fini(&json) == ESP_OK);
	fclose(out);
	return written;
}

static void test_doubles(void)
{
	CHECK_STR(one_double(0.1), "0.1\n");
	CHECK_STR(one_double(-0.0), "-0\n");
	CHECK_STR(one_double(1e21), "1e+21\n");
	CHECK_STR(one_double(NAN), "null\n");
	CHECK_STR(one_double(-INFINITY), "null\n");
}

static const char *one_decimal(int64_t value, unsigned digits)
{
	struct json json;
	FILE *out = open_written();
	json_init(&json, out);
	json_decimal(&json, value, digits);
	CHECK(json_fini(&json) == ESP_OK);
	fclose(out);
	return written;
}

static void test_decimals(void)
{
	CHECK_STR(one_decimal(0, 3), "0.000\n");
	CHECK_STR(one_decimal(-7, 2), "-0.07\n");
	CHECK_STR(one_decimal(1234567, 3), "1234.567\n");
	CHECK_STR(one_decimal(5, 18), "0.000000000000000005\n");
	CHECK_STR(one_decimal(INT64_MAX, 1), "922337203685477580.7\n");
	CHECK_STR(one_decimal(INT64_MIN, 18), "-9.223372036854775808\n");
}

/* An array that is written in parts. */
static void test_resume(void)
{
	struct json json;
	FILE *out = open_written();
	json_init(&json, out);
	json_array_begin(&json);
	json_u64(&json, 0);
	json_array_resume(&json, out);
	json_u64(&json, 10);
	json_array_end(&json);
	CHECK(json_fini(&json) == ESP_OK);
	fclose(out);
	CHECK_STR(written, "[\n  0,\n  10\n]\n");
}

static void test_full_disk(void)
{
	struct json json;
	FILE *full = fopen("/dev/full", "w");
	if (!full)
		return;
	json_init(&json, full);
	json_text(&json, "text");
	CHECK(json_fini(&json) == ESP_EIO);
	fclose(full);
}

static void test_count(void)
{
	CHECK_U64(utf8_count(""), 0);
	CHECK_U64(utf8_count("abc"), 3);
	CHECK_U64(utf8_count("gr\xc3\xbc\xc3\x9f"), 4);
	CHECK_U64(utf8_count("\xff\xc3"), 2);
}

static void test_put(void)
{
	struct json json;
	FILE *out = open_written();
	json_init(&json, out);
	json_object_begin(&json);
	json_put_string(&json, "a", "x");
	json_put_string(&json, "b", NULL);
	json_put_u64(&json, "c", UINT64_MAX);
	json_put_i64(&json, "d", -1);
	json_put_double(&json, "e", 0.5);
	json_put_bool(&json, "f", true);
	json_object_end(&json);
	CHECK(json_fini(&json) == ESP_OK);
	fclose(out);
	CHECK_STR(written, "{\n"
	                   "  \"a\": \"x\",\n"
	                   "  \"b\": null,\n"
	                   "  \"c\": 18446744073709551615,\n"
	                   "  \"d\": -1,\n"
	                   "  \"e\": 0.5,\n"
	                   "  \"f\": true\n"
	                   "}\n");
}

int main(void)
{
	test_put();
	test_shape();
	test_flat();
	test_strings();
	test_decimals();
	test_resume();
	test_doubles();
	test_full_disk();
	test_count();
	return 0;
}
