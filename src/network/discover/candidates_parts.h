/*
 * candidates_parts.h - shared by the files of candidates.h. Private to them.
 */
#ifndef NETWORK_DISCOVER_CANDIDATES_PARTS_H
#define NETWORK_DISCOVER_CANDIDATES_PARTS_H

#include "network/discover/candidates.h"

/* The distances to be judged: cleaned, and as ratios if the options say so. */
ESP_CHECKED enum esp_status discover_candidates_clean(const struct matrix *matrix,
                                                      const struct candidates_options *options, struct matrix *out,
                                                      struct error *err);

#endif
