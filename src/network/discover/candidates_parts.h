/*
 * candidates_parts.h - what the files of candidates.h share. Private to them.
 */
#ifndef NETWORK_DISCOVER_CANDIDATES_PARTS_H
#define NETWORK_DISCOVER_CANDIDATES_PARTS_H

#include "network/discover/candidates.h"

/* The distances that are judged: cleaned, and as ratios if that is wanted. */
ESP_CHECKED enum esp_status candidates_clean(const struct matrix *matrix, const struct candidates_options *options, struct matrix *out,
                                             struct error *err);

#endif
