/*
 * topology_fuzz.c - topologies as text: what is read has paths between all that it has, and what is printed of it reads back the
 * same; or the reason names its line.
 */
#include "fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "network/topo/topology.h"

#define VERTICES_MOST 64u /* whose paths are walked */

static char *print(const struct topology *topology, size_t *length)
{
	char *text = NULL;
	FILE *file = open_memstream(&text, length);

	FUZZ_CHECK(file && topology_print(topology, file, NULL) == ESP_OK);
	fclose(file);
	return text;
}

static void walk(const struct topology *topology)
{
	uint32_t count = topology->vertex_count < VERTICES_MOST ? topology->vertex_count : VERTICES_MOST;
	uint32_t links[TOPOLOGY_HOPS_MAX];

	for (uint32_t from = 0; from < count; from++) {
		for (uint32_t to = 0; to < count; to++) {
			uint32_t hops = topology_path(topology, from, to, from + to, links);

			FUZZ_CHECK(hops <= TOPOLOGY_HOPS_MAX && (from == to || hops > 0));
			for (uint32_t i = 0; i < hops; i++) {
				FUZZ_CHECK(links[i] < topology->link_count && topology->links[links[i]].rate > 0);
				FUZZ_CHECK(topology->links[links[i]].class < TOPOLOGY_CLASSES);
			}
			FUZZ_CHECK(topology_delay(topology, links, hops) >= 0);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct topology *topology, *again;
	struct error err = {0};

	if (topology_parse((const char *)data, size, &topology, &err) != ESP_OK) {
		FUZZ_CHECK(strncmp(err.text, "line ", 5) == 0 || err.status == ESP_ENOMEM);
		return 0;
	}
	walk(topology);
	if (topology->vertex_count < 10000) {
		size_t length, length_again;
		char *text = print(topology, &length);

		FUZZ_CHECK(topology_parse(text, length, &again, &err) == ESP_OK);
		char *text_again = print(again, &length_again);
		FUZZ_CHECK(again->vertex_count == topology->vertex_count && again->link_count == topology->link_count);
		FUZZ_CHECK(length == length_again && memcmp(text, text_again, length) == 0);
		topology_close(again);
		free(text);
		free(text_again);
	}
	topology_close(topology);
	return 0;
}
