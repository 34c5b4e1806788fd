/*
 * utf8.h - tells characters from junk in text that came from outside.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes (1 to 4) of the well-formed character that text starts with; 0 if it starts with none. */
size_t utf8_character(const char *text, size_t length);

/* Characters in a text that ends in NUL; a byte that is not UTF-8 counts as one. */
size_t utf8_count(const char *text);

/* Bytes of the mark that some editors put before a text in UTF-8: 3, or 0 where there is none. */
size_t utf8_mark(const char *text, size_t length);

/* Whether a text begins with the mark of UTF-16, as some editors and shells write it. */
bool utf8_is_utf16(const char *text, size_t length);

#endif
