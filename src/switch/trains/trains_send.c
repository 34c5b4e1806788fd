/*
 * trains_send.c - packets that wait, and the trains that are made of them.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <string.h>

#include "switch/trains/trains_state.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define TRAIN_PACKETS 64u    /* the kernel's limit */
#define TRAIN_BYTES 65000u   /* of one datagram of IP, with its headers */
#define PATIENCE_MS 20       /* of a full socket buffer */

void trains_put(struct trains *udp, const void *head, uint32_t head_bytes, const void *body, uint32_t body_bytes)
{
	uint32_t length = head_bytes + body_bytes;

	assert(length >= 1 && length <= TRAINS_PACKET_MOST);
	if (udp->arena_used + length > TRAINS_ARENA)
		trains_flush(udp);
	udp->put_at = udp->arena_used;
	udp->put_length = length;
	memcpy(udp->arena + udp->put_at, head, head_bytes);
	if (body_bytes)
		memcpy(udp->arena + udp->put_at + head_bytes, body, body_bytes);
	udp->arena_used += length;
}

/* The packet that was put last is kept: it may be for more peers. */
static void make_room(struct trains *udp)
{
	uint32_t length = udp->put_length;

	trains_flush(udp);
	memmove(udp->arena, udp->arena + udp->put_at, length);
	udp->put_at = 0;
	udp->put_length = udp->arena_used = length;
}

void trains_to(struct trains *udp, struct trains_peer *peer)
{
	if (udp->entry_count == TRAINS_WAITING)
		make_room(udp);
	uint32_t place = udp->entry_count++;
	udp->entries[place] = (struct trains_entry){.at = udp->put_at, .length = udp->put_length};
	if (peer->first == 0) {
		peer->first = place + 1;
		peer->next = NULL;
		*udp->pending_end = peer;
		udp->pending_end = &peer->next;
	} else {
		udp->entries[peer->last - 1].next = place + 1;
	}
	peer->last = place + 1;
}

/* ---- trains ---- */

struct train {
	struct iovec iov[TRAIN_PACKETS];
	union {
		struct cmsghdr head;
		uint8_t bytes[CMSG_SPACE(sizeof(uint16_t))];
	} control;
};

struct departures {
	struct mmsghdr messages[TRAINS_BATCH];
	struct train trains[TRAINS_BATCH];
	uint32_t count;
};

/* As many packets of the peer as leave together; its first one is the next that is left. */
static uint32_t couple(struct trains *udp, struct trains_peer *peer, struct train *train)
{
	uint32_t count = 0, bytes = 0, segment = udp->entries[peer->first - 1].length;

	while (peer->first && count < (udp->has_segments ? TRAIN_PACKETS : 1u)) {
		struct trains_entry *entry = &udp->entries[peer->first - 1];
		if (entry->length > segment || bytes + entry->length > TRAIN_BYTES)
			break;
		train->iov[count++] = (struct iovec){udp->arena + entry->at, entry->length};
		bytes += entry->length;
		peer->first = entry->next;
		if (entry->length < segment)
			break; /* a shorter one ends the train */
	}
	return count;
}

static void add_train(struct trains *udp, struct trains_peer *peer, struct departures *out)
{
	struct train *train = &out->trains[out->count];
	struct msghdr *msg = &out->messages[out->count++].msg_hdr;
	uint32_t count = couple(udp, peer, train);

	*msg = (struct msghdr){.msg_name = &peer->address, .msg_namelen = trains_address_length(&peer->address),
	                       .msg_iov = train->iov, .msg_iovlen = count};
	if (count == 1)
		return;
	uint16_t segment = (uint16_t)train->iov[0].iov_len;
	memset(&train->control, 0, sizeof(train->control));
	train->control.head.cmsg_level = IPPROTO_UDP;
	train->control.head.cmsg_type = UDP_SEGMENT;
	train->control.head.cmsg_len = CMSG_LEN(sizeof(segment));
	memcpy(CMSG_DATA(&train->control.head), &segment, sizeof(segment));
	msg->msg_control = &train->control;
	msg->msg_controllen = sizeof(train->control);
}

/* One packet after the other: of a train that the kernel or a device does not take. */
static void send_singly(struct trains *udp, const struct msghdr *train)
{
	for (size_t i = 0; i < train->msg_iovlen; i++) {
		struct msghdr one = {.msg_name = train->msg_name, .msg_namelen = train->msg_namelen,
		                     .msg_iov = &train->msg_iov[i], .msg_iovlen = 1};
		if (sendmsg(udp->fd, &one, MSG_NOSIGNAL) < 0)
			udp->counters.unsent++;
	}
}

static bool wait_for_room(const struct trains *udp)
{
	struct pollfd poll_fd = {.fd = udp->fd, .events = POLLOUT};

	return poll(&poll_fd, 1, PATIENCE_MS) > 0;
}

static void refused(struct trains *udp, const struct msghdr *msg, int why)
{
	if (msg->msg_iovlen > 1 && (why == EINVAL || why == EIO || why == EMSGSIZE || why == EOPNOTSUPP)) {
		udp->has_segments = why == EMSGSIZE ? udp->has_segments : false;
		send_singly(udp, msg);
	} else {
		udp->counters.unsent += msg->msg_iovlen;
	}
}

static void send_all(struct trains *udp, struct departures *out)
{
	uint32_t at = 0;
	bool has_waited = false;

	while (at < out->count) {
		int sent = sendmmsg(udp->fd, out->messages + at, out->count - at, MSG_NOSIGNAL);
		udp->counters.sends++;
		if (sent > 0) {
			at += (uint32_t)sent;
			has_waited = false;
		} else if (errno == EAGAIN && !has_waited) {
			has_waited = true;
			(void)wait_for_room(udp);
		} else if (errno != EINTR) {
			refused(udp, &out->messages[at++].msg_hdr, errno);
			has_waited = false;
		}
	}
	out->count = 0;
}

void trains_flush(struct trains *udp)
{
	struct departures out;

	out.count = 0;
	while (udp->pending) {
		struct trains_peer *peer = udp->pending;
		while (peer->first) {
			if (out.count == TRAINS_BATCH)
				send_all(udp, &out);
			add_train(udp, peer, &out);
		}
		udp->pending = peer->next;
	}
	send_all(udp, &out);
	for (uint32_t i = 0; i < udp->entry_count; i++)
		udp->counters.sent_bytes += udp->entries[i].length;
	udp->counters.sent += udp->entry_count;
	udp->pending_end = &udp->pending;
	udp->entry_count = udp->arena_used = 0;
}
