/*
 * probe_dots.c - the map of a report: hosts as dots, coloured by group, and their names in two columns beside them.
 *
 * Names do not stand at the dots: hosts of one rack are near each other, and names are long. In the columns none is in the way of another, however
 * many there are, and a line leads from each to its dot. Of many hosts the groups are named instead.
 */
#include <math.h>
#include <stdlib.h>

#include "report/complain.h"
#include "report/svg.h"
#include "tools/probe/probe_map.h"
#include "tools/probe/probe_page.h"

#define SIDE 520.0        /* of the square that the dots are in, unless they need more */
#define LINE 15.0         /* from label to label                                       */
#define GAP 34.0          /* between dots and labels                                   */
#define NUMBERED_MOST 128u /* dots that are large enough for the number of their group */
#define LETTERS 12.0
#define ROOM 1.2          /* some letters are wider than usual */

struct dots {
	const struct probe_page *page;
	uint32_t hosts, groups;
	double radius;
	double left, right, top, bottom; /* of the dots */
	uint32_t labels;   /* as many as hosts or groups, or none */
	uint32_t *host_of; /* by label: the host whose dot it is at */
	struct probe_map_label *label;
	double *x, *y;     /* by label: its dot                    */
	double width;      /* of the widest label                  */
};

static bool is_named(const struct dots *dots)
{
	return dots->hosts <= PAGE_NAMES_MOST;
}

/* From the unit square to the picture, so far apart that no dot hides another. */
static void place_dots(struct dots *dots)
{
	const struct probe_page *page = dots->page;

	for (uint32_t i = 0; i < dots->hosts; i++) {
		page->x[i] *= SIDE;
		page->y[i] *= SIDE;
	}
	probe_map_spread(page->x, page->y, dots->hosts, 2 * dots->radius + 1, 1);
	dots->left = dots->top = INFINITY;
	dots->right = dots->bottom = -INFINITY;
	for (uint32_t i = 0; i < dots->hosts; i++) {
		dots->left = fmin(dots->left, page->x[i]);
		dots->right = fmax(dots->right, page->x[i]);
		dots->top = fmin(dots->top, page->y[i]);
		dots->bottom = fmax(dots->bottom, page->y[i]);
	}
}

/* ---- labels ---- */

static uint32_t group_size(const struct dots *dots, uint32_t group)
{
	uint32_t size = 0;

	for (uint32_t i = 0; i < dots->hosts; i++)
		size += page_group(dots->page, i) == group;
	return size;
}

/* The host of a group that is the nearest to its middle. */
static uint32_t middle_of(const struct dots *dots, uint32_t group)
{
	const double *x = dots->page->x, *y = dots->page->y;
	double size = group_size(dots, group), middle_x = 0, middle_y = 0, least = INFINITY;
	uint32_t best = 0;

	for (uint32_t i = 0; i < dots->hosts; i++) {
		if (page_group(dots->page, i) != group)
			continue;
		middle_x += x[i] / size;
		middle_y += y[i] / size;
	}
	for (uint32_t i = 0; i < dots->hosts; i++) {
		double distance = hypot(x[i] - middle_x, y[i] - middle_y);
		if (page_group(dots->page, i) != group || distance >= least)
			continue;
		least = distance;
		best = i;
	}
	return best;
}

/* What a label says: "node17", or "group 3: 40 hosts". Returns text. */
static const char *label_text(const struct dots *dots, uint32_t label, char text[PAGE_NAME])
{
	if (is_named(dots))
		return page_short_name(dots->page, dots->host_of[label], text);
	uint32_t group = page_group(dots->page, dots->host_of[label]), size = group_size(dots, group);

	snprintf(text, PAGE_NAME, "group %u: %u host%s", group, size, cli_plural(size));
	return text;
}

static enum esp_status place_labels(struct dots *dots)
{
	char text[PAGE_NAME];

	dots->labels = is_named(dots) ? dots->hosts : dots->groups <= PAGE_NAMES_MOST ? dots->groups : 0;
	dots->host_of = calloc(dots->labels + 1u, sizeof(*dots->host_of));
	dots->label = calloc(dots->labels + 1u, sizeof(*dots->label));
	dots->x = calloc(dots->labels + 1u, sizeof(*dots->x));
	dots->y = calloc(dots->labels + 1u, sizeof(*dots->y));
	if (!dots->host_of || !dots->label || !dots->x || !dots->y)
		return ESP_ENOMEM;
	for (uint32_t i = 0; i < dots->labels; i++) {
		dots->host_of[i] = is_named(dots) ? i : middle_of(dots, i);
		dots->x[i] = dots->page->x[dots->host_of[i]];
		dots->y[i] = dots->page->y[dots->host_of[i]];
		dots->width = fmax(dots->width, ROOM * svg_text_width(label_text(dots, i, text), LETTERS));
	}
	/* both columns have as many; they may need more height than the dots */
	double more = fmax(0, (dots->labels / 2.0 - 0.5) * LINE - (dots->bottom - dots->top));
	dots->top -= more / 2;
	dots->bottom += more / 2;
	return probe_map_labels(dots->x, dots->y, dots->labels, dots->top, dots->bottom, LINE, dots->label);
}

static void write_label(const struct dots *dots, uint32_t label)
{
	const struct probe_map_label *at = &dots->label[label];
	double x = at->is_left ? dots->left - GAP : dots->right + GAP, towards = at->is_left ? 1 : -1;
	FILE *file = dots->page->file;
	char text[PAGE_NAME];

	fprintf(file, "<g class=\"name g%u\"><path d=\"M%.1f %.1fh%.0fL%.1f %.1f\"/><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">",
	        page_group(dots->page, dots->host_of[label]) % PAGE_COLOURS, x + 3 * towards, at->y, 7 * towards, dots->x[label], dots->y[label], x,
	        at->y + LETTERS / 3, at->is_left ? "end" : "start");
	svg_escaped(file, label_text(dots, label, text));
	fputs("</text></g>\n", file);
}

/* ---- dots ---- */

static void write_dot(const struct dots *dots, uint32_t host)
{
	double x = dots->page->x[host], y = dots->page->y[host];
	uint32_t group = page_group(dots->page, host);
	FILE *file = dots->page->file;

	fprintf(file, "<g class=\"dot g%u\"><title>", group % PAGE_COLOURS);
	svg_escaped(file, page_name(dots->page, host));
	fprintf(file, ", group %u</title><circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.0f\"/>", group, x, y, dots->radius);
	if (dots->hosts <= NUMBERED_MOST)
		fprintf(file, "<text class=\"in\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%u</text>", x, y + 4, group);
	fputs("</g>\n", file);
}

static void write_legend(const struct dots *dots)
{
	FILE *file = dots->page->file;

	if (dots->groups > PAGE_NAMES_MOST) {
		fprintf(file, "<p class=\"soft\">There are %u groups: colours repeat after %u of them. Point at a dot for its host and its group.</p>", dots->groups, PAGE_COLOURS);
		return;
	}
	fputs("<p class=\"legend\">", file);
	for (uint32_t g = 0; g < dots->groups; g++) {
		uint32_t size = group_size(dots, g);
		fprintf(file, "<span><span class=\"chip g%u\">%u</span> %u host%s</span>\n", g % PAGE_COLOURS, g, size, cli_plural(size));
	}
	fputs("</p>", file);
}

static void write_all(const struct dots *dots)
{
	double edge = dots->labels ? GAP + dots->width + 4 : dots->radius + 4, up = fmax(dots->radius, LETTERS) + 4;
	double width = dots->right - dots->left + 2 * edge;
	FILE *file = dots->page->file;

	fprintf(file, "<section><h2>Map</h2>\n<svg class=\"map\" viewBox=\"%.0f %.0f %.0f %.0f\" style=\"max-width:%.0fpx\" role=\"img\" aria-label=\"Hosts as points; "
	        "near in the network is near in the picture. The groups are listed below.\">\n", dots->left - edge, dots->top - up, width,
	        dots->bottom - dots->top + 2 * up, fmax(width, SIDE));
	for (uint32_t i = 0; i < dots->labels; i++)
		write_label(dots, i);
	for (uint32_t i = 0; i < dots->hosts; i++)
		write_dot(dots, i);
	fputs("</svg>\n", file);
	write_legend(dots);
	fputs("\n<p class=\"soft\">Every host as a point, such that what was measured to be near is near; dots that would hide each other are moved apart. "
	      "Colour and number are those of its group. Only distances mean something, not directions.", file);
	if (dots->page->domain > 0) {
		fputs(" Names are without ", file);
		svg_escaped(file, page_domain(dots->page));
		fputc('.', file);
	}
	fputs("</p></section>\n", file);
}

enum esp_status page_write_map(const struct probe_page *page)
{
	const struct found *found = &page->outcome->found;
	struct dots dots = {.page = page, .hosts = found->survey.count, .groups = found->grouping.count};

	dots.radius = dots.hosts <= NUMBERED_MOST ? 9 : 5;
	place_dots(&dots);
	enum esp_status status = place_labels(&dots);
	if (status == ESP_OK)
		write_all(&dots);
	free(dots.host_of);
	free(dots.label);
	free(dots.x);
	free(dots.y);
	return status;
}
