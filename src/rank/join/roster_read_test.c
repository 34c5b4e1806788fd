#include "rank/join/join_parts.h"

#include "base/check.h"
#include "base/rng.h"

#define SIZE_MAX_TESTED 40u

/* The number of hosts, in the order of ranks: compared with checking each pair. */
static void hosts(struct rng *rng)
{
	static uint8_t bytes[SIZE_MAX_TESTED * NODE_INFO_BYTES];
	struct roster roster;
	struct error err;

	for (int turn = 0; turn < 500; turn++) {
		uint32_t size = 1 + (uint32_t)rng_below(rng, SIZE_MAX_TESTED), known = 0;
		uint64_t kinds = 1 + rng_below(rng, 6);
		struct node_info nodes[SIZE_MAX_TESTED] = {0};

		for (uint32_t i = 0; i < size; i++) {
			nodes[i] = (struct node_info){.rank = i, .size = size, .version = HELLO_VERSION};
			nodes[i].host_id[rng_below(rng, 2) * 15] = (uint8_t)rng_below(rng, kinds);
			nodes[i].core_set = rng_below(rng, 3) << rng_below(rng, 63);
			node_info_encode(&nodes[i], bytes + i * NODE_INFO_BYTES);
		}
		CHECK(roster_decode(bytes, size, &roster, &err) == ESP_OK);
		for (uint32_t i = 0; i < size; i++) {
			uint32_t first = 0, on_host = 0, on_cores = 0;

			while (memcmp(nodes[first].host_id, nodes[i].host_id, NODE_INFO_HOST_ID_BYTES) != 0)
				first++;
			CHECK_U64(roster.host_of[i], first == i ? known : roster.host_of[first]);
			known += first == i;
			for (uint32_t k = 0; k < size; k++) {
				bool is_here = memcmp(nodes[k].host_id, nodes[i].host_id, NODE_INFO_HOST_ID_BYTES) == 0;

				if (k == i)
					CHECK_U64(roster.core_place[i], on_cores);
				on_host += is_here;
				on_cores += is_here && nodes[k].core_set == nodes[i].core_set;
			}
			CHECK_U64(roster.host_ranks[roster.host_of[i]], on_host);
			CHECK_U64(roster.core_ranks[i], on_cores);
		}
		CHECK_U64(roster.hosts, known);
		roster_fini(&roster);
	}
}

static void damaged(void)
{
	uint8_t bytes[NODE_INFO_BYTES];
	struct roster roster = {0};
	struct error err;

	memset(bytes, 0xff, sizeof(bytes));
	CHECK(roster_decode(bytes, 1, &roster, &err) == ESP_ECORRUPT && !roster.nodes);
	CHECK_STR(err.text, "the node info of rank 0 is damaged");
}

/* Loopback is enough on one host, and not between two. */
static void reached(void)
{
	static const struct node_address home = {.family = NODE_IPV4, .bytes = {127, 0, 0, 1}},
	    away = {.family = NODE_IPV4, .bytes = {10, 0, 0, 1}};
	struct node_info nodes[2] = {{.rank = 0, .address_count = 2, .addresses = {home, away}},
	                        {.rank = 1, .address_count = 1, .addresses = {home}, .host_name = "b"}};
	uint32_t host_of[2] = {0, 1}, host_ranks[2] = {1, 1};
	struct roster roster = {2, nodes, 2, host_of, host_ranks};
	struct error err;
	int32_t culprit = -1;

	CHECK(roster_check_reach(&roster, &culprit, &err) == ESP_EINVAL && culprit == 1);
	CHECK_STR(err.text, "rank 1 on b can be reached at 127.0.0.1 only, which is loopback, and there are other hosts: "
	                    "the settings family and interfaces (ESP_FAMILY, ESP_INTERFACES) leave it no other address");
	roster.hosts = 1;
	CHECK(roster_check_reach(&roster, &culprit, &err) == ESP_OK);
	roster.hosts = 2;
	nodes[1].addresses[0] = away;
	CHECK(roster_check_reach(&roster, &culprit, &err) == ESP_OK);
	nodes[1].address_count = 0;
	CHECK(roster_check_reach(&roster, &culprit, &err) == ESP_OK);
}

static void described(void)
{
	struct node_info nodes[3] = {{.rank = 0}, {.rank = 1, .port = 4711, .address_count = 2}, {.rank = 2}};
	uint32_t host_of[3] = {0, 0, 1}, host_ranks[2] = {2, 1};
	struct roster roster = {3, nodes, 2, host_of, host_ranks};
	struct join_config config = {.launch = {.rank = 1, .size = 3}};
	char text[JOIN_TEXT];

	nodes[1].addresses[0] = (struct node_address){NODE_IPV4, {10, 0, 0, 1}, 24, 0};
	nodes[1].addresses[1] = (struct node_address){NODE_IPV6, {0xfe, 0x80, [15] = 1}, 64, 0};
	CHECK_STR(join_describe(&config, &roster, text),
	          "joined 3 ranks on 2 hosts; rank 1 listens on port 4711 of 10.0.0.1, fe80::1");
	roster = (struct roster){1, nodes, 1, host_of, host_ranks};
	config.launch = (struct launch){.rank = 0, .size = 1};
	CHECK_STR(join_describe(&config, &roster, text), "joined 1 rank on 1 host; rank 0 listens on port 0");
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	hosts(&rng);
	damaged();
	reached();
	described();
	return 0;
}
