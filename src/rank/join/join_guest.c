#include "rank/join/join_guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node/net/resolve.h"

void guest_open(struct guest *guest, const struct handshake_config *handshake, int fd, uint64_t now_ns,
                uint64_t until_ns)
{
	struct session_inbox inbox = {.body = guest->inbox, .wanted = {[RENDEZVOUS_ARRIVAL] = RENDEZVOUS_ARRIVAL_BYTES}};
	guest->state = GUEST_UNPROVEN;
	guest->fd = fd;
	guest->since_ns = now_ns;
	guest->until_ns = until_ns;
	session_init(&guest->session, HANDSHAKE_LISTENER, handshake, &inbox);
}

const char *guest_origin(const struct guest *guest, char text[RENDEZVOUS_ORIGIN])
{
	union resolve_address peer = {.any.sa_family = AF_UNSPEC};
	socklen_t length = sizeof(peer);
	snprintf(text, RENDEZVOUS_ORIGIN, "?");
	if (getpeername(guest->fd, &peer.any, &length) != 0)
		return text;
	if (peer.any.sa_family == AF_INET)
		inet_ntop(AF_INET, &((struct sockaddr_in *)&peer)->sin_addr, text, RENDEZVOUS_ORIGIN);
	if (peer.any.sa_family == AF_INET6)
		inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&peer)->sin6_addr, text, RENDEZVOUS_ORIGIN);
	if (strncmp(text, "::ffff:", 7) == 0 && strchr(text, '.')) /* IPv4 at an IPv6 socket */
		memmove(text, text + 7, strlen(text + 7) + 1);
	return text;
}

bool guest_has_output(const struct guest *guest)
{
	const uint8_t *unused;
	size_t n;
	session_output(&guest->session, &unused, &n);
	return n > 0;
}

bool guest_is_there(const struct guest *guest)
{
	uint8_t byte;
	ssize_t got = recv(guest->fd, &byte, 1, MSG_PEEK);
	return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

void guest_close(struct guest *guest)
{
	close(guest->fd);
	session_fini(&guest->session);
	guest->state = GUEST_FREE;
}
