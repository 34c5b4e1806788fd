/*
 * groups_fuzz.c - the groups file: every node ends up in a group that exists, or the reason is given.
 */
#include "fuzz.h"

#include <string.h>

#include "network/topo/groups.h"

#define NODES 40u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t group_of[NODES];
	struct error err = {0};

	if (groups_parse((const char *)data, size, NODES, group_of, &err) != ESP_OK) {
		FUZZ_CHECK(strncmp(err.text, "line ", 5) == 0 || strncmp(err.text, "there is no group", 17) == 0);
		return 0;
	}
	for (uint32_t i = 0; i < NODES; i++)
		FUZZ_CHECK(group_of[i] < NODES);
	return 0;
}
