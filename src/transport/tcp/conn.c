#include "transport/tcp/conn.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#ifndef TCP_RTO_MIN_US /* of Linux 6.15; the C library's header may not have them yet */
#define TCP_RTO_MIN_US 45
#define TCP_DELACK_MAX_US 46
#endif

#define RETRANSMIT_US 40000
#define ACKNOWLEDGE_US 20000 /* no kernel takes less than two of its ticks, which are 1 to 10 ms */

/* Stands for data without memory behind it. */
static const uint8_t zeros[16384];

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

bool tcp_conn_wants_to_write(const struct conn *conn)
{
	if (conn->greeting_at < conn->greeting_bytes)
		return true;
	return conn->phase == CONN_FLOWS && (conn->wants || conn->writer_count > 0 || conn->sent_to < conn->keep.end);
}

bool tcp_conn_has_work(const struct conn *conn)
{
	if (conn->retired || conn->severed)
		return false;
	return conn->readable || (conn->writable && tcp_conn_wants_to_write(conn));
}

/* ---- sending ---- */

/* A list of parts costs the kernel more than so few bytes cost to be put together. */
#define FLAT_BYTES 2048u

/* Data that is handed to the kernel at once: small messages put together, or parts of others. */
struct gather {
	struct iovec parts[STREAM_SPANS * CONN_GATHER];
	uint32_t part_count;
	uint32_t bytes;
	uint32_t of_message[CONN_GATHER]; /* bytes of each, in the order of the ring */
	uint32_t message_count;
	uint8_t flat[FLAT_BYTES];
};

/*
 * Gathers the first messages, if they are small and nothing is before them. A pulled message of another kind is the
 * next one.
 */
static void gather_small(struct gather *gather, struct conn *conn)
{
	enum stream_whole whole = STREAM_WHOLE;

	gather->part_count = gather->bytes = gather->message_count = 0;
	if (conn->writer_count > 0)
		return;
	while (whole == STREAM_WHOLE && gather->message_count < CONN_GATHER) {
		struct stream_writer *writer = &conn->writers[(conn->writer_first + gather->message_count) % CONN_GATHER];
		uint32_t bytes = 0;

		whole = stream_pending_whole(writer, conn->user, conn->context, conn->number, gather->flat + gather->bytes,
		                             FLAT_BYTES - gather->bytes, &bytes);
		if (whole == STREAM_NONE)
			conn->wants = false;
		else
			conn->writer_count++;
		if (whole == STREAM_WHOLE) {
			gather->bytes += bytes;
			gather->of_message[gather->message_count++] = bytes;
		}
	}
	if (gather->bytes > 0)
		gather->parts[gather->part_count++] = (struct iovec){gather->flat, gather->bytes};
}

/* Adds the next span of a message; false: it goes in only in part, and ends the batch. */
static bool gather_span(struct gather *gather, const struct stream_bytes *span)
{
	uint32_t bytes = least(span->bytes, span->at ? CONN_SEND_MOST : sizeof(zeros));

	gather->parts[gather->part_count++] =
		(struct iovec){(void *)(uintptr_t)(span->at ? span->at : zeros), bytes};
	gather->of_message[gather->message_count] += bytes;
	gather->bytes += bytes;
	return bytes == span->bytes;
}

/* Pulls further messages until there are enough for one call, or none is left. */
static void gather_rest(struct gather *gather, struct conn *conn)
{
	bool whole = true;

	while (whole && gather->message_count < CONN_GATHER && gather->bytes < CONN_SEND_BYTES) {
		uint32_t at = (conn->writer_first + gather->message_count) % CONN_GATHER;
		struct stream_bytes spans[STREAM_SPANS];

		if (gather->message_count >= conn->writer_count && !conn->wants)
			return;
		unsigned count =
			stream_pending(&conn->writers[at], conn->user, conn->context, conn->number, spans);
		if (count == 0) {
			conn->wants = false;
			return;
		}
		gather->of_message[gather->message_count] = 0;
		for (unsigned i = 0; whole && i < count; i++)
			whole = gather_span(gather, &spans[i]);
		gather->message_count++;
		if (conn->writer_count < gather->message_count)
			conn->writer_count = gather->message_count;
	}
}

/* The kernel has taken so many bytes of the batch: tell whose messages have left. */
static void gather_settle(const struct gather *gather, struct conn *conn, uint32_t bytes)
{
	for (uint32_t i = 0; i < gather->message_count && bytes > 0; i++) {
		struct stream_writer *writer = &conn->writers[conn->writer_first];
		uint32_t part = least(gather->of_message[i], bytes);

		bytes -= part;
		enum stream_progress progress = stream_left(writer, part);
		if (progress == STREAM_GOES_ON)
			return;
		conn->writer_first = (conn->writer_first + 1) % CONN_GATHER;
		conn->writer_count--;
		conn->sent_messages++;
		if (progress == STREAM_SENT)
			conn->user->sent(conn->context, conn->number, writer->message.channel, writer->message.cookie);
	}
}

/* The other end may be well, and come to be reached another way. */
static bool has_no_way(int error)
{
	return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH || error == ENETDOWN ||
	       error == EHOSTDOWN || error == ENODEV;
}

/* By something in between, perhaps; whether the other end has ended, others will know. */
static bool is_reset(int error)
{
	return error == ECONNRESET || error == ECONNABORTED || error == EPIPE || error == ENOTCONN;
}

bool tcp_conn_severed(struct conn *conn, int error)
{
	if (conn->keeps && (has_no_way(error) || is_reset(error)))
		conn->severed = true;
	conn->reset = conn->severed && is_reset(error);
	return conn->severed;
}

/*
 * A peer that closed after its last message may reset the connection as more is sent to it (a credit, say). Data that
 * it sent before counts, so a failure to write ends the connection only when nothing is left to be read.
 */
static enum esp_status write_failed(struct conn *conn, int error)
{
	if (has_no_way(error) && tcp_conn_severed(conn, error))
		return ESP_PENDING;
	conn->mute = true;
	conn->writable = false;
	conn->readable = true;
	return ESP_OK;
}

/* One system call. ESP_OK: *out_sent bytes have left. */
static enum esp_status write_parts(struct conn *conn, struct iovec *parts, uint32_t count, size_t bytes,
                                   uint32_t *out_sent)
{
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
	ssize_t sent;

	do {
		sent = count == 1 ? send(conn->fd, parts->iov_base, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
		                  : sendmsg(conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (sent < 0 && errno == EINTR);
	*out_sent = 0;
	if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
		return write_failed(conn, errno);
	if (sent < (ssize_t)bytes)
		conn->writable = false;
	if (sent <= 0)
		return ESP_PENDING;
	conn->send_calls++;
	*out_sent = (uint32_t)sent;
	return ESP_OK;
}

/*
 * Bytes that the other end's kernel has are not needed here any more: they will be read before this socket is given up.
 */
static void trim(struct conn *conn)
{
	int waiting = 0;

	if (ioctl(conn->fd, SIOCOUTQ, &waiting) != 0 || waiting < 0 || (uint64_t)waiting > conn->sent_to)
		return;
	tcp_keep_trim(&conn->keep, conn->sent_to - (uint64_t)waiting);
}

/* Before the user may write over it. */
static bool keep_sent(struct conn *conn, const struct iovec *parts, uint32_t bytes)
{
	if (!conn->keeps)
		return true;
	if (!tcp_keep_has_room(&conn->keep, bytes))
		trim(conn);
	if (!tcp_keep_add(&conn->keep, parts, bytes))
		return false;
	conn->sent_to = conn->keep.end;
	return true;
}

static enum esp_status write_greeting(struct conn *conn)
{
	struct iovec part = {conn->greeting_out + conn->greeting_at, conn->greeting_bytes - conn->greeting_at};
	uint32_t sent;
	enum esp_status status = write_parts(conn, &part, 1, part.iov_len, &sent);

	conn->greeting_at += sent;
	return status;
}

static enum esp_status write_again(struct conn *conn)
{
	const void *at = NULL;
	size_t bytes = tcp_keep_span(&conn->keep, conn->sent_to, &at);
	struct iovec part = {(void *)(uintptr_t)at, bytes < CONN_SEND_BYTES ? bytes : CONN_SEND_BYTES};
	uint32_t sent;
	enum esp_status status = write_parts(conn, &part, 1, part.iov_len, &sent);

	conn->sent_to += sent;
	return status;
}

enum esp_status tcp_conn_write(struct conn *conn)
{
	struct gather gather;
	uint32_t sent;

	if (conn->greeting_at < conn->greeting_bytes)
		return write_greeting(conn);
	if (conn->phase != CONN_FLOWS)
		return ESP_PENDING;
	if (conn->sent_to < conn->keep.end)
		return write_again(conn);
	gather_small(&gather, conn);
	gather_rest(&gather, conn);
	if (gather.bytes == 0)
		return ESP_PENDING;
	enum esp_status status = write_parts(conn, gather.parts, gather.part_count, gather.bytes, &sent);
	if (sent == 0)
		return status;
	conn->sent_bytes += sent;
	if (!keep_sent(conn, gather.parts, sent))
		return ESP_ENOMEM;
	gather_settle(&gather, conn, sent);
	return ESP_OK;
}

/* Takes the messages out of the ring that are not under way any more. */
static void writers_compact(struct conn *conn)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < conn->writer_count; i++) {
		struct stream_writer *from = &conn->writers[(conn->writer_first + i) % CONN_GATHER];
		struct stream_writer *to = &conn->writers[(conn->writer_first + kept) % CONN_GATHER];

		if (!from->busy)
			continue;
		if (from != to) {
			*to = *from;
			/* The copy, if there is one, has one owner. */
			*from = (struct stream_writer){.checked = to->checked};
		}
		kept++;
	}
	conn->writer_count = kept;
}

bool tcp_conn_forget(struct conn *conn, uint16_t channel)
{
	bool kept = true;

	stream_reader_forget(&conn->reader, channel);
	for (uint32_t i = 0; i < conn->writer_count; i++)
		kept &= stream_writer_forget(&conn->writers[(conn->writer_first + i) % CONN_GATHER], channel);
	writers_compact(conn);
	return kept;
}

void tcp_conn_fini(struct conn *conn)
{
	for (uint32_t i = 0; i < CONN_GATHER; i++)
		stream_writer_fini(&conn->writers[i]);
	tcp_keep_fini(&conn->keep);
}

/* ---- receiving ---- */

static struct transport_room next_room(struct conn *conn)
{
	struct transport_room room = stream_room(&conn->reader, conn->user, conn->context, conn->number);

	assert(room.bytes > 0);
	return room;
}

static enum esp_status arrived(struct conn *conn, uint32_t bytes)
{
	return stream_arrived(&conn->reader, conn->user, conn->context, conn->number, bytes);
}

/* Passes on what was received ahead. */
static enum esp_status take_ahead(struct conn *conn)
{
	uint32_t bytes = conn->ahead_have;

	conn->ahead_have = 0;
	return stream_feed(&conn->reader, conn->user, conn->context, conn->number, conn->ahead, bytes);
}

/* Messages tend to be as large as the one before. direct: bytes that go straight to their place. */
static uint32_t ahead_room(const struct conn *conn, uint32_t direct)
{
	bool has_nowhere_else = direct == 0 && conn->reader.body_left > 0;

	return conn->reader.frame.bytes > CONN_LARGE && !has_nowhere_else ? CONN_AHEAD_HEAD : CONN_AHEAD;
}

static enum esp_status nothing_read(struct conn *conn, ssize_t got, int error)
{
	conn->readable = false;
	if (conn->mute && conn->keeps) { /* all that had come is read */
		conn->severed = conn->reset = true;
		return ESP_PENDING;
	}
	if (got < 0 && (error == EAGAIN || error == EWOULDBLOCK))
		return conn->mute ? ESP_ELINK : ESP_PENDING;
	if (got < 0 && tcp_conn_severed(conn, error))
		return ESP_PENDING;
	return got == 0 && stream_is_between(&conn->reader) ? ESP_EPEER : ESP_ELINK;
}

enum esp_status tcp_conn_read(struct conn *conn)
{
	struct transport_room room = {NULL, 0};
	struct iovec parts[2];
	int count = 0;

	if (conn->reader.body_left > 0) {
		room = next_room(conn);
		if (room.at)
			room.bytes = least(room.bytes, CONN_RECEIVE_BYTES);
		else
			room.bytes = 0; /* through the read-ahead, for want of a better place */
	}
	if (room.bytes > 0)
		parts[count++] = (struct iovec){room.at, room.bytes};
	if (room.bytes == conn->reader.body_left || room.bytes == 0)
		parts[count++] = (struct iovec){conn->ahead, ahead_room(conn, room.bytes)};
	size_t asked = parts[0].iov_len + (count > 1 ? parts[1].iov_len : 0);
	ssize_t got;
	do {
		got = count == 1 ? recv(conn->fd, parts[0].iov_base, parts[0].iov_len, MSG_DONTWAIT)
		                 : readv(conn->fd, parts, count);
	} while (got < 0 && errno == EINTR);
	if (got <= 0)
		return nothing_read(conn, got, errno);
	/* Less than asked for: all that was there, and more makes an edge. But not the end, if it came before. */
	if ((size_t)got < asked && !conn->ending && !conn->mute)
		conn->readable = false;
	conn->receive_calls++;
	conn->received_bytes += (uint64_t)got;
	uint32_t direct = least((uint32_t)got, room.bytes);
	conn->ahead_have = (uint32_t)got - direct;
	enum esp_status status = direct > 0 ? arrived(conn, direct) : ESP_OK;
	return status == ESP_OK ? take_ahead(conn) : status;
}

/* ---- the socket ---- */

static int set_size(int fd, int option, uint32_t bytes)
{
	int value = (int)(bytes > INT32_MAX ? INT32_MAX : bytes);

	return bytes == 0 || setsockopt(fd, SOL_SOCKET, option, &value, sizeof(value)) == 0 ? 0 : errno;
}

/* Lowers a value of the kernel to so much: it may be lower already, for all sockets. False: this kernel cannot. */
static bool lower(int fd, int option, int microseconds)
{
	int now = 0;
	socklen_t bytes = sizeof(now);

	return getsockopt(fd, IPPROTO_TCP, option, &now, &bytes) == 0 &&
	       (now <= microseconds || setsockopt(fd, IPPROTO_TCP, option, &microseconds, sizeof(microseconds)) == 0);
}

/*
 * Where many send to one at a time, as in most plans, the queue of a switch overflows, and a segment lost at the end of
 * a burst is not sent again before the retransmission timer: by default 200 ms beyond the time there and back, in which
 * a whole call would have been over. The kernel adds what times vary by, so a shorter least wait costs little on a
 * network that is far or uneven. But an acknowledgement may not be delayed for as long; an older kernel at the other
 * end does so for 40 ms at the least, so there some is sent twice.
 */
static void hurry_up(int fd)
{
	if (lower(fd, TCP_DELACK_MAX_US, ACKNOWLEDGE_US))
		(void)lower(fd, TCP_RTO_MIN_US, RETRANSMIT_US);
}

static int prepare_tcp(int fd, uint32_t unsent_most)
{
	int on = 1, unsent = (int)(unsent_most > INT32_MAX ? INT32_MAX : unsent_most);

	/* A frame is sent whole or with others: holding back its end gains nothing. */
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0)
		return errno;
	if (unsent_most > 0 && setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent)) < 0)
		return errno;
	hurry_up(fd);
	return 0;
}

int tcp_conn_prepare(int fd, uint32_t send_buffer, uint32_t receive_buffer, uint32_t unsent_most)
{
	int type = 0, family = 0, flags = fcntl(fd, F_GETFL);
	socklen_t type_bytes = sizeof(type), family_bytes = sizeof(family);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_bytes) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &family_bytes) < 0)
		return errno;
	if (type != SOCK_STREAM)
		return EPROTOTYPE;
	int error = set_size(fd, SO_SNDBUF, send_buffer);
	if (error == 0)
		error = set_size(fd, SO_RCVBUF, receive_buffer);
	if (error == 0 && family != AF_UNIX)
		error = prepare_tcp(fd, unsent_most);
	return error;
}
