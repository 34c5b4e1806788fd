#include "plan/draw_legend.h"

#include "report/svg.h"

#define LINE_HEIGHT 22.0
#define SIGN_GAP 6.0
#define ITEM_GAP 20.0
#define NEUTRAL_COLOUR "#6a6a75"

/* Colours that stay apart on paper and for most colour-blind readers, then darker ones. */
static const char *const palette[DRAW_CHUNKS_MAX] = {
	"#0072b2", "#d55e00", "#009e73", "#b5548f", "#c79a00", "#4aa3d8", "#7a4b2a", "#5b5ea6",
	"#88a51d", "#c0392b", "#177e89", "#8e44ad", "#a07855", "#34495e", "#e08fb5", "#5f7f3a",
};

const char *plan_draw_colour(uint32_t chunk_count, uint32_t chunk, bool final)
{
	if (chunk_count == 1)
		return final ? "#15767a" : "#d5792b";
	return palette[chunk];
}

/* ---- words ---- */

#define HAS_PARTS "has these parts, node 0 on top"
#define SUM "part of the sum", "complete sum", HAS_PARTS, "has the complete sum"
#define BLOCK NULL, "a node's block", NULL, "has it"

/* Where nothing is summed a chunk is complete from the start, and there are no parts to speak of. */
static const struct draw_words words[PLAN_COLLECTIVE_COUNT] = {
	[PLAN_ALLREDUCE] = {"sum up", "hand out", SUM},
	[PLAN_REDUCE_SCATTER] = {"sum up", "hand out", SUM},
	[PLAN_REDUCE] = {"sum up", "pass on", SUM},
	[PLAN_ALLGATHER] = {NULL, "share", BLOCK},
	[PLAN_BROADCAST] = {NULL, "hand out", NULL, "the root's data", NULL, "has it"},
	[PLAN_GATHER] = {NULL, "collect", BLOCK},
	[PLAN_SCATTER] = {NULL, "hand out", BLOCK},
	[PLAN_ALLTOALL] = {NULL, "exchange", NULL, "a block for one node", NULL, "has it"},
	[PLAN_BARRIER] = {"report", "release", "arrived ranks", "all have arrived", "knows of these, node 0 on top",
                      "knows that all are there"},
};

const struct draw_words *plan_draw_words(enum plan_collective collective)
{
	return &words[collective];
}

/* ---- what there is to explain ---- */

static struct legend_item *add(struct draw_legend *legend, enum legend_sign sign, bool final, const char *colour)
{
	struct legend_item *item = &legend->items[legend->count++];

	*item = (struct legend_item){.sign = sign, .final = final, .colour = colour};
	return item;
}

static void add_words(struct draw_legend *legend, const struct draw_scene *scene, enum legend_sign sign, bool final,
                      const char *text)
{
	const char *colour = scene->chunk_count == 1 ? plan_draw_colour(1, 0, final) : NEUTRAL_COLOUR;

	snprintf(add(legend, sign, final, colour)->text, sizeof(legend->items[0].text), "%s", text);
}

static bool has_messages(const struct draw_scene *scene, bool final)
{
	for (uint32_t i = 0; i < scene->message_count; i++) {
		if (scene->messages[i].final == final)
			return true;
	}
	return false;
}

static void add_chunks(struct draw_legend *legend, const struct draw_scene *scene)
{
	for (uint32_t chunk = 0; scene->chunk_count > 1 && chunk < scene->chunk_count; chunk++) {
		struct legend_item *item = add(legend, LEGEND_SWATCH, true, palette[chunk]);

		item->new_line = chunk == 0;
		snprintf(item->text, sizeof(item->text), "%s%u", chunk ? "" : "chunk ", chunk);
	}
}

void plan_draw_legend_init(struct draw_legend *legend, const struct draw_scene *scene)
{
	const struct draw_words *say = plan_draw_words(scene->plan->chunks.collective);

	legend->count = 0;
	if (say->part && has_messages(scene, false)) {
		add_words(legend, scene, LEGEND_ARROW, false, say->part);
		add_words(legend, scene, LEGEND_CELL, false, say->has_part);
	}
	if (has_messages(scene, true))
		add_words(legend, scene, LEGEND_ARROW, true, say->whole);
	add_words(legend, scene, LEGEND_CELL, true, say->has_whole);
	if (scene->plan->nodes > scene->plan->workers)
		snprintf(add(legend, LEGEND_EXTRA, true, DRAW_EXTRA_COLOUR)->text, sizeof(legend->items[0].text),
		         "extra node, without data of its own");
	add_chunks(legend, scene);
}

/* ---- where it stands ---- */

static double sign_width(enum legend_sign sign)
{
	return sign == LEGEND_ARROW ? 26 : 12;
}

double plan_draw_legend_place(struct draw_legend *legend, double left, double top, double right)
{
	double x = left, y = top;

	for (uint32_t i = 0; i < legend->count; i++) {
		struct legend_item *item = &legend->items[i];
		double width = sign_width(item->sign) + SIGN_GAP + svg_text_width(item->text, 11.5);

		if (x > left && (item->new_line || x + width > right)) {
			x = left;
			y += LINE_HEIGHT;
		}
		item->x = x;
		item->y = y;
		x += width + ITEM_GAP;
	}
	return y;
}

/* ---- painting ---- */

static void paint_arrow(const struct legend_item *item, FILE *file)
{
	double end = item->x + sign_width(LEGEND_ARROW);
	char attributes[112];

	svg_path_begin(file);
	svg_path_line(file, item->x, item->y, end, item->y);
	snprintf(attributes, sizeof(attributes), "stroke=\"%s\" stroke-width=\"1.5\"%s", item->colour,
	         item->final ? "" : " stroke-dasharray=\"4 2\"");
	svg_path_end(file, attributes);
	svg_path_begin(file);
	svg_path_head(file, item->x, item->y, end, item->y);
	snprintf(attributes, sizeof(attributes), "fill=\"%s\"", item->colour);
	svg_path_end(file, attributes);
}

static void paint_cell(const struct legend_item *item, FILE *file)
{
	double x = item->x, y = item->y - 7;
	char attributes[64];

	svg_rect(file, x, y, 12, 14, 0, "fill=\"#fff\" stroke=\"#cfccc3\"");
	snprintf(attributes, sizeof(attributes), "fill=\"%s\"%s", item->colour, item->final ? "" : " fill-opacity=\".5\"");
	svg_path_begin(file);
	if (item->final) {
		svg_path_box(file, x, y, 12, 14);
	} else {
		svg_path_box(file, x, y + 2, 12, 2);
		svg_path_box(file, x, y + 6, 12, 4);
	}
	svg_path_end(file, attributes);
}

static void paint_square(const struct legend_item *item, FILE *file)
{
	char attributes[32];

	snprintf(attributes, sizeof(attributes), "fill=\"%s\"", item->colour);
	svg_rect(file, item->x, item->y - 6, 12, 12, item->sign == LEGEND_EXTRA ? 3 : 1.5, attributes);
}

void plan_draw_legend_paint(const struct draw_legend *legend, FILE *file)
{
	for (uint32_t i = 0; i < legend->count; i++) {
		const struct legend_item *item = &legend->items[i];

		if (item->sign == LEGEND_ARROW)
			paint_arrow(item, file);
		else if (item->sign == LEGEND_CELL)
			paint_cell(item, file);
		else
			paint_square(item, file);
		svg_text(file, item->x + sign_width(item->sign) + SIGN_GAP, item->y + 4, "key", "start", item->text);
	}
}
