#include "gallery.h"

/* From paper to ink. */
static const char shades[] = " .:-=+*#%@";

/* A letter is about twice as high as it is wide: it stands for two pixels, one above the other. */
static char letter(const struct glyph *glyph, int x, int y)
{
	unsigned upper = glyph->pixels[y * GLYPH_SIDE + x], lower = glyph->pixels[(y + 1) * GLYPH_SIDE + x];
	return shades[(upper + lower) * (sizeof shades - 1) / 512];
}

/* A line without blanks at its end. */
static void put_line(FILE *out, const char *line, int length)
{
	while (length > 0 && line[length - 1] == ' ')
		length--;
	fprintf(out, "%.*s\n", length, line);
}

void gallery_print(FILE *out, const struct glyph *const *glyphs, const char *const *captions, uint32_t count)
{
	char line[GALLERY_WIDTH * (GLYPH_SIDE + 4) + 1] = "";
	count = count < GALLERY_WIDTH ? count : GALLERY_WIDTH;
	for (int y = 0; y < GLYPH_SIDE; y += 2) {
		int length = 0;
		for (uint32_t i = 0; i < count; i++) {
			for (int x = 0; x < GLYPH_SIDE; x++)
				line[length++] = letter(glyphs[i], x, y);
			for (int blank = 0; blank < 4; blank++)
				line[length++] = ' ';
		}
		put_line(out, line, length);
	}
	int length = 0;
	for (uint32_t i = 0; i < count; i++)
		length += snprintf(line + length, sizeof line - (size_t)length, "%-*.*s", GLYPH_SIDE + 4, GLYPH_SIDE + 3,
		                   captions[i]);
	put_line(out, line, length);
}
