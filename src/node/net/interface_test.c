#include "node/net/interface.h"

#include <arpa/inet.h>
#include <net/if.h>

#include "base/check.h"

static struct interface make(const char *name, unsigned flags, const char *text)
{
	struct interface one = {.flags = flags, .address = {.prefix = 24}};

	snprintf(one.name, sizeof(one.name), "%s", name);
	one.address.family = strchr(text, ':') ? NODE_IPV6 : NODE_IPV4;
	CHECK(inet_pton(one.address.family == NODE_IPV6 ? AF_INET6 : AF_INET, text, one.address.bytes) == 1);
	if (one.address.family == NODE_IPV6)
		one.address.prefix = 64;
	return one;
}

static struct interface_filter parse(const char *text)
{
	struct interface_filter filter;
	struct error err;

	CHECK_MSG(interface_filter_parse(text, &filter, &err) == ESP_OK, "%s", err.text);
	return filter;
}

static bool takes(const char *text, const char *name)
{
	struct interface_filter filter = parse(text);

	return interface_filter_takes(&filter, name);
}

static void filters(void)
{
	CHECK(takes("", "eth0") && takes("", "lo"));
	CHECK(takes("eth", "eth0") && takes("eth", "eth") && !takes("eth", "et") && !takes("eth", "ib0"));
	CHECK(takes("eth,ib", "ib0") && takes("eth,ib", "eth7"));
	CHECK(takes("=eth1", "eth1") && !takes("=eth1", "eth10") && takes("eth1", "eth10"));
	CHECK(takes("=eth0,eth1", "eth1") && !takes("=eth0,eth1", "eth2"));
	CHECK(!takes("^docker", "docker0") && takes("^docker", "eth0"));
	CHECK(!takes("^docker,lo", "lo"));
	CHECK(!takes("^=docker0", "docker0") && takes("^=docker0", "docker1"));
}

static void bad_filters(void)
{
	static const char *const bad[] = {"^", "=", "^=", ",", "eth,", ",eth", "eth,,ib", "=^eth", "eth,=ib", "eth,^ib",
	                                  "a234567890123456",
	                                  "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q"};
	struct interface_filter filter;
	struct error err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_MSG(interface_filter_parse(bad[i], &filter, &err) == ESP_EINVAL, "%s", bad[i]);
		CHECK(strstr(err.text, "as in eth,ib or =eth0,eth1"));
	}
	(void)parse("a23456789012345");
	(void)parse("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p");
}

static enum interface_worth worth(const char *name, unsigned flags, const char *text)
{
	struct interface one = make(name, flags, text);

	return interface_worth(&one);
}

static void worths(void)
{
	CHECK_U64(worth("eth0", IFF_UP, "10.0.0.1"), INTERFACE_NETWORK);
	CHECK_U64(worth("eth0", IFF_UP, "2001:db8::1"), INTERFACE_NETWORK);
	CHECK_U64(worth("eth0", 0, "10.0.0.1"), INTERFACE_USELESS);
	CHECK_U64(worth("eth0", IFF_UP, "169.254.1.1"), INTERFACE_LINK_LOCAL);
	CHECK_U64(worth("eth0", IFF_UP, "fe80::1"), INTERFACE_LINK_LOCAL);
	CHECK_U64(worth("docker0", IFF_UP, "172.17.0.1"), INTERFACE_VIRTUAL);
	CHECK_U64(worth("br-1a2b", IFF_UP, "172.18.0.1"), INTERFACE_VIRTUAL);
	CHECK_U64(worth("lo", IFF_UP | IFF_LOOPBACK, "127.0.0.1"), INTERFACE_LOOPBACK);
	CHECK_U64(worth("lo", IFF_UP | IFF_LOOPBACK, "10.0.0.1"), INTERFACE_LOOPBACK);
}

/* Returns "eth0 10.0.0.1 0, ...": the chosen addresses in their order, with the interface's number. */
static const char *choose(const struct interfaces *all, const char *filter_text, enum conf_family family)
{
	static char text[512];
	struct interface_filter filter = parse(filter_text);
	struct interfaces chosen;
	struct error err;
	size_t used = 0;

	if (interfaces_choose(all, &filter, family, &chosen, &err) != ESP_OK) {
		snprintf(text, sizeof(text), "%s", err.text);
		return text;
	}
	for (uint32_t i = 0; i < chosen.count; i++) {
		char address[NODE_ADDRESS_TEXT];

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %s %u", i ? ", " : "", chosen.list[i].name,
		                         node_address_text(&chosen.list[i].address, address), chosen.list[i].address.interface);
	}
	return text;
}

static void choices(void)
{
	struct interfaces all = {.count = 8};

	all.list[0] = make("lo", IFF_UP | IFF_LOOPBACK, "127.0.0.1");
	all.list[1] = make("docker0", IFF_UP, "172.17.0.1");
	all.list[2] = make("eth0", IFF_UP, "10.0.0.1");
	all.list[3] = make("eth0", IFF_UP, "10.0.0.99");
	all.list[4] = make("eth1", IFF_UP, "10.1.0.1");
	all.list[5] = make("eth1", IFF_UP, "fe80::1");
	all.list[6] = make("eth1", IFF_UP, "2001:db8::1");
	all.list[7] = make("ib0", 0, "10.2.0.1");
	CHECK_STR(choose(&all, "", CONF_FAMILY_ANY),
	          "eth0 10.0.0.1 0, eth1 10.1.0.1 1, eth1 2001:db8::1 1, eth0 10.0.0.99 0");
	CHECK_STR(choose(&all, "", CONF_FAMILY_IPV6), "eth1 2001:db8::1 0");
	CHECK_STR(choose(&all, "eth1", CONF_FAMILY_IPV4), "eth1 10.1.0.1 0");
	CHECK_STR(choose(&all, "docker", CONF_FAMILY_ANY), "docker0 172.17.0.1 0");
	CHECK_STR(choose(&all, "=lo", CONF_FAMILY_ANY), "lo 127.0.0.1 0");
	CHECK_STR(choose(&all, "^eth", CONF_FAMILY_ANY), "docker0 172.17.0.1 0");
	CHECK_STR(choose(&all, "^eth0", CONF_FAMILY_ANY), "docker0 172.17.0.1 0, eth1 10.1.0.1 1, eth1 2001:db8::1 1");
	CHECK_STR(choose(&all, "^eth,docker", CONF_FAMILY_ANY), "lo 127.0.0.1 0");
	CHECK_STR(choose(&all, "ib", CONF_FAMILY_ANY),
	          "no network interface fits the setting interfaces 'ib'; there are: lo 127.0.0.1, docker0 172.17.0.1, "
	          "eth0 10.0.0.1, eth0 10.0.0.99, eth1 10.1.0.1, eth1 fe80::1, eth1 2001:db8::1, ib0 (down) 10.2.0.1");
	all.count = 3;
	CHECK_STR(choose(&all, "=e7", CONF_FAMILY_ANY),
	          "no network interface fits the setting interfaces '=e7'; there are: lo 127.0.0.1, docker0 172.17.0.1, "
	          "eth0 10.0.0.1");
	CHECK_STR(choose(&all, "^=lo,docker0,eth0", CONF_FAMILY_IPV4),
	          "no network interface fits the settings interfaces '^=lo,docker0,eth0' and family 'ipv4'; there are: lo "
	          "127.0.0.1, docker0 172.17.0.1, eth0 10.0.0.1");
	CHECK_STR(choose(&all, "", CONF_FAMILY_IPV6),
	          "no network interface fits the setting family 'ipv6'; there are: lo 127.0.0.1, docker0 172.17.0.1, eth0 "
	          "10.0.0.1");
	all.count = 2;
	CHECK_STR(choose(&all, "", CONF_FAMILY_ANY), "docker0 172.17.0.1 0");
	all.count = 1;
	CHECK_STR(choose(&all, "", CONF_FAMILY_ANY), "lo 127.0.0.1 0");
	all.list[1] = make("eth0", IFF_UP, "fe80::1"); /* link-local: not assigned, and other hosts may have the same one */
	all.count = 2;
	CHECK_STR(choose(&all, "", CONF_FAMILY_ANY), "eth0 fe80::1 0");
	all.count = 0;
	CHECK(strstr(choose(&all, "", CONF_FAMILY_ANY), "no network interface of this host has an address"));
}

/* More addresses than a node info has room for. */
static void many(void)
{
	struct interfaces all = {0};
	struct interface_filter filter = {0};
	struct interfaces chosen;
	struct error err;

	for (unsigned i = 0; i < 30; i++) {
		char name[16], text[32];

		snprintf(name, sizeof(name), "eth%u", i / 3);
		snprintf(text, sizeof(text), "10.%u.0.%u", i / 3, i % 3);
		all.list[all.count++] = make(name, IFF_UP, text);
	}
	CHECK(interfaces_choose(&all, &filter, CONF_FAMILY_ANY, &chosen, &err) == ESP_OK);
	CHECK_U64(chosen.count, NODE_ADDRESSES);
	for (uint32_t i = 0; i < chosen.count; i++)
		CHECK(chosen.list[i].address.interface == i && chosen.list[i].address.bytes[1] == i);
}

static void networks(void)
{
	struct interface a = make("a", IFF_UP, "10.0.0.1"), b = make("b", IFF_UP, "10.0.0.200"),
	    c = make("c", IFF_UP, "10.0.1.1");
	struct interface v6 = make("d", IFF_UP, "2001:db8::1"), other = make("e", IFF_UP, "2001:db8:0:1::1");

	CHECK(node_address_same_network(&a.address, &b.address) && !node_address_same_network(&a.address, &c.address));
	CHECK(!node_address_same_network(&v6.address, &other.address) &&
	      !node_address_same_network(&a.address, &v6.address));
	a.address.prefix = 23;
	CHECK(node_address_same_network(&a.address, &c.address));
	a.address.prefix = 32;
	CHECK(!node_address_same_network(&a.address, &b.address) && node_address_same_network(&a.address, &a.address));
	a.address.prefix = 0;
	CHECK(!node_address_same_network(&a.address, &b.address));
	a.address.prefix = 200; /* the wire decoder refuses 200; here, too, nothing is read beyond the end */
	CHECK(!node_address_same_network(&a.address, &a.address));
}

static void real_ones(void)
{
	struct interfaces all;
	struct error err;
	bool loopback = false;

	CHECK(interfaces_list(&all, &err) == ESP_OK);
	for (uint32_t i = 0; i < all.count; i++) {
		loopback = loopback || node_address_is_loopback(&all.list[i].address);
		CHECK(all.list[i].index > 0 && all.list[i].address.prefix > 0);
	}
	CHECK(loopback);
}

int main(void)
{
	filters();
	bad_filters();
	worths();
	choices();
	many();
	networks();
	real_ones();
	return 0;
}
