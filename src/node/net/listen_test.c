#include "node/net/listen.h"

#include <arpa/inet.h>
#include <poll.h>
#include <unistd.h>

#include "base/check.h"

/* Valid until the next call. */
static const struct sockaddr *address(const char *text)
{
	static struct sockaddr_in v4;
	static struct sockaddr_in6 v6;

	v4 = (struct sockaddr_in){.sin_family = AF_INET};
	v6 = (struct sockaddr_in6){.sin6_family = AF_INET6};
	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
		return (struct sockaddr *)&v4;
	CHECK(inet_pton(AF_INET6, text, &v6.sin6_addr) == 1);
	return (struct sockaddr *)&v6;
}

static void preferred(void)
{
	struct node_info info = {0};

	listen_prefer_address(&info, address("127.0.0.1"));
	CHECK_U64(info.address_count, 0);
	for (unsigned i = 0; i < 12; i++) {
		char text[32];
		snprintf(text, sizeof(text), "10.0.0.%u", i);
		listen_prefer_address(&info, address(text));
	}
	CHECK_U64(info.address_count, NODE_ADDRESSES);
	CHECK_U64(info.addresses[0].bytes[3], 11);
	CHECK_U64(info.addresses[7].bytes[3], 4);
	listen_prefer_address(&info, address("::ffff:10.0.0.6")); /* the same address, as an IPv6 socket reports it */
	CHECK_U64(info.address_count, NODE_ADDRESSES);
	CHECK_U64(info.addresses[0].bytes[3], 6);
	CHECK_U64(info.addresses[1].bytes[3], 11);
	CHECK_U64(info.addresses[7].bytes[3], 4);
}

/* A rank that fixes its addresses gets no others. */
static void complete(void)
{
	struct node_info info = {.is_complete = true, .address_count = 2};

	info.addresses[0] = (struct node_address){NODE_IPV4, {10, 0, 0, 1}, 24, 0};
	info.addresses[1] = (struct node_address){NODE_IPV4, {10, 1, 0, 1}, 24, 1};
	listen_prefer_address(&info, address("10.2.0.1"));
	CHECK(info.address_count == 2 && info.addresses[0].bytes[1] == 0);
	listen_prefer_address(&info, address("10.1.0.1"));
	CHECK(info.address_count == 2 && info.addresses[0].bytes[1] == 1 && info.addresses[0].interface == 1);
	info.is_complete = false;
	listen_prefer_address(&info, address("fe80::1"));
	CHECK_U64(info.address_count, 2);
}

/* A rank can be reached at the addresses in its node info. */
static void check_reachable(const struct listener *listener, const struct node_info *info)
{
	CHECK(info->port != 0 && info->address_count >= 1);
	for (uint32_t i = 0; i < info->address_count; i++) {
		struct sockaddr_storage name;
		const struct interface *interface = interfaces_find(&listener->interfaces, &info->addresses[i]);
		socklen_t length = node_address_to(&info->addresses[i], info->port, interface ? interface->index : 0, &name);
		struct pollfd ready[LISTEN_MOST];
		int peer = socket(name.ss_family, SOCK_STREAM, 0), accepted = -1;

		CHECK(peer >= 0);
		CHECK(connect(peer, (struct sockaddr *)&name, length) == 0);
		for (uint32_t j = 0; j < listener->count; j++)
			ready[j] = (struct pollfd){listener->fds[j], POLLIN, 0};
		CHECK(poll(ready, listener->count, 10000) == 1);
		for (uint32_t j = 0; j < listener->count && accepted < 0; j++)
			accepted = accept(listener->fds[j], NULL, NULL);
		CHECK(accepted >= 0);
		close(accepted);
		close(peer);
	}
}

static void reachable(struct listen_config config, const char *filter)
{
	struct node_info info = {0};
	struct listener listener;
	struct error err;

	CHECK(interface_filter_parse(filter, &config.filter, &err) == ESP_OK);
	CHECK_MSG(listen_open(&config, &listener, &info, &err) == ESP_OK, "%s", err.text);
	CHECK(info.is_complete == (filter[0] != '\0' || config.family != CONF_FAMILY_ANY));
	CHECK_U64(listener.count, filter[0] ? info.address_count : 1);
	check_reachable(&listener, &info);
	listener_close(&listener);
}

/* One port: one listener; a range: one listener per port. */
static void ports(void)
{
	struct listen_config config = {.loopback_only = true};
	struct listener first, second, third;
	struct node_info info = {0}, other = {0};
	struct error err;

	/* Looks for two free ports next to each other; another process may still take one. */
	do {
		CHECK(listen_open(&(struct listen_config){.loopback_only = true}, &first, &info, &err) == ESP_OK);
		listener_close(&first);
		config.port = (struct conf_range){info.port, info.port};
		CHECK(listen_open(&config, &first, &info, &err) == ESP_OK);
		CHECK_U64(info.port, config.port.first);
		config.port.last++;
	} while (config.port.last > UINT16_MAX || listen_open(&config, &second, &other, &err) != ESP_OK);
	CHECK_U64(other.port, config.port.last);
	CHECK(listen_open(&config, &third, &other, &err) == ESP_ELINK && strstr(err.text, "all ports from"));
	config.port.last = config.port.first;
	CHECK(listen_open(&config, &third, &other, &err) == ESP_ELINK && strstr(err.text, "set a range"));
	CHECK_U64(third.count, 0);
	listener_close(&second);
	listener_close(&first);
}

static void no_such_interface(void)
{
	struct listen_config config = {0};
	struct listener listener;
	struct node_info info = {0};
	struct error err;

	CHECK(interface_filter_parse("=nosuchthing", &config.filter, &err) == ESP_OK);
	CHECK(listen_open(&config, &listener, &info, &err) == ESP_EINVAL);
	CHECK(strstr(err.text, "there are: ") && strstr(err.text, "lo 127.0.0.1"));
}

static void described(void)
{
	struct node_info one = {0}, two = {0};

	host_info_describe(&one);
	host_info_describe(&two);
	CHECK(memcmp(one.host_id, two.host_id, sizeof(one.host_id)) == 0);
	CHECK(one.pid == (uint32_t)getpid() && one.host_name[0]);
}

int main(void)
{
	preferred();
	complete();
	reachable((struct listen_config){.loopback_only = true}, "");
	reachable((struct listen_config){0}, "");
	reachable((struct listen_config){.family = CONF_FAMILY_IPV4}, "");
	reachable((struct listen_config){.family = CONF_FAMILY_IPV4}, "=lo");
	reachable((struct listen_config){.segment_bytes = 500}, "=lo");
	ports();
	no_such_interface();
	described();
	return 0;
}
