/*
 * number.h - numbers as people write them: settings, options, plan texts.
 *
 * Pure functions over a span of text, which need not end in a NUL. The whole span must
 * be the number: no sign, blank or rest is accepted. *out is written only on success.
 */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decimal digits, at most 2^64 - 1. */
bool number_parse_u64(const char *text, size_t length, uint64_t *out);

/* As above, optionally followed by K, M, G or T (powers of 1024; lower case and "KiB" too). */
bool number_parse_bytes(const char *text, size_t length, uint64_t *out);

/* A finite decimal number such as -1.5e-3, whatever the locale. */
bool number_parse_double(const char *text, size_t length, double *out);

/* "64K", "1500", "2G": the largest unit that divides bytes exactly, so that it parses back. */
#define NUMBER_BYTES_TEXT 24
const char *number_format_bytes(uint64_t bytes, char text[NUMBER_BYTES_TEXT]);

/*
 * The fewest digits that read back as the same double, with a point in every locale; an exponent only below 0.000001
 * and from 1e21 on; "nan", "inf", "-inf".
 */
#define NUMBER_DOUBLE_TEXT 40
const char *number_format_double(double value, char text[NUMBER_DOUBLE_TEXT]);

#endif
