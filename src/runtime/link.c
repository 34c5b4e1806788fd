#include "runtime/link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* More than this queued for one peer: it does not read, and is given up. */
#define OUT_MOST (131072u * CONTROL_BYTES)

struct link *link_new(void)
{
	struct link *link = calloc(1, sizeof(*link));

	if (link)
		link->fd = -1;
	return link;
}

static void close_descriptors(struct link *link)
{
	for (uint32_t i = 0; i < link->fd_count; i++)
		close(link->fds[i]);
	link->fd_count = 0;
}

void link_free(struct link *link)
{
	if (!link)
		return;
	if (link->fd >= 0)
		close(link->fd);
	close_descriptors(link);
	handshake_fini(&link->handshake);
	free(link->out);
	free(link);
}

static bool broke(struct link *link, enum esp_status status, const char *what, int error)
{
	link->state = LINK_BROKEN;
	error_set(&link->err, status, error ? "%s: %s" : "%s", what, strerror(error));
	return false;
}

/* ---- dialling ---- */

static socklen_t local_name(uint16_t port, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	/* Abstract: the first byte is zero, the name ends where the length says, and nothing is left on disk. */
	int length = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "espalier-%u", port);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

enum esp_status steward_local_socket(uint16_t port, int *out_fd, struct error *err)
{
	struct sockaddr_un name;
	socklen_t length = local_name(port, &name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return error_set(err, errno == EMFILE || errno == ENFILE ? ESP_ELIMIT : ESP_EIO, "no Unix socket: %s",
		                 strerror(errno));
	if (bind(fd, (struct sockaddr *)&name, length) != 0 || listen(fd, SOMAXCONN) != 0) {
		error_set(err, ESP_EIO, "cannot listen on the Unix socket @espalier-%u: %s", port, strerror(errno));
		close(fd);
		return err->status;
	}
	*out_fd = fd;
	return ESP_OK;
}

socklen_t card_socket_name(const struct card *card, uint32_t address, struct sockaddr_storage *out)
{
	const struct card_address *at = &card->addresses[address];

	memset(out, 0, sizeof(*out));
	if (at->family == CARD_IPV4) {
		struct sockaddr_in *v4 = (struct sockaddr_in *)out;

		v4->sin_family = AF_INET;
		v4->sin_port = htons(card->port);
		memcpy(&v4->sin_addr, at->bytes, 4);
		return sizeof(*v4);
	}
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(card->port);
	memcpy(&v6->sin6_addr, at->bytes, 16);
	return sizeof(*v6);
}

void link_dial(struct link *link, const struct card *card)
{
	struct sockaddr_storage name;
	socklen_t length;

	if (link->local)
		length = local_name(card->port, (struct sockaddr_un *)&name);
	else if (card->address_count == 0) {
		broke(link, ESP_ELINK, "the rank has no address", 0);
		return;
	} else {
		length = card_socket_name(card, link->attempts % card->address_count, &name);
	}
	link->attempts++;
	link->fd = socket(name.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (link->fd < 0) {
		broke(link, errno == EMFILE || errno == ENFILE ? ESP_ELIMIT : ESP_ELINK, "no socket", errno);
		return;
	}
	link->state = LINK_CONNECTING;
	/* EAGAIN: the backlog of a Unix socket is full. */
	if (connect(link->fd, (struct sockaddr *)&name, length) != 0 && errno != EINPROGRESS)
		broke(link, ESP_ELINK, "cannot connect", errno);
}

void link_greet(struct link *link, const struct handshake_config *config)
{
	int one = 1;

	/* Fails on a Unix socket, which needs none of it. */
	(void)setsockopt(link->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(link->fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	handshake_init(&link->handshake, link->dialled ? HANDSHAKE_DIALER : HANDSHAKE_LISTENER, config);
	link->state = LINK_SHAKING;
}

void link_connected(struct link *link, const struct handshake_config *config)
{
	int error = 0;
	socklen_t length = sizeof(error);

	if (getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0)
		error = errno;
	if (error)
		broke(link, ESP_ELINK, "cannot connect", error);
	else
		link_greet(link, config);
}

/* ---- proof ---- */

/* ESP_OK: all has left. */
static enum esp_status send_handshake(struct link *link)
{
	for (;;) {
		const uint8_t *bytes;
		size_t n;

		handshake_output(&link->handshake, &bytes, &n);
		if (n == 0)
			return ESP_OK;
		ssize_t sent = send(link->fd, bytes, n, MSG_NOSIGNAL);
		if (sent >= 0)
			handshake_sent(&link->handshake, (size_t)sent);
		else if (errno == EAGAIN || errno == EWOULDBLOCK)
			return ESP_PENDING;
		else if (errno != EINTR)
			return ESP_ELINK;
	}
}

static void proved(struct link *link)
{
	const struct hello *said = link->dialled ? &link->handshake.config.hello : &link->handshake.peer;

	link->purpose = said->purpose;
	link->lane = said->lane;
	if (!link->dialled)
		link->peer = link->handshake.peer.from;
	if (link->purpose == HELLO_LANE)
		link->state = LINK_DONE;
	else if (link->purpose == HELLO_DOOR)
		link->state = LINK_DOOR;
	else
		link->state = link->local ? LINK_HANDING : LINK_OPEN;
}

bool link_shake(struct link *link)
{
	uint8_t bytes[PROOF_BYTES];
	size_t used;
	enum esp_status sent = send_handshake(link);

	if (sent == ESP_ELINK)
		return broke(link, ESP_ELINK, "the connection was closed during the handshake", errno);
	if (sent == ESP_PENDING)
		return false;
	if (link->handshake.state == HANDSHAKE_DONE) {
		proved(link);
		return true;
	}
	if (link->handshake.state == HANDSHAKE_FAILED) {
		link->state = LINK_BROKEN;
		return false;
	}
	/* Not a byte more than the handshake needs: what follows is for somebody else. */
	size_t wanted = handshake_wants(&link->handshake);
	ssize_t got = recv(link->fd, bytes, wanted < sizeof(bytes) ? wanted : sizeof(bytes), 0);
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return false;
	if (got < 0 && errno == EINTR)
		return true;
	if (got <= 0) {
		handshake_closed(&link->handshake, &link->err);
		link->state = LINK_BROKEN;
		return false;
	}
	enum esp_status status = handshake_input(&link->handshake, bytes, (size_t)got, &used, &link->err);
	if (status == ESP_ECORRUPT) {
		link->state = LINK_BROKEN;
		return false;
	}
	return true;
}

/* ---- descriptors ---- */

static bool send_descriptors(struct link *link, const int *fds, uint32_t count)
{
	char control[CMSG_SPACE(STEWARD_DESCRIPTORS * sizeof(int))] = {0};
	char byte = 'D';
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)),
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(head), fds, count * sizeof(int));
	ssize_t sent = sendmsg(link->fd, &msg, MSG_NOSIGNAL);
	if (sent == 1) {
		link->handed = true;
		return true;
	}
	if (sent < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	return broke(link, ESP_ELINK, "cannot hand descriptors over", errno);
}

static void keep_descriptors(struct link *link, struct msghdr *msg)
{
	for (struct cmsghdr *head = CMSG_FIRSTHDR(msg); head; head = CMSG_NXTHDR(msg, head)) {
		if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
			continue;
		uint32_t count = (uint32_t)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));

		for (uint32_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
			if (link->fd_count < STEWARD_DESCRIPTORS)
				link->fds[link->fd_count++] = fd;
			else
				close(fd);
		}
	}
}

static bool receive_descriptors(struct link *link, uint32_t count)
{
	char control[CMSG_SPACE(STEWARD_DESCRIPTORS * sizeof(int))];
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	ssize_t got = recvmsg(link->fd, &msg, MSG_CMSG_CLOEXEC);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0)
		return broke(link, ESP_EPEER, "the connection was closed", got < 0 ? errno : 0);
	keep_descriptors(link, &msg);
	if (byte != 'D' || msg.msg_flags & MSG_CTRUNC || link->fd_count != count)
		return broke(link, ESP_ELIMIT, "descriptors did not arrive: is the limit of open files (ulimit -n) too low?", 0);
	link->received = true;
	return true;
}

bool link_hand_over(struct link *link, const int *fds, uint32_t count)
{
	bool moved = false;

	if (!link->handed)
		moved |= send_descriptors(link, fds, count);
	if (link->state == LINK_HANDING && !link->received)
		moved |= receive_descriptors(link, count);
	if (link->state == LINK_HANDING && link->handed && link->received)
		link->state = LINK_OPEN;
	return moved;
}

/* ---- messages ---- */

bool link_receive(struct link *link, struct control_msg *out)
{
	while (link->in_at < CONTROL_BYTES) {
		ssize_t got = recv(link->fd, link->in + link->in_at, CONTROL_BYTES - link->in_at, 0);

		if (got > 0)
			link->in_at += (uint32_t)got;
		else if (got < 0 && errno == EINTR)
			continue;
		else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return false;
		else if (got == 0)
			return broke(link, ESP_EPEER, "its connection was closed", 0);
		else
			return broke(link, errno == ECONNRESET ? ESP_EPEER : ESP_ELINK, "its connection broke", errno);
	}
	link->in_at = 0;
	if (!control_decode(link->in, out))
		return broke(link, ESP_ECORRUPT, "it sent a control message that is none", 0);
	return true;
}

void link_queue(struct link *link, const struct control_msg *msg)
{
	if (link->out_at > 0 && (link->out_at > link->out_capacity / 2 || link->out_at == link->out_bytes)) {
		memmove(link->out, link->out + link->out_at, link->out_bytes - link->out_at);
		link->out_bytes -= link->out_at;
		link->out_at = 0;
	}
	if (link->out_bytes + CONTROL_BYTES > link->out_capacity) {
		size_t capacity = link->out_capacity ? 2 * link->out_capacity : 4 * CONTROL_BYTES;
		uint8_t *out = capacity > OUT_MOST ? NULL : realloc(link->out, capacity);

		if (!out) {
			broke(link, ESP_ELINK, "it does not read its control messages", 0);
			return;
		}
		link->out = out;
		link->out_capacity = capacity;
	}
	control_encode(msg, link->out + link->out_bytes);
	link->out_bytes += CONTROL_BYTES;
}

void link_look_at_door(struct link *link)
{
	char byte;
	ssize_t got = recv(link->fd, &byte, 1, 0);

	if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)))
		return; /* a newcomer has nothing to say, and is not listened to */
	broke(link, ESP_EPEER, "its connection was closed", 0);
}

void link_flush(struct link *link)
{
	while ((link->state == LINK_OPEN || link->state == LINK_DOOR) && link->out_at < link->out_bytes) {
		ssize_t sent = send(link->fd, link->out + link->out_at, link->out_bytes - link->out_at, MSG_NOSIGNAL);

		if (sent > 0)
			link->out_at += (size_t)sent;
		else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		else if (sent < 0 && errno == EINTR)
			continue;
		else
			link->out_at = link->out_bytes; /* nobody reads it; reading tells what happened, after what came before */
	}
}

bool link_wants_to_write(const struct link *link)
{
	const uint8_t *bytes;
	size_t n = 0;

	switch (link->state) {
	case LINK_CONNECTING:
		return true;
	case LINK_SHAKING:
		handshake_output(&link->handshake, &bytes, &n);
		return n > 0;
	case LINK_HANDING:
		return !link->handed;
	case LINK_OPEN:
	case LINK_DOOR:
		return link->out_at < link->out_bytes;
	default:
		return false;
	}
}
