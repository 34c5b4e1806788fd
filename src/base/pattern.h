/*
 * pattern.h - names of files that differ from rank to rank: "trace-%j-%r.json".
 */
#ifndef BASE_PATTERN_H
#define BASE_PATTERN_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct pattern_values {
	const char *host; /* %h; a '/' in these three becomes '_' */
	const char *job;  /* %j                                   */
	uint32_t rank;    /* %r                                   */
	long pid;         /* %p                                   */
};

/* %% is '%'. ESP_EINVAL: another letter, with the words for it; ESP_ELIMIT: it is too long. *out is then empty. */
ESP_CHECKED enum esp_status pattern_expand(const char *pattern, const struct pattern_values *values, char *out,
                                           size_t size, struct error *err);

#endif
