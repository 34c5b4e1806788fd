/*
 * chart.h - lines over an axis, as SVG.
 *
 * Every line has a colour, a dash and a mark of its own, so that it is told from the others without colours too; the picture follows the
 * reader's choice of a light or a dark page; a point under the pointer says its numbers. The same chart gives the same bytes.
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
	const double *y; /* as many as the chart has x; NAN: there is none */
};

struct chart {
	const char *title;
	const char *note; /* below the title; "" for none */
	const char *x_label, *y_label;
	const double *x; /* increasing */
	size_t count;
	const struct chart_line *lines;
	size_t line_count;
	bool log_x, log_y; /* where a value is not above 0, the axis is linear all the same */
};

/* ESP_EINVAL: too many lines, or nothing to draw; ESP_EIO. */
ESP_CHECKED enum esp_status chart_write(const struct chart *chart, FILE *out, struct error *err);
/* The same into a file, which is there whole or not at all. */
ESP_CHECKED enum esp_status chart_save(const struct chart *chart, const char *path, struct error *err);

#endif
