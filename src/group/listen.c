#include "group/listen.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "group/resolve.h"

#define BACKLOG 1024 /* the kernel takes less if it is set to (net.core.somaxconn) */
#define WORTH_MAX 3u

static bool starts_with(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Bridges that containers and virtual machines of this host talk over: every host has the same addresses there. */
static bool is_virtual(const char *name)
{
	static const char *const prefixes[] = {"docker", "br-", "veth", "virbr", "cni", "lxc", "podman"};
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (starts_with(name, prefixes[i]))
			return true;
	return false;
}

static bool is_link_local(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 16 == 0xa9fe;
	return IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

unsigned group_interface_worth(const char *name, unsigned flags, const struct sockaddr *address)
{
	if (!(flags & IFF_UP) || (address->sa_family != AF_INET && address->sa_family != AF_INET6))
		return 0;
	if (is_link_local(address))
		return 0; /* means nothing without naming an interface, which is another one elsewhere */
	if ((flags & IFF_LOOPBACK) || resolve_is_loopback(address))
		return 1;
	return is_virtual(name) ? 2 : WORTH_MAX;
}

static struct card_address to_card(const struct sockaddr *address)
{
	struct card_address out = {0};
	if (address->sa_family == AF_INET) {
		out.family = CARD_IPV4;
		memcpy(out.bytes, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
		return out;
	}
	const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
	out.family = IN6_IS_ADDR_V4MAPPED(v6) ? CARD_IPV4 : CARD_IPV6;
	if (out.family == CARD_IPV4)
		memcpy(out.bytes, v6->s6_addr + 12, 4);
	else
		memcpy(out.bytes, v6, 16);
	return out;
}

static bool same_address(const struct card_address *a, const struct card_address *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

void group_prefer_address(struct card *card, const struct sockaddr *address)
{
	uint32_t at = 0;
	if ((address->sa_family != AF_INET && address->sa_family != AF_INET6) || resolve_is_loopback(address) ||
	    is_link_local(address))
		return;
	struct card_address first = to_card(address);
	while (at < card->address_count && !same_address(&card->addresses[at], &first))
		at++;
	if (at == card->address_count && card->address_count < CARD_ADDRESSES)
		card->address_count++;
	if (at == CARD_ADDRESSES)
		at--; /* the last one has to go */
	memmove(card->addresses + 1, card->addresses, at * sizeof(first));
	card->addresses[0] = first;
}

/* Adds the addresses of the given worth; IPv4 or IPv6 only where the socket speaks only that. */
static void add_addresses(const struct ifaddrs *list, unsigned worth, bool with_ipv6, struct card *card)
{
	for (const struct ifaddrs *at = list; at && card->address_count < CARD_ADDRESSES; at = at->ifa_next) {
		if (!at->ifa_addr || group_interface_worth(at->ifa_name, at->ifa_flags, at->ifa_addr) != worth)
			continue;
		if (at->ifa_addr->sa_family == AF_INET || with_ipv6)
			card->addresses[card->address_count++] = to_card(at->ifa_addr);
	}
}

static enum esp_status find_addresses(bool loopback_only, bool with_ipv6, struct card *card, struct error *err)
{
	struct ifaddrs *list = NULL;
	card->address_count = 0;
	if (loopback_only) {
		card->addresses[card->address_count++] =
			with_ipv6 ? (struct card_address){CARD_IPV6, {[15] = 1}} : (struct card_address){CARD_IPV4, {127, 0, 0, 1}};
		return ESP_OK;
	}
	if (getifaddrs(&list) != 0)
		return error_set(err, ESP_EIO, "cannot list the network interfaces: %s", strerror(errno));
	for (unsigned worth = WORTH_MAX; worth > 0 && card->address_count == 0; worth--)
		add_addresses(list, worth, with_ipv6, card);
	freeifaddrs(list);
	if (card->address_count == 0)
		return error_set(err, ESP_EIO, "no network interface of this host has an address, not even loopback");
	return ESP_OK;
}

/* Bound and listening, or -1 and errno. */
static int listen_on(int family, bool loopback_only)
{
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = loopback_only ? in6addr_loopback : in6addr_any};
	struct sockaddr_in v4 = {.sin_family = AF_INET};
	v4.sin_addr.s_addr = htonl(loopback_only ? INADDR_LOOPBACK : INADDR_ANY);
	const struct sockaddr *address = family == AF_INET6 ? (const void *)&v6 : (const void *)&v4;
	socklen_t length = family == AF_INET6 ? sizeof(v6) : sizeof(v4);
	int off = 0, fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, address, length) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int why = errno;
	close(fd);
	errno = why;
	return -1;
}

static uint16_t port_of(int fd)
{
	union resolve_address address = {.any.sa_family = AF_UNSPEC};
	socklen_t length = sizeof(address);
	if (getsockname(fd, &address.any, &length) != 0)
		return 0;
	return ntohs(address.any.sa_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
	                                               : ((struct sockaddr_in *)&address)->sin_port);
}

enum esp_status group_listen(bool loopback_only, int *out_fd, struct card *card, struct error *err)
{
	/* One socket for both families, where IPv6 exists; loopback has no such socket, and everybody has IPv4's. */
	int families[2] = {loopback_only ? AF_INET : AF_INET6, loopback_only ? AF_INET6 : AF_INET};
	int used = 0, fd = listen_on(families[0], loopback_only);
	if (fd < 0)
		fd = listen_on(families[used = 1], loopback_only);
	if (fd < 0)
		return error_set(err, ESP_ELINK, "cannot listen on any port: %s", strerror(errno));
	enum esp_status status = find_addresses(loopback_only, families[used] == AF_INET6, card, err);
	card->port = port_of(fd);
	if (status != ESP_OK) {
		close(fd);
		return status;
	}
	*out_fd = fd;
	return ESP_OK;
}
