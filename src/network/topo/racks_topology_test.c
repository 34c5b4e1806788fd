#include "network/topo/racks_topology.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"
#include "network/topo/topology_text.h"

static const struct racks_links usual = {.rate_bits = 10000000000, .oversubscribe = 4, .delay_ns = 1000,
                                         .uplink_delay_ns = 2000};

static enum esp_status make(const char *text, const struct racks_links *links, struct topology **out, struct error *err)
{
	struct racks_names names;
	struct racks racks;

	CHECK_MSG(racks_names_read(text, strlen(text), &names, err) == ESP_OK, "%s", err->text);
	CHECK_MSG(racks_read(text, strlen(text), NULL, (const char *const *)names.list, names.count, &racks, err) == ESP_OK,
	          "%s", err->text);
	enum esp_status status = racks_topology(&racks, (const char *const *)names.list, links, out, err);
	racks_fini(&racks);
	racks_names_fini(&names);
	return status;
}

/* Checks the topology of a file; its text parses to the same topology. */
static void check_made(const char *file, const struct racks_links *links, const char *wanted)
{
	struct topology *topology, *again;
	struct error err = {0};

	CHECK_MSG(make(file, links, &topology, &err) == ESP_OK, "%s: %s", file, err.text);
	char *text = topology_text(topology);
	CHECK_STR(text, wanted);
	CHECK_MSG(topology_parse(text, strlen(text), &again, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(again->vertex_count, topology->vertex_count);
	topology_close(again);
	topology_close(topology);
	free(text);
}

static void check_refused(const char *file, const struct racks_links *links, const char *reason)
{
	struct topology *topology;
	struct error err = {0};

	CHECK_MSG(make(file, links, &topology, &err) == ESP_EINVAL, "%s was accepted", file);
	CHECK_STR(err.text, reason);
}

static void test_racks(void)
{
	/* racks as they first appear, whatever the order of the lines */
	check_made("b0 b\na0 a\nb1 b\na1 a\nb2 b\n", &usual,
	           "topology 1\nswitch core\n"
	           "switch b under core rate 7.5gbit delay 2us\n"
	           "host b0 under b rate 10gbit delay 1us\nhost b1 under b rate 10gbit delay 1us\nhost b2 under b rate "
	           "10gbit delay 1us\n"
	           "switch a under core rate 5gbit delay 2us\n"
	           "host a0 under a rate 10gbit delay 1us\nhost a1 under a rate 10gbit delay 1us\n");
	/* a single rack */
	check_made("x r\ny r\n", &(struct racks_links){.rate_bits = 1000000000},
	           "topology 1\nswitch r\nhost x under r rate 1gbit\nhost y under r rate 1gbit\n");
	check_made("x r\ny s\n", &(struct racks_links){.rate_bits = 1000000000, .uplink_bits = 300000000,
	                                               .oversubscribe = 1},
	           "topology 1\nswitch core\nswitch r under core rate 300mbit\nhost x under r rate 1gbit\nswitch s under "
	           "core rate 300mbit\nhost y under s rate 1gbit\n");
}

static void test_levels(void)
{
	const struct racks_links links = {.rate_bits = 1000000000, .oversubscribe = 2};

	/* names that occur twice become paths; a row of one rack is that rack; a row's uplink is the sum of its racks' */
	check_made("a r1/k\nb r1/l\nc r2/k\nd r2/m\ne r3/n\n", &links,
	           "topology 1\nswitch core\n"
	           "switch r1 under core rate 1gbit\nswitch r1/k under r1 rate 500mbit\nhost a under r1/k rate "
	           "1gbit\nswitch l under r1 rate 500mbit\nhost b under l rate 1gbit\n"
	           "switch r2 under core rate 1gbit\nswitch r2/k under r2 rate 500mbit\nhost c under r2/k rate "
	           "1gbit\nswitch m under r2 rate 500mbit\nhost d under m rate 1gbit\n"
	           "switch n under core rate 500mbit\nhost e under n rate 1gbit\n");
	/* Slurm's top is the root, and branches may have different depths */
	check_made("SwitchName=top Switches=mid,s3\nSwitchName=mid Switches=s[1-2]\nSwitchName=s1 Nodes=n1\nSwitchName=s2 "
	           "Nodes=n[2-3]\nSwitchName=s3 Nodes=n4\n", &links,
	           "topology 1\nswitch top\nswitch mid under top rate 1.5gbit\nswitch s1 under mid rate 500mbit\nhost n1 "
	           "under s1 rate 1gbit\n"
	           "switch s2 under mid rate 1gbit\nhost n2 under s2 rate 1gbit\nhost n3 under s2 rate 1gbit\nswitch s3 "
	           "under top rate 500mbit\nhost n4 under s3 rate 1gbit\n");
	/* all below one region and one zone */
	check_made("a us/z/1\nb us/z/2\n", &links,
	           "topology 1\nswitch z\nswitch 1 under z rate 500mbit\nhost a under 1 rate 1gbit\nswitch 2 under z rate "
	           "500mbit\nhost b under 2 rate 1gbit\n");
}

static void test_names(void)
{
	const struct racks_links links = {.rate_bits = 1000000000};
	char text[256], name[65];

	/* a host with the name of its rack, and one named core */
	check_made("core x/r\ncore0 x/r\nr y/s\n", &links,
	           "topology 1\nswitch core1\nswitch x/r under core1 rate 2gbit\nhost core under x/r rate 1gbit\nhost "
	           "core0 under x/r rate 1gbit\n"
	           "switch s under core1 rate 1gbit\nhost r under s rate 1gbit\n");
	memset(name, 'n', 64);
	name[64] = 0;
	snprintf(text, sizeof(text), "%s a\n", name);
	check_refused(text, &links, "host 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn'... has a name of 64 "
	                            "letters: 1 to 63 are possible");
	name[4] = '.';
	snprintf(text, sizeof(text), "%s a\n", name);
	check_refused(text, &links, "host 'nnnn.nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn'... has a name of 64 "
	                            "letters: 1 to 63 are possible; leave out its domain");
	snprintf(text, sizeof(text), "h %s\n", name);
	check_refused(text, &links, "rack 'nnnn.nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn'... has a name of 64 "
	                            "letters: 1 to 63 are possible; leave out its domain");
	check_refused("{\"items\":[{\"metadata\":{\"name\":\"a b\",\"labels\":{\"rack\":\"r\"}}}]}", &links,
	              "host 'a b': a name has no blank, no # and nothing but text in a topology");
	check_refused("h r\177\n", &links, "rack 'r?': a name has no blank, no # and nothing but text in a topology");
	/* a rack with the name of its host; paths that are too long */
	check_made("a a\na~0 a\nb b\n", &links,
	           "topology 1\nswitch core\nswitch a~1 under core rate 2gbit\nhost a under a~1 rate 1gbit\nhost a~0 under "
	           "a~1 rate 1gbit\n"
	           "switch b~0 under core rate 1gbit\nhost b under b~0 rate 1gbit\n");
	snprintf(text, sizeof(text), "a %.62s/k\nb %.61sm/k\n", name, name);
	check_made(text, &links, "topology 1\nswitch core\nswitch k~0 under core rate 1gbit\nhost a under k~0 rate "
	                         "1gbit\nswitch k~1 under core rate 1gbit\n"
	                         "host b under k~1 rate 1gbit\n");
}

static void test_links(void)
{
	check_refused("a r\nb s\n", &(struct racks_links){.rate_bits = 0}, "rates go from 8 bit/s to 1 Pbit/s");
	check_refused("a r\nb s\n", &(struct racks_links){.rate_bits = 8, .oversubscribe = 2},
	              "an uplink of 4 bit/s is none: 8 is the least");
	check_refused("a r\nb s\n", &(struct racks_links){.rate_bits = 8, .oversubscribe = -1},
	              "racks oversubscribed by -1: must be above 0, and 1e6 at most");
	check_refused("a 1/2/3/4/5/6/7/8\nb 1/2/3/4/5/6/7/9\nc 1/2/3/4/5/6/a/b\nd 1/2/3/4/5/c/d/e\ne 1/2/3/4/f/g/h/i\nf "
	              "1/2/3/j/k/l/m/n\n", &usual,
	              "host 'a' has 6 switches above it, and a topology can have 5: leave out a level");
	/* more than the largest rate of a topology's text */
	check_made("a x/r\nb x/s\nc y/t\n", &(struct racks_links){.rate_bits = 1000, .uplink_bits = 900000000000000},
	           "topology 1\nswitch core\nswitch x under core rate 1000000gbit\nswitch r under x rate 900000gbit\nhost "
	           "a under r rate 1kbit\n"
	           "switch s under x rate 900000gbit\nhost b under s rate 1kbit\nswitch t under core rate 900000gbit\nhost "
	           "c under t rate 1kbit\n");
}

/* Any map: all hosts are there, the hosts of one rack below one switch, and no others. */
static void test_random(uint64_t seed)
{
	struct rng rng;
	char text[4096] = "";
	uint32_t rack_of[64], hosts = 1, length = 0;
	struct topology *topology;
	struct error err = {0};

	rng_init(&rng, seed);
	hosts += (uint32_t)rng_below(&rng, 60);
	uint32_t rows = 1 + (uint32_t)rng_below(&rng, 4), racks = 1 + (uint32_t)rng_below(&rng, 5);
	for (uint32_t i = 0; i < hosts; i++) {
		rack_of[i] = (uint32_t)rng_below(&rng, rows * racks);
		length += (uint32_t)snprintf(text + length, sizeof(text) - length, "h%u row%u/rack%u\n", i, rack_of[i] / racks,
		                             rack_of[i] % racks);
	}
	CHECK_MSG(make(text, &usual, &topology, &err) == ESP_OK, "seed %llu: %s", (unsigned long long)seed, err.text);
	CHECK_U64(topology->host_count, hosts);
	for (uint32_t a = 0; a < hosts; a++) {
		for (uint32_t b = 0; b < a; b++) {
			char x[16], y[16];
			int x_length = snprintf(x, sizeof(x), "h%u", a), y_length = snprintf(y, sizeof(y), "h%u", b);
			uint32_t p = topology_rack(topology, topology_find(topology, x, (size_t)x_length));
			uint32_t q = topology_rack(topology, topology_find(topology, y, (size_t)y_length));

			CHECK_MSG((p == q) == (rack_of[a] == rack_of[b]), "seed %llu: %s and %s", (unsigned long long)seed, x, y);
		}
	}
	topology_close(topology);
}

int main(void)
{
	test_racks();
	test_levels();
	test_names();
	test_links();
	for (uint64_t seed = 1; seed <= 100; seed++)
		test_random(seed);
	return 0;
}
