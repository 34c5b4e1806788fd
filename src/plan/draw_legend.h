/*
 * draw_legend.h - the colours of a picture, and the signs below it that explain them.
 * Private to src/plan.
 */
#ifndef PLAN_DRAW_LEGEND_H
#define PLAN_DRAW_LEGEND_H

#include "plan/draw_scene.h"

/* Of a chunk's cells and arrows. A chunk alone leaves colours free to tell the phases apart. */
const char *plan_draw_colour(uint32_t chunk_count, uint32_t chunk, bool final);
#define DRAW_EXTRA_COLOUR "#8a6d3b"

/* The words for messages and cells of a collective: those on the way to the complete chunk, and those after it. */
struct draw_words {
	const char *gathers, *spreads; /* of a round: what its messages do */
	const char *part, *whole;      /* the content of an arrow */
	const char *has_part, *has_whole;
};
const struct draw_words *plan_draw_words(enum plan_collective collective);

enum legend_sign { LEGEND_ARROW, LEGEND_CELL, LEGEND_SWATCH, LEGEND_EXTRA };

struct legend_item {
	enum legend_sign sign;
	bool final;
	bool new_line;
	const char *colour;
	char text[64];
	double x, y;
};

struct draw_legend {
	struct legend_item items[DRAW_CHUNKS_MAX + 5];
	uint32_t count;
};

void plan_draw_legend_init(struct draw_legend *legend, const struct draw_scene *scene);
/* Sets the items side by side, in as many lines as it takes; returns the bottom. */
double plan_draw_legend_place(struct draw_legend *legend, double left, double top, double right);
void plan_draw_legend_paint(const struct draw_legend *legend, FILE *file);

#endif
