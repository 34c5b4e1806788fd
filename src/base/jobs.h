/*
 * jobs.h - pieces of work that need nothing of each other, several at a time.
 */
#ifndef BASE_JOBS_H
#define BASE_JOBS_H

#include <stdint.h>

#include "base/error.h"

/* Piece number nth; any thread may call it. */
typedef enum esp_status (*jobs_piece)(void *user, uint32_t nth, struct error *err);

/*
 * Pieces 0 .. count - 1 on at most at_once threads, this one among them; begins none after one has failed. Returns when
 * all that were begun have ended. Of several that failed the one with the least number is told: it fails whatever
 * at_once is.
 */
ESP_CHECKED enum esp_status jobs_run(uint32_t count, uint32_t at_once, jobs_piece piece, void *user, struct error *err);

#endif
