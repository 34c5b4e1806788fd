/*
 * clip.h - sentences in a place of fixed size: one that does not fit ends after a whole word, with "...".
 */
#ifndef BASE_CLIP_H
#define BASE_CLIP_H

#include <stdarg.h>
#include <stddef.h>

/* As snprintf(3), but for the end of what does not fit. Returns out. size > 0. */
const char *clip(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
const char *clip_list(char *out, size_t size, const char *format, va_list arguments)
	__attribute__((format(printf, 3, 0)));

#endif
