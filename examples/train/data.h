/*
 * data.h - the data set: drawn digits, made from a seed.
 *
 * Each sample is a digit written with a shaky hand: its strokes are bent, turned, stretched and moved, a stray
 * stroke may cross it, and the paper is noisy. Sample number n of a seed is the same picture whoever asks for
 * it, on any machine (only + - * / and sqrt are used); so each rank draws its own share and nothing is sent.
 */
#ifndef TRAIN_DATA_H
#define TRAIN_DATA_H

#include <stdint.h>

#include "random.h"

#define GLYPH_SIDE 16
#define GLYPH_PIXELS (GLYPH_SIDE * GLYPH_SIDE)
#define GLYPH_CLASSES 10

struct glyph {
	uint8_t label;                /* 0 .. 9                    */
	uint8_t pixels[GLYPH_PIXELS]; /* 0 paper, 255 ink; by rows */
};

/* Draws one sample. set: RANDOM_TRAINING or RANDOM_TEST. */
void glyph_draw(struct glyph *glyph, uint64_t seed, enum random_purpose set, uint64_t number);

/* The samples of one rank. */
struct share {
	uint32_t count;
	struct glyph *glyphs;
};

/* Draws the samples rank, rank + ranks, rank + 2 ranks ... below total; all ranks get equally many. -1: no memory. */
int share_open(struct share *share, uint64_t seed, enum random_purpose set, uint32_t total, uint32_t rank,
               uint32_t ranks);
void share_close(struct share *share);

/* What the network sees: `count` samples in this order, as rows of GLYPH_PIXELS floats around 0, and their labels. */
void share_batch(const struct share *share, const uint32_t *order, uint32_t count, float *rows, uint8_t *labels);

#endif
