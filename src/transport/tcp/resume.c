#include "transport/tcp/resume.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* ---- saying ---- */

static void say(struct conn *conn, const struct frame *frame)
{
	frame_encode(frame, conn->greeting_out + conn->greeting_bytes);
	conn->greeting_bytes += FRAME_BYTES;
}

static void say_switch(struct conn *conn)
{
	say(conn, &(struct frame){.type = FRAME_SWITCH});
}

static void say_count(struct conn *conn)
{
	uint64_t count = conn->received_bytes;

	say(conn, &(struct frame){.type = FRAME_COUNT, .index = (uint32_t)count, .ack = (uint32_t)(count >> 32)});
}

/* ---- taking over ---- */

/* Takes over the pulled messages and the counts of sent bytes. */
static void take_sending(struct conn *conn, struct conn *from)
{
	memcpy(conn->writers, from->writers, sizeof(conn->writers));
	memset(from->writers, 0, sizeof(from->writers)); /* copies have one owner */
	conn->writer_first = from->writer_first;
	conn->writer_count = from->writer_count;
	from->writer_count = 0;
	conn->keep = from->keep;
	from->keep = (struct keep){0};
	conn->sent_bytes = from->sent_bytes;
	conn->sent_messages = from->sent_messages;
	conn->send_calls = from->send_calls;
}

static void take_receiving(struct peer *peer, struct conn *conn)
{
	struct conn *from = peer->from;

	if (from && from != conn) {
		conn->reader = from->reader;
		conn->received_bytes = from->received_bytes;
		conn->receive_calls = from->receive_calls;
		from->reader = (struct stream_reader){0};
		from->received_bytes = 0;
	}
	peer->from = conn;
}

static void end_resuming(struct tcp *tcp, struct conn *conn)
{
	tcp->resuming -= conn->is_resuming;
	conn->is_resuming = false;
}

void tcp_resume_note(struct tcp *tcp, struct conn *conn)
{
	if (conn->is_resuming &&
	    (conn->closed || conn->retired ||
	     (conn->phase == CONN_FLOWS && conn->sent_to == conn->keep.end && conn->greeting_at == conn->greeting_bytes)))
		end_resuming(tcp, conn);
}

void tcp_resume_begin(struct tcp *tcp, struct peer *peer, struct conn *conn)
{
	struct conn **end = &peer->retired;

	if (peer->conns)
		take_sending(conn, peer->conns);
	while (*end)
		end = &(*end)->next;
	*end = peer->conns;
	for (struct conn *old = peer->conns; old; old = old->next) {
		old->retired = true;
		poller_unwatch(tcp->poller, old->fd);
		tcp_resume_note(tcp, old);
	}
	peer->conns = conn;
	peer->dialled = false;
	conn->wants = true;
	conn->sent_to = conn->keep.end;
	conn->phase = CONN_SWITCHES;
	conn->is_resuming = true;
	tcp->resuming++;
	say_switch(conn);
}

/* ---- hearing ---- */

/* The next frame of the greeting. ESP_OK: it is there. */
static enum esp_status hear(struct conn *conn, struct frame *out)
{
	while (conn->greeting_have < FRAME_BYTES) {
		ssize_t got =
			recv(conn->fd, conn->greeting_in + conn->greeting_have, FRAME_BYTES - conn->greeting_have, MSG_DONTWAIT);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			conn->readable = false;
			return ESP_PENDING;
		}
		if (got <= 0)
			return got == 0 ? ESP_EPEER : ESP_ELINK;
		conn->greeting_have += (uint32_t)got;
	}
	conn->greeting_have = 0;
	return frame_decode(conn->greeting_in, out) ? ESP_OK : ESP_ECORRUPT;
}

/* The end of a connection that was replaced says nothing: whatever the reason, what follows comes on the new one. */
static bool is_only_its_end(enum esp_status status)
{
	return status == ESP_PENDING || status == ESP_EPEER || status == ESP_ELINK;
}

/* Reads a connection that was replaced as far as it goes. */
static enum esp_status drain(struct tcp *tcp, struct peer *peer, struct conn *conn)
{
	enum esp_status status = ESP_OK;
	struct frame frame;

	while (status == ESP_OK && conn->phase != CONN_FLOWS) {
		uint8_t awaited = conn->phase == CONN_SWITCHES ? FRAME_SWITCH : FRAME_COUNT;

		status = hear(conn, &frame);
		if (status == ESP_OK && frame.type != awaited)
			return ESP_ECORRUPT;
		if (status == ESP_OK && conn->phase == CONN_SWITCHES)
			take_receiving(peer, conn); /* older connections have been read to the end */
		if (status == ESP_OK)
			conn->phase = conn->phase == CONN_SWITCHES ? CONN_COUNTS : CONN_FLOWS;
	}
	while (status == ESP_OK && !tcp->ended && !peer->lost)
		status = tcp_receive(tcp, conn);
	return is_only_its_end(status) ? ESP_OK : status;
}

static enum esp_status drain_all(struct tcp *tcp, struct peer *peer)
{
	enum esp_status status = ESP_OK;

	for (struct conn *old = peer->retired; old && status == ESP_OK && !tcp_has_ended(tcp); old = old->next)
		status = drain(tcp, peer, old);
	return status;
}

static enum esp_status on_switch(struct tcp *tcp, struct peer *peer, struct conn *conn)
{
	enum esp_status status = drain_all(tcp, peer);

	if (status != ESP_OK || tcp->ended)
		return status;
	take_receiving(peer, conn);
	while (peer->retired) {
		struct conn *old = peer->retired;

		peer->retired = old->next;
		tcp_close_conn(tcp, old);
	}
	say_count(conn);
	conn->phase = CONN_COUNTS;
	return ESP_OK;
}

static enum esp_status on_count(struct conn *conn, uint64_t count)
{
	if (count > conn->keep.end)
		return ESP_ECORRUPT;
	if (count < conn->keep.first) /* its kernel had more than it has read: never, but nothing is made up here */
		return ESP_ELINK;
	tcp_keep_trim(&conn->keep, count);
	conn->sent_to = count;
	conn->phase = CONN_FLOWS;
	return ESP_OK;
}

enum esp_status tcp_resume_read(struct tcp *tcp, struct conn *conn)
{
	struct peer *peer = &tcp->peers[conn->number];
	struct frame frame;
	enum esp_status status = hear(conn, &frame);

	if (status == ESP_EPEER || status == ESP_ELINK) {
		conn->severed = true; /* the other end may never have got hold of it, and try again; or it was reset, too */
		return ESP_PENDING;
	}
	if (status != ESP_OK)
		return status;
	if (conn->phase == CONN_SWITCHES && frame.type == FRAME_SWITCH)
		return on_switch(tcp, peer, conn);
	if (conn->phase == CONN_COUNTS && frame.type == FRAME_COUNT)
		return on_count(conn, (uint64_t)frame.ack << 32 | frame.index);
	return ESP_ECORRUPT;
}
