#include "network/topo/topology.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"
#include "network/topo/topology_text.h"

static struct topology *parse(const char *text)
{
	struct topology *topology = NULL;
	struct error err = {0};

	CHECK_MSG(topology_parse(text, strlen(text), &topology, &err) == ESP_OK, "%s", err.text);
	return topology;
}

static const char example[] = "topology 1\n"
			      "switch core\n"
			      "switch rack0 under core rate 100gbit delay 2us\n"
			      "hosts 3 under rack0 rate 25gbit delay 1us nics 2\n"
			      "switch rack1 under core rate 40gbit in 50gbit delay 2us\n"
			      "host hub under rack1 rate 100gbit in 200gbit local 400gbit\n"
			      "hosts 2 under rack1 rate 25gbit\n"
			      "at 2s rack0 rate 10gbit\n"
			      "from 1s to 3s node00 > hub rate 2gbit\n"
			      "from 0 node01 > node02 flows 4\n";

static void test_text(void)
{
	struct topology *topology = parse(example);
	char *text = topology_text(topology);

	CHECK_STR(text, example);
	free(text);
	CHECK(topology->host_count == 6 && topology->vertex_count == 9);
	CHECK_STR(topology->vertices[topology->hosts[5]].name, "node05");
	uint32_t hub = topology_find(topology, "hub", 3);
	const struct topology_link *links = &topology->links[topology->vertices[hub].first_link];
	CHECK(links[0].rate == 12.5e9 && links[1].rate == 25e9 && links[2].rate == 50e9);
	CHECK(links[0].class == TOPOLOGY_HOST_OUT && links[1].class == TOPOLOGY_HOST_IN &&
	      links[2].class == TOPOLOGY_LOCAL);
	CHECK(topology->changes[0].at == 2 && topology->changes[0].rate == 1.25e9);
	CHECK(isinf(topology->backgrounds[1].to) && topology->backgrounds[1].flows == 4);
	topology_close(topology);
}

static void test_errors(void)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{"", "line 1: a topology begins"},
		{"\xff\xfet", "line 1: this text is UTF-16; save it as UTF-8"},
		{"topology 2\n", "line 1: a topology begins"},
		{"topology 1\n", "line 2: there is no host"},
		{"topology 1\nswitch s\nhosts 2 under t rate 1gbit\n", "line 3: there is no host or switch t above this line"},
		{"topology 1\nswitch s\nhosts 0 under s rate 1gbit\n", "line 3: hosts wants"},
		{"topology 1\nswitch s\nhosts 2 under s\n", "line 3: a link needs a rate"},
		{"topology 1\nswitch s\nhosts 2 under s rate 1gbyte\n", "line 3: rate wants"},
		{"topology 1\nswitch s\nhost s under s rate 1gbit\n", "line 3: there are two of the name s"},
		{"topology 1\nswitch s\nhost h under s rate 1gbit\nhost i under h rate 1gbit\n", "line 4: h is a host"},
		{"topology 1\nswitch s\nhost h under s rate 1gbit\nat 1s s rate 1gbit\n", "line 4: the root has no link"},
		{"topology 1\nswitch s\nhost h under s rate 1gbit\nfrom 1s h > h flows 1\n", "line 4: traffic to itself"},
		{"topology 1\nswitch s\nhost h under s speed 1gbit\n", "line 3: 'speed' is not known here"},
		{"topology 1\nswitch s\nhost h under s rate 1gbit delay 1us rate 2gbit\n", "line 3: rate is there twice"},
		{"topology 1\nswitch s\nhost h under \033[31ms rate 1gbit\n", "line 3: a byte that is no text"},
		{"topology 1\nswitch s\x7f\n", "line 2: a byte that is no text"},
		{"survey 1\nlatency\na 0\n", "line 1: this is a measurement: espalier probe --matrix"},
		{"topology 1\nrouter s\n", "line 2: 'router' is not known"},
		{"topology 1\nhosts 1 under s rate 1gbit\n", "line 2: there is no host or switch s"},
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct topology *topology;
		struct error err = {0};

		CHECK(topology_parse(wrong[i].text, strlen(wrong[i].text), &topology, &err) == ESP_EPARSE);
		CHECK_MSG(strncmp(err.text, wrong[i].why, strlen(wrong[i].why)) == 0, "%s: %s", wrong[i].text, err.text);
	}
}

/* Files from Windows editors. */
static void test_marks(void)
{
	struct topology *topology = parse("\xef\xbb\xbftopology 1\r\nswitch s\r\nhosts 2 under s rate 1gbit\r\n");
	char *text = topology_text(topology);

	CHECK_STR(text, "topology 1\nswitch s\nhosts 2 under s rate 1gbit\n");
	free(text);
	topology_close(topology);
}

/* Names of up to 63 characters, the longest label of DNS. */
static void test_long_names(void)
{
	char name[65], text[256];
	struct topology *topology;
	struct error err = {0};

	memset(name, 'n', 64);
	name[63] = 0;
	snprintf(text, sizeof(text), "topology 1\nswitch s\nhost %s under s rate 1gbit\n", name);
	topology = parse(text);
	CHECK_STR(topology->vertices[topology->hosts[0]].name, name);
	topology_close(topology);
	snprintf(text, sizeof(text), "topology 1\nswitch s\nhost %sn under s rate 1gbit\n", name);
	CHECK(topology_parse(text, strlen(text), &topology, &err) == ESP_EPARSE);
	CHECK_STR(err.text, "line 3: 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn'... has 64 letters, and "
	                    "63 is the most: write a host without its domain, or its address");
}

/* A path goes up to the first common switch and down from there; its delay is the sum of its links'. */
static void test_paths(void)
{
	struct topology *topology = parse(example);
	uint32_t links[TOPOLOGY_HOPS_MAX], hub = topology_find(topology, "hub", 3),
	    rack0 = topology_find(topology, "rack0", 5);
	uint32_t node00 = topology->hosts[0], node01 = topology->hosts[1];
	const struct topology_vertex *vertices = topology->vertices;

	CHECK(topology_path(topology, node00, node01, 5, links) == 2);
	CHECK(links[0] == vertices[node00].first_link + 2 && links[1] == vertices[node01].first_link + 3);
	CHECK(topology_path(topology, node00, hub, 0, links) == 4);
	CHECK(topology->links[links[1]].class == TOPOLOGY_RACK_OUT && topology->links[links[2]].class == TOPOLOGY_RACK_IN);
	CHECK(fabs(topology_delay(topology, links, 4) - 5e-6) < 1e-15);
	CHECK(topology_path(topology, hub, rack0, 0, links) == 3);
	CHECK(topology_path(topology, rack0, node00, 0, links) == 1);
	CHECK(topology_path(topology, rack0, rack0, 0, links) == 0);
	CHECK(topology_path(topology, hub, hub, 0, links) == 1 && topology->links[links[0]].class == TOPOLOGY_LOCAL);
	CHECK(topology_path(topology, node00, node00, 0, links) == 0);
	topology_close(topology);
}

static void test_made(uint64_t seed)
{
	struct rng rng;
	struct topology *topology;

	rng_init(&rng, seed);
	uint32_t racks = 1 + (uint32_t)rng_below(&rng, 6), hosts = racks + (uint32_t)rng_below(&rng, 40);
	struct topology_spec spec = {.racks = racks, .hosts = hosts, .rate_bits = 10000000000, .oversubscribe = 4,
	                             .delay_ns = 1000};
	CHECK(topology_make(&spec, &topology, NULL) == ESP_OK);
	CHECK(topology->host_count == hosts && topology->vertex_count == hosts + racks + (racks > 1));

	char *text = topology_text(topology);
	struct topology *again = parse(text);
	char *text_again = topology_text(again);
	CHECK_STR(text_again, text);
	free(text);
	free(text_again);

	uint32_t place[64], group_of[64], count[8] = {0};
	CHECK(topology_place(topology, hosts, true, place, NULL) == ESP_OK);
	CHECK(topology_groups(topology, place, hosts, group_of, NULL) == ESP_OK);
	for (uint32_t i = 0; i < hosts; i++) {
		CHECK(group_of[i] < racks);
		count[group_of[i]]++;
		CHECK(i >= racks || group_of[i] == i); /* one host of each rack in turn */
	}
	for (uint32_t i = 0; i < racks; i++)
		CHECK(count[i] == hosts / racks || count[i] == hosts / racks + 1);
	CHECK(topology_place(topology, 64, false, place, NULL) == ESP_OK);
	for (uint32_t i = 1; i < 64; i++)
		CHECK(place[i] >= place[i - 1] && place[i - 1] < topology->vertex_count);
	topology_close(topology);
	topology_close(again);
}

int main(void)
{
	test_text();
	test_errors();
	test_marks();
	test_long_names();
	test_paths();
	for (uint64_t seed = 1; seed <= 50; seed++)
		test_made(seed);
	return 0;
}
