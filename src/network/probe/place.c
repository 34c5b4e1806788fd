#include "network/probe/place.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 128
#define DATAGRAM_ROOM (256 * 1024) /* receive buffer: foreign packets must not push out ours */

static struct sockaddr_in *as_v4(struct sockaddr_storage *address)
{
	return (struct sockaddr_in *)(void *)address;
}

static struct sockaddr_in6 *as_v6(struct sockaddr_storage *address)
{
	return (struct sockaddr_in6 *)(void *)address;
}

void probe_place_set(struct place *place, const uint8_t *bytes, size_t count, uint32_t scope)
{
	memset(&place->address, 0, sizeof(place->address));
	if (count == 4) {
		as_v4(&place->address)->sin_family = AF_INET;
		memcpy(&as_v4(&place->address)->sin_addr, bytes, 4);
		place->length = sizeof(struct sockaddr_in);
	} else {
		as_v6(&place->address)->sin6_family = AF_INET6;
		as_v6(&place->address)->sin6_scope_id = scope;
		memcpy(&as_v6(&place->address)->sin6_addr, bytes, 16);
		place->length = sizeof(struct sockaddr_in6);
	}
}

static void map_to_v6(struct place *place)
{
	uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff};

	memcpy(mapped + 12, &as_v4(&place->address)->sin_addr, 4);
	probe_place_set(place, mapped, sizeof(mapped), 0);
}

int probe_places_settle(struct place *places, uint32_t count)
{
	bool any_v6 = false;

	for (uint32_t i = 0; i < count; i++)
		any_v6 = any_v6 || (places[i].length && places[i].address.ss_family == AF_INET6);
	for (uint32_t i = 0; i < count && any_v6; i++)
		if (places[i].length && places[i].address.ss_family == AF_INET)
			map_to_v6(&places[i]);
	return any_v6 ? AF_INET6 : AF_INET;
}

static void set_port(struct sockaddr_storage *address, uint16_t port)
{
	if (address->ss_family == AF_INET6)
		as_v6(address)->sin6_port = htons(port);
	else
		as_v4(address)->sin_port = htons(port);
}

bool probe_place_socket_name(const struct place *place, enum place_kind kind, struct sockaddr_storage *out,
                             socklen_t *out_length)
{
	uint16_t port = kind == PLACE_DATAGRAMS ? place->udp_port : place->tcp_port;

	if (place->length == 0 || port == 0)
		return false;
	*out = place->address;
	set_port(out, port);
	*out_length = place->length;
	return true;
}

/* ---- our own ports ---- */

static int new_socket(int family, enum place_kind kind)
{
	int type = kind == PLACE_DATAGRAMS ? SOCK_DGRAM : SOCK_STREAM, no = 0, room = DATAGRAM_ROOM;
	int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0 && family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	if (fd >= 0 && kind == PLACE_DATAGRAMS)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	return fd;
}

static bool bind_to(int fd, int family, enum place_kind kind, uint16_t port)
{
	static const uint8_t anywhere[16] = {0};
	struct place place = {0};

	probe_place_set(&place, anywhere, family == AF_INET6 ? 16 : 4, 0);
	struct sockaddr_storage any = place.address;
	set_port(&any, port);
	return bind(fd, (const struct sockaddr *)(const void *)&any, place.length) == 0 &&
	       (kind == PLACE_DATAGRAMS || listen(fd, BACKLOG) == 0);
}

static uint16_t bound_port(int fd)
{
	struct sockaddr_storage name;
	socklen_t length = sizeof(name);

	memset(&name, 0, sizeof(name));
	if (getsockname(fd, (struct sockaddr *)(void *)&name, &length) != 0)
		return 0;
	return name.ss_family == AF_INET6 ? ntohs(as_v6(&name)->sin6_port) : ntohs(as_v4(&name)->sin_port);
}

enum esp_status probe_place_open(int family, enum place_kind kind, uint16_t first, uint16_t last, int *out_fd,
                                 uint16_t *out_port, struct error *err)
{
	int reason = EADDRINUSE;

	for (uint32_t port = first ? first : 0; port <= last && first; port++) {
		int fd = new_socket(family, kind);
		if (fd >= 0 && bind_to(fd, family, kind, (uint16_t)port)) {
			*out_fd = fd;
			*out_port = (uint16_t)port;
			return ESP_OK;
		}
		if (fd >= 0)
			close(fd); /* a socket that failed to listen is still bound */
	}
	int fd = new_socket(family, kind);
	if (fd >= 0 && bind_to(fd, family, kind, 0) && (*out_port = bound_port(fd)) != 0) {
		*out_fd = fd;
		return ESP_OK;
	}
	reason = errno;
	if (fd >= 0)
		close(fd);
	return error_set(err, ESP_ELINK, "no %s port for probing: %s", kind == PLACE_DATAGRAMS ? "UDP" : "TCP",
	                 strerror(reason));
}
