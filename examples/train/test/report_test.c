#include "../report.h"

#include "../gallery.h"
#include "base/check.h"

static struct epoch_result epochs[2][2] = {
	{{0.5, 0.75, 0.25, 0.875}, {0.125, 1, 0.1, 0.96}},
	{{0.5, 0.75, 0.25, 0.875}, {0.126, 1, 0.1, 0.95}},
};
static uint64_t hashes[2][3] = {{1, 1, 1}, {0xabc, 0xabc, 0xabc}};
static struct plan_result plans[2] = {
	{.plan = "default", .planner = "flat", .epochs = epochs[0], .seconds = {4, 1, 2, 8, 2},
	 .bytes = {2000000, 1200000, 500000, 42, 700000}, .hashes = hashes[0]},
	{.plan = "ring", .planner = "ring", .epochs = epochs[1], .seconds = {5, 2, 1, 8, 2},
	 .bytes = {3000000, 0, 3000000, 43, 1000000}, .hashes = hashes[1]},
};
static const struct report report = {
	.version = "1.2.3", .ranks = 3, .plan_count = 2, .epochs = 2, .seed = 7, .batch = 8, .samples = 48,
	.test_samples = 12, .steps = 2, .parameters = 99, .layers = 4, .seconds = 9.5, .plans = plans,
};

/* What is written, until the next call. */
static const char *written(void (*write)(const struct report *report, FILE *out), const struct report *what)
{
	static char *text;
	size_t bytes;
	free(text);
	FILE *out = open_memstream(&text, &bytes);
	CHECK(out);
	write(what, out);
	CHECK(fclose(out) == 0);
	return text;
}

#define CHECK_HAS(text, part) CHECK_MSG(strstr(text, part), "no \"%s\" in\n%s", part, text)

static void test_tables(void)
{
	const char *text = written(report_tables, &report);
	CHECK_HAS(text, "epoch            default               ring\n");
	CHECK_HAS(text, "\n    2         0.12500000         0.12600000\n");
	CHECK_HAS(text, "\n    2     100.00   96.00     100.00   95.00\n");
	CHECK_HAS(text, "default            flat                  4.00     3.00     1.00   25.0 %       2.00    50 % "
	                "      25.0 %\n");
	/* More time waited than in flight hides nothing. */
	CHECK_HAS(text, "ring               ring                  5.00     3.00     2.00   40.0 %       1.00     0 % "
	                "      25.0 %\n");
	CHECK_HAS(text, "default                  2.0       0.50           0.7            1.2        0.3        0.5"
	                "           42\n");
	CHECK_HAS(text, "\n    2   0000000000000001   0000000000000abc\n");
	CHECK_HAS(text, "all 3 ranks hold bit-identical weights. 9.5 seconds in all.\n");
	CHECK(!strstr(text, "DIFFERENT"));
}

static void test_difference(void)
{
	hashes[1][1] = 0xabd;
	CHECK(report_plan_agrees(&report, &plans[0]) && !report_plan_agrees(&report, &plans[1]) && !report_agrees(&report));
	const char *text = written(report_tables, &report);
	CHECK_HAS(text, "\n    1   0000000000000001  !0000000000000abd\n");
	CHECK_HAS(text, "\nDIFFERENT: plan ring: rank 1 does not have the weights of the others\n");
	CHECK_HAS(text, "The ranks do not hold the same weights.");
	CHECK(!strstr(text, "rank 0 does"));
	text = written(report_json, &report);
	CHECK_HAS(text, "\"identical\": true\n    },");
	CHECK_HAS(text, "\"identical\": false\n    }\n");
	CHECK_HAS(text, "\"identical\": false\n}\n");
	hashes[1][1] = 0xabc;
}

/* Rank 0 is not always right. */
static void test_common_hash(void)
{
	hashes[0][0] = 5;
	CHECK_U64(report_common_hash(&report, &plans[0]), 1);
	hashes[0][0] = 1;
	hashes[0][2] = 5;
	CHECK_U64(report_common_hash(&report, &plans[0]), 1);
	hashes[0][2] = 1;
}

static void test_json(void)
{
	struct report small = report;
	small.plan_count = 1;
	small.epochs = 1;
	plans[0].plan = "de\"fa\\u\nlt";
	CHECK_STR(written(report_json, &small),
	          "{\n"
	          "  \"version\": \"1.2.3\",\n"
	          "  \"ranks\": 3,\n"
	          "  \"seed\": 7,\n"
	          "  \"samples\": 48,\n"
	          "  \"test_samples\": 12,\n"
	          "  \"batch\": 8,\n"
	          "  \"steps\": 2,\n"
	          "  \"parameters\": 99,\n"
	          "  \"layers\": 4,\n"
	          "  \"seconds\": 9.5,\n"
	          "  \"plans\": [\n"
	          "    {\n"
	          "      \"plan\": \"de\\\"fa\\\\u\\u000alt\",\n"
	          "      \"planner\": \"flat\",\n"
	          "      \"epochs\": [\n"
	          "        {\"epoch\": 1, \"loss\": 0.5, \"accuracy\": 0.75, \"test_loss\": 0.25, "
	          "\"test_accuracy\": 0.875}\n"
	          "      ],\n"
	          "      \"seconds\": {\"total\": 4, \"compute\": 3, \"waiting\": 1, \"in_flight\": 2, \"cpu\": 8, "
	          "\"communication_cpu\": 2},\n"
	          "      \"bytes\": {\"sent\": 2000000, \"shared\": 1200000, \"network\": 500000, "
	          "\"messages\": 42, \"busiest\": 700000},\n"
	          "      \"hashes\": [\"0000000000000001\", \"0000000000000001\", \"0000000000000001\"],\n"
	          "      \"identical\": true\n"
	          "    }\n"
	          "  ],\n"
	          "  \"identical\": true\n"
	          "}\n");
	plans[0].plan = "default";
	plans[0].seconds.total = 0.0 / 0.0;
	CHECK_HAS(written(report_json, &small), "\"total\": null, \"compute\": null, \"waiting\": 1");
	plans[0].seconds.total = 4;
}

static void write_gallery(const struct report *unused, FILE *out)
{
	struct glyph glyph = {0};
	const struct glyph *glyphs[] = {&glyph, &glyph};
	const char *const captions[] = {"3", "4 or 9"};
	(void)unused;
	glyph.pixels[2 * GLYPH_SIDE + 1] = glyph.pixels[3 * GLYPH_SIDE + 1] = 255;
	glyph.pixels[15 * GLYPH_SIDE + 15] = 128;
	gallery_print(out, glyphs, captions, 2);
}

static void test_gallery(void)
{
	CHECK_STR(written(write_gallery, &report), "\n"
	                                           " @                   @\n"
	                                           "\n\n\n\n\n"
	                                           "               :                   :\n"
	                                           "3                   4 or 9\n");
}

int main(void)
{
	test_tables();
	test_difference();
	test_common_hash();
	test_json();
	test_gallery();
	return 0;
}
