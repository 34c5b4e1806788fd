/*
 * units.h - rates, times and shares as people write them: 1gbit, 5ms, 0.1%.
 *
 * Pure functions over C strings. The whole text must be the value; *out is written only on success.
 */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#define UNITS_TEXT 32
#define UNITS_SHARE_ALL 1000000u /* a share counts millionths */

/* Bits per second: 1gbit, 200mbit, 1.5gbit, 64kbit, 9600bit; from 8 bit/s to 1 Pbit/s. */
bool units_parse_rate(const char *text, uint64_t *out_bits);

/* Nanoseconds: 5ms, 100us, 1.5s, 250ns, 0; up to an hour. */
bool units_parse_time(const char *text, uint64_t *out_ns);
/* The same; a number alone counts microseconds. */
bool units_parse_delay(const char *text, uint64_t *out_ns);

/* Millionths: 1%, 0.1%, 100%. */
bool units_parse_share(const char *text, uint32_t *out);

/* They return text, in the largest unit that is not a fraction below 1; what is exact parses back. */
const char *units_format_rate(uint64_t bits, char text[UNITS_TEXT]);
const char *units_format_time(uint64_t ns, char text[UNITS_TEXT]);
/* "11.8 GiB", "512 B": three digits, for people to read; it does not parse back. */
const char *units_format_bytes(uint64_t bytes, char text[UNITS_TEXT]);
const char *units_format_share(uint32_t share, char text[UNITS_TEXT]);

#endif
