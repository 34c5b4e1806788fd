/*
 * racks_fuzz.c - where hosts stand, from a rack map, Slurm's topology.conf or Kubernetes' labels: what is read places all hosts, and
 * hosts of one rack share all levels above it; or there is a reason, which can be printed. What a file says of all its hosts becomes a
 * topology, whose text reads back.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "network/topo/racks_topology.h"

static const char *const hosts[] = {"n0", "n1.example.org", "n2", "10.0.0.1", "n0"};
#define HOSTS_MOST 1000u /* of a file, whose topology is made */
#define HOSTS ((uint32_t)(sizeof(hosts) / sizeof(hosts[0])))

static void check_reason(const struct error *err)
{
	FUZZ_CHECK(err->text[0] != '\0');
	for (const char *c = err->text; *c; c++)
		FUZZ_CHECK(*c >= 0x20 && *c < 0x7f);
}

static void check(enum esp_status status, struct racks *racks, const struct error *err)
{
	struct grouping grouping;

	if (status != ESP_OK) {
		check_reason(err);
		return;
	}
	FUZZ_CHECK(racks->nodes == HOSTS && racks->levels >= 1 && racks->levels <= RACKS_LEVELS_MAX);
	FUZZ_CHECK(racks_grouping(racks, &grouping, NULL) == ESP_OK);
	for (uint32_t a = 0; a < HOSTS; a++) {
		for (uint32_t b = 0; b < a; b++)
			FUZZ_CHECK((grouping.group_of[a] == grouping.group_of[b]) == (racks_common(racks, a, b) == racks->levels));
	}
	FUZZ_CHECK(grouping.group_of[0] == grouping.group_of[4]); /* one name, one place */
	grouping_fini(&grouping);
	racks_fini(racks);
}

static void check_topology(const struct topology *topology, uint32_t count)
{
	struct topology *again;
	char *text = NULL;
	size_t length = 0;
	FILE *file = open_memstream(&text, &length);

	FUZZ_CHECK(file && topology_print(topology, file, NULL) == ESP_OK);
	fclose(file);
	FUZZ_CHECK(topology->host_count == count);
	FUZZ_CHECK(topology_parse(text, length, &again, NULL) == ESP_OK);
	FUZZ_CHECK(again->host_count == count && again->vertex_count == topology->vertex_count);
	topology_close(again);
	free(text);
}

/* All hosts of the file. */
static void check_all(const char *data, size_t size)
{
	const struct racks_links links = {.rate_bits = 1000000000, .oversubscribe = 4};
	struct racks_names names = {0};
	struct racks racks = {0};
	struct topology *topology = NULL;
	struct error err = {0};

	enum esp_status status = racks_names_read(data, size, &names, &err);
	if (status == ESP_OK && names.count <= HOSTS_MOST)
		status = racks_read(data, size, NULL, (const char *const *)names.list, names.count, &racks, &err);
	if (status == ESP_OK && racks.nodes > 0)
		status = racks_topology(&racks, (const char *const *)names.list, &links, &topology, &err);
	if (status != ESP_OK)
		check_reason(&err);
	if (topology)
		check_topology(topology, names.count);
	topology_close(topology);
	racks_fini(&racks);
	racks_names_fini(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct racks racks;
	struct error err = {0};

	check(racks_read(text, size, NULL, hosts, HOSTS, &racks, &err), &racks, &err);
	check(racks_read_map(text, size, hosts, HOSTS, &racks, &err), &racks, &err);
	check(racks_read_slurm(text, size, hosts, HOSTS, &racks, &err), &racks, &err);
	check_all(text, size);
	return 0;
}
