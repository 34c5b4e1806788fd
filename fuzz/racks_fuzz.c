/*
 * racks_fuzz.c - where hosts stand, from a rack map, Slurm's topology.conf or Kubernetes' labels: what is read places all hosts, and
 * hosts of one rack share all levels above it; or there is a reason, which can be printed.
 */
#include "fuzz.h"

#include <string.h>

#include "topo/racks.h"

static const char *const hosts[] = {"n0", "n1.example.org", "n2", "10.0.0.1", "n0"};
#define HOSTS ((uint32_t)(sizeof(hosts) / sizeof(hosts[0])))

static void check(enum esp_status status, struct racks *racks, const struct error *err)
{
	struct grouping grouping;

	if (status != ESP_OK) {
		FUZZ_CHECK(err->text[0] != '\0');
		for (const char *c = err->text; *c; c++)
			FUZZ_CHECK(*c >= 0x20 && *c < 0x7f);
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct racks racks;
	struct error err = {0};

	check(racks_read(text, size, NULL, hosts, HOSTS, &racks, &err), &racks, &err);
	check(racks_read_map(text, size, hosts, HOSTS, &racks, &err), &racks, &err);
	check(racks_read_slurm(text, size, hosts, HOSTS, &racks, &err), &racks, &err);
	return 0;
}
