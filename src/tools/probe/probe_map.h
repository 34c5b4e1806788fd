/*
 * probe_map.h - an embedding of many dimensions as a picture: the two in which the points differ the most. Pure.
 */
#ifndef TOOLS_PROBE_PROBE_MAP_H
#define TOOLS_PROBE_PROBE_MAP_H

#include "network/discover/embed.h"

/* x and y of each node, from 0 to 1, in the same proportion. The same embedding gives the same map. ESP_ENOMEM. */
ESP_CHECKED enum esp_status probe_map(const struct embedding *embedding, double *out_x, double *out_y);

/*
 * Moves points apart that would hide each other, as little as that takes: until no two of them are nearer than `least` in height, or
 * `wider` times that in width. For any unit.
 */
void probe_map_spread(double *x, double *y, uint32_t count, double least, double wider);

/* A label in one of the two columns beside a map, at the height y. */
struct probe_map_label {
	bool is_left;
	double y;
};

/*
 * Labels for these points: half of them at each side, in the order of the points' heights, none nearer to the next than `line`, and each as near
 * to the height of its point as that leaves it. They stay between top and bottom if there is room for all. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status probe_map_labels(const double *x, const double *y, uint32_t count, double top, double bottom, double line,
                                             struct probe_map_label *out);

#endif
