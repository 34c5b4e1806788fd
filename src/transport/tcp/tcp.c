/*
 * tcp.c - the peers of a lane, their connections, and the turns that these take.
 */
#include "transport/tcp/tcp.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/tcp/resume.h"

#define ROUNDS_MOST 4    /* over the connections with work, in one poll               */
#define POLLS_PER_LOOK 4 /* for events, while there are connections with work         */
#define GUESSES_PER_LOOK 128 /* and while it is known which peer must send */

/* ---- connections with work ---- */

static void work_add(struct tcp *tcp, struct conn *conn)
{
	if (conn->listed || conn->closed || !tcp_conn_has_work(conn))
		return;
	conn->listed = true;
	conn->next_listed = NULL;
	if (tcp->work_first)
		tcp->work_last->next_listed = conn;
	else
		tcp->work_first = conn;
	tcp->work_last = conn;
}

static struct conn *work_take(struct tcp *tcp)
{
	struct conn *conn = tcp->work_first;

	if (conn) {
		tcp->work_first = conn->next_listed;
		conn->listed = false;
	}
	return conn;
}

/* ---- open and close ---- */

enum esp_status tcp_open(const struct tcp_config *config, const struct transport_user *user, void *context,
                         struct tcp **out, struct error *err)
{
	struct tcp *tcp = calloc(1, sizeof(*tcp) + config->peers * sizeof(struct peer));

	if (!tcp)
		return error_set(err, ESP_ENOMEM, "no memory for the connections of %u peers", config->peers);
	tcp->config = *config;
	tcp->user = user;
	tcp->context = context;
	tcp->poller = config->poller ? config->poller : &tcp->own_poller;
	enum esp_status status = config->poller ? ESP_OK : poller_init(&tcp->own_poller);
	if (status != ESP_OK) {
		tcp_close(tcp);
		return error_set(err, status, "no descriptors to wait for connections with");
	}
	*out = tcp;
	return ESP_OK;
}

static void free_all(struct conn *conn)
{
	while (conn) {
		struct conn *next = conn->next;

		tcp_conn_fini(conn);
		free(conn);
		conn = next;
	}
}

void tcp_close_conn(struct tcp *tcp, struct conn *conn)
{
	conn->closed = true;
	tcp_resume_note(tcp, conn);
	/* A copy of the descriptor in a child process would keep it watched. */
	poller_unwatch(tcp->poller, conn->fd);
	close(conn->fd);
	conn->next = tcp->closed;
	tcp->closed = conn;
}

static void close_list(struct tcp *tcp, struct conn **list)
{
	while (*list) {
		struct conn *conn = *list;

		*list = conn->next;
		tcp_close_conn(tcp, conn);
	}
}

/* Closes the connections of a peer. */
static void peer_close(struct tcp *tcp, struct peer *peer)
{
	close_list(tcp, &peer->conns);
	close_list(tcp, &peer->retired);
	peer->from = NULL;
}

/* Frees what was closed: not while a turn is under way. */
static void closed_free(struct tcp *tcp)
{
	struct conn *work = tcp->work_first;

	if (!tcp->closed)
		return;
	tcp->work_first = NULL;
	while (work) {
		struct conn *next = work->next_listed;

		work->listed = false;
		work_add(tcp, work);
		work = next;
	}
	free_all(tcp->closed);
	tcp->closed = NULL;
}

void tcp_close(struct tcp *tcp)
{
	if (!tcp)
		return;
	for (uint32_t i = 0; i < tcp->config.peers; i++)
		peer_close(tcp, &tcp->peers[i]);
	free_all(tcp->closed);
	if (!tcp->config.poller)
		poller_fini(&tcp->own_poller);
	free(tcp);
}

/* ---- peers come and go ---- */

/* If the user has failed, the peers learn of it from their connections. */
bool tcp_has_ended(struct tcp *tcp)
{
	if (tcp->ended || tcp->user->failed(tcp->context) == ESP_OK)
		return tcp->ended;
	tcp->ended = true;
	tcp->moved++;
	for (uint32_t i = 0; i < tcp->config.peers; i++)
		peer_close(tcp, &tcp->peers[i]);
	return true;
}

static void peer_lose(struct tcp *tcp, uint32_t number, enum esp_status why)
{
	struct peer *peer = &tcp->peers[number];

	if (peer->lost || tcp_has_ended(tcp))
		return;
	peer->lost = true;
	peer->dialled = false;
	peer_close(tcp, peer);
	tcp->moved++;
	tcp->user->lost(tcp->context, number, why);
	tcp_has_ended(tcp);
}

void tcp_drop(struct tcp *tcp, uint32_t peer, enum esp_status why)
{
	assert(peer < tcp->config.peers);
	peer_lose(tcp, peer, why);
}

void tcp_readmit(struct tcp *tcp, uint32_t peer)
{
	assert(peer < tcp->config.peers);
	if (tcp->ended || !tcp->peers[peer].lost)
		return;
	assert(!tcp->peers[peer].conns && !tcp->peers[peer].retired && !tcp->peers[peer].dialled);
	tcp->peers[peer].lost = false;
}

void tcp_forget(struct tcp *tcp, uint16_t channel)
{
	for (uint32_t i = 0; i < tcp->config.peers; i++) {
		bool kept = true;

		for (struct conn *conn = tcp->peers[i].conns; conn; conn = conn->next)
			kept &= tcp_conn_forget(conn, channel);
		for (struct conn *conn = tcp->peers[i].retired; conn; conn = conn->next)
			kept &= tcp_conn_forget(conn, channel);
		if (!kept)
			peer_lose(tcp, i, ESP_ENOMEM);
	}
}

/* An edge: what is possible on the connection is remembered, and its transport has something to do. */
static void conn_ready(struct poller_subject *subject, uint32_t events)
{
	struct conn *conn = (struct conn *)((char *)subject - offsetof(struct conn, subject));

	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		conn->ending = true;
	if (conn->ending || events & EPOLLIN)
		conn->readable = true;
	if (events & EPOLLOUT && !conn->mute)
		conn->writable = true;
	work_add(conn->owner, conn);
}

static enum esp_status conn_open(struct tcp *tcp, uint32_t number, int fd, bool checked, struct conn **out)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	if (!conn)
		return ESP_ENOMEM;
	conn->subject.ready = conn_ready;
	conn->owner = tcp;
	conn->fd = fd;
	conn->number = number;
	conn->user = tcp->user;
	conn->context = tcp->context;
	conn->keeps = tcp->config.resumes;
	for (uint32_t i = 0; i < CONN_GATHER; i++)
		conn->writers[i].checked = checked;
	enum esp_status status = poller_watch(tcp->poller, fd, &conn->subject);
	if (status != ESP_OK) {
		free(conn);
		return status;
	}
	*out = conn;
	return ESP_OK;
}

static void peer_add(struct tcp *tcp, struct peer *peer, struct conn *conn)
{
	struct conn **end = &peer->conns;

	conn->wants = peer->dialled && !peer->conns;
	peer->dialled = false;
	while (*end)
		end = &(*end)->next;
	*end = conn;
	work_add(tcp, conn); /* it cannot have any: watching it makes the first edge */
}

/* Takes the descriptor, also if it fails. */
static enum esp_status take(struct tcp *tcp, uint32_t number, int fd, bool checked, bool replaces, struct conn **out,
                            struct error *err)
{
	enum esp_status status = ESP_OK;

	if (number >= tcp->config.peers)
		status = error_set(err, ESP_EINVAL, "peer %u: there are %u", number, tcp->config.peers);
	else if (tcp->peers[number].lost || tcp->ended)
		status = error_set(err, ESP_EPEER, "a connection to peer %u came after it was lost, or after a failure",
		                   number);
	else if (tcp->config.resumes && tcp->peers[number].conns && !replaces)
		status = error_set(err, ESP_EINVAL, "peer %u has a connection, and this is to replace none", number);
	int error = status != ESP_OK ? 0
	                             : tcp_conn_prepare(fd, tcp->config.send_buffer, tcp->config.receive_buffer,
	                                                tcp->config.unsent_most);
	if (error != 0)
		status = error_set(err, ESP_EINVAL, "not a connection that can be used (error %d)", error);
	if (status == ESP_OK) {
		status = conn_open(tcp, number, fd, checked, out);
		if (status != ESP_OK)
			error_set(err, status, "a connection to peer %u could not be watched", number);
	}
	if (status != ESP_OK)
		close(fd);
	return status;
}

enum esp_status tcp_adopt(struct tcp *tcp, uint32_t number, int fd, bool checked, struct error *err)
{
	struct conn *conn;
	enum esp_status status = take(tcp, number, fd, checked, false, &conn, err);

	if (status == ESP_OK)
		peer_add(tcp, &tcp->peers[number], conn);
	return status;
}

enum esp_status tcp_replace(struct tcp *tcp, uint32_t number, int fd, bool checked, struct error *err)
{
	struct conn *conn;

	assert(tcp->config.resumes);
	enum esp_status status = take(tcp, number, fd, checked, true, &conn, err);
	if (status == ESP_OK)
		tcp_resume_begin(tcp, &tcp->peers[number], conn);
	return status;
}

bool tcp_is_resuming(const struct tcp *tcp)
{
	return tcp->resuming > 0;
}

/* ---- turns ---- */

/* Pulls from peers that have become ready to send: on the first connection, or on one that is asked for. */
static void pull(struct tcp *tcp)
{
	uint32_t number;

	if (tcp_has_ended(tcp))
		return;
	while ((number = tcp->user->ready(tcp->context)) != UINT32_MAX) {
		struct peer *peer = &tcp->peers[number];

		assert(number < tcp->config.peers);
		if (peer->lost)
			continue;
		if (peer->conns) {
			peer->conns->wants = true;
			work_add(tcp, peer->conns);
		} else if (!peer->dialled) {
			peer->dialled = true;
			tcp->config.dial(tcp->config.dial_context, number);
		}
	}
}

/* Is there more than an end on a connection that must stay silent? */
static enum esp_status look_for_end(struct conn *conn)
{
	uint8_t byte;
	ssize_t got = recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (got > 0)
		return ESP_ECORRUPT;
	if (got == 0)
		return ESP_EPEER;
	if (errno != EAGAIN && errno != EINTR)
		return tcp_conn_severed(conn, errno) ? ESP_PENDING : ESP_ELINK;
	conn->readable = errno == EINTR;
	return ESP_PENDING;
}

enum esp_status tcp_receive(struct tcp *tcp, struct conn *conn)
{
	struct peer *peer = &tcp->peers[conn->number];

	if (peer->from && peer->from != conn)
		return look_for_end(conn);
	enum esp_status status = tcp_conn_read(conn);
	if (conn->received_bytes > 0)
		peer->from = conn;
	return status;
}

/* A connection's turn: a batch out, a batch in. */
static void take_turn(struct tcp *tcp, struct conn *conn)
{
	enum esp_status status = ESP_PENDING;
	bool has_ended = false;

	if (conn->closed || conn->retired)
		return;
	if (conn->writable && tcp_conn_wants_to_write(conn)) {
		status = tcp_conn_write(conn);
		tcp->moved += status == ESP_OK;
		has_ended = tcp_has_ended(tcp);
	}
	if (conn->readable && !has_ended && (status == ESP_OK || status == ESP_PENDING)) {
		status = conn->phase == CONN_FLOWS ? tcp_receive(tcp, conn) : tcp_resume_read(tcp, conn);
		tcp->moved += status == ESP_OK;
	}
	tcp_resume_note(tcp, conn);
	/* A user that failed by itself is no fault of the peer. */
	if (status != ESP_OK && status != ESP_PENDING && !tcp_has_ended(tcp))
		peer_lose(tcp, conn->number, status);
	work_add(tcp, conn);
}

/* Each connection that has work now gets one turn. */
static void take_turns(struct tcp *tcp)
{
	struct conn *last = tcp->work_last, *conn;

	while (!tcp->ended && (conn = work_take(tcp)) != NULL) {
		take_turn(tcp, conn);
		if (conn == last)
			return;
	}
}

/*
 * To look for events and then to read are two system calls. A lane that waits for one peer alone, as in every small
 * call, reads from it at once: if nothing has come that costs no more than the look. Others have their turn all the
 * same, after a while: eight ranks on two cores take 0.96 times as long for 4 bytes, 0.9 for 1 KiB (with small messages
 * in one piece, conn.c).
 */
static bool guess(struct tcp *tcp)
{
	if (tcp->ended || !tcp->user->awaits || tcp->guesses >= GUESSES_PER_LOOK)
		return false;
	uint32_t number = tcp->user->awaits(tcp->context);
	assert(number < tcp->config.peers || number == UINT32_MAX);
	struct conn *conn = number != UINT32_MAX ? tcp->peers[number].from : NULL;
	if (!conn || conn->phase != CONN_FLOWS || conn->mute || conn->retired || conn->severed)
		return false;
	tcp->guesses++;
	conn->readable = true;
	work_add(tcp, conn);
	return true;
}

/* Finds out which connections can be read or written, as far as that is not known. */
static void look(struct tcp *tcp, int64_t timeout_ns)
{
	if (timeout_ns == 0 && guess(tcp))
		return;
	tcp->guesses = 0;
	poller_look(tcp->poller, timeout_ns);
}

static void take_rounds(struct tcp *tcp)
{
	for (int round = 0; round < ROUNDS_MOST && tcp->work_first; round++) {
		take_turns(tcp);
		pull(tcp); /* messages that came in make others to send */
	}
}

unsigned tcp_poll(struct tcp *tcp, int64_t timeout_ns)
{
	tcp->moved = 0;
	pull(tcp);
	closed_free(tcp);
	/* A look for events is a system call: what is known to be possible comes first, for a while. */
	if (!tcp->work_first || ++tcp->unlooked == POLLS_PER_LOOK) {
		tcp->unlooked = 0;
		look(tcp, tcp->moved > 0 || tcp->work_first ? 0 : timeout_ns);
	}
	take_rounds(tcp);
	return tcp->moved;
}

unsigned tcp_flush(struct tcp *tcp)
{
	tcp->moved = 0;
	pull(tcp);
	take_rounds(tcp);
	return tcp->moved;
}

bool tcp_has_work(const struct tcp *tcp)
{
	return tcp->work_first || tcp->closed;
}

void tcp_has_slept(struct tcp *tcp)
{
	tcp->guesses = GUESSES_PER_LOOK;
}

void tcp_wake(struct tcp *tcp)
{
	poller_wake(tcp->poller);
}

int tcp_descriptor(const struct tcp *tcp)
{
	return poller_descriptor(tcp->poller);
}

/* ---- what is known ---- */

bool tcp_stats(const struct tcp *tcp, uint32_t number, struct path_stats *out)
{
	const struct conn *first = number < tcp->config.peers ? tcp->peers[number].conns : NULL;

	if (!first)
		return false;
	*out = (struct path_stats){
		.sent_bytes = first->sent_bytes,
		.sent_messages = first->sent_messages,
		.send_calls = first->send_calls,
	};
	for (const struct conn *conn = first; conn; conn = conn->next) {
		out->received_bytes += conn->received_bytes;
		out->receive_calls += conn->receive_calls;
	}
	path_read(first->fd, out);
	for (const struct conn *conn = first->next; conn; conn = conn->next) {
		struct path_stats other = {.last_data_ms = UINT32_MAX};

		path_read(conn->fd, &other);
		out->last_data_ms = other.last_data_ms < out->last_data_ms ? other.last_data_ms : out->last_data_ms;
	}
	out->is_severed = first->severed;
	out->is_reset = first->reset;
	return true;
}

void tcp_totals(const struct tcp *tcp, struct transport_stats *out)
{
	*out = (struct transport_stats){0};
	for (uint32_t i = 0; i < tcp->config.peers; i++) {
		const struct conn *first = tcp->peers[i].conns;

		if (!first)
			continue;
		out->messages_sent += first->sent_messages;
		out->sent_bytes += first->sent_bytes;
		out->network_bytes += first->sent_bytes;
		for (const struct conn *conn = first; conn; conn = conn->next)
			out->received_bytes += conn->received_bytes;
	}
}
