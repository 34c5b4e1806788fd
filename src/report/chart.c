#include "report/chart.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/outfile.h"
#include "report/svg.h"

#define WIDTH 860.0
#define LEFT 78.0
#define TOP 84.0
#define PLOT_HEIGHT 330.0
#define BOTTOM 58.0
#define LEGEND_GAP 24.0
#define LEGEND_SIGN 34.0
#define LEGEND_LINE 22.0
#define MARK 3.6
#define TICKS_MAX 24u
#define TICKS_WANTED 6.0
#define VALUES_AS_TICKS 12u /* up to this many values of x are ticks themselves */
#define TICK_ROOM 26.0      /* pixels between two ticks */

/*
 * Colours that most colour-blind readers can tell apart, on a light and on a dark page; dashes and marks distinguish
 * the lines, too. CSS classes instead of CSS variables: some programs that show SVG do not know variables.
 */
static const char style[] =
	"text{font-family:Inter,'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#24242b}\n"
	".title{font-size:18px;font-weight:600}.note{font-size:12px;fill:#5c5c68}.tick{font-size:11.5px;fill:#5c5c68}"
	".label{font-size:12.5px;font-weight:600}.key{font-size:12.5px}\n"
	".line{fill:none;stroke-width:2;stroke-linejoin:round}.paper{fill:#fcfbf8;stroke:#e3e1da}.grid{stroke:#e3e1da}"
	".axis{stroke:#5c5c68}\n"
	".s0{stroke:#0072b2}.f0{fill:#0072b2}.s1{stroke:#c04e00}.f1{fill:#c04e00}.s2{stroke:#007d5b}.f2{fill:#007d5b}"
	".s3{stroke:#a8407f}.f3{fill:#a8407f}.s4{stroke:#8a6a00}.f4{fill:#8a6a00}.s5{stroke:#2f7fb8}.f5{fill:#2f7fb8}"
	".s6{stroke:#7a4b2a}.f6{fill:#7a4b2a}.s7{stroke:#5456a8}.f7{fill:#5456a8}"
	"\n@media (prefers-color-scheme:dark){text{fill:#ecebf0}.note,.tick{fill:#a9a9b6}"
	".paper{fill:#1c1c22;stroke:#3a3a44}.grid{stroke:#3a3a44}.axis{stroke:#a9a9b6}"
	".s0{stroke:#56b4e9}.f0{fill:#56b4e9}.s1{stroke:#ff9a52}.f1{fill:#ff9a52}.s2{stroke:#3fd0a4}.f2{fill:#3fd0a4}"
	".s3{stroke:#e39bc8}.f3{fill:#e39bc8}.s4{stroke:#f0d04a}.f4{fill:#f0d04a}.s5{stroke:#9ad0f5}.f5{fill:#9ad0f5}"
	".s6{stroke:#d8a884}.f6{fill:#d8a884}.s7{stroke:#b3b4ff}.f7{fill:#b3b4ff}"
	"}\n";

#define COLOURS 8u
static const char *const dashes[] = {"", "7 4"};     /* a line takes the next dash after every COLOURS lines */
enum { MARK_CIRCLE, MARK_SQUARE, MARK_DIAMOND, MARK_TRIANGLE, MARK_KINDS };

/* One direction of the plot. */
struct axis {
	double low, high; /* of the values, logarithms if is_log */
	double from, to;  /* pixels */
	bool is_log;
	double ticks[TICKS_MAX];
	size_t tick_count;
};

struct painter {
	const struct chart *chart;
	FILE *out;
	struct axis x, y;
	double legend_left, height;
};

/* ---- axes ---- */

static double place(const struct axis *axis, double value)
{
	double at = axis->is_log ? log10(value) : value;
	return axis->from + (at - axis->low) / (axis->high - axis->low) * (axis->to - axis->from);
}

static void add_tick(struct axis *axis, double value)
{
	double at = axis->is_log ? log10(value) : value, slack = (axis->high - axis->low) * 1e-9;
	if (axis->tick_count < TICKS_MAX && at >= axis->low - slack && at <= axis->high + slack)
		axis->ticks[axis->tick_count++] = value;
}

/* A step of 1, 2 or 5 times a power of ten. */
static double nice_step(double range)
{
	double raw = range / TICKS_WANTED, power = pow(10, floor(log10(raw))), digit = raw / power;
	return (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10) * power;
}

static void linear_ticks(struct axis *axis)
{
	double step = nice_step(axis->high - axis->low);
	for (double i = ceil(axis->low / step - 1e-9); i * step <= axis->high + step * 1e-9 && axis->tick_count < TICKS_MAX;
	     i++)
		add_tick(axis, i * step == 0 ? 0 : i * step); /* no -0 */
}

/* Powers of ten, and 2 and 5 between them while there are few. */
static void log_ticks(struct axis *axis)
{
	bool is_short = axis->high - axis->low < 3;
	int step = axis->high - axis->low > 12 ? 3 : 1;
	for (int decade = (int)floor(axis->low); decade <= (int)ceil(axis->high); decade += step) {
		add_tick(axis, pow(10, decade));
		if (is_short) {
			add_tick(axis, 2 * pow(10, decade));
			add_tick(axis, 5 * pow(10, decade));
		}
	}
}

/* From the range of the values. A linear axis begins at 0 unless all values are far above it. */
static void axis_init(struct axis *axis, double low, double high, bool is_log, bool from_zero)
{
	axis->is_log = is_log && low > 0;
	if (axis->is_log) {
		low = log10(low);
		high = log10(high);
	} else if (from_zero && low > 0 && low < 0.75 * high) {
		low = 0;
	}
	if (!(high - low > 1e-12 * fmax(fabs(high), fabs(low)))) { /* a single value */
		low -= axis->is_log ? 0.5 : fmax(fabs(low), 1) / 2;
		high += axis->is_log ? 0.5 : fmax(fabs(high), 1) / 2;
	}
	axis->low = low;
	axis->high = high;
}

/* Adds room above the highest line, and below the lowest where the axis does not begin at 0. */
static void axis_widen(struct axis *axis)
{
	double room = (axis->high - axis->low) * 0.05;
	axis->high += room;
	if (axis->is_log || axis->low != 0)
		axis->low -= room;
}

static void range_y(const struct chart *chart, double *out_low, double *out_high)
{
	*out_low = INFINITY;
	*out_high = -INFINITY;
	for (size_t l = 0; l < chart->line_count; l++)
		for (size_t i = 0; i < chart->count; i++)
			if (isfinite(chart->lines[l].y[i])) {
				*out_low = fmin(*out_low, chart->lines[l].y[i]);
				*out_high = fmax(*out_high, chart->lines[l].y[i]);
			}
}

/* Makes the values of x the ticks if they are few and far enough apart; false: they are not. */
static bool ticks_at_values(struct painter *painter)
{
	const struct chart *chart = painter->chart;
	if (chart->count > VALUES_AS_TICKS)
		return false;
	for (size_t i = 1; i < chart->count; i++)
		if (place(&painter->x, chart->x[i]) - place(&painter->x, chart->x[i - 1]) < TICK_ROOM)
			return false;
	for (size_t i = 0; i < chart->count; i++)
		add_tick(&painter->x, chart->x[i]);
	return true;
}

static void lay_out(struct painter *painter)
{
	const struct chart *chart = painter->chart;
	double widest = 0, low, high;
	for (size_t l = 0; l < chart->line_count; l++)
		widest = fmax(widest, svg_text_width(chart->lines[l].name, 12.5));
	painter->legend_left = WIDTH - fmin(widest, WIDTH / 3) - LEGEND_SIGN - 18;
	painter->height = TOP + fmax(PLOT_HEIGHT, (double)chart->line_count * LEGEND_LINE) + BOTTOM;
	painter->x.from = LEFT;
	painter->x.to = painter->legend_left - LEGEND_GAP;
	painter->y.from = painter->height - BOTTOM;
	painter->y.to = TOP;
	axis_init(&painter->x, chart->x[0], chart->x[chart->count - 1], chart->log_x, false);
	range_y(chart, &low, &high);
	axis_init(&painter->y, low, high, chart->log_y, true);
	axis_widen(&painter->y);
	if (!ticks_at_values(painter))
		painter->x.is_log ? log_ticks(&painter->x) : linear_ticks(&painter->x);
	painter->y.is_log ? log_ticks(&painter->y) : linear_ticks(&painter->y);
}

/* ---- painting ---- */

/* In as few digits as possible: 0.25, 16, 1000, 2e6. */
static const char *number_text(double value, char text[32])
{
	snprintf(text, 32, fabs(value) >= 1e6 || (value != 0 && fabs(value) < 1e-3) ? "%.3g" : "%.6g", value);
	return text;
}

static void paint_axes(const struct painter *painter)
{
	FILE *out = painter->out;
	char text[32];
	for (size_t i = 0; i < painter->y.tick_count; i++) {
		double y = place(&painter->y, painter->y.ticks[i]);
		svg_path_begin(out);
		svg_path_line(out, painter->x.from, y, painter->x.to, y);
		svg_path_end(out, "class=\"grid\"");
		svg_text(out, painter->x.from - 8, y + 4, "tick", "end", number_text(painter->y.ticks[i], text));
	}
	for (size_t i = 0; i < painter->x.tick_count; i++) {
		double x = place(&painter->x, painter->x.ticks[i]);
		svg_path_begin(out);
		svg_path_line(out, x, painter->y.from, x, painter->y.from + 5);
		svg_path_end(out, "class=\"axis\"");
		svg_text(out, x, painter->y.from + 19, "tick", "middle", number_text(painter->x.ticks[i], text));
	}
	svg_path_begin(out);
	svg_path_line(out, painter->x.from, painter->y.from, painter->x.to, painter->y.from);
	svg_path_end(out, "class=\"axis\"");
	svg_text(out, (painter->x.from + painter->x.to) / 2, painter->height - 16, "label", "middle",
	         painter->chart->x_label);
	svg_text(out, 18, TOP - 12, "label", "start", painter->chart->y_label);
}

static void paint_mark(FILE *out, size_t line, double x, double y)
{
	char fill[32];
	snprintf(fill, sizeof fill, "class=\"f%zu\"", line % COLOURS);
	switch (line % MARK_KINDS) {
	case MARK_CIRCLE:
		svg_circle(out, x, y, MARK, fill);
		break;
	case MARK_SQUARE:
		svg_rect(out, x - MARK, y - MARK, 2 * MARK, 2 * MARK, 0, fill);
		break;
	case MARK_DIAMOND:
	default:
		svg_path_begin(out);
		svg_path_point(out, true, x, y - 1.3 * MARK);
		svg_path_point(out, false, x + 1.2 * MARK, line % MARK_KINDS == MARK_DIAMOND ? y : y + MARK);
		if (line % MARK_KINDS == MARK_DIAMOND)
			svg_path_point(out, false, x, y + 1.3 * MARK);
		svg_path_point(out, false, x - 1.2 * MARK, line % MARK_KINDS == MARK_DIAMOND ? y : y + MARK);
		svg_path_end(out, fill);
		break;
	}
}

static void paint_stroke(FILE *out, size_t line)
{
	char attributes[96];
	const char *dash = dashes[line / COLOURS % (sizeof dashes / sizeof dashes[0])];
	snprintf(attributes, sizeof attributes, "class=\"line s%zu\"%s%s%s", line % COLOURS,
	         dash[0] ? " stroke-dasharray=\"" : "", dash, dash[0] ? "\"" : "");
	svg_path_end(out, attributes);
}

static bool is_shown(const struct painter *painter, double value)
{
	return isfinite(value) && (!painter->y.is_log || value > 0);
}

static void paint_line(const struct painter *painter, size_t l)
{
	const struct chart *chart = painter->chart;
	const struct chart_line *line = &chart->lines[l];
	FILE *out = painter->out;
	bool is_first = true;
	char x_text[32], y_text[32];
	fputs("<g><title>", out);
	svg_escaped(out, line->name);
	fputs("</title>\n", out);
	svg_path_begin(out);
	for (size_t i = 0; i < chart->count; i++) {
		if (is_shown(painter, line->y[i]))
			svg_path_point(out, is_first, place(&painter->x, chart->x[i]), place(&painter->y, line->y[i]));
		is_first = !is_shown(painter, line->y[i]);
	}
	paint_stroke(out, l);
	for (size_t i = 0; i < chart->count; i++) {
		if (!is_shown(painter, line->y[i]))
			continue;
		fputs("<g><title>", out);
		svg_escaped(out, line->name);
		fprintf(out, ": %s at %s</title>\n", number_text(line->y[i], y_text), number_text(chart->x[i], x_text));
		paint_mark(out, l, place(&painter->x, chart->x[i]), place(&painter->y, line->y[i]));
		fputs("</g>\n", out);
	}
	fputs("</g>\n", out);
}

static void paint_legend(const struct painter *painter)
{
	for (size_t l = 0; l < painter->chart->line_count; l++) {
		double y = TOP + ((double)l + 0.5) * LEGEND_LINE;
		svg_path_begin(painter->out);
		svg_path_line(painter->out, painter->legend_left, y, painter->legend_left + LEGEND_SIGN - 8, y);
		paint_stroke(painter->out, l);
		paint_mark(painter->out, l, painter->legend_left + (LEGEND_SIGN - 8) / 2, y);
		svg_text(painter->out, painter->legend_left + LEGEND_SIGN, y + 4, "key", "start",
		         painter->chart->lines[l].name);
	}
}

enum esp_status chart_write(const struct chart *chart, FILE *out, struct error *err)
{
	struct painter painter = {.chart = chart, .out = out};
	double low, high;
	if (chart->count == 0 || chart->line_count == 0)
		return error_set(err, ESP_EINVAL, "there is nothing to draw");
	if (chart->line_count > CHART_LINES_MAX)
		return error_set(err, ESP_EINVAL, "a chart of more than %u lines explains nothing any more", CHART_LINES_MAX);
	range_y(chart, &low, &high);
	if (!(low <= high))
		return error_set(err, ESP_EINVAL, "there is nothing to draw: no line has a value");
	lay_out(&painter);
	svg_begin(out, WIDTH, painter.height, chart->title, style);
	svg_rect(out, 0.5, 0.5, WIDTH - 1, painter.height - 1, 10, "class=\"paper\"");
	svg_text(out, 18, 30, "title", "start", chart->title);
	if (chart->note[0])
		svg_text(out, 18, 48, "note", "start", chart->note);
	paint_axes(&painter);
	for (size_t l = 0; l < chart->line_count; l++)
		paint_line(&painter, l);
	paint_legend(&painter);
	svg_end(out);
	return ferror(out) ? error_set(err, ESP_EIO, "a chart could not be written") : ESP_OK;
}

enum esp_status chart_save(const struct chart *chart, const char *path, struct error *err)
{
	struct outfile out;
	enum esp_status status = outfile_open(&out, path, err);
	if (status != ESP_OK)
		return status;
	status = chart_write(chart, out.file, err);
	if (status == ESP_OK)
		return outfile_commit(&out, err);
	outfile_abandon(&out);
	return status;
}
