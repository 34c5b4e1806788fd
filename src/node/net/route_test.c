#include "node/net/route.h"

#include <arpa/inet.h>

#include "base/check.h"

#define RANKS 3

static struct node_info nodes[RANKS];
static uint32_t host_of[RANKS] = {0, 1, 2}, host_ranks[RANKS] = {1, 1, 1};
static struct roster roster = {RANKS, nodes, RANKS, host_of, host_ranks};

static void clear(void)
{
	memset(nodes, 0, sizeof(nodes));
	roster.hosts = RANKS;
}

static void add(uint32_t rank, uint8_t interface, const char *text, uint8_t prefix)
{
	struct node_address *address = &nodes[rank].addresses[nodes[rank].address_count++];

	*address = (struct node_address){strchr(text, ':') ? NODE_IPV6 : NODE_IPV4, {0}, prefix, interface};
	CHECK(inet_pton(address->family == NODE_IPV6 ? AF_INET6 : AF_INET, text, address->bytes) == 1);
}

/* Returns "10.0.0.1 10.0.0.2 | 10.1.0.1 10.1.0.2": addresses by rail, then by rank; "": one rail. */
static const char *find(uint32_t wanted)
{
	static char text[512];
	struct rails rails;
	size_t used = 0;

	text[0] = '\0';
	CHECK(rails_find(&roster, wanted, &rails) == ESP_OK);
	CHECK((rails.count > 1) == (rails.address_of != NULL));
	for (uint32_t rail = 0; rails.count > 1 && rail < rails.count; rail++) {
		for (uint32_t rank = 0; rank < RANKS; rank++) {
			char address[NODE_ADDRESS_TEXT];

			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", rank ? " " : rail ? " | " : "",
			                         node_address_text(rails_address(&rails, &roster, rank, rail), address));
		}
	}
	rails_fini(&rails);
	return text;
}

static void same_networks(void)
{
	clear();
	add(0, 0, "10.0.0.1", 24);
	add(0, 1, "10.1.0.1", 24);
	add(1, 1, "10.1.0.2", 24); /* another order, other interface numbers */
	add(1, 0, "10.0.0.2", 24);
	add(2, 5, "10.0.0.3", 24);
	add(2, 2, "10.9.0.3", 24); /* a third interface */
	add(2, 7, "10.1.0.3", 24);
	CHECK_STR(find(0), "10.0.0.1 10.0.0.2 10.0.0.3 | 10.1.0.1 10.1.0.2 10.1.0.3");
	CHECK_STR(find(1), "");
	CHECK_STR(find(2), "10.0.0.1 10.0.0.2 10.0.0.3 | 10.1.0.1 10.1.0.2 10.1.0.3");
	roster.hosts = 1;
	CHECK_STR(find(0), "");
}

/* Both families of an interface are one rail. */
static void two_families(void)
{
	clear();
	for (uint32_t i = 0; i < RANKS; i++) {
		char text[32];

		snprintf(text, sizeof(text), "10.0.0.%u", i + 1);
		add(i, 0, text, 24);
		snprintf(text, sizeof(text), "2001:db8::%u", i + 1);
		add(i, 0, text, 64);
	}
	CHECK_STR(find(0), "");
	for (uint32_t i = 0; i < RANKS; i++) {
		char text[32];

		snprintf(text, sizeof(text), "2001:db8:1::%u", i + 1);
		add(i, 1, text, 64);
	}
	CHECK_STR(find(0), "10.0.0.1 10.0.0.2 10.0.0.3 | 2001:db8:1::1 2001:db8:1::2 2001:db8:1::3");
}

/* Two interfaces in one network. */
static void one_network(void)
{
	clear();
	for (uint32_t i = 0; i < RANKS; i++) {
		char text[32];

		snprintf(text, sizeof(text), "10.0.0.%u", i + 1);
		add(i, 0, text, 24);
		snprintf(text, sizeof(text), "10.0.0.%u", i + 101);
		add(i, 1, text, 24);
	}
	CHECK_STR(find(0), "10.0.0.1 10.0.0.2 10.0.0.3 | 10.0.0.101 10.0.0.102 10.0.0.103");
}

/* Each host in networks of its own, with routers between them: rails are found only if their number is given. */
static void routed(void)
{
	clear();
	for (uint32_t i = 0; i < RANKS; i++) {
		char text[32];

		snprintf(text, sizeof(text), "10.0.%u.1", i);
		add(i, 0, text, 24);
		snprintf(text, sizeof(text), "10.1.%u.1", i);
		add(i, 1, text, 24);
	}
	CHECK_STR(find(0), "");
	CHECK_STR(find(2), "10.0.0.1 10.0.1.1 10.0.2.1 | 10.1.0.1 10.1.1.1 10.1.2.1");
	CHECK_STR(find(8), "10.0.0.1 10.0.1.1 10.0.2.1 | 10.1.0.1 10.1.1.1 10.1.2.1");
	nodes[1].address_count = 1;
	CHECK_STR(find(2), "");
}

static void unusable(void)
{
	clear();
	CHECK_STR(find(0), ""); /* no addresses at all */
	for (uint32_t i = 0; i < RANKS; i++) {
		add(i, 0, "10.0.0.1", 24);
		add(i, NODE_NO_INTERFACE, "10.1.0.1", 24);
	}
	CHECK_STR(find(0), "");
	CHECK_STR(find(2), "");
}

static void weights(void)
{
	uint32_t out[RAILS_MOST];
	struct error err;

	rails_weigh((uint64_t[]){1000, 1000}, 2, out);
	CHECK(out[0] == 64 && out[1] == 64);
	rails_weigh((uint64_t[]){625000000, 125000000}, 2, out);
	CHECK(out[0] == 64 && out[1] == 13);
	rails_weigh((uint64_t[]){0, UINT64_MAX, 1, UINT64_MAX / 2}, 4, out);
	CHECK(out[0] == 0 && out[1] == 64 && out[2] == 0 && out[3] == 32);
	rails_weigh((uint64_t[]){0, 0}, 2, out);
	CHECK(out[0] == 0 && out[1] == 0);
	CHECK(rails_parse_weights("5:1", 2, out, &err) == ESP_OK && out[0] == 5 && out[1] == 1);
	CHECK(rails_parse_weights("0:1", 2, out, &err) == ESP_OK && out[0] == 0);
	CHECK(rails_parse_weights("5:1", 3, out, &err) == ESP_EINVAL &&
	      strstr(err.text, "names 2 interfaces, but 3 are used"));
	CHECK(rails_parse_weights("0:0", 2, out, &err) == ESP_EINVAL);
	static const char *const bad[] = {"5:", ":", "x", "5:-1", "5;1", "1:2:3:4:5:6:7:8:9", "1000001:1"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_MSG(rails_parse_weights(bad[i], 2, out, &err) == ESP_EINVAL, "%s", bad[i]);
}

static void ways(void)
{
	struct rails rails;
	struct route route;
	struct interfaces own = {.count = 2};
	char text[ROUTE_TEXT];

	clear();
	add(0, 0, "10.0.0.1", 24);
	add(0, 1, "10.1.0.1", 24);
	add(1, 0, "10.0.0.2", 24);
	add(1, 1, "10.1.0.2", 24);
	add(2, 0, "10.0.0.3", 24);
	add(2, 1, "10.1.0.3", 24);
	own.list[0] = (struct interface){.name = "eth0", .index = 2, .address = nodes[0].addresses[0]};
	own.list[1] = (struct interface){.name = "eth1", .index = 3, .address = nodes[0].addresses[1]};
	CHECK(rails_find(&roster, 0, &rails) == ESP_OK);
	CHECK(route_find(&rails, &roster, &own, 0, 2, 1, 0, &route));
	CHECK(node_address_same(&route.to, &nodes[2].addresses[1]) && route.has_source);
	CHECK(node_address_same(&route.source, &nodes[0].addresses[1]));
	CHECK_STR(route.device, "eth1");
	CHECK_STR(route_text(&route, 4711, &own, text), "10.1.0.3 port 4711 through eth1");
	/* The rail's address has failed RAIL_ATTEMPTS times: any address follows. */
	bool seen[2] = {false, false};
	for (uint32_t attempt = 3; attempt < 6; attempt++) {
		CHECK(route_find(&rails, &roster, &own, 0, 2, 1, attempt, &route) && !route.has_source && !route.device[0]);
		seen[node_address_same(&route.to, &nodes[2].addresses[1])] = true;
	}
	CHECK(seen[0] && seen[1]);
	CHECK(route_find(&rails, &roster, &own, 0, 2, ROUTE_ANY, 0, &route) && !route.has_source);
	CHECK_STR(route_text(&route, 4711, &own, text), "10.0.0.3 port 4711");
	rails_fini(&rails);

	/* A link-local address, through each of this host's interfaces in turn. */
	clear();
	for (uint32_t i = 0; i < RANKS; i++)
		add(i, 0, "fe80::1", 64);
	CHECK(rails_find(&roster, 0, &rails) == ESP_OK && rails.count == 1);
	CHECK(route_find(&rails, &roster, &own, 0, 1, 0, 0, &route) && route.scope == 2);
	CHECK(route_find(&rails, &roster, &own, 0, 1, 0, 1, &route) && route.scope == 3);
	CHECK(route_find(&rails, &roster, &own, 0, 1, 0, 2, &route) && route.scope == 2);
	nodes[1].address_count = 0;
	CHECK(!route_find(&rails, &roster, &own, 0, 1, 0, 0, &route));
	rails_fini(&rails);
}

int main(void)
{
	same_networks();
	two_families();
	one_network();
	routed();
	unusable();
	weights();
	ways();
	return 0;
}
