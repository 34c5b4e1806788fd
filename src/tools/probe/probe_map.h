/*
 * probe_map.h - an embedding of many dimensions as a picture, of the two directions in which the points differ most.
 * Pure.
 */
#ifndef TOOLS_PROBE_PROBE_MAP_H
#define TOOLS_PROBE_PROBE_MAP_H

#include "network/discover/embed.h"

/* x and y of each node, from 0 to 1, in the same proportion. The same embedding gives the same map. ESP_ENOMEM. */
ESP_CHECKED enum esp_status probe_tool_map(const struct embedding *embedding, double *out_x, double *out_y);

#endif
