#include "network/probe/found.h"

#include <math.h>

#include "base/check.h"

static const char *const names[] = {"n3", "core", "n1", "group0", "n7"};
static const uint32_t labels[] = {0, 0, 1, 1, 1};

/* Two groups: round trips of 20 us within them, 44 between; links of 100 MB/s, uplinks of 100. */
static void build(struct found *found)
{
	struct error err;

	memset(found, 0, sizeof(*found));
	CHECK(survey_init(&found->survey, names, 5, &err) == ESP_OK &&
	      grouping_from(&found->grouping, labels, 5, &err) == ESP_OK);
	for (uint32_t k = 0; k < SURVEY_KINDS; k++)
		CHECK(matrix_init(&found->survey.matrices[k], 5, &err) == ESP_OK);
	for (uint32_t i = 0; i < 5; i++)
		for (uint32_t j = 0; j < i; j++) {
			bool same = labels[i] == labels[j];
			matrix_set(&found->survey.matrices[SURVEY_LATENCY], i, j, same ? 20e-6 : 44e-6);
			matrix_set(&found->survey.matrices[SURVEY_INVERSE_BANDWIDTH], i, j, same ? 1 / 100e6 : 1 / 50e6);
		}
	CHECK(probe_found_rates_init(found, &err) == ESP_OK);
}

static double path_delay(const struct topology *topology, const char *from, const char *to)
{
	uint32_t links[TOPOLOGY_HOPS_MAX];
	uint32_t a = topology_find(topology, from, strlen(from)), b = topology_find(topology, to, strlen(to));

	return topology_delay(topology, links, topology_path(topology, a, b, 0, links));
}

static void test_topology(void)
{
	struct topology *topology;
	struct found found;
	struct error err = {0};

	build(&found);
	for (uint32_t i = 0; i < 5; i++)
		found.rate_out[i] = found.rate_in[i] = 100e6;
	found.rate_in[2] = 90e6;
	for (uint32_t g = 0; g < 2; g++)
		found.uplink_out[g] = found.uplink_in[g] = 110e6 + 10e6 * g;
	CHECK_MSG(probe_topology(&found, &topology, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(topology->host_count, 5);
	for (uint32_t i = 0; i < 5; i++) {
		uint32_t host = topology_find(topology, names[i], strlen(names[i]));
		CHECK(host != TOPOLOGY_NONE && topology->vertices[host].is_host);
		const struct topology_link *link = &topology->links[topology->vertices[host].first_link];
		CHECK(fabs(link[0].rate - 100e6) < 1 && fabs(link[1].rate - (i == 2 ? 90e6 : 100e6)) < 1);
		uint32_t rack = topology_rack(topology, host);
		CHECK(fabs(topology->links[topology->vertices[rack].first_link].rate - (labels[i] ? 120e6 : 110e6)) < 1);
	}
	CHECK(topology_rack(topology, topology_find(topology, "n3",
	                                            2)) == topology_rack(topology, topology_find(topology, "core", 4)));
	CHECK(topology_rack(topology,
	                    topology_find(topology, "n3", 2)) != topology_rack(topology, topology_find(topology, "n1", 2)));
	CHECK(fabs(path_delay(topology, "n3", "core") - 10e-6) < 1e-9);
	CHECK(fabs(path_delay(topology, "n3", "n7") - 22e-6) < 2e-9);
	topology_close(topology);
	probe_found_fini(&found);
}

/* Without rates there is no topology; from a matrix they can be estimated. */
static void test_estimates(void)
{
	struct topology *topology;
	struct found found;
	struct error err = {0};

	build(&found);
	CHECK(probe_topology(&found, &topology, &err) == ESP_EINVAL);
	probe_found_estimate_rates(&found);
	CHECK(probe_topology(&found, &topology, &err) == ESP_OK);
	topology_close(topology);
	CHECK(fabs(found.rate_out[0] - 100e6) < 1);
	/* Two of five: one and a half flows out in a round, each at 50 MB/s. */
	CHECK(fabs(found.uplink_out[0] - 75e6) < 1 && fabs(found.uplink_out[1] - 75e6) < 1);
	probe_found_fini(&found);

	/* Paths between groups as fast as those within: their limit is unknown, and nothing is scarce. */
	build(&found);
	for (uint32_t i = 0; i < found.survey.count; i++)
		for (uint32_t j = 0; j < found.survey.count; j++)
			if (i != j)
				matrix_set(&found.survey.matrices[SURVEY_INVERSE_BANDWIDTH], i, j, 1e-8);
	probe_found_estimate_rates(&found);
	CHECK(fabs(found.uplink_out[0] - 200e6) < 1 && fabs(found.uplink_out[1] - 300e6) < 1);
	probe_found_fini(&found);
}

static void test_uplinks(void)
{
	struct report_row rows[9] = {0};
	const struct grouping grouping = {3, 2, (uint32_t[]){0, 1, 1}};
	double out[2], in[2];

	rows[0 * 3 + 1].rate_sum = 10; /* 1 to 0 */
	rows[0 * 3 + 2].rate_sum = 20;
	rows[2 * 3 + 0].rate_sum = 6;
	rows[2 * 3 + 1].rate_sum = 1000; /* stays in group 1 */
	probe_found_uplinks(rows, 3, &grouping, out, in);
	CHECK(out[0] == 6 && in[0] == 30 && out[1] == 30 && in[1] == 6);
}

static void test_long_names(void)
{
	static const char *const list[] = {
		"a.very.long.domain.name.that.no.topology.takes.because.it.goes.on.and.on",
		"a-host-name-that-no-topology-takes-as-it-is-and-that-goes-on-and-on"};
	struct found found = {0};
	struct topology *topology;
	struct error err = {0};

	CHECK(survey_init(&found.survey, list, 2, &err) == ESP_OK && grouping_init(&found.grouping, 2, &err) == ESP_OK);
	CHECK(probe_found_rates_init(&found, &err) == ESP_OK);
	for (uint32_t i = 0; i < 2; i++)
		found.rate_out[i] = found.rate_in[i] = 1e6;
	CHECK(probe_topology(&found, &topology, &err) == ESP_ELIMIT);
	found.survey.names[1][10] = '.';
	CHECK_MSG(probe_topology(&found, &topology, &err) == ESP_OK, "%s", err.text);
	CHECK(topology_find(topology, "a", 1) != TOPOLOGY_NONE);
	topology_close(topology);
	probe_found_fini(&found);
}

/* The job may have hosts that could not be probed: they are outside of all groups. */
static void test_lost(void)
{
	struct topology *topology;
	struct found found;
	struct error err = {0};
	char *text;
	size_t length;

	build(&found);
	probe_found_estimate_rates(&found);
	found.lost = calloc(1, sizeof(*found.lost));
	CHECK(found.lost);
	found.lost_count = 1;
	snprintf(found.lost[0].name, sizeof(found.lost[0].name), "lost");
	FILE *file = open_memstream(&text, &length);
	CHECK(file && probe_found_print_topology(&found, (const char *const[]){"a comment", NULL}, file, &err) == ESP_OK);
	CHECK(probe_found_print_lost(&found, file, &err) == ESP_OK && fclose(file) == 0);
	CHECK_MSG(topology_parse(text, length, &topology, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(topology->host_count, 6);
	CHECK(topology_rack(topology, topology_find(topology, "lost", 4)) == topology_root(topology));
	topology_close(topology);
	free(text);
	probe_found_fini(&found);
}

int main(void)
{
	test_topology();
	test_estimates();
	test_uplinks();
	test_long_names();
	test_lost();
	return 0;
}
