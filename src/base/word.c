#include "base/word.h"

#include <ctype.h>
#include <string.h>

#define WORD_MAX 63

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static char lower(char c)
{
	return (char)tolower((unsigned char)c);
}

/* Optimal string alignment (Damerau): row i holds the distances of the first i characters of a to each start of b. */
size_t word_distance(const char *a, const char *b)
{
	size_t rows[3][WORD_MAX + 1];
	size_t *before = rows[0], *above = rows[1], *row = rows[2];
	size_t a_length = least(strlen(a), WORD_MAX), b_length = least(strlen(b), WORD_MAX);

	for (size_t j = 0; j <= b_length; j++)
		above[j] = before[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			size_t change = lower(a[i - 1]) != lower(b[j - 1]);
			row[j] = least(above[j - 1] + change, least(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
				row[j] = least(row[j], before[j - 2] + 1);
		}
		size_t *oldest = before;
		before = above;
		above = row;
		row = oldest;
	}
	return above[b_length];
}

/* A letter in three may be wrong, and one in a short word: "foo" is not meant to be "log". */
static size_t mistakes_allowed(size_t length)
{
	return length < 6 ? 1 : length / 3;
}

const char *word_nearest(const char *word, word_list_fn *known, const void *list)
{
	const char *best = NULL;
	size_t best_distance = mistakes_allowed(strlen(word)) + 1;
	const char *candidate;
	for (size_t i = 0; (candidate = known(list, i)); i++) {
		size_t distance = word_distance(word, candidate);
		if (distance < best_distance && distance < strlen(candidate)) {
			best = candidate;
			best_distance = distance;
		}
	}
	return best;
}
