#include "tools/lab/flow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define PIECE (256u << 10)
#define PIECES 16 /* per turn, so that one flow does not starve the others */

socklen_t lab_flow_address(const struct lab *lab, uint32_t host, uint32_t rail, uint16_t port,
                           struct sockaddr_storage *out)
{
	char text[LAB_ADDRESS_TEXT];
	lab_address(lab, host, rail, text);
	memset(out, 0, sizeof(*out));
	if (lab->config.ipv6) {
		struct sockaddr_in6 *address = (struct sockaddr_in6 *)out;
		address->sin6_family = AF_INET6;
		address->sin6_port = htons(port);
		inet_pton(AF_INET6, text, &address->sin6_addr);
		return sizeof(*address);
	}
	struct sockaddr_in *address = (struct sockaddr_in *)out;
	address->sin_family = AF_INET;
	address->sin_port = htons(port);
	inet_pton(AF_INET, text, &address->sin_addr);
	return sizeof(*address);
}

static int open_listener(const struct fabric *fabric, uint32_t host, uint32_t rail, struct sockaddr_storage *address,
                         socklen_t *length)
{
	*length = lab_flow_address(fabric->lab, host, rail, 0, address);
	int fd = lab_space_socket(&fabric->spaces[host], address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)address, *length) == 0 && listen(fd, 1) == 0 &&
	    getsockname(fd, (struct sockaddr *)address, length) == 0)
		return fd;
	close(fd);
	return -1;
}

static int connect_within(const struct fabric *fabric, uint32_t host, const struct sockaddr_storage *address,
                          socklen_t length, int limit_ms)
{
	int fd = lab_space_socket(&fabric->spaces[host], address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int failed = 0;
	socklen_t size = sizeof(failed);
	if (fd < 0)
		return -1;
	/* To measure the link, use a fair and steady congestion control, if the kernel has it. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", strlen("cubic"));
	if (connect(fd, (const struct sockaddr *)address, length) != 0 && errno != EINPROGRESS)
		failed = errno;
	struct pollfd poll_fd = {fd, POLLOUT, 0};
	if (!failed && poll(&poll_fd, 1, limit_ms) <= 0)
		failed = ETIMEDOUT;
	if (!failed && getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) != 0)
		failed = errno;
	if (!failed)
		return fd;
	close(fd);
	errno = failed;
	return -1;
}

enum esp_status lab_flow_open(struct flow *flow, const struct fabric *fabric, uint32_t from, uint32_t to, uint32_t rail,
                              int limit_ms, struct error *err)
{
	struct sockaddr_storage address;
	socklen_t length;
	*flow = (struct flow){-1, -1};
	int listener = open_listener(fabric, to, rail, &address, &length);
	if (listener >= 0)
		flow->sender = connect_within(fabric, from, &address, length, limit_ms);
	struct pollfd poll_fd = {listener, POLLIN, 0};
	if (flow->sender >= 0 && poll(&poll_fd, 1, limit_ms) > 0)
		flow->receiver = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	int cause = errno;
	if (listener >= 0)
		close(listener);
	if (flow->receiver >= 0)
		return ESP_OK;
	lab_flow_close(flow);
	return error_set(err, ESP_ELINK, "no connection from %s to %s on e%u: %s", lab_host(fabric->lab, from)->name,
	                 lab_host(fabric->lab, to)->name, rail, strerror(cause));
}

bool lab_flow_fill(const struct flow *flow)
{
	static const char nothing[PIECE];
	for (int i = 0; i < PIECES; i++) {
		ssize_t sent = send(flow->sender, nothing, sizeof(nothing), MSG_NOSIGNAL);
		if (sent < 0)
			return errno == EAGAIN || errno == EINTR;
	}
	return true;
}

ssize_t lab_flow_drain(const struct flow *flow)
{
	ssize_t total = 0;
	for (int i = 0; i < PIECES; i++) {
		/* MSG_TRUNC: the kernel discards the bytes instead of copying them */
		ssize_t got = recv(flow->receiver, NULL, PIECE, MSG_TRUNC);
		if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
			return -1;
		if (got < 0)
			break;
		total += got;
	}
	return total;
}

void lab_flow_close(struct flow *flow)
{
	const struct linger at_once = {1, 0};
	if (flow->sender >= 0) {
		(void)setsockopt(flow->sender, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
		close(flow->sender);
	}
	if (flow->receiver >= 0)
		close(flow->receiver);
	*flow = (struct flow){-1, -1};
}
