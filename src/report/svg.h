/*
 * svg.h - the SVG shapes that pictures are made of. No I/O but the FILE; any thread.
 *
 * Coordinates are in pixels and are written with one decimal, in the same way in every locale. Errors stay in the
 * FILE: the caller checks ferror() at the end.
 */
#ifndef REPORT_SVG_H
#define REPORT_SVG_H

#include <stdbool.h>
#include <stdio.h>

/* style: CSS rules. */
void svg_begin(FILE *file, double width, double height, const char *title, const char *style);
void svg_end(FILE *file);

/* anchor: "start", "middle" or "end"; css: a class of the style. */
void svg_text(FILE *file, double x, double y, const char *css, const char *anchor, const char *text);
/* Writes text with the characters escaped that have a meaning in markup. */
void svg_escaped(FILE *file, const char *text);
/* About the width of the text at that font size, in the widest of the fonts that may be used. */
double svg_text_width(const char *text, double size);
void svg_rect(FILE *file, double x, double y, double width, double height, double radius, const char *attributes);
void svg_circle(FILE *file, double x, double y, double radius, const char *attributes);

/* Paths: begin, any number of parts, end. */
void svg_path_begin(FILE *file);
void svg_path_point(FILE *file, bool is_first, double x, double y);
void svg_path_line(FILE *file, double x1, double y1, double x2, double y2);
void svg_path_box(FILE *file, double x, double y, double width, double height);
/* A filled head at the end of a line, pointing along it. */
void svg_path_head(FILE *file, double x1, double y1, double x2, double y2);
void svg_path_end(FILE *file, const char *attributes);

#endif
