/*
 * topology_text.h - a topology as text, for tests.
 */
#ifndef NETWORK_TOPO_TOPOLOGY_TEXT_H
#define NETWORK_TOPO_TOPOLOGY_TEXT_H

#include <stdio.h>

#include "base/check.h"
#include "network/topo/topology.h"

/* The caller frees it. */
static inline char *topology_text(const struct topology *topology)
{
	char *text = NULL;
	size_t length;
	FILE *file = open_memstream(&text, &length);

	CHECK(file && topology_print(topology, file, NULL) == ESP_OK);
	fclose(file);
	return text;
}

#endif
