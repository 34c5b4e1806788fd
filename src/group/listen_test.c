#include "group/listen.h"

#include <arpa/inet.h>
#include <net/if.h>
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

static void worth(void)
{
	CHECK_U64(group_interface_worth("eth0", IFF_UP, address("10.0.0.1")), 3);
	CHECK_U64(group_interface_worth("eth0", IFF_UP, address("2001:db8::1")), 3);
	CHECK_U64(group_interface_worth("eth0", 0, address("10.0.0.1")), 0);
	CHECK_U64(group_interface_worth("eth0", IFF_UP, address("169.254.1.1")), 0);
	CHECK_U64(group_interface_worth("eth0", IFF_UP, address("fe80::1")), 0);
	CHECK_U64(group_interface_worth("docker0", IFF_UP, address("172.17.0.1")), 2);
	CHECK_U64(group_interface_worth("br-1a2b", IFF_UP, address("172.18.0.1")), 2);
	CHECK_U64(group_interface_worth("lo", IFF_UP | IFF_LOOPBACK, address("127.0.0.1")), 1);
	CHECK_U64(group_interface_worth("lo", IFF_UP | IFF_LOOPBACK, address("10.0.0.1")), 1);
}

static void preferred(void)
{
	struct card card = {0};

	group_prefer_address(&card, address("127.0.0.1"));
	CHECK_U64(card.address_count, 0);
	for (unsigned i = 0; i < 12; i++) {
		char text[32];
		snprintf(text, sizeof(text), "10.0.0.%u", i);
		group_prefer_address(&card, address(text));
	}
	CHECK_U64(card.address_count, CARD_ADDRESSES);
	CHECK_U64(card.addresses[0].bytes[3], 11);
	CHECK_U64(card.addresses[7].bytes[3], 4);
	group_prefer_address(&card, address("::ffff:10.0.0.6")); /* the same one, as a socket for both families says it */
	CHECK_U64(card.address_count, CARD_ADDRESSES);
	CHECK_U64(card.addresses[0].bytes[3], 6);
	CHECK_U64(card.addresses[1].bytes[3], 11);
	CHECK_U64(card.addresses[7].bytes[3], 4);
}

/* The card of a listening rank leads to it. */
static void reachable(bool loopback_only)
{
	struct card card = {0};
	struct error err;
	int fd = -1;

	CHECK_MSG(group_listen(loopback_only, &fd, &card, &err) == ESP_OK, "%s", err.text);
	CHECK(card.port != 0 && card.address_count >= 1);
	for (uint32_t i = 0; i < card.address_count; i++) {
		struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(card.port)};
		struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(card.port)};
		bool is_v4 = card.addresses[i].family == CARD_IPV4;
		memcpy(&v4.sin_addr, card.addresses[i].bytes, 4);
		memcpy(&v6.sin6_addr, card.addresses[i].bytes, 16);
		int peer = socket(is_v4 ? AF_INET : AF_INET6, SOCK_STREAM, 0);
		CHECK(peer >= 0);
		CHECK(connect(peer, is_v4 ? (void *)&v4 : (void *)&v6, is_v4 ? sizeof(v4) : sizeof(v6)) == 0);
		struct pollfd ready = {fd, POLLIN, 0};
		CHECK(poll(&ready, 1, 10000) == 1);
		int accepted = accept(fd, NULL, NULL);
		CHECK(accepted >= 0);
		close(accepted);
		close(peer);
	}
	close(fd);
}

static void described(void)
{
	struct card one = {0}, two = {0};

	group_describe_host(&one);
	group_describe_host(&two);
	CHECK(memcmp(one.host_id, two.host_id, sizeof(one.host_id)) == 0);
	CHECK(one.pid == (uint32_t)getpid() && one.host_name[0]);
}

int main(void)
{
	worth();
	preferred();
	reachable(true);
	reachable(false);
	described();
	return 0;
}
