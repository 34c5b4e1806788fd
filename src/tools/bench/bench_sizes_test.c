#include "tools/bench/bench_sizes.h"

#include "base/check.h"

static struct bench_sizes got;
static struct error err;

static enum esp_status parse(const char *text, uint64_t factor)
{
	return bench_sizes_parse(text, (struct bench_step){.factor = factor}, &got, &err);
}

static void test_ranges(void)
{
	CHECK(parse("4:128M", 2) == ESP_OK);
	CHECK(got.count == 26 && got.bytes[0] == 4 && got.bytes[25] == 128 << 20 && got.step.factor == 2);
	CHECK(parse("3:100", 10) == ESP_OK && got.count == 2 && got.bytes[1] == 30 && got.step.factor == 10);
	CHECK(parse("64K:64K", 2) == ESP_OK && got.count == 1 && got.bytes[0] == 65536);
	/* The last step does not wrap. */
	CHECK(parse("1:64T", UINT64_MAX) == ESP_OK && got.count == 1);
	CHECK(parse("1:64T", 2) == ESP_OK && got.count == 47 && got.bytes[46] == UINT64_C(64) << 40);
}

static void test_steps(void)
{
	CHECK(bench_sizes_parse("4:100", (struct bench_step){.bytes = 30}, &got, &err) == ESP_OK);
	CHECK(got.count == 4 && got.bytes[1] == 34 && got.bytes[3] == 94 && got.step.bytes == 30 && got.step.factor == 0);
	/* The end is as given, whether or not a step reaches it. */
	CHECK(got.most == 94 && got.end == 100);
	CHECK(parse("4:100", 10) == ESP_OK && got.most == 40 && got.end == 100);
	CHECK(bench_sizes_parse("1:64T", (struct bench_step){.bytes = UINT64_MAX}, &got, &err) == ESP_OK && got.count == 1);
	CHECK(bench_sizes_parse("1:64T", (struct bench_step){.bytes = 1}, &got, &err) == ESP_ELIMIT);
}

static void test_lists(void)
{
	CHECK(parse("4,1K,64K", 2) == ESP_OK && got.count == 3 && got.bytes[1] == 1024 && got.step.factor == 0);
	CHECK(parse("64K", 2) == ESP_OK && got.count == 1 && got.step.factor == 0);
	CHECK(parse("1M,4:16", 2) == ESP_OK && got.count == 4);
	CHECK(got.bytes[0] == 1 << 20 && got.bytes[1] == 4 && got.bytes[3] == 16 && got.step.factor == 0);
	CHECK(got.least == 4 && got.most == 1 << 20);
}

static void test_refused(void)
{
	static const char *const bad[] = {"",    ",",      "4,", ",4", "0",  "0:4", "4:",   ":4",
	                                  "4:2", "4:8:16", "x",  "4 ", "-4", "65T", "1:65T"};

	CHECK(parse("8", 2) == ESP_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_MSG(parse(bad[i], 2) == ESP_EINVAL, "'%s' was accepted", bad[i]);
	char many[2 * BENCH_SIZES_MAX + 2] = "1";
	for (unsigned i = 0; i < BENCH_SIZES_MAX; i++)
		strcat(many, ",1");
	CHECK(parse(many, 2) == ESP_ELIMIT);
	CHECK(got.count == 1 && got.bytes[0] == 8);
}

int main(void)
{
	test_ranges();
	test_steps();
	test_lists();
	test_refused();
	return 0;
}
