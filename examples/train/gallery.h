/*
 * gallery.h - samples as pictures of letters, side by side.
 */
#ifndef TRAIN_GALLERY_H
#define TRAIN_GALLERY_H

#include <stdio.h>

#include "data.h"

#define GALLERY_WIDTH 4 /* fits into 80 columns */

/* Up to GALLERY_WIDTH samples, each with its caption below. */
void gallery_print(FILE *out, const struct glyph *const *glyphs, const char *const *captions, uint32_t count);

#endif
