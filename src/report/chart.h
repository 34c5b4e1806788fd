/*
 * chart.h - lines over an axis, as SVG. Does no I/O but on its FILE; any thread.
 *
 * Every line has its own colour, dash and mark, so that lines can be told apart without colours, too. The picture
 * follows the reader's choice of a light or a dark page. Pointing at a mark shows its numbers. The same chart gives
 * the same bytes.
 */
#ifndef REPORT_CHART_H
#define REPORT_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

#define CHART_LINES_MAX 16u

struct chart_line {
	const char *name;
	const double *y; /* one for each x of the chart; NAN: no value */
};

struct chart {
	const char *title;
	const char *note; /* below the title; "" for none */
	const char *x_label, *y_label;
	const double *x; /* increasing */
	size_t count;
	const struct chart_line *lines;
	size_t line_count;
	bool log_x, log_y; /* an axis with a value of 0 or less is linear all the same */
};

/* ESP_EINVAL: too many lines, or nothing to draw; ESP_EIO. */
ESP_CHECKED enum esp_status chart_write(const struct chart *chart, FILE *out, struct error *err);
/* Writes it into a file, which is replaced as a whole or not at all. */
ESP_CHECKED enum esp_status chart_save(const struct chart *chart, const char *path, struct error *err);

#endif
