/*
 * probe_heat.c - the heat map of a report: a cell for each pair of hosts, the darker the further.
 */
#include <math.h>
#include <string.h>

#include "report/svg.h"
#include "tools/probe/probe_page.h"

#define SHADES 9u
#define NUMBERS_MOST 31u /* hosts whose heat map has numbers in its cells; of more of them nobody could read any */
#define HEAT 640.0
#define CELL_MOST 72.0   /* few hosts have a small picture */
#define BAR 5.0          /* beside a row and above a column: the colour of its group */

/* What the numbers of a heat map are counted in. */
struct scale {
	enum survey_kind kind;
	double least, most; /* distances; INFINITY and 0: none is known */
	double factor;      /* from seconds, or bytes per second, to the unit */
	const char *unit;
};

static double width_of(uint32_t cells)
{
	return fmin(HEAT, CELL_MOST * cells);
}

/* The mean of the distances between two stretches of hosts; NAN: none is known. */
static double mean_between(const struct probe_page *page, const struct matrix *matrix, uint32_t cells, uint32_t row, uint32_t column)
{
	uint32_t n = matrix->size, known = 0;
	double sum = 0;

	for (uint32_t i = row * n / cells; i < (row + 1) * n / cells; i++)
		for (uint32_t j = column * n / cells; j < (column + 1) * n / cells; j++) {
			double each = matrix_get(matrix, page->order[i], page->order[j]);
			if (i == j || !isfinite(each))
				continue;
			sum += each;
			known++;
		}
	return known ? sum / known : NAN;
}

/* The unit is the largest in which the largest number has a digit before the point. */
static void find_unit(struct scale *scale)
{
	static const struct {
		double factor;
		const char *unit;
	} latencies[] = {{1e3, "ms"}, {1e6, "us"}}, rates[] = {{8e-9, "Gbit/s"}, {8e-6, "Mbit/s"}, {8e-3, "kbit/s"}};
	bool is_latency = scale->kind == SURVEY_LATENCY;
	double largest = is_latency ? scale->most : 1 / scale->least;
	uint32_t i = 0, last = is_latency ? 1 : 2;

	while (i < last && largest * (is_latency ? latencies[i].factor : rates[i].factor) < 1)
		i++;
	scale->factor = is_latency ? latencies[i].factor : rates[i].factor;
	scale->unit = is_latency ? latencies[i].unit : rates[i].unit;
}

static struct scale find_scale(const struct matrix *matrix, enum survey_kind kind)
{
	struct scale scale = {.kind = kind, .least = INFINITY};

	for (uint32_t i = 0; i < matrix->size; i++)
		for (uint32_t j = 0; j < i; j++) {
			double each = matrix_get(matrix, i, j);
			if (!isfinite(each) || each <= 0)
				continue;
			scale.least = fmin(scale.least, each);
			scale.most = fmax(scale.most, each);
		}
	find_unit(&scale);
	return scale;
}

/* By ratios, as distances differ by factors. */
static uint32_t shade(double value, const struct scale *scale)
{
	double place = scale->most > scale->least * 1.0001 ? log(value / scale->least) / log(scale->most / scale->least) : 0;

	return (uint32_t)fmin(fmax(place * SHADES, 0), SHADES - 1);
}

/* The hosts of a cell's row or column: one, or the first and the last of those that share it. */
static void write_hosts(const struct probe_page *page, uint32_t cells, uint32_t at)
{
	uint32_t n = page->outcome->found.survey.count, first = at * n / cells, last = (at + 1) * n / cells - 1;

	svg_escaped(page->file, page_name(page, page->order[first]));
	if (last > first) {
		fputs(" to ", page->file);
		svg_escaped(page->file, page_name(page, page->order[last]));
	}
}

/* In the scale's unit, in four characters or so. */
static void write_number(const struct probe_page *page, const struct scale *scale, double distance, double x, double y, double side)
{
	double value = scale->kind == SURVEY_LATENCY ? distance * scale->factor : scale->factor / distance;

	fprintf(page->file, "<text%s x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\" style=\"font-size:%.1fpx;pointer-events:none\">",
	        shade(distance, scale) > SHADES / 2 ? " class=\"far\"" : "", x + side / 2, y + side / 2 + fmin(12, side * 0.4) * 0.35, fmin(12, side * 0.4));
	fprintf(page->file, value < 0.095 ? "%.2f</text>\n" : value < 9.95 ? "%.1f</text>\n" : "%.0f</text>\n", value);
}

/* A host is at no distance from itself: that is neither near nor not known. */
static void write_cell(const struct probe_page *page, const struct scale *scale, uint32_t cells, uint32_t row, uint32_t column)
{
	const struct matrix *matrix = &page->outcome->found.survey.matrices[scale->kind];
	double value = mean_between(page, matrix, cells, row, column), side = width_of(cells) / cells;
	double x = page->edge + column * side, y = page->edge + row * side;
	bool is_itself = row == column && (row + 1) * matrix->size / cells - row * matrix->size / cells == 1;
	char text[PROBE_NUMBER], css[8] = "hn";

	if (is_itself)
		snprintf(css, sizeof(css), "hd");
	else if (isfinite(value))
		snprintf(css, sizeof(css), "h%u", shade(value, scale));
	fprintf(page->file, "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"><title>", css, x, y, side + 0.05, side + 0.05);
	write_hosts(page, cells, row);
	if (!is_itself) {
		fputs(" – ", page->file);
		write_hosts(page, cells, column);
		fprintf(page->file, ": %s", probe_distance_text(scale->kind, value, text));
	}
	fputs("</title></rect>\n", page->file);
	if (cells <= NUMBERS_MOST && !is_itself && isfinite(value) && value > 0)
		write_number(page, scale, value, x, y, side);
}

/* So that names in two rows do not touch. */
static double letters(uint32_t hosts)
{
	return fmin(12, 0.95 * width_of(hosts) / hosts);
}

/* Room for the longest of the names, or for the numbers of groups. */
double page_find_edge(const struct probe_page *page)
{
	uint32_t hosts = page->outcome->found.survey.count;
	double longest = 4 * 7;
	char text[PAGE_NAME];

	for (uint32_t i = 0; i < hosts && hosts <= PAGE_NAMES_MOST; i++)
		longest = fmax(longest, 1.2 * svg_text_width(page_short_name(page, i, text), letters(hosts)));
	return 12 + BAR + longest;
}

/* Who is who: at the left, and above upright. */
static void write_names(const struct probe_page *page, uint32_t hosts)
{
	double side = width_of(hosts) / hosts, size = letters(hosts), end = page->edge - BAR - 6;
	char text[PAGE_NAME];

	for (uint32_t i = 0; i < hosts; i++) {
		double middle = page->edge + (i + 0.5) * side + size / 3;

		page_short_name(page, page->order[i], text);
		fprintf(page->file, "<text class=\"row\" style=\"font-size:%.1fpx\" x=\"%.1f\" y=\"%.2f\" text-anchor=\"end\">", size, end, middle);
		svg_escaped(page->file, text);
		fprintf(page->file, "</text>\n<text class=\"column\" style=\"font-size:%.1fpx\" transform=\"translate(%.2f %.1f) rotate(-90)\">", size, middle, end);
		svg_escaped(page->file, text);
		fputs("</text>\n", page->file);
	}
}

/* A group's hosts from the first to the one before the last: its colour at both edges, lines before it; its number if there are no names and there is room. */
static void write_stretch(const struct probe_page *page, uint32_t hosts, uint32_t first, uint32_t last)
{
	double side = width_of(hosts) / hosts, edge = page->edge, at = edge + first * side, length = (last - first) * side;
	uint32_t group = page_group(page, page->order[first]);
	FILE *file = page->file;

	fprintf(file, "<path class=\"side g%u\" d=\"M%.1f %.2fh%.1fv%.2fh-%.1fzM%.2f %.1fv%.1fh%.2fv-%.1fz\"/>\n", group % PAGE_COLOURS, edge - BAR - 2, at, BAR,
	        length, BAR, at, edge - BAR - 2, BAR, length, BAR);
	if (first > 0)
		fprintf(file, "<path class=\"cut\" d=\"M%.1f %.2fh%.0fM%.2f %.1fv%.0f\"/>\n", edge - BAR - 2, at, width_of(hosts) + BAR + 2, at, edge - BAR - 2,
		        width_of(hosts) + BAR + 2);
	if (hosts > PAGE_NAMES_MOST && length >= 14) {
		fprintf(file, "<text class=\"group\" x=\"%.1f\" y=\"%.2f\" text-anchor=\"end\">%u</text>\n", edge - BAR - 6, at + length / 2 + 4, group);
		fprintf(file, "<text class=\"group\" x=\"%.2f\" y=\"%.1f\" text-anchor=\"middle\">%u</text>\n", at + length / 2, edge - BAR - 6, group);
	}
}

static void write_frame(const struct probe_page *page, uint32_t hosts)
{
	for (uint32_t first = 0, i = 1; i <= hosts; i++) {
		if (i < hosts && page_group(page, page->order[i]) == page_group(page, page->order[first]))
			continue;
		write_stretch(page, hosts, first, i);
		first = i;
	}
	if (hosts <= PAGE_NAMES_MOST)
		write_names(page, hosts);
}

static void write_legend(const struct probe_page *page, const struct scale *scale)
{
	char text[PROBE_NUMBER];

	fputs("<svg viewBox=\"0 0 740 50\" style=\"max-width:740px\" role=\"img\" aria-label=\"Scale from near to far\">\n", page->file);
	for (uint32_t s = 0; s < SHADES; s++)
		fprintf(page->file, "<rect class=\"h%u\" x=\"%.0f\" y=\"14\" width=\"40.5\" height=\"14\"/>\n", s, 100 + s * 40.0);
	fprintf(page->file, "<text x=\"100\" y=\"43\">near: %s</text>", probe_distance_text(scale->kind, scale->least, text));
	fprintf(page->file, "<text x=\"460\" y=\"43\" text-anchor=\"end\">far: %s</text>", probe_distance_text(scale->kind, scale->most, text));
	fputs("<rect class=\"hn\" x=\"490\" y=\"14\" width=\"40\" height=\"14\"/><text x=\"536\" y=\"25\">not known</text></svg>\n", page->file);
}

static void write_numbers(const struct probe_page *page, enum survey_kind kind)
{
	const struct survey *survey = &page->outcome->found.survey;
	char text[PROBE_NUMBER];

	if (survey->count > PROBE_TABLE_HOSTS)
		return;
	fputs("<details><summary>The same as numbers</summary><table><thead><tr><th scope=\"col\">from</th>", page->file);
	for (uint32_t j = 0; j < survey->count; j++) {
		fputs("<th scope=\"col\">", page->file);
		svg_escaped(page->file, page_name(page, page->order[j]));
		fputs("</th>", page->file);
	}
	fputs("</tr></thead><tbody>\n", page->file);
	for (uint32_t i = 0; i < survey->count; i++) {
		fputs("<tr><th scope=\"row\">", page->file);
		svg_escaped(page->file, page_name(page, page->order[i]));
		fputs("</th>", page->file);
		for (uint32_t j = 0; j < survey->count; j++)
			fprintf(page->file, "<td>%s</td>",
			        i == j ? "" : probe_distance_text(kind, matrix_get(&survey->matrices[kind], page->order[i], page->order[j]), text));
		fputs("</tr>\n", page->file);
	}
	fputs("</tbody></table></details>\n", page->file);
}

void page_write_heat(const struct probe_page *page, enum survey_kind kind)
{
	const struct matrix *matrix = &page->outcome->found.survey.matrices[kind];
	uint32_t cells = matrix->size < PAGE_CELLS_MOST ? matrix->size : PAGE_CELLS_MOST;

	if (matrix->size == 0)
		return;
	const struct scale scale = find_scale(matrix, kind);
	double width = page->edge + width_of(cells);
	fprintf(page->file, "<section><h2>%s</h2>\n<svg viewBox=\"0 0 %.0f %.0f\" style=\"max-width:%.0fpx\" shape-rendering=\"crispEdges\" role=\"img\" aria-label=\"Matrix of all pairs of hosts, ordered by "
	        "groups\">\n", kind == SURVEY_LATENCY ? "Latency, there and back" : "Bandwidth, with all hosts sending", width, width, 1.6 * width);
	for (uint32_t row = 0; row < cells; row++)
		for (uint32_t column = 0; column < cells; column++)
			write_cell(page, &scale, cells, row, column);
	write_frame(page, matrix->size);
	fputs("</svg>\n", page->file);
	write_legend(page, &scale);
	fputs("<p class=\"soft\">Hosts are ordered by their groups. Where groups are real, squares along the diagonal stand out; "
	      "the coloured bars are the groups. ", page->file);
	if (cells <= NUMBERS_MOST)
		fprintf(page->file, "The numbers are in %s.</p>\n", scale.unit);
	else
		fputs("Point at a cell for its hosts and its number.</p>\n", page->file);
	write_numbers(page, kind);
	fputs("</section>\n", page->file);
}
