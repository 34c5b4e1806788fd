#include "hub/control/msg_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/ready.h"

#define PONG_PATIENCE (1 * NS_PER_S)

enum esp_status msg_socket_open(struct msg_socket *socket, const struct hub_dial *dial, struct error *err)
{
	uint8_t session[HANDSHAKE_KEY_BYTES];

	socket->fd = -1;
	enum esp_status status = hub_dial(dial, &socket->fd, session, err);
	if (status != ESP_OK)
		return status;
	msg_stream_init(&socket->stream, session, false);
	address_format(dial->hub, socket->hub);
	explicit_bzero(session, sizeof(session));
	return ESP_OK;
}

void msg_socket_close(struct msg_socket *socket)
{
	if (socket->fd < 0)
		return;
	close(socket->fd);
	socket->fd = -1;
	msg_stream_fini(&socket->stream);
}

static enum esp_status broke(const struct msg_socket *socket, int cause, struct error *err)
{
	if (cause == 0)
		return error_set(err, ESP_ELINK, "the hub at %.100s has closed the connection: it was stopped, or has ended",
		                 socket->hub);
	return error_set(err, ESP_ELINK, "the connection to the hub at %.100s broke: %s", socket->hub, strerror(cause));
}

static enum esp_status late(const struct msg_socket *socket, struct error *err)
{
	return error_set(err, ESP_ETIMEOUT, "the hub at %.100s does not answer in time", socket->hub);
}

enum esp_status msg_socket_put(struct msg_socket *socket, const struct hub_msg *msg, uint64_t until_ns,
                               struct error *err)
{
	const uint8_t *bytes;
	size_t n;
	enum esp_status status = msg_stream_put(&socket->stream, msg);

	if (status != ESP_OK)
		return error_set(err, status, "no memory for a message to the hub at %.100s", socket->hub);
	while ((n = msg_stream_output(&socket->stream, &bytes)) > 0) {
		ssize_t sent = send(socket->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent >= 0)
			msg_stream_sent(&socket->stream, (size_t)sent);
		else if (errno != EAGAIN && errno != EINTR)
			return broke(socket, errno, err);
		else if (errno == EAGAIN && !ready_by(socket->fd, POLLOUT, until_ns))
			return late(socket, err);
	}
	return ESP_OK;
}

/* Of a message that is there. */
static enum esp_status judge(const struct msg_socket *socket, enum hub_msg_type type, const struct hub_msg *msg,
                             struct error *err)
{
	if (msg->type == type)
		return ESP_OK;
	if (msg->type == HUB_MSG_WHY)
		return error_set(err, (enum esp_status)msg->why.status, "%s", msg->why.text);
	return error_set(err, ESP_ECORRUPT, "the hub at %.100s sent message %u where %u was expected", socket->hub,
	                 (unsigned)msg->type, (unsigned)type);
}

enum esp_status msg_socket_take(struct msg_socket *socket, enum hub_msg_type type, uint64_t until_ns,
                                struct hub_msg *out, struct error *err)
{
	static const struct hub_msg pong = {.type = HUB_MSG_PONG};

	for (;;) {
		enum esp_status status = msg_stream_take(&socket->stream, out);
		uint8_t *at;

		if (status == ESP_OK && out->type == HUB_MSG_PING) {
			uint64_t soon = until_ns > 0 ? until_ns : clock_now_ns() + PONG_PATIENCE;
			status = msg_socket_put(socket, &pong, soon, err);
			if (status != ESP_OK)
				return status;
			continue;
		}
		if (status == ESP_OK)
			return judge(socket, type, out, err);
		if (status != ESP_PENDING)
			return error_set(err, status, "the hub at %.100s sent bytes that are no message of a hub", socket->hub);
		size_t room = msg_stream_room(&socket->stream, &at);
		ssize_t got = recv(socket->fd, at, room, MSG_DONTWAIT);
		if (got > 0)
			msg_stream_arrived(&socket->stream, (size_t)got);
		else if (got == 0 || (errno != EAGAIN && errno != EINTR))
			return broke(socket, got == 0 ? 0 : errno, err);
		else if (errno == EAGAIN && until_ns == 0)
			return ESP_PENDING;
		else if (errno == EAGAIN && !ready_by(socket->fd, POLLIN, until_ns))
			return late(socket, err);
	}
}
