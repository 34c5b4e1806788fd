#include "sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

static const int families[] = {AF_UNIX, AF_INET, AF_INET6};

const char *socket_kind_name(enum socket_kind kind)
{
	static const char *const names[] = {"unix", "ipv4", "ipv6"};

	return names[kind];
}

/* The loopback address, with a port that the kernel chooses. */
static socklen_t loopback(int family, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	out->ss_family = (sa_family_t)family;
	if (family == AF_INET) {
		((struct sockaddr_in *)out)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(struct sockaddr_in);
	}
	((struct sockaddr_in6 *)out)->sin6_addr = in6addr_loopback;
	return sizeof(struct sockaddr_in6);
}

/*
 * Segments as on Ethernet. The loopback's of 64 KiB do not fit into the small buffers that
 * tests use, and the kernel would then send by its timers only.
 */
static bool limit_segments(int fd)
{
	int bytes = 1400;

	return setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &bytes, sizeof(bytes)) == 0;
}

/*
 * A listener of its own for each pair, so that threads need not agree on whose turn it is. Thousands of pairs leave their ports in
 * TIME_WAIT: these may be used again.
 */
static int listen_on(int family, struct sockaddr_storage *name, socklen_t *name_bytes)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	*name_bytes = loopback(family, name);
	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 || !limit_segments(fd) ||
	    bind(fd, (struct sockaddr *)name, *name_bytes) < 0 || listen(fd, 1) < 0 ||
	    getsockname(fd, (struct sockaddr *)name, name_bytes) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

bool socket_kind_works(enum socket_kind kind)
{
	struct sockaddr_storage name;
	socklen_t bytes;

	if (kind == SOCKET_UNIX)
		return true;
	int fd = listen_on(families[kind], &name, &bytes);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

void socket_pair(enum socket_kind kind, int out[2])
{
	struct sockaddr_storage name;
	socklen_t bytes;

	if (kind == SOCKET_UNIX) {
		CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out) == 0);
		return;
	}
	int listener = listen_on(families[kind], &name, &bytes);
	CHECK(listener >= 0);
	out[0] = socket(families[kind], SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(out[0] >= 0 && limit_segments(out[0]));
	CHECK(connect(out[0], (struct sockaddr *)&name, bytes) == 0);
	out[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	CHECK(out[1] >= 0);
	close(listener);
}

void socket_will_reset(int fd)
{
	struct linger linger = {.l_onoff = 1, .l_linger = 0};

	CHECK(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) == 0);
}

bool socket_write(int fd, const void *bytes, unsigned count)
{
	const uint8_t *at = bytes;

	while (count > 0) {
		ssize_t sent = send(fd, at, count, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return false;
		at += sent;
		count -= (unsigned)sent;
	}
	return true;
}
