/*
 * failure.h - how a call or a group has failed, with everything that a person wants to know.
 */
#ifndef RANK_FAILURE_H
#define RANK_FAILURE_H

#include <stdint.h>

#include "base/error.h"

struct failure {
	enum esp_status status;   /* ESP_OK: none                                               */
	int32_t rank;             /* the rank at fault, by rank in the job; -1: no rank in particular */
	const char *operation;    /* "allreduce", static text; ""                               */
	uint64_t sequence;        /* of the call in its group, from 1; 0: none                  */
	int32_t waits_for;        /* -1: none                                                   */
	int64_t chunk;            /* -1: none                                                   */
	int32_t step;             /* -1: none                                                   */
	char text[512];
};
#define FAILURE_NONE ((struct failure){.rank = -1, .operation = "", .waits_for = -1, .chunk = -1, .step = -1})

/* One that has only a status and a sentence. */
enum esp_status rank_failure_set(struct failure *failure, enum esp_status status, int32_t rank, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
