/*
 * draw.c - where things stand in the picture, and the painting of them.
 *
 *     title, facts
 *     (0)  (1)  (2)  (3)       nodes, by group
 *     [ ]  [ ]  [ ]  [ ]       what each holds at the start
 *       \ /       \ /          round 1
 *     [ ]  [ ]  [ ]  [ ]       what each holds after it
 */
#include "plan/draw.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "plan/draw_legend.h"
#include "plan/draw_scene.h"
#include "report/svg.h"

#define MARGIN 24.0
#define GUTTER 92.0 /* for the names of the rounds */
#define HEAD_HEIGHT 92.0
#define NODE_RADIUS 12.0
#define GROUP_GAP 18.0

static const char style[] =
	"text{font-family:Inter,'Helvetica Neue',Helvetica,Arial,'DejaVu Sans',sans-serif;fill:#2b2b33}\n"
	".title{font-size:19px;font-weight:600}\n"
	".facts{font-size:12.5px;fill:#4a4a55}\n"
	".note{font-size:12px;fill:#74747f;font-style:italic}\n"
	".node{font-size:12px;font-weight:600;fill:#fff}\n"
	".group{font-size:11px;font-weight:600;fill:#6a6a75;letter-spacing:.4px}\n"
	".round{font-size:12px;font-weight:600;fill:#4a4a55}\n"
	".phase{font-size:10.5px;fill:#8a8a94}\n"
	".key{font-size:11.5px;fill:#4a4a55}\n";

static const char *const group_tints[] = {"#e9eef7", "#f7ecdf", "#e6f2ea", "#f3e8f1", "#f4f1d8", "#e4f1f3"};
#define TINT_COUNT (sizeof(group_tints) / sizeof(group_tints[0]))

struct picture {
	const struct draw_scene *scene;
	const struct plan *plan;
	FILE *file;
	char title[128], facts[224];
	const char *note; /* says when the planner is good, or NULL */
	double cell_width, cell_height;
	double pitch; /* from column to column */
	double node_left[DRAW_NODES_MAX];
	double row_top[DRAW_ROUNDS_MAX + 1]; /* of the cells after each round; 0 is the start */
	double width, height;
	struct draw_legend legend;
};

/* ---- places ---- */

static double block_width(const struct picture *picture)
{
	return picture->cell_width * picture->scene->chunk_count;
}

static double node_centre(const struct picture *picture, uint32_t node)
{
	return picture->node_left[node] + block_width(picture) / 2;
}

static double last_row(const struct picture *picture)
{
	return picture->row_top[picture->scene->report.rounds];
}

static double chunk_centre(const struct picture *picture, uint32_t node, uint32_t chunk)
{
	return picture->node_left[node] + (chunk + 0.5) * picture->cell_width;
}

static uint32_t group_of(const struct plan *plan, uint32_t node)
{
	return plan->group_count ? plan->group_of[node] : 0;
}

/* Columns group by group, so that the bands hold together, spread to `width` at least; returns the right edge. */
static double place_columns(struct picture *picture, double width)
{
	const struct plan *plan = picture->plan;
	uint32_t groups = plan->group_count ? plan->group_count : 1;
	double fill = (width - GUTTER - (groups - 1) * GROUP_GAP) / plan->nodes;
	double pitch = fmax(fmax(block_width(picture) + 18, 46), fill), x = MARGIN + GUTTER;

	picture->pitch = pitch;
	for (uint32_t group = 0; group < groups; group++) {
		for (uint32_t node = 0; node < plan->nodes; node++) {
			if (group_of(plan, node) != group)
				continue;
			picture->node_left[node] = x + (pitch - block_width(picture)) / 2;
			x += pitch;
		}
		x += group + 1 < groups ? GROUP_GAP : 0;
	}
	return x;
}

static double cell_width_for(uint32_t chunks)
{
	return chunks <= 1 ? 26 : chunks <= 2 ? 18 : chunks <= 4 ? 13 : chunks <= 8 ? 9 : 7;
}

/* Height for the arrows of a round: many or long ones would lie on top of each other. */
static double round_gap(const struct picture *picture, const struct draw_message *messages, uint32_t count)
{
	double reach = 0;

	for (uint32_t i = 0; i < count; i++)
		reach += fabs(node_centre(picture, messages[i].to) - node_centre(picture, messages[i].from));
	double crowd = (double)count / picture->plan->nodes;
	return fmin(fmax(36, 20 + reach / fmax(count, 1) / 6 + 6 * fmax(crowd - 1, 0)), 130);
}

static void place_rows(struct picture *picture, double top)
{
	const struct draw_scene *scene = picture->scene;
	const struct draw_message *message = scene->messages, *end = message + scene->message_count;

	picture->row_top[0] = top;
	for (uint32_t round = 1; round <= scene->report.rounds; round++) {
		const struct draw_message *first = message;

		while (message < end && message->round == round)
			message++;
		top += picture->cell_height + round_gap(picture, first, (uint32_t)(message - first));
		picture->row_top[round] = top;
	}
}

static void lay_out(struct picture *picture)
{
	picture->cell_width = cell_width_for(picture->scene->chunk_count);
	picture->cell_height = fmin(fmax(picture->plan->workers * 4.0, 18), 36);
	double words = fmax(svg_text_width(picture->title, 19), svg_text_width(picture->facts, 12.5));
	if (picture->note)
		words = fmax(words, svg_text_width(picture->note, 12));
	picture->width = place_columns(picture, words) + MARGIN;
	place_rows(picture, HEAD_HEIGHT + (picture->plan->group_count ? 22 : 0) + 2 * NODE_RADIUS + 10);
	double bottom = last_row(picture) + picture->cell_height;
	picture->height = plan_draw_legend_place(&picture->legend, MARGIN, bottom + 34, picture->width - MARGIN) + MARGIN;
}

/* ---- the head ---- */

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void write_title(struct picture *picture)
{
	const struct draw_scene *scene = picture->scene;
	const struct plan *plan = picture->plan;
	int used = snprintf(picture->title, sizeof(picture->title), "%s %s, %u node%s",
	                    plan->planner ? plan_planner_name(plan->planner) : "hand-written",
	                    plan_collective_name(plan->chunks.collective), plan->workers, plural(plan->workers));

	if (plan->nodes > plan->workers)
		used += snprintf(picture->title + used, sizeof(picture->title) - (size_t)used, " + %u extra",
		                 plan->nodes - plan->workers);
	if (scene->chunk_count != plan->chunks.chunk_count)
		snprintf(picture->title + used, sizeof(picture->title) - (size_t)used, ": chunk %llu of %llu",
		         (unsigned long long)scene->first_chunk, (unsigned long long)plan->chunks.chunk_count);
}

static void write_facts(struct picture *picture)
{
	const struct plan_report *report = &picture->scene->report;
	char bytes[NUMBER_BYTES_TEXT];
	int used = 0;

	if (plan_collective_has_root(picture->plan->chunks.collective))
		used = snprintf(picture->facts, sizeof(picture->facts), "root %u · ", picture->plan->chunks.root);
	used += snprintf(picture->facts + used, sizeof(picture->facts) - (size_t)used,
	                 "%u round%s · %llu message%s · %u chunk%s · %s on the wire", report->rounds,
	                 plural(report->rounds), (unsigned long long)report->messages, plural(report->messages),
	                 picture->scene->chunk_count, plural(picture->scene->chunk_count),
	                 number_format_bytes(report->wire_bytes, bytes));

	if (picture->plan->group_count)
		snprintf(picture->facts + used, sizeof(picture->facts) - (size_t)used, " · %s between groups",
		         number_format_bytes(report->cross_bytes, bytes));
}

static void paint_head(const struct picture *picture)
{
	svg_text(picture->file, MARGIN, 36, "title", "start", picture->title);
	svg_text(picture->file, MARGIN, 57, "facts", "start", picture->facts);
	if (picture->note)
		svg_text(picture->file, MARGIN, 76, "note", "start", picture->note);
}

static void paint_group(const struct picture *picture, uint32_t group)
{
	double left = INFINITY, right = 0, top = HEAD_HEIGHT;
	double bottom = last_row(picture) + picture->cell_height + 10;
	char text[64], fill[48];

	for (uint32_t node = 0; node < picture->plan->nodes; node++) {
		double centre = node_centre(picture, node), half = picture->pitch / 2;

		if (group_of(picture->plan, node) != group)
			continue;
		left = fmin(left, centre - half);
		right = fmax(right, centre + half);
	}
	snprintf(fill, sizeof(fill), "fill=\"%s\"", group_tints[group % TINT_COUNT]);
	svg_rect(picture->file, left, top, right - left, bottom - top, 8, fill);
	snprintf(text, sizeof(text), "group %u", group);
	svg_text(picture->file, (left + right) / 2, top + 15, "group", "middle", text);
}

static void paint_node(const struct picture *picture, uint32_t node)
{
	double x = node_centre(picture, node), y = picture->row_top[0] - 10 - NODE_RADIUS;
	char text[16];

	svg_path_begin(picture->file);
	svg_path_line(picture->file, x, y, x, last_row(picture));
	svg_path_end(picture->file, "stroke=\"#c9c6bd\" stroke-dasharray=\"1 3\"");
	if (node < picture->plan->workers)
		svg_circle(picture->file, x, y, NODE_RADIUS, "fill=\"#3d4152\"");
	else
		svg_rect(picture->file, x - NODE_RADIUS, y - NODE_RADIUS + 1, 2 * NODE_RADIUS, 2 * NODE_RADIUS - 2, 4,
		         "fill=\"" DRAW_EXTRA_COLOUR "\"");
	snprintf(text, sizeof(text), "%u", node);
	svg_text(picture->file, x, y + 4.2, "node", "middle", text);
}

/* ---- what the nodes hold ---- */

/* A stripe for each contribution that is there; neighbours grow together. */
static void add_stripes(const struct picture *picture, uint64_t held, double x, double y)
{
	uint32_t workers = picture->plan->workers;
	double stripe = picture->cell_height / workers;

	for (uint32_t i = 0, end; i < workers; i = end) {
		end = i + 1;
		if (!(held >> i & 1))
			continue;
		while (end < workers && held >> end & 1)
			end++;
		svg_path_box(picture->file, x, y + i * stripe, picture->cell_width - 1, (end - i) * stripe);
	}
}

/* All cells of one chunk after one round that are final, or that are not, as one path. */
static void paint_cells(const struct picture *picture, uint32_t round, uint32_t chunk, bool final)
{
	const struct draw_scene *scene = picture->scene;
	uint64_t whole = plan_draw_scene_whole(scene, chunk);
	double y = picture->row_top[round];
	char attributes[64];
	bool begun = false;

	for (uint32_t node = 0; node < picture->plan->nodes; node++) {
		uint64_t held = plan_draw_scene_held(scene, round, chunk, node);
		double x = picture->node_left[node] + chunk * picture->cell_width + 0.5;

		if (held == 0 || (held == whole) != final)
			continue;
		if (!begun)
			svg_path_begin(picture->file);
		begun = true;
		if (final)
			svg_path_box(picture->file, x, y, picture->cell_width - 1, picture->cell_height);
		else
			add_stripes(picture, held, x, y);
	}
	snprintf(attributes, sizeof(attributes), "fill=\"%s\"%s",
	         plan_draw_colour(picture->scene->chunk_count, chunk, final), final ? "" : " fill-opacity=\".5\"");
	if (begun)
		svg_path_end(picture->file, attributes);
}

static void paint_state(const struct picture *picture, uint32_t round)
{
	double y = picture->row_top[round];

	svg_path_begin(picture->file);
	for (uint32_t node = 0; node < picture->plan->nodes; node++)
		svg_path_box(picture->file, picture->node_left[node] - 2, y - 2, block_width(picture) + 4,
		             picture->cell_height + 4);
	svg_path_end(picture->file, "fill=\"#fff\" stroke=\"#cfccc3\"");
	for (uint32_t chunk = 0; chunk < picture->scene->chunk_count; chunk++) {
		paint_cells(picture, round, chunk, false);
		paint_cells(picture, round, chunk, true);
	}
}

/* ---- messages ---- */

struct arrow {
	double x1, y1, x2, y2;
};

static struct arrow arrow_of(const struct picture *picture, const struct draw_message *message)
{
	return (struct arrow){
		.x1 = chunk_centre(picture, message->from, message->chunk),
		.y1 = picture->row_top[message->round - 1] + picture->cell_height + 3,
		.x2 = chunk_centre(picture, message->to, message->chunk),
		.y2 = picture->row_top[message->round] - 3,
	};
}

/* Shafts of arrows that look alike, as one path, then their heads as another. */
static void paint_arrows(const struct picture *picture, const struct draw_message *messages, uint32_t count)
{
	const char *colour = plan_draw_colour(picture->scene->chunk_count, messages->chunk, messages->final);
	char attributes[112];

	svg_path_begin(picture->file);
	for (uint32_t i = 0; i < count; i++) {
		struct arrow arrow = arrow_of(picture, &messages[i]);

		svg_path_line(picture->file, arrow.x1, arrow.y1, arrow.x2, arrow.y2);
	}
	snprintf(attributes, sizeof(attributes), "stroke=\"%s\" stroke-width=\"%s\" fill=\"none\"%s", colour,
	         messages->final ? "1.6" : "1.3", messages->final ? "" : " stroke-dasharray=\"4 2\"");
	svg_path_end(picture->file, attributes);
	svg_path_begin(picture->file);
	for (uint32_t i = 0; i < count; i++) {
		struct arrow arrow = arrow_of(picture, &messages[i]);

		svg_path_head(picture->file, arrow.x1, arrow.y1, arrow.x2, arrow.y2);
	}
	snprintf(attributes, sizeof(attributes), "fill=\"%s\"", colour);
	svg_path_end(picture->file, attributes);
}

static void paint_round(const struct picture *picture, uint32_t round, const struct draw_message *messages,
                        uint32_t count)
{
	double y = (picture->row_top[round - 1] + picture->cell_height + picture->row_top[round]) / 2;
	uint32_t finals = 0;
	char text[32];

	for (uint32_t i = 0, end; i < count; i = end) {
		for (end = i + 1;
		     end < count && messages[end].chunk == messages[i].chunk && messages[end].final == messages[i].final;)
			end++;
		paint_arrows(picture, &messages[i], end - i);
		finals += messages[i].final ? end - i : 0;
	}
	snprintf(text, sizeof(text), "round %u", round);
	svg_text(picture->file, MARGIN, y, "round", "start", text);
	const struct draw_words *say = plan_draw_words(picture->plan->chunks.collective);
	const char *phase = finals == count ? say->spreads : finals == 0 ? say->gathers : NULL;
	if (phase)
		svg_text(picture->file, MARGIN, y + 13, "phase", "start", phase);
}

/* ---- the picture ---- */

static void paint(const struct picture *picture)
{
	const struct draw_scene *scene = picture->scene;
	const struct draw_message *message = scene->messages, *end = message + scene->message_count;

	svg_begin(picture->file, picture->width, picture->height, picture->title, style);
	/* Its own paper, so that it reads the same on a light and on a dark page. */
	svg_rect(picture->file, 0.5, 0.5, picture->width - 1, picture->height - 1, 10,
	         "fill=\"#fcfbf8\" stroke=\"#dedbd2\"");
	paint_head(picture);
	for (uint32_t group = 0; group < picture->plan->group_count; group++)
		paint_group(picture, group);
	for (uint32_t node = 0; node < picture->plan->nodes; node++)
		paint_node(picture, node);
	paint_state(picture, 0);
	for (uint32_t round = 1; round <= scene->report.rounds; round++) {
		const struct draw_message *first = message;

		while (message < end && message->round == round)
			message++;
		paint_state(picture, round);
		paint_round(picture, round, first, (uint32_t)(message - first));
	}
	plan_draw_legend_paint(&picture->legend, picture->file);
	svg_end(picture->file);
}

enum esp_status plan_draw(const struct plan *plan, uint64_t chunk, FILE *file, struct error *err)
{
	struct draw_scene scene;
	struct picture picture = {.scene = &scene, .plan = plan, .file = file};
	enum esp_status status = plan_draw_scene_init(&scene, plan, chunk, err);

	if (status != ESP_OK)
		return status;
	write_title(&picture);
	write_facts(&picture);
	/* Planners describe themselves by their allreduce. */
	if (plan->planner && plan->chunks.collective == PLAN_ALLREDUCE)
		picture.note = plan_planner_summary(plan->planner);
	plan_draw_legend_init(&picture.legend, &scene);
	lay_out(&picture);
	paint(&picture);
	plan_draw_scene_fini(&scene);
	if (fflush(file) != 0 || ferror(file))
		return error_set(err, ESP_EIO, "cannot write the picture");
	return ESP_OK;
}
