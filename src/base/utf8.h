/*
 * utf8.h - tells characters from junk in text that came from outside.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>

/* Bytes (1 to 4) of the well-formed character that text starts with; 0 if it starts with none. */
size_t utf8_character(const char *text, size_t length);

/* Characters in a text that ends in NUL; a byte that is not UTF-8 counts as one. */
size_t utf8_count(const char *text);

#endif
