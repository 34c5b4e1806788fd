#include "network/probe/udp.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define LOOPED_BYTES 512u /* a looped packet of ours, with its headers */

/*
 * The kernel loops a sent packet back with its timestamp, so it is known which packet it was, whatever happened
 * to others. Timestamps of the network card are not used: its clock is not the kernel's, and it stamps one
 * packet at a time.
 */
static void ask_for_stamps(int fd)
{
	int what = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;

	(void)setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &what, sizeof(what));
}

enum esp_status probe_udp_open(struct udp *udp, int family, uint16_t first, uint16_t last, struct error *err)
{
	udp->fd = -1;
	enum esp_status status = probe_place_open(family, PLACE_DATAGRAMS, first, last, &udp->fd, &udp->port, err);
	if (status == ESP_OK)
		ask_for_stamps(udp->fd);
	return status;
}

void probe_udp_close(struct udp *udp)
{
	if (udp->fd >= 0)
		close(udp->fd);
	udp->fd = -1;
}

/* The clock of the kernel's stamps. */
static uint64_t stamp_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* 0: there is none. */
static uint64_t stamp_of(struct msghdr *message)
{
	struct scm_timestamping stamps;

	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPING ||
		    part->cmsg_len < CMSG_LEN(sizeof(stamps)))
			continue;
		memcpy(&stamps, CMSG_DATA(part), sizeof(stamps));
		return (uint64_t)stamps.ts[0].tv_sec * NS_PER_S + (uint64_t)stamps.ts[0].tv_nsec;
	}
	return 0;
}

/* The result of one recvmsg(). */
struct intake {
	uint8_t bytes[LOOPED_BYTES];
	size_t length;
	struct sockaddr_storage from;
	socklen_t from_length;
	uint64_t stamp; /* 0: none */
};

static bool receive_one(int fd, int flags, struct intake *in)
{
	_Alignas(struct cmsghdr) char control[512];
	struct iovec vector = {in->bytes, sizeof(in->bytes)};
	struct msghdr message = {
		.msg_name = &in->from,
		.msg_namelen = sizeof(in->from),
		.msg_iov = &vector,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(fd, &message, flags | MSG_DONTWAIT);

	if (n < 0)
		return false;
	in->length = (size_t)n;
	in->from_length = message.msg_namelen;
	in->stamp = stamp_of(&message);
	return true;
}

/* Reads the stamps of sent packets, and whatever else is in the error queue, such as "port unreachable". */
static void read_departures(struct udp *udp, struct echo *echo)
{
	struct intake in;

	for (uint32_t i = 0; i < UDP_TAKES_MOST && receive_one(udp->fd, MSG_ERRQUEUE, &in); i++)
		if (in.stamp && in.length >= PACKET_BYTES)
			probe_echo_left(echo, in.bytes + in.length - PACKET_BYTES, PACKET_BYTES, in.stamp);
}

static void transmit(struct udp *udp, struct echo *echo, const uint8_t *bytes, const struct sockaddr_storage *to,
                     socklen_t length)
{
	ssize_t sent = sendto(udp->fd, bytes, PACKET_BYTES, MSG_DONTWAIT, (const struct sockaddr *)(const void *)to,
	                      length);

	/* An error may belong to an earlier packet: the second attempt gets its own. */
	if (sent < 0 && errno != EAGAIN)
		(void)!sendto(udp->fd, bytes, PACKET_BYTES, MSG_DONTWAIT, (const struct sockaddr *)(const void *)to, length);
	read_departures(udp, echo);
}

static void read_arrivals(struct udp *udp, struct echo *echo)
{
	uint8_t out[PACKET_BYTES];
	struct intake in;

	for (uint32_t i = 0; i < UDP_TAKES_MOST && receive_one(udp->fd, 0, &in); i++) {
		uint64_t now = stamp_now();
		if (probe_echo_receive(echo, in.bytes, in.length, in.stamp ? in.stamp : now, now, out))
			transmit(udp, echo, out, &in.from, in.from_length);
	}
}

/* Returns when to call again. */
static uint64_t send_request(struct udp *udp, struct echo *echo, const struct place *places, uint64_t now_ns)
{
	uint8_t out[PACKET_BYTES];
	struct sockaddr_storage to;
	socklen_t length;
	uint64_t wake_ns = 0;

	if (!probe_echo_ask(echo, now_ns, stamp_now(), out, &wake_ns))
		return wake_ns;
	if (probe_place_socket_name(&places[echo->partner], PLACE_DATAGRAMS, &to, &length))
		transmit(udp, echo, out, &to, length);
	return now_ns + 1;
}

static void sleep_until(struct udp *udp, uint64_t now_ns, uint64_t until_ns)
{
	struct pollfd poll_fd = {udp->fd, POLLIN, 0};
	struct timespec nap = {(time_t)((until_ns - now_ns) / NS_PER_S), (long)((until_ns - now_ns) % NS_PER_S)};

	(void)ppoll(&poll_fd, 1, &nap, NULL);
}

uint64_t probe_udp_turn(struct udp *udp, struct echo *echo, const struct place *places, uint64_t now_ns)
{
	read_departures(udp, echo);
	read_arrivals(udp, echo);
	return send_request(udp, echo, places, now_ns);
}

void probe_udp_run(struct udp *udp, struct echo *echo, const struct place *places, uint64_t until_ns)
{
	for (uint64_t now_ns = clock_now_ns(); now_ns < until_ns; now_ns = clock_now_ns()) {
		uint64_t wake_ns = probe_udp_turn(udp, echo, places, now_ns);
		wake_ns = wake_ns < until_ns ? wake_ns : until_ns;
		if (wake_ns > now_ns + 1)
			sleep_until(udp, now_ns, wake_ns);
	}
}
