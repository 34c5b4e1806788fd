#include "node/observe/http_get.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ready.h"
#include "base/vec.h"

#define READ_BYTES 65536u

static int connect_to(const char *name, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(name);
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (length >= sizeof(address.sun_path)) {
		error_set(err, ESP_ELINK, "the name of the socket is too long");
		return -1;
	}
	memcpy(address.sun_path + 1, name, length);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, bytes) != 0)
		error_set(err, ESP_ELINK, "no process answers there: %s", strerror(errno));
	else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || (peer.uid != geteuid() && peer.uid != 0))
		error_set(err, ESP_ELINK, "the process that listens there belongs to another user");
	else
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* All that comes until the other end closes. */
static enum esp_status read_all(int fd, uint64_t until_ns, char **out, size_t *out_bytes, struct error *err)
{
	size_t bytes = 0, room = 0;
	char *in = NULL;

	for (;;) {
		size_t needed = bytes + READ_BYTES + 1;

		if (needed > room && (room >= HTTP_GET_MOST || !vec_reserve(&in, &room, needed, sizeof(*in)))) {
			free(in);
			return error_set(err, ESP_ELIMIT, "the answer is too long");
		}
		ssize_t got = recv(fd, in + bytes, room - bytes - 1, MSG_DONTWAIT);
		if (got == 0)
			break;
		if (got > 0) {
			bytes += (size_t)got;
		} else if (errno != EINTR && (errno != EAGAIN || !ready_by(fd, POLLIN, until_ns))) {
			enum esp_status status =
				error_set(err, errno == EAGAIN ? ESP_ETIMEOUT : ESP_ELINK, "no answer came in time");

			free(in);
			return status;
		}
	}
	in[bytes] = '\0';
	*out = in;
	*out_bytes = bytes;
	return ESP_OK;
}

/* Moves the body to the front. */
static enum esp_status cut_head(char *in, size_t *bytes, struct error *err)
{
	char *body = memmem(in, *bytes, "\r\n\r\n", 4);

	if (!body || *bytes < 12 || memcmp(in, "HTTP/1.", 7) != 0 || memcmp(in + 8, " 200", 4) != 0)
		return error_set(err, ESP_EPARSE, "the answer is not one of espalier");
	body += 4;
	*bytes -= (size_t)(body - in);
	memmove(in, body, *bytes + 1);
	return ESP_OK;
}

enum esp_status http_get_name(const char *name, const char *path, unsigned patience_ms, char **out_body,
                              size_t *out_bytes, struct error *err)
{
	uint64_t until = clock_now_ns() + patience_ms * NS_PER_MS;
	char question[256], *in = NULL;
	size_t bytes = 0;
	int fd = connect_to(name, err);

	if (fd < 0)
		return ESP_ELINK;
	int length = snprintf(question, sizeof(question), "GET %s HTTP/1.0\r\n\r\n", path);
	enum esp_status status = send(fd, question, (size_t)length, MSG_NOSIGNAL) == length
	                             ? read_all(fd, until, &in, &bytes, err)
	                             : error_set(err, ESP_ELINK, "the question could not be sent: %s", strerror(errno));
	close(fd);
	if (status == ESP_OK)
		status = cut_head(in, &bytes, err);
	if (status != ESP_OK) {
		free(in);
		return status;
	}
	*out_body = in;
	*out_bytes = bytes;
	return ESP_OK;
}
