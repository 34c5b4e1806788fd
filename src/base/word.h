/*
 * word.h - which known word did a person mean?
 */
#ifndef BASE_WORD_H
#define BASE_WORD_H

#include <stddef.h>

/* Characters to insert, remove, change or swap to make b of a, case aside. Words over 63 characters are cut. */
size_t word_distance(const char *a, const char *b);

/* Gives the known words by index, NULL at the end. */
typedef const char *word_list_fn(const void *list, size_t index);

/* The known word nearest to word; NULL if none is near enough to be worth a question. */
const char *word_nearest(const char *word, word_list_fn *known, const void *list);

#endif
