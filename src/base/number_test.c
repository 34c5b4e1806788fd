#include "base/number.h"

#include <locale.h>
#include <math.h>

#include "base/check.h"
#include "base/rng.h"

static bool parses_u64(const char *text, uint64_t expected)
{
	uint64_t value = 0;
	return number_parse_u64(text, strlen(text), &value) && value == expected;
}

static bool parses_bytes(const char *text, uint64_t expected)
{
	uint64_t value = 0;
	return number_parse_bytes(text, strlen(text), &value) && value == expected;
}

static bool parses_double(const char *text, double expected)
{
	double value = 0;
	return number_parse_double(text, strlen(text), &value) && value == expected;
}

static void test_accepted(void)
{
	CHECK(parses_u64("0", 0));
	CHECK(parses_u64("007", 7));
	CHECK(parses_u64("18446744073709551615", UINT64_MAX));
	CHECK(parses_bytes("1500", 1500));
	CHECK(parses_bytes("64K", 65536));
	CHECK(parses_bytes("64k", 65536));
	CHECK(parses_bytes("64KiB", 65536));
	CHECK(parses_bytes("3T", UINT64_C(3) << 40));
	CHECK(parses_bytes("16777215T", UINT64_C(16777215) << 40));
	CHECK(parses_double("-1.5e-3", -1.5e-3));
	CHECK(parses_double(".5", .5));
}

static void test_refused(void)
{
	static const char *const bad[] = {"",
	                                  " 1",
	                                  "1 ",
	                                  "-1",
	                                  "+1",
	                                  "0x10",
	                                  "1e",
	                                  "K",
	                                  "iB",
	                                  "KiB",
	                                  "1KB",
	                                  "1KK",
	                                  "1B",
	                                  "1iB",
	                                  "18446744073709551616",
	                                  "16777216T",
	                                  "99999999999999999999999",
	                                  "nan",
	                                  "inf",
	                                  "1e999",
	                                  "1.2.3",
	                                  "--1",
	                                  "e5"};
	uint64_t u64 = 77;
	double real = 77;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		CHECK_MSG(!number_parse_u64(bad[i], strlen(bad[i]), &u64), "'%s' as u64", bad[i]);
		CHECK_MSG(!number_parse_bytes(bad[i], strlen(bad[i]), &u64), "'%s' as bytes", bad[i]);
	}
	static const char *const bad_double[] = {"", " 1", "1 ", "+1", "0x10", "nan", "inf", "1e999", "1.2.3", "--1", "e5"};
	for (size_t i = 0; i < sizeof bad_double / sizeof bad_double[0]; i++)
		CHECK_MSG(!number_parse_double(bad_double[i], strlen(bad_double[i]), &real), "'%s' as double", bad_double[i]);
	CHECK(!number_parse_u64("1\0002", 3, &u64));
	CHECK(u64 == 77 && real == 77);
}

static void test_format_bytes(struct rng *rng)
{
	char text[NUMBER_BYTES_TEXT];
	CHECK_STR(number_format_bytes(0, text), "0");
	CHECK_STR(number_format_bytes(1023, text), "1023");
	CHECK_STR(number_format_bytes(65536, text), "64K");
	CHECK_STR(number_format_bytes(UINT64_C(2048) << 40, text), "2048T");
	CHECK_STR(number_format_bytes(UINT64_MAX, text), "18446744073709551615");
	for (int i = 0; i < 1000; i++) {
		uint64_t value = rng_next(rng) << rng_below(rng, 64);
		CHECK(parses_bytes(number_format_bytes(value, text), value));
	}
}

static void test_format_double(struct rng *rng)
{
	char text[NUMBER_DOUBLE_TEXT];
	CHECK_STR(number_format_double(0.1, text), "0.1");
	CHECK_STR(number_format_double(3, text), "3");
	CHECK_STR(number_format_double(10, text), "10");
	CHECK_STR(number_format_double(-2500, text), "-2500");
	CHECK_STR(number_format_double(1e20, text), "100000000000000000000");
	CHECK_STR(number_format_double(1e21, text), "1e+21");
	CHECK_STR(number_format_double(5e-6, text), "0.000005");
	CHECK_STR(number_format_double(-1.25e-5, text), "-0.0000125");
	CHECK_STR(number_format_double(9e-7, text), "9e-07");
	CHECK_STR(number_format_double(-1e300, text), "-1e+300");
	CHECK_STR(number_format_double(1.0 / 3, text), "0.3333333333333333");
	CHECK_STR(number_format_double(nan(""), text), "nan");
	for (int i = 0; i < 1000; i++) {
		uint64_t bits = rng_next(rng);
		double value;
		memcpy(&value, &bits, sizeof value);
		if (isfinite(value))
			CHECK(parses_double(number_format_double(value, text), value));
	}
}

/* A host program may have set a locale with a decimal comma. */
static void test_locale(struct rng *rng)
{
	static const char *const comma[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
	for (size_t i = 0; i < sizeof comma / sizeof comma[0]; i++) {
		if (!setlocale(LC_NUMERIC, comma[i]))
			continue;
		test_accepted();
		test_format_double(rng);
		setlocale(LC_NUMERIC, "C");
		return;
	}
}

int main(int argc, char **argv)
{
	struct rng rng;
	rng_init(&rng, test_seed(argc, argv, 1));
	test_accepted();
	test_refused();
	test_format_bytes(&rng);
	test_format_double(&rng);
	test_locale(&rng);
	return 0;
}
