#include "switch/trains/trains.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "switch/trains/trains_state.h"

#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

#define BUFFER_BYTES (4 << 20)
#define ECT_0 2
#define ECN_MASK 3
#define CONTROL_BYTES 128u

/* ---- addresses ---- */

socklen_t trains_address_length(const union trains_address *address)
{
	return address->any.sa_family == AF_INET6 ? sizeof(address->v6) : sizeof(address->v4);
}

bool trains_address_equal(const union trains_address *a, const union trains_address *b, bool host_only)
{
	if (a->any.sa_family != b->any.sa_family)
		return false;
	if (a->any.sa_family == AF_INET6)
		return memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof(a->v6.sin6_addr)) == 0 &&
		       (host_only || a->v6.sin6_port == b->v6.sin6_port);
	return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr && (host_only || a->v4.sin_port == b->v4.sin_port);
}

static void clear_port(union trains_address *address)
{
	if (address->any.sa_family == AF_INET6)
		address->v6.sin6_port = 0;
	else
		address->v4.sin_port = 0;
}

static uint32_t path_mtu(int fd, const union trains_address *to)
{
	bool is_v6 = to->any.sa_family == AF_INET6;
	int mtu = 0;
	socklen_t length = sizeof(mtu);

	if (getsockopt(fd, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP, is_v6 ? IPV6_MTU : IP_MTU, &mtu, &length) != 0 || mtu < 576)
		return 1280; /* every way of IPv6 takes so much */
	return (uint32_t)mtu;
}

enum esp_status trains_local_address(const union trains_address *to, union trains_address *out, uint32_t *out_mtu,
                                  struct error *err)
{
	int fd = socket(to->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(*out);

	if (fd < 0)
		return error_set(err, ESP_ELIMIT, "no UDP socket: %s", strerror(errno));
	memset(out, 0, sizeof(*out));
	bool ok = connect(fd, &to->any, trains_address_length(to)) == 0 && getsockname(fd, &out->any, &length) == 0;
	int why = errno;
	*out_mtu = ok ? path_mtu(fd, to) : 0;
	close(fd);
	if (!ok)
		return error_set(err, ESP_ELINK, "no way there: %s", strerror(why));
	clear_port(out);
	return ESP_OK;
}

/* ---- life ---- */

static void set(int fd, int level, int name, int value)
{
	(void)setsockopt(fd, level, name, &value, sizeof(value));
}

static void set_options(struct trains *udp, int family)
{
	int got = 0, none = 0;
	socklen_t length = sizeof(got);
	bool is_v6 = family == AF_INET6;

	set(udp->fd, SOL_SOCKET, SO_RCVBUF, BUFFER_BYTES);
	set(udp->fd, SOL_SOCKET, SO_SNDBUF, BUFFER_BYTES);
	set(udp->fd, IPPROTO_UDP, UDP_GRO, 1);
	set(udp->fd, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP, is_v6 ? IPV6_TCLASS : IP_TOS, ECT_0);
	set(udp->fd, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP, is_v6 ? IPV6_RECVTCLASS : IP_RECVTOS, 1);
	if (getsockopt(udp->fd, SOL_SOCKET, SO_RCVBUF, &got, &length) == 0)
		udp->receive_buffer = (uint32_t)got;
	udp->has_segments = setsockopt(udp->fd, IPPROTO_UDP, UDP_SEGMENT, &none, sizeof(none)) == 0;
}

enum esp_status trains_open(const union trains_address *address, struct trains **out, struct error *err)
{
	struct trains *udp = calloc(1, sizeof(*udp));

	if (udp) {
		udp->fd = -1;
		udp->incoming = malloc((size_t)TRAINS_BATCH * TRAINS_MESSAGE);
		udp->arena = malloc(TRAINS_ARENA);
		udp->pending_end = &udp->pending;
	}
	if (!udp || !udp->incoming || !udp->arena) {
		trains_close(udp);
		return error_set(err, ESP_ENOMEM, "no memory for a UDP socket");
	}
	udp->fd = socket(address->any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	enum esp_status status = ESP_OK;
	if (udp->fd < 0)
		status = error_set(err, ESP_ELIMIT, "no UDP socket: %s", strerror(errno));
	else if (bind(udp->fd, &address->any, trains_address_length(address)) != 0)
		status = error_set(err, ESP_ELINK, "%s", errno == EADDRINUSE ? "another process has this UDP port" :
		                   strerror(errno));
	if (status != ESP_OK) {
		trains_close(udp);
		return status;
	}
	set_options(udp, address->any.sa_family);
	*out = udp;
	return ESP_OK;
}

void trains_close(struct trains *udp)
{
	if (!udp)
		return;
	if (udp->fd >= 0)
		close(udp->fd);
	free(udp->incoming);
	free(udp->arena);
	free(udp);
}

int trains_fd(const struct trains *udp)
{
	return udp->fd;
}

void trains_bound(const struct trains *udp, union trains_address *out)
{
	socklen_t length = sizeof(*out);

	memset(out, 0, sizeof(*out));
	(void)getsockname(udp->fd, &out->any, &length);
}

const struct trains_counters *trains_counters(const struct trains *udp)
{
	return &udp->counters;
}

/* ---- receiving ---- */

struct arrival {
	union trains_address from;
	struct iovec iov;
	union {
		struct cmsghdr head;
		uint8_t bytes[CONTROL_BYTES];
	} control;
};

/* The kernel's facts about a message: the length of its packets, and the ECN bits. */
static void read_control(struct msghdr *msg, uint32_t *segment, bool *is_marked)
{
	for (struct cmsghdr *at = CMSG_FIRSTHDR(msg); at; at = CMSG_NXTHDR(msg, at)) {
		int value = 0;
		size_t bytes = at->cmsg_len - CMSG_LEN(0);
		memcpy(&value, CMSG_DATA(at), bytes < sizeof(value) ? bytes : sizeof(value));
		if (at->cmsg_level == IPPROTO_UDP && at->cmsg_type == UDP_GRO && value > 0)
			*segment = (uint32_t)value;
		else if ((at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_TOS) ||
		         (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_TCLASS))
			*is_marked = (value & ECN_MASK) == ECN_MASK;
	}
}

static void tell_message(struct trains *udp, struct mmsghdr *message, struct arrival *arrival, trains_datagram_fn *tell,
                         void *context)
{
	uint32_t bytes = message->msg_len, segment = bytes;
	struct trains_datagram datagram = {.from = &arrival->from};

	read_control(&message->msg_hdr, &segment, &datagram.is_marked);
	if (bytes == 0 || (message->msg_hdr.msg_flags & MSG_TRUNC))
		return;
	for (uint32_t at = 0; at < bytes; at += segment) {
		datagram.bytes = (uint8_t *)arrival->iov.iov_base + at;
		datagram.length = bytes - at < segment ? bytes - at : segment;
		udp->counters.received++;
		udp->counters.received_bytes += datagram.length;
		tell(context, &datagram);
	}
}

bool trains_receive(struct trains *udp, trains_datagram_fn *tell, void *context)
{
	struct mmsghdr messages[TRAINS_BATCH];
	struct arrival arrivals[TRAINS_BATCH];

	for (uint32_t i = 0; i < TRAINS_BATCH; i++) {
		arrivals[i].iov = (struct iovec){udp->incoming + (size_t)i * TRAINS_MESSAGE, TRAINS_MESSAGE};
		messages[i].msg_hdr = (struct msghdr){
			.msg_name = &arrivals[i].from, .msg_namelen = sizeof(arrivals[i].from), .msg_iov = &arrivals[i].iov,
			.msg_iovlen = 1, .msg_control = &arrivals[i].control, .msg_controllen = sizeof(arrivals[i].control),
		};
	}
	int count = recvmmsg(udp->fd, messages, TRAINS_BATCH, MSG_DONTWAIT, NULL);
	udp->counters.receives++;
	for (int i = 0; i < count; i++)
		tell_message(udp, &messages[i], &arrivals[i], tell, context);
	return count > 0;
}

bool trains_is_crowded(const struct trains *udp)
{
	uint32_t info[SK_MEMINFO_VARS];
	socklen_t length = sizeof(info);

	if (getsockopt(udp->fd, SOL_SOCKET, SO_MEMINFO, info, &length) != 0)
		return false;
	return info[SK_MEMINFO_RMEM_ALLOC] > udp->receive_buffer / 4;
}
