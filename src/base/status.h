/*
 * status.h - names and sentences for status codes.
 */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include "espalier/types.h"

/* "ESP_EINVAL"; "ESP_UNKNOWN" for a number that is no status. Never NULL. */
const char *status_name(enum esp_status status);

/* One sentence for people, without a full stop. Never NULL. */
const char *status_text(enum esp_status status);

#endif
