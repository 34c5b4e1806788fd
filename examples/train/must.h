/*
 * must.h - the one way in which this program ends early: it says why and exits with 1, which the other ranks
 * notice at once.
 */
#ifndef TRAIN_MUST_H
#define TRAIN_MUST_H

#include <espalier/espalier.h>

/* Who speaks, in front of what is said; before this is called, nobody in particular. */
void must_name(uint32_t rank);

/* Goes on if status is ESP_OK. what: the function that was called. */
void must(enum esp_status status, const char *what);

/* Goes on with a pointer that is not NULL. */
void *must_have(void *memory);

_Noreturn void must_stop(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
