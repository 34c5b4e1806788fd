/*
 * groups.h - the groups of nodes: read from text, or racks of equal size.
 *
 *     # two racks, the second with a straggler
 *     0-3
 *     4-6 7
 *
 * Each line is one group: its nodes, as numbers or ranges, separated by blanks or commas. Groups are numbered
 * from 0 in the order of their lines; '#' starts a comment. Lines without nodes and a byte order mark are
 * skipped. Every node is in exactly one group. Pure functions.
 */
#ifndef NETWORK_TOPO_GROUPS_H
#define NETWORK_TOPO_GROUPS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Fills group_of[0 .. nodes - 1]. ESP_EPARSE with "line 2: ..." in err, also if there is no group. */
ESP_CHECKED enum esp_status groups_parse(const char *text, size_t length, uint32_t nodes, uint32_t *group_of,
                                              struct error *err);

enum placement {
	PLACE_CONTIGUOUS,  /* neighbours in rank share a rack: 0 0 1 1 */
	PLACE_INTERLEAVED, /* neighbours are in different ones: 0 1 0 1 */
};

/* `racks` racks (1 .. nodes) of sizes that differ by at most one. */
void groups_racks(uint32_t nodes, uint32_t racks, enum placement placement, uint32_t *group_of);

#endif
