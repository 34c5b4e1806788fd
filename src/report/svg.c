#include "report/svg.h"

#include <math.h>
#include <stdlib.h>

#include "base/utf8.h"

#define HEAD_LENGTH 6.0
#define HEAD_WIDTH 2.6

/* Writes one decimal, or none if it is zero. */
static void put_number(FILE *file, double value)
{
	long tenths = lround(value * 10);
	const char *sign = tenths < 0 ? "-" : "";

	tenths = labs(tenths);
	if (tenths % 10)
		fprintf(file, "%s%ld.%ld", sign, tenths / 10, tenths % 10);
	else
		fprintf(file, "%s%ld", sign, tenths / 10);
}

static void put_attribute(FILE *file, const char *name, double value)
{
	fprintf(file, " %s=\"", name);
	put_number(file, value);
	fputc('"', file);
}

void svg_escaped(FILE *file, const char *text)
{
	for (; *text; text++) {
		if (*text == '&')
			fputs("&amp;", file);
		else if (*text == '<')
			fputs("&lt;", file);
		else if (*text == '>')
			fputs("&gt;", file);
		else
			fputc(*text, file);
	}
}

void svg_begin(FILE *file, double width, double height, const char *title, const char *style)
{
	fputs("<svg xmlns=\"http://www.w3.org/2000/svg\"", file);
	put_attribute(file, "width", width);
	put_attribute(file, "height", height);
	fputs(" viewBox=\"0 0 ", file);
	put_number(file, width);
	fputc(' ', file);
	put_number(file, height);
	fputs("\" role=\"img\">\n<title>", file);
	svg_escaped(file, title);
	fputs("</title>\n", file);
	fprintf(file, "<style>\n%s</style>\n", style);
}

void svg_end(FILE *file)
{
	fputs("</svg>\n", file);
}

void svg_text(FILE *file, double x, double y, const char *css, const char *anchor, const char *text)
{
	fputs("<text", file);
	put_attribute(file, "x", x);
	put_attribute(file, "y", y);
	fprintf(file, " class=\"%s\" text-anchor=\"%s\">", css, anchor);
	svg_escaped(file, text);
	fputs("</text>\n", file);
}

double svg_text_width(const char *text, double size)
{
	return (double)utf8_count(text) * size * 0.57;
}

void svg_rect(FILE *file, double x, double y, double width, double height, double radius, const char *attributes)
{
	fputs("<rect", file);
	put_attribute(file, "x", x);
	put_attribute(file, "y", y);
	put_attribute(file, "width", width);
	put_attribute(file, "height", height);
	if (radius > 0)
		put_attribute(file, "rx", radius);
	fprintf(file, " %s/>\n", attributes);
}

void svg_circle(FILE *file, double x, double y, double radius, const char *attributes)
{
	fputs("<circle", file);
	put_attribute(file, "cx", x);
	put_attribute(file, "cy", y);
	put_attribute(file, "r", radius);
	fprintf(file, " %s/>\n", attributes);
}

/* ---- paths ---- */

static void put_point(FILE *file, char command, double x, double y)
{
	fputc(command, file);
	put_number(file, x);
	fputc(' ', file);
	put_number(file, y);
}

static void put_length(FILE *file, char command, double length)
{
	fputc(command, file);
	put_number(file, length);
}

void svg_path_begin(FILE *file)
{
	fputs("<path d=\"", file);
}

void svg_path_point(FILE *file, bool is_first, double x, double y)
{
	put_point(file, is_first ? 'M' : 'L', x, y);
}

void svg_path_line(FILE *file, double x1, double y1, double x2, double y2)
{
	put_point(file, 'M', x1, y1);
	put_point(file, 'L', x2, y2);
}

void svg_path_box(FILE *file, double x, double y, double width, double height)
{
	put_point(file, 'M', x, y);
	put_length(file, 'h', width);
	put_length(file, 'v', height);
	put_length(file, 'h', -width);
	fputc('z', file);
}

void svg_path_head(FILE *file, double x1, double y1, double x2, double y2)
{
	double length = hypot(x2 - x1, y2 - y1);
	double along_x = (x2 - x1) / length, along_y = (y2 - y1) / length;
	double base_x = x2 - along_x * HEAD_LENGTH, base_y = y2 - along_y * HEAD_LENGTH;

	put_point(file, 'M', x2, y2);
	put_point(file, 'L', base_x - along_y * HEAD_WIDTH, base_y + along_x * HEAD_WIDTH);
	put_point(file, 'L', base_x + along_y * HEAD_WIDTH, base_y - along_x * HEAD_WIDTH);
	fputc('z', file);
}

void svg_path_end(FILE *file, const char *attributes)
{
	fprintf(file, "\" %s/>\n", attributes);
}
