#include "tools/lab/commands.h"

#include "base/check.h"
#include "tools/lab/shaper.h"

static struct lab *make(uint32_t racks, uint32_t hosts, bool ipv6)
{
	struct lab_config config = {.name = "test", .racks = racks, .hosts = hosts, .rails = 1, .rate = {100000000},
	                            .oversubscribe = 2, .mtu = 1500, .ipv6 = ipv6, .seed = 1};
	struct error err;
	CHECK(lab_config_check(&config, &err) == ESP_OK);
	struct lab *lab = malloc(lab_bytes(&config));
	CHECK(lab);
	lab_init(lab, &config);
	return lab;
}

struct text {
	char *bytes;
	size_t length;
	FILE *out;
};

static FILE *begin(struct text *text)
{
	text->out = open_memstream(&text->bytes, &text->length);
	CHECK(text->out);
	return text->out;
}

static void check_text(struct text *text, const char *expected)
{
	fclose(text->out);
	CHECK_STR(text->bytes, expected);
	free(text->bytes);
}

static void test_rack(void)
{
	const int nets[] = {10, 11, 12, 13, 20, 21, 30};
	struct text text;
	struct lab *lab = make(2, 2, false);
	lab_commands_rack(begin(&text), lab, 1, nets);
	check_text(&text,
	           "link add br0 type bridge stp_state 0 forward_delay 0\n"
	           "link set br0 mtu 1500 addrgenmode none\n"
	           "link set br0 up\n"
	           "link add h0e0 mtu 1500 type veth peer name e0 mtu 1500 netns /proc/self/fd/12\n"
	           "link set h0e0 master br0 addrgenmode none\n"
	           "link set h0e0 up\n"
	           "link add h1e0 mtu 1500 type veth peer name e0 mtu 1500 netns /proc/self/fd/13\n"
	           "link set h1e0 master br0 addrgenmode none\n"
	           "link set h1e0 up\n"
	           "link add up0 mtu 1500 type veth peer name rack1e0 mtu 1500 netns /proc/self/fd/30\n"
	           "link set up0 master br0 addrgenmode none\n"
	           "link set up0 up\n");
	free(lab);
}

static void test_host(void)
{
	struct text text;
	char expected[512], address[LAB_ADDRESS_TEXT];
	struct lab *lab = make(1, 2, true);
	lab_commands_host(begin(&text), lab, 0);
	snprintf(expected, sizeof(expected),
	         "link set lo up\nlink set e0 gso_max_size %u\naddr add %s/64 dev e0 nodad\nlink set e0 up\n",
	         lab_shaper_for(100000000, 1500).train_bytes, lab_address(lab, 0, 0, address));
	check_text(&text, expected);
	free(lab);
}

/* Every end of every link is shaped in its space, exactly once. */
static void test_shapers(void)
{
	struct lab *lab = make(3, 2, false);
	for (uint32_t space = 0; space < lab_space_count(lab); space++) {
		struct text text;
		uint32_t devices = 0, shaped = 0;
		lab_commands_shapers(begin(&text), lab, space);
		fclose(text.out);
		for (const char *at = text.bytes; (at = strstr(at, "root handle 1: htb")); at++)
			shaped++;
		for (uint32_t link = 0; link < lab->link_count; link++) {
			const struct lab_end ends[] = {lab_near_end(lab, link), lab_far_end(lab, link)};
			for (int i = 0; i < 2; i++) {
				char line[128];
				if (ends[i].space != space)
					continue;
				devices++;
				snprintf(line, sizeof(line), "class add dev %s parent 1: classid 1:1 htb rate %lubit ", ends[i].device,
				         (unsigned long)lab_link(lab, link)->set.rate);
				CHECK_MSG(strstr(text.bytes, line), "%s is not in\n%s", line, text.bytes);
			}
		}
		CHECK_U64(shaped, devices);
		free(text.bytes);
	}
	free(lab);
}

static void test_drop(void)
{
	struct text text;
	lab_commands_drop(begin(&text), "e0", 0, false);
	check_text(&text, "table netdev drop-e0\ndelete table netdev drop-e0\n");
	lab_commands_drop(begin(&text), "e0", 10000, false);
	check_text(&text, "table netdev drop-e0\ndelete table netdev drop-e0\ntable netdev drop-e0 {\n\tchain in {\n"
	           "\t\ttype filter hook ingress device \"e0\" priority 0; policy accept;\n"
	           "\t\tnumgen random mod 1000000 < 10000 drop\n\t}\n}\n");
}

/* The hosts file is sorted by address. */
static void test_hosts_file(void)
{
	struct text text;
	struct lab *lab = make(4, 4, false);
	lab_commands_hosts_file(begin(&text), lab);
	fclose(text.out);
	const char *at = text.bytes;
	for (uint32_t number = 1; number <= lab->host_count; number++) {
		char address[LAB_ADDRESS_TEXT];
		snprintf(address, sizeof(address), "\n10.80.0.%u\t", number);
		at = strstr(at, address);
		CHECK_MSG(at, "%s is not where it should be", address);
	}
	free(text.bytes);
	free(lab);
}

static void test_shaper(void)
{
	for (uint64_t rate = 1000000; rate <= UINT64_C(100000000000); rate *= 10) {
		for (uint32_t mtu = 1500; mtu <= 9000; mtu += 7500) {
			struct shaper shaper = lab_shaper_for(rate, mtu);
			CHECK_U64(shaper.rate, rate);
			CHECK(shaper.train_bytes > mtu && shaper.train_bytes <= 65536);
			CHECK(shaper.burst_bytes >= 4 * shaper.train_bytes);
			CHECK(shaper.queue_bytes >= 2 * shaper.burst_bytes || shaper.queue_bytes == 8u << 20);
		}
	}
	/* The burst of a link after a pause is two milliseconds of its rate. */
	CHECK_U64(lab_shaper_for(100000000, 1500).burst_bytes, 2 * 12500);
	CHECK_U64(lab_shaper_for(1000000000, 1500).burst_bytes, 2 * 125000);
}

int main(void)
{
	test_rack();
	test_host();
	test_shapers();
	test_drop();
	test_hosts_file();
	test_shaper();
	return 0;
}
