#include "base/units.h"

#include "base/check.h"
#include "base/rng.h"

static void test_rates(void)
{
	static const struct {
		const char *text;
		uint64_t bits;
	} good[] = {{"1gbit", 1000000000}, {"200mbit", 200000000}, {"1.5Gbit", 1500000000}, {"64kbit", 64000},
	            {"8bit", 8},           {"1.001kbit", 1001}};
	static const char *const bad[] = {"",       "1",    "1g",          "gbit",    "1gbps",    "-1gbit", "1 gbit",
	                                  "1gbit ", "7bit", "1000001gbit", "1e3gbit", "1..5gbit", "nanbit", "0gbit"};
	uint64_t bits;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CHECK_MSG(units_parse_rate(good[i].text, &bits), "%s", good[i].text);
		CHECK_U64(bits, good[i].bits);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_MSG(!units_parse_rate(bad[i], &bits), "'%s' was taken", bad[i]);
}

static void test_times(void)
{
	static const char *const bad[] = {"", "5", "5m", "ms", "-5ms", "3601s", "5 ms"};
	uint64_t ns;
	CHECK(units_parse_time("5ms", &ns) && ns == 5000000);
	CHECK(units_parse_time("0", &ns) && ns == 0);
	CHECK(units_parse_time("0.5us", &ns) && ns == 500);
	CHECK(units_parse_time("3600s", &ns));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_MSG(!units_parse_time(bad[i], &ns), "'%s' was taken", bad[i]);
}

static void test_shares(void)
{
	static const char *const bad[] = {"", "1", "%", "101%", "-1%", "0.00001%", "1%%"};
	uint32_t share;
	CHECK(units_parse_share("1%", &share) && share == 10000);
	CHECK(units_parse_share("0.1%", &share) && share == 1000);
	CHECK(units_parse_share("100%", &share) && share == UNITS_SHARE_ALL);
	CHECK(units_parse_share("0", &share) && share == 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_MSG(!units_parse_share(bad[i], &share), "'%s' was taken", bad[i]);
}

static void test_bytes(void)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} rows[] = {{0, "0 B"},
	            {999, "999 B"},
	            {1000, "0.977 KiB"},
	            {1536, "1.5 KiB"},
	            {1023488, "0.976 MiB"},
	            {12638253056, "11.8 GiB"},
	            {UINT64_C(1) << 30, "1 GiB"},
	            {UINT64_MAX, "16 EiB"}};
	char text[UNITS_TEXT];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK_STR(units_format_bytes(rows[i].bytes, text), rows[i].text);
}

/* Printed values are read back as the same, for values of few digits. */
static void test_round_trip(struct rng *rng)
{
	char text[UNITS_TEXT];
	for (int i = 0; i < 10000; i++) {
		uint64_t scale = (uint64_t[]){100, 1000, 1000000, 1000000000}[rng_below(rng, 4)];
		uint64_t value = (1 + rng_below(rng, 99999)) * scale / 100, back;
		uint32_t share = (uint32_t)rng_below(rng, UNITS_SHARE_ALL + 1), share_back;
		if (value >= 8) {
			CHECK_MSG(units_parse_rate(units_format_rate(value, text), &back) && back == value, "%s", text);
		}
		CHECK_MSG(units_parse_time(units_format_time(value, text), &back) && back == value, "%s", text);
		CHECK_MSG(units_parse_share(units_format_share(share, text), &share_back) && share_back == share, "%s", text);
	}
}

int main(int argc, char **argv)
{
	struct rng rng;
	rng_init(&rng, test_seed(argc, argv, 1));
	test_rates();
	test_times();
	test_shares();
	test_bytes();
	test_round_trip(&rng);
	return 0;
}
