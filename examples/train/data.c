/*
 * data.c - digits as curves, and the hand that draws them.
 */
#include "data.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

struct point {
	float x, y;
};

/* A piece of a digit in a square of side 1, y downwards: a quadratic Bezier curve. None begins at x 0. */
struct curve {
	struct point from, bend, to;
};

#define CURVES_MAX 8
static const struct curve digits[GLYPH_CLASSES][CURVES_MAX] = {
	{{{.50f, .04f}, {.84f, .04f}, {.84f, .50f}}, {{.84f, .50f}, {.84f, .96f}, {.50f, .96f}},
	 {{.50f, .96f}, {.16f, .96f}, {.16f, .50f}}, {{.16f, .50f}, {.16f, .04f}, {.50f, .04f}}},
	{{{.30f, .28f}, {.46f, .20f}, {.56f, .04f}}, {{.56f, .04f}, {.56f, .50f}, {.56f, .96f}}},
	{{{.18f, .28f}, {.20f, .04f}, {.50f, .04f}}, {{.50f, .04f}, {.84f, .04f}, {.80f, .32f}},
	 {{.80f, .32f}, {.76f, .56f}, {.16f, .95f}}, {{.16f, .95f}, {.50f, .95f}, {.86f, .95f}}},
	{{{.20f, .10f}, {.78f, -.06f}, {.76f, .26f}}, {{.76f, .26f}, {.74f, .46f}, {.42f, .47f}},
	 {{.42f, .47f}, {.84f, .48f}, {.82f, .72f}}, {{.82f, .72f}, {.78f, 1.06f}, {.16f, .90f}}},
	{{{.62f, .04f}, {.40f, .36f}, {.14f, .66f}}, {{.14f, .66f}, {.50f, .66f}, {.88f, .66f}},
	 {{.62f, .04f}, {.62f, .50f}, {.62f, .96f}}},
	{{{.80f, .05f}, {.54f, .05f}, {.28f, .05f}}, {{.28f, .05f}, {.26f, .24f}, {.24f, .44f}},
	 {{.24f, .44f}, {.86f, .28f}, {.82f, .68f}}, {{.82f, .68f}, {.76f, 1.02f}, {.18f, .90f}}},
	{{{.70f, .04f}, {.20f, .20f}, {.18f, .66f}}, {{.18f, .66f}, {.20f, .96f}, {.50f, .96f}},
	 {{.50f, .96f}, {.82f, .96f}, {.82f, .70f}}, {{.82f, .70f}, {.80f, .46f}, {.52f, .46f}},
	 {{.52f, .46f}, {.24f, .46f}, {.18f, .66f}}},
	{{{.14f, .05f}, {.50f, .05f}, {.86f, .05f}}, {{.86f, .05f}, {.54f, .44f}, {.40f, .96f}}},
	{{{.50f, .04f}, {.80f, .04f}, {.78f, .26f}}, {{.78f, .26f}, {.76f, .46f}, {.50f, .48f}},
	 {{.50f, .48f}, {.18f, .50f}, {.16f, .72f}}, {{.16f, .72f}, {.16f, .96f}, {.50f, .96f}},
	 {{.50f, .96f}, {.84f, .96f}, {.84f, .72f}}, {{.84f, .72f}, {.82f, .50f}, {.50f, .48f}},
	 {{.50f, .48f}, {.24f, .46f}, {.22f, .26f}}, {{.22f, .26f}, {.22f, .04f}, {.50f, .04f}}},
	{{{.30f, .96f}, {.80f, .80f}, {.82f, .34f}}, {{.82f, .34f}, {.80f, .04f}, {.50f, .04f}},
	 {{.50f, .04f}, {.18f, .04f}, {.18f, .30f}}, {{.18f, .30f}, {.20f, .54f}, {.48f, .54f}},
	 {{.48f, .54f}, {.76f, .54f}, {.82f, .34f}}},
};

/* How this sample is written. Lengths are pixels, other numbers have no unit. */
struct hand {
	float xx, xy, yx, yy; /* turns, stretches and slants the digit's square ... */
	struct point middle;  /* ... around the place where its middle comes to lie */
	float shake;          /* how far points may go astray                       */
	float width;          /* half of the pen's                                  */
	float ink;            /* 0 .. 1                                             */
};

static struct hand hand_draw(struct random *random)
{
	/* A turn by 2 atan(half), without sine and cosine: they are not the same bits everywhere. */
	float half = random_between(random, -.2f, .2f);
	float scale = 1 / (1 + half * half);
	float cosine = (1 - half * half) * scale, sine = 2 * half * scale;
	float wide = random_between(random, 6.5f, 11.5f), high = random_between(random, 9, 13.5f);
	float slant = random_between(random, -.3f, .3f);
	struct hand hand;
	hand.xx = cosine * wide;
	hand.xy = (cosine * slant - sine) * high;
	hand.yx = sine * wide;
	hand.yy = (sine * slant + cosine) * high;
	hand.middle.x = GLYPH_SIDE / 2.0f + random_between(random, -2, 2);
	hand.middle.y = GLYPH_SIDE / 2.0f + random_between(random, -1.5f, 1.5f);
	hand.shake = random_between(random, .2f, 1);
	hand.width = random_between(random, .35f, 1);
	hand.ink = random_between(random, .6f, 1);
	return hand;
}

/* Where a point of the digit's square comes to lie. */
static struct point hand_place(const struct hand *hand, struct random *random, struct point point)
{
	float x = point.x - .5f, y = point.y - .5f;
	struct point placed = {hand->middle.x + hand->xx * x + hand->xy * y, hand->middle.y + hand->yx * x + hand->yy * y};
	placed.x += hand->shake * random_between(random, -1, 1);
	placed.y += hand->shake * random_between(random, -1, 1);
	return placed;
}

static float distance_to_segment(struct point point, struct point from, struct point to)
{
	float dx = to.x - from.x, dy = to.y - from.y;
	float px = point.x - from.x, py = point.y - from.y;
	float length = dx * dx + dy * dy;
	float along = length > 0 ? (px * dx + py * dy) / length : 0;
	along = along < 0 ? 0 : along > 1 ? 1 : along;
	px -= along * dx;
	py -= along * dy;
	return sqrtf(px * px + py * py);
}

/* Each pixel keeps the darkest ink that any stroke has left there; the edge of a stroke is one pixel soft. */
static void stroke_segment(float *paper, struct point from, struct point to, float width, float ink)
{
	for (int y = 0; y < GLYPH_SIDE; y++) {
		for (int x = 0; x < GLYPH_SIDE; x++) {
			struct point pixel = {(float)x + .5f, (float)y + .5f};
			float cover = width + .5f - distance_to_segment(pixel, from, to);
			float left = ink * (cover < 0 ? 0 : cover > 1 ? 1 : cover);
			float *place = &paper[y * GLYPH_SIDE + x];
			*place = *place > left ? *place : left;
		}
	}
}

#define SEGMENTS 5 /* straight pieces of a curve: more cannot be seen with so few pixels */
static void stroke_curve(float *paper, const struct curve *curve, float width, float ink)
{
	struct point last = curve->from;
	for (int i = 1; i <= SEGMENTS; i++) {
		float t = (float)i / SEGMENTS, u = 1 - t;
		struct point next = {u * u * curve->from.x + 2 * u * t * curve->bend.x + t * t * curve->to.x,
		                     u * u * curve->from.y + 2 * u * t * curve->bend.y + t * t * curve->to.y};
		stroke_segment(paper, last, next, width, ink);
		last = next;
	}
}

static void draw_digit(float *paper, struct random *random, uint32_t digit)
{
	struct hand hand = hand_draw(random);
	const struct curve *shape = digits[digit];
	struct curve curve = shape[0];
	for (int i = 0; i < CURVES_MAX && shape[i].from.x > 0; i++) {
		/* The pen goes on where it is, unless the next curve begins elsewhere. */
		bool lifted = i == 0 || shape[i].from.x != shape[i - 1].to.x || shape[i].from.y != shape[i - 1].to.y;
		curve.from = lifted ? hand_place(&hand, random, shape[i].from) : curve.to;
		curve.bend = hand_place(&hand, random, shape[i].bend);
		curve.to = hand_place(&hand, random, shape[i].to);
		stroke_curve(paper, &curve, hand.width, hand.ink);
	}
}

static struct point anywhere(struct random *random)
{
	return (struct point){random_between(random, 0, GLYPH_SIDE), random_between(random, 0, GLYPH_SIDE)};
}

/* Every second sample has a thin stroke across it that means nothing. */
static void draw_clutter(float *paper, struct random *random)
{
	if (random_below(random, 2) == 0)
		return;
	struct curve curve = {anywhere(random), anywhere(random), anywhere(random)};
	stroke_curve(paper, &curve, .3f, random_between(random, .3f, .8f));
}

void glyph_draw(struct glyph *glyph, uint64_t seed, enum random_purpose set, uint64_t number)
{
	float paper[GLYPH_PIXELS] = {0};
	struct random random = random_stream(seed, set, number, 0);
	glyph->label = (uint8_t)random_below(&random, GLYPH_CLASSES);
	draw_digit(paper, &random, glyph->label);
	draw_clutter(paper, &random);
	float noise = random_between(&random, .02f, .16f);
	for (int i = 0; i < GLYPH_PIXELS; i++) {
		float grey = paper[i] + noise * random_normal(&random);
		grey = grey < 0 ? 0 : grey > 1 ? 1 : grey;
		glyph->pixels[i] = (uint8_t)(grey * 255 + .5f);
	}
}

int share_open(struct share *share, uint64_t seed, enum random_purpose set, uint32_t total, uint32_t rank,
               uint32_t ranks)
{
	share->count = total / ranks;
	share->glyphs = calloc(share->count, sizeof share->glyphs[0]);
	if (!share->glyphs)
		return -1;
	for (uint32_t i = 0; i < share->count; i++)
		glyph_draw(&share->glyphs[i], seed, set, (uint64_t)i * ranks + rank);
	return 0;
}

void share_close(struct share *share)
{
	free(share->glyphs);
	share->glyphs = NULL;
}

void share_batch(const struct share *share, const uint32_t *order, uint32_t count, float *rows, uint8_t *labels)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct glyph *glyph = &share->glyphs[order[i]];
		labels[i] = glyph->label;
		for (int p = 0; p < GLYPH_PIXELS; p++)
			rows[(size_t)i * GLYPH_PIXELS + p] = ((float)glyph->pixels[p] - 64) / 128;
	}
}
