/*
 * mechanism.c - the table of mechanisms.
 */
#include "sim/workload/mechanism.h"

#include <string.h>

static const struct mechanism table[] = {
	{"server", "parameter servers, and nothing in the network helps them", .spread = "central", .sum = "central"},
	{"aggregation", "parameter servers; the switch sums the gradients", .spread = "central", .sum = "switch-sum",
	 .uses_switch = true},
	{"multicast", "parameter servers; the switch copies the parameters", .spread = "switch-copy", .sum = "central",
	 .uses_switch = true},
	{"multicast+aggregation", "parameter servers; the switch sums and copies", .spread = "switch-copy",
	 .sum = "switch-sum",
	 .uses_switch = true},
	{"ring", "once around to be summed, once around to be handed out, a piece per worker", .sum = "ring",
	 .pieces = MECHANISM_AROUND, .fuses = true},
	{"ring-whole", "the same with whole parameters", .sum = "ring", .rotates = true},
	{"ring+multicast", "once around to be summed, then copied by the switch", .sum = "ring-switch",
	 .pieces = MECHANISM_AROUND, .fuses = true, .uses_switch = true},
	{"butterfly", "each exchanges everything with a neighbour, log N times", .sum = "butterfly", .fuses = true},
	{"halving-doubling", "neighbours exchange halves, quarters and so on, and back", .sum = "halving-doubling",
	 .pieces = MECHANISM_PER_WORKER, .fuses = true},
	{"double-tree", "two trees, each for half of the pieces", .sum = "double-tree", .pieces = MECHANISM_PER_WORKER,
	 .fuses = true},
	{"two-level", "sums within racks, then between them", .sum = "two-level", .pieces = MECHANISM_PER_WORKER,
	 .fuses = true},
	{"hub", "a hub in every rack sums for it, and the hubs sum between racks", .sum = "hub",
	 .pieces = MECHANISM_PER_WORKER,
	 .fuses = true, .uses_hubs = true},
};

const struct mechanism *workload_mechanism_at(size_t index)
{
	return index < sizeof(table) / sizeof(table[0]) ? &table[index] : NULL;
}

const struct mechanism *workload_mechanism_find(const char *name)
{
	for (size_t i = 0; workload_mechanism_at(i); i++) {
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	}
	return NULL;
}
