#include "report/chart.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

static char *draw(const struct chart *chart, enum esp_status wanted, struct error *err)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	CHECK(out != NULL);
	enum esp_status status = chart_write(chart, out, err);
	CHECK_MSG(status == wanted, "%d %s", status, err->text);
	CHECK(fclose(out) == 0);
	return text;
}

static size_t count(const char *text, const char *what)
{
	size_t found = 0;
	for (; (text = strstr(text, what)); text += strlen(what))
		found++;
	return found;
}

static void test_picture(void)
{
	static const double x[] = {4, 8, 16, 32}, server[] = {2, 4, 8, 16}, ring[] = {0.5, 0.55, NAN, 0.6};
	static const struct chart_line lines[] = {{"server", server}, {"ring <&>", ring}};
	const struct chart chart = {"VGG-16", "25 Gbit/s", "workers", "seconds", x, 4, lines, 2, .log_x = true};
	struct error err = {0};
	char *text = draw(&chart, ESP_OK, &err), *again = draw(&chart, ESP_OK, &err);
	CHECK_STR(again, text);
	CHECK(strncmp(text, "<svg ", 5) == 0 && strstr(text, "</svg>\n") && strstr(text, "prefers-color-scheme:dark"));
	CHECK(strstr(text, ">server: 16 at 32</title>") && strstr(text, "ring &lt;&amp;&gt;: 0.6 at 32"));
	CHECK(!strstr(text, "ring <") && !strstr(text, "nan") && !strstr(text, "inf"));
	/* A title per point: four and three; one per line, and the picture's. */
	CHECK_U64(count(text, "<title>"), 7 + 2 + 1);
	CHECK_U64(count(text, "<title>"), count(text, "</title>"));
	/* The workers stand at the axis as they are. */
	for (size_t i = 0; i < 4; i++) {
		char tick[32];
		snprintf(tick, sizeof tick, ">%g</text>", x[i]);
		CHECK_MSG(strstr(text, tick), "no tick %g", x[i]);
	}
	free(text);
	free(again);
}

/* The largest coordinate of an attribute stays within the picture, whatever the values. */
static void test_any_values(uint64_t seed)
{
	struct rng rng;
	rng_init(&rng, seed);
	for (int round = 0; round < 300; round++) {
		double x[20], y[CHART_LINES_MAX][20];
		struct chart_line lines[CHART_LINES_MAX];
		size_t n = 1 + rng_below(&rng, 20), line_count = 1 + rng_below(&rng, CHART_LINES_MAX);
		double at = rng_unit(&rng) * 100 - 50, scale = pow(10, rng_unit(&rng) * 24 - 12);
		for (size_t i = 0; i < n; i++)
			x[i] = at += rng_unit(&rng) + 1e-3;
		for (size_t l = 0; l < line_count; l++) {
			lines[l] = (struct chart_line){"line", y[l]};
			for (size_t i = 0; i < n; i++)
				y[l][i] = rng_chance(&rng, 1, 10) ? NAN : (rng_unit(&rng) - (double)rng_below(&rng, 2)) * scale;
		}
		y[0][0] = scale;
		const struct chart chart = {
			"t", "", "x", "y", x, n, lines, line_count, rng_chance(&rng, 1, 2), rng_chance(&rng, 1, 2)};
		struct error err = {0};
		char *text = draw(&chart, ESP_OK, &err);
		CHECK(!strstr(text, "nan") && !strstr(text, "inf"));
		for (const char *found = text; (found = strstr(found, "<circle cx=\"")); found++) {
			double cx = strtod(found + strlen("<circle cx=\""), NULL);
			CHECK_MSG(cx >= 0 && cx <= 860, "round %d: a mark at %g", round, cx);
		}
		free(text);
	}
}

static void test_refused(void)
{
	static const double x[] = {1}, y[] = {NAN};
	struct chart_line lines[CHART_LINES_MAX + 1];
	struct error err = {0};
	for (size_t i = 0; i <= CHART_LINES_MAX; i++)
		lines[i] = (struct chart_line){"line", y};
	free(draw(&(struct chart){"t", "", "x", "y", x, 0, lines, 1}, ESP_EINVAL, &err));
	free(draw(&(struct chart){"t", "", "x", "y", x, 1, lines, 1}, ESP_EINVAL, &err));
	CHECK(strstr(err.text, "no line has a value"));
	free(draw(&(struct chart){"t", "", "x", "y", x, 1, lines, CHART_LINES_MAX + 1}, ESP_EINVAL, &err));
}

int main(int argc, char **argv)
{
	test_picture();
	test_any_values(test_seed(argc, argv, 1));
	test_refused();
	return 0;
}
