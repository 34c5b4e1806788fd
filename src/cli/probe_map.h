/*
 * probe_map.h - an embedding of many dimensions as a picture: the two in which the points differ the most. Pure.
 */
#ifndef CLI_PROBE_MAP_H
#define CLI_PROBE_MAP_H

#include "topo/embed.h"

/* x and y of each node, from 0 to 1, in the same proportion. The same embedding gives the same map. ESP_ENOMEM. */
ESP_CHECKED enum esp_status probe_map(const struct embedding *embedding, double *out_x, double *out_y);

/*
 * Moves points apart that would hide each other, as little as that takes: until no two of them are nearer than `least` in height, or
 * `wider` times that in width. For any unit.
 */
void probe_map_spread(double *x, double *y, uint32_t count, double least, double wider);

#endif
