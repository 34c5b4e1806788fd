/*
 * groups.h - which node is in which group: read from text, or cut into racks.
 *
 *     # two racks, the second with a straggler
 *     0-3
 *     4-6 7
 *
 * Each line is one group: its nodes, as numbers or ranges, with blanks or commas between
 * them. Groups are numbered from 0 in the order of their lines; '#' starts a comment, and
 * lines without nodes are skipped, and so is a byte order mark before the first. Every node
 * stands in exactly one group. Pure functions.
 */
#ifndef NETWORK_TOPO_GROUPS_H
#define NETWORK_TOPO_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Fills group_of[0 .. nodes - 1]; or ESP_EPARSE with "line 2: ..." in err, or that there is no group at all. */
ESP_CHECKED enum esp_status groups_parse(const char *text, size_t length, uint32_t nodes, uint32_t *group_of,
                                              struct error *err);

enum placement {
	PLACE_CONTIGUOUS,  /* neighbours in rank share a rack: 0 0 1 1 */
	PLACE_INTERLEAVED, /* neighbours are in different ones: 0 1 0 1 */
};

/* As many racks as asked for (1 .. nodes), as equal as can be. */
void groups_racks(uint32_t nodes, uint32_t racks, enum placement placement, uint32_t *group_of);

#endif
