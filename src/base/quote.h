/*
 * quote.h - text from outside, made fit for a message: quoted, short, and without control characters.
 */
#ifndef BASE_QUOTE_H
#define BASE_QUOTE_H

#include <stddef.h>

#define QUOTE_TEXT 64

/* 'text', with '?' for each byte that is not printable ASCII; cut off with "..." if long. Returns out. */
const char *quote(const char *text, size_t length, char out[QUOTE_TEXT]);

#endif
