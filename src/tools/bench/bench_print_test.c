#include "tools/bench/bench_print.h"

#include "base/check.h"

static const struct bench_sizes sizes = {
	.bytes = {4, 1048576}, .count = 2, .least = 4, .most = 1048576, .end = 1048576};
static const struct bench_rank ranks[] = {{"node7", 4711}, {"node8", 12}};
static char word_bench[] = "bench", word_json[] = "--json";
static char *const words[] = {word_bench, word_json};
static const struct bench_config config = {
	.version = "1.2.3",
	.start_time = "2026-01-31 23:59:59",
	.argc = 2,
	.argv = words,
	.sizes = &sizes,
	.iters = 20,
	.warmup = 1,
	.check = true,
	.calls = "blocking",
	.memory = "alloc",
	.transport = "auto",
	.ranks = 2,
	.rank = ranks,
};
static const double samples[] = {345.5, 345.75, 346.25};

static struct bench_result result(double time_us, uint64_t wrong)
{
	return (struct bench_result){
		.measured = true,
		.checked = true,
		.wrong = wrong,
		.calls = 1,
		.samples_us = samples,
		.sample_count = 3,
		.stats = {time_us - 1, time_us, time_us + 1, time_us + 2},
		.slowest_us = time_us + 3,
	};
}

static struct bench_row row(enum esp_collective collective, uint64_t bytes, double out_us, double in_us)
{
	return (struct bench_row){
		.collective = collective,
		.bytes = bytes,
		.count = bytes / 4,
		.plan = "flat",
		.results = {result(out_us, 0), result(in_us, 0)},
	};
}

/* The text that is printed for these rows; the caller frees it. */
static char *print_rows(bool as_json, const struct bench_row *rows, size_t count, const char *failure)
{
	struct bench_print print;
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);

	CHECK(out != NULL);
	bench_print_begin(&print, out, as_json, &config);
	for (size_t i = 0; i < count; i++)
		bench_print_row(&print, &rows[i]);
	CHECK(bench_print_end(&print, failure) == ESP_OK);
	CHECK(fclose(out) == 0);
	return text;
}

#define BEGINNING \
	"# espalier version 1.2.3\n" \
	"# nRanks 2 minBytes 4 maxBytes 1048576 step: list warmup iters: 1 iters: 20 validation: 1\n" \
	"# transport: auto memory: alloc calls: blocking\n" \
	"# time: the median of all samples; a sample is the time of a batch of calls on rank 0 per call\n" \
	"#\n" \
	"# Using ranks\n" \
	"#  Rank  0 Pid   4711 on      node7\n" \
	"#  Rank  1 Pid     12 on      node8\n"
#define COLUMNS \
	"#                                                              out-of-place          " \
	"             in-place          \n" \
	"#       size         count      type   redop    root     time   algbw   busbw  #wrong" \
	"     time   algbw   busbw  #wrong\n" \
	"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)        " \
	"     (us)  (GB/s)  (GB/s)        \n"

static void check_table(const struct bench_row *rows, size_t count, const char *failure, const char *expected)
{
	char *text = print_rows(false, rows, count, failure);

	CHECK(strncmp(text, BEGINNING, strlen(BEGINNING)) == 0);
	CHECK_STR(text + strlen(BEGINNING), expected);
	free(text);
}

static void test_table(void)
{
	struct bench_row rows[] = {row(ESP_ALLREDUCE, 4, 8, 7.5), row(ESP_ALLREDUCE, 1048576, 354.9, 345.7)};

	rows[0].plan = "exchange";
	check_table(rows, 2, NULL,
	            "#\n"
	            "# Collective test starting: allreduce\n"
	            "#\n" COLUMNS
	            "# plan: exchange\n"
	            "           4             1     float     sum      -1     8.00  0.0005  0.0005       0"
	            "     7.50  0.0005  0.0005       0\n"
	            "# plan: flat\n"
	            "     1048576        262144     float     sum      -1   354.90    2.95    2.95       0"
	            "   345.70    3.03    3.03       0\n"
	            "# Out of bounds values : 0 OK\n"
	            "# Avg bus bandwidth    : 1.4972\n");
}

static void test_tables(void)
{
	struct bench_row rows[] = {row(ESP_BROADCAST, 4000, 10, 10), row(ESP_ALLTOALL, 4000, 20, 20),
	                           row(ESP_ALLTOALL, 4000, 4, 4)};

	rows[0].results[BENCH_OUT_OF_PLACE] = (struct bench_result){0};
	rows[0].root = 1;
	rows[0].type = ESP_BF16;
	rows[1].results[BENCH_IN_PLACE] = (struct bench_result){0};
	rows[1].results[BENCH_OUT_OF_PLACE].wrong = 12345;
	rows[2].results[BENCH_IN_PLACE] = (struct bench_result){0};
	rows[2].results[BENCH_OUT_OF_PLACE].checked = false;
	rows[2].asked_plan = rows[2].plan = "ring";
	check_table(rows, 3, "rank 1 has gone",
	            "#\n"
	            "# Collective test starting: broadcast\n"
	            "#\n" COLUMNS
	            "# plan: flat\n"
	            "        4000          1000  bfloat16    none       1      N/A     N/A     N/A     N/A"
	            "    10.00    0.40    0.40       0\n"
	            "# Out of bounds values : 0 OK\n"
	            "# Avg bus bandwidth    : 0.4\n"
	            "#\n"
	            "# Collective test starting: alltoall\n"
	            "#\n" COLUMNS
	            "# plan: flat\n"
	            "        4000          1000     float    none      -1    20.00    0.20    0.10   12345"
	            "      N/A     N/A     N/A     N/A\n"
	            "# Out of bounds values : 1 FAILED\n"
	            "# Avg bus bandwidth    : 0.1\n"
	            "#\n"
	            "# Collective test starting: alltoall\n"
	            "#\n" COLUMNS
	            "# plan: ring\n"
	            "        4000          1000     float    none      -1     4.00    1.00    0.50     N/A"
	            "      N/A     N/A     N/A     N/A\n"
	            "# Out of bounds values : 0 OK\n"
	            "# Avg bus bandwidth    : 0.5\n"
	            "# error: rank 1 has gone\n");
	check_table(rows, 0, "rank 1 has gone", "# error: rank 1 has gone\n");
}

/* Numbers that need more room lose decimals first, and then get an exponent. */
static void test_widths(void)
{
	static const struct {
		double time_us;
		const char *text;
	} cases[] = {{0.004, "0.00400"},     {0.25, "   0.25"},     {9999.994, "9999.99"},  {9999.996, "10000.0"},
	             {99999.94, "99999.9"},  {99999.96, " 100000"}, {9999999.4, "9999999"}, {9999999.6, "1.0e+07"},
	             {1.26e9, "1.3e+09"},    {1e-9, "1.0e-09"}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bench_row one = row(ESP_BARRIER, 0, cases[i].time_us, 1);
		char expected[128];
		snprintf(expected, sizeof(expected), "      -1  %s    0.00", cases[i].text);
		char *text = print_rows(false, &one, 1, NULL);
		CHECK_MSG(strstr(text, expected), "'%s' is not in\n%s", expected, text);
		free(text);
	}
}

static void test_json(void)
{
	struct bench_row rows[] = {row(ESP_ALLREDUCE, 1048576, 354.9, 345.75), row(ESP_ALLTOALL, 4000, 20, 20)};

	rows[1].results[BENCH_IN_PLACE] = (struct bench_result){0};
	rows[1].results[BENCH_OUT_OF_PLACE].wrong = 3;
	char *text = print_rows(true, rows, 2, "rank 1 has gone");
	static const char *const parts[] = {
		"{\n  \"version\": 2,\n  \"espalier_version\": \"1.2.3\",\n  \"start_time\": \"2026-01-31 23:59:59\",\n",
		"  \"args\": [\n    \"espalier\",\n    \"bench\",\n    \"--json\"\n  ],\n  \"config\": {\n    \"nranks\": 2,\n",
		"    \"minimum_bytes\": 4,\n    \"maximum_bytes\": 1048576,\n"
		"    \"step_factor\": null,\n    \"warmup_iters\": 1,\n"
		"    \"iterations\": 20,\n    \"seconds\": 0,\n    \"validation\": 1,\n    \"blocking_collectives\": true,\n",
		"        \"rank\": 1,\n        \"pid\": 12,\n        \"hostname\": \"node8\"\n",
		"      \"collective\": \"allreduce\",\n      \"size\": 1048576,\n"
		"      \"count\": 262144,\n      \"type\": \"float\",\n"
		"      \"redop\": \"sum\",\n      \"root\": -1,\n      \"plan\": \"flat\",\n      \"transport\": \"auto\",\n"
		"      \"ranks\": 2,\n      \"out_of_place\": {\n        \"time\": 354.9,\n        \"alg_bw\": 2.954567,\n"
		"        \"bus_bw\": 2.954567,\n        \"nwrong\": 0,\n",
		"      \"in_place\": {\n        \"time\": 345.75,\n",
		"        \"min\": 344.75,\n        \"p50\": 345.75,\n        \"p90\": 346.75,\n        \"max\": 347.75,\n"
		"        \"slowest_rank\": 348.75,\n        \"calls_per_sample\": 1,\n"
		"        \"samples\": [\n          345.5,\n          345.75,\n          346.25\n        ]\n",
		"      \"redop\": \"none\",\n",
		"        \"nwrong\": 3,\n",
		"      \"in_place\": null\n",
		"  \"out_of_bounds\": {\n    \"count\": 1,\n    \"okay\": false\n  },\n  \"average_bus_bandwidth\": {\n",
		"  \"errors\": [\n    \"rank 1 has gone\"\n  ]\n}\n",
	};
	const char *at = text;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		at = strstr(at, parts[i]);
		CHECK_MSG(at, "not there, or not in its place: %s\n%s", parts[i], text);
		at += strlen(parts[i]);
	}
	free(text);
}

static void test_full_disk(void)
{
	struct bench_row one = row(ESP_ALLREDUCE, 4, 8, 7.5);
	FILE *full = fopen("/dev/full", "w");

	for (int as_json = 0; full && as_json < 2; as_json++) {
		struct bench_print print;
		bench_print_begin(&print, full, as_json, &config);
		bench_print_row(&print, &one);
		CHECK(bench_print_end(&print, NULL) == ESP_EIO);
		clearerr(full);
	}
	if (full)
		fclose(full);
}

int main(void)
{
	test_table();
	test_tables();
	test_widths();
	test_json();
	test_full_disk();
	return 0;
}
