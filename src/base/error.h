/*
 * error.h - the cause of a failure, in one status and one sentence.
 *
 * The place that first knows the cause fills it in with the numbers; all callers above pass it on untouched. A plain
 * value that the caller owns: no allocation, no state.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include "espalier/types.h"

/* On functions whose result must not be dropped. */
#define ESP_CHECKED __attribute__((warn_unused_result))

struct error {
	enum esp_status status;
	char text[256]; /* one line without a newline; ends with "..." if it is longer */
};

/*
 * Fills *err (which may be NULL) and returns status, so that the place of the mistake
 * reads: return error_set(err, ESP_EINVAL, "a ring needs 2 nodes, not %u", n);
 */
enum esp_status error_set(struct error *err, enum esp_status status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Back to ESP_OK and an empty text. */
void error_clear(struct error *err);

#endif
