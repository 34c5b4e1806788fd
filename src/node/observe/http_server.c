#include "node/observe/http_server.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/observe/status_request.h"

#define CLIENTS 8u
#define PATIENCE (5 * NS_PER_S) /* with one client */
#define LISTEN_BACKLOG 64

enum { AT_NAME, AT_PATH, SOCKETS };

struct port {
	struct loop_fd watched; /* first member */
	struct http_server *server;
};

struct client {
	struct loop_fd watched; /* first member; its fd is -1: no client */
	struct http_server *server;
	uint64_t until_ns;
	char in[REQUEST_BYTES];
	size_t in_bytes;
	char *out; /* owned */
	size_t out_bytes, out_at;
};

struct http_server {
	struct loop *loop;
	http_answer_fn *answer;
	void *context;
	struct loop_timer timer;
	struct port ports[SOCKETS];
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1]; /* of the socket AT_PATH; "": none */
	struct client clients[CLIENTS];
};

static struct http_server *of_timer(struct loop_timer *timer)
{
	return (struct http_server *)(void *)((char *)timer - offsetof(struct http_server, timer));
}

/* ---- answers ---- */

static const char *write_body(struct http_server *server, enum request_verdict verdict, const char *path, FILE *out,
                              const char **out_type)
{
	*out_type = "text/plain; charset=utf-8";
	if (verdict == REQUEST_BAD)
		return "400 Bad Request";
	if (verdict == REQUEST_OTHER)
		return "405 Method Not Allowed";
	return server->answer(server->context, path, out, out_type);
}

/* Prepares the answer, head and body. False: no memory. */
static bool prepare_answer(struct client *client, enum request_verdict verdict, const char *path)
{
	char *body = NULL;
	const char *type;
	size_t bytes = 0;
	FILE *out = open_memstream(&body, &bytes);

	if (!out)
		return false;
	const char *status = write_body(client->server, verdict, path, out, &type);
	bool is_whole = fclose(out) == 0;
	int head = is_whole
	               ? asprintf(&client->out,
	                          "HTTP/1.0 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
	                          status, type, bytes)
	               : -1;
	char *whole = head >= 0 ? realloc(client->out, (size_t)head + bytes) : NULL;
	if (whole) {
		memcpy(whole + head, body, bytes);
		client->out = whole;
		client->out_bytes = (size_t)head + bytes;
	} else if (head < 0) {
		client->out = NULL; /* asprintf() leaves it undefined */
	}
	free(body);
	return whole != NULL;
}

/* ---- clients ---- */

/* Sets the timer to the first deadline of a client. */
static void set_timer(struct http_server *server)
{
	uint64_t first = UINT64_MAX;

	for (unsigned i = 0; i < CLIENTS; i++) {
		const struct client *client = &server->clients[i];

		if (client->watched.fd >= 0 && client->until_ns < first)
			first = client->until_ns;
	}
	if (first == UINT64_MAX)
		loop_cancel(server->loop, &server->timer);
	else
		loop_at(server->loop, &server->timer, first);
}

static void close_client(struct client *client)
{
	int fd = client->watched.fd;

	loop_remove(client->server->loop, &client->watched);
	close(fd);
	free(client->out);
	client->watched.fd = -1;
	client->out = NULL;
}

static void on_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct http_server *server = of_timer(timer);

	for (unsigned i = 0; i < CLIENTS; i++) {
		if (server->clients[i].watched.fd >= 0 && server->clients[i].until_ns <= now_ns)
			close_client(&server->clients[i]);
	}
	set_timer(server);
}

static void send_answer(struct client *client)
{
	while (client->out_at < client->out_bytes) {
		ssize_t sent = send(client->watched.fd, client->out + client->out_at, client->out_bytes - client->out_at,
		                    MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN) {
			loop_change(client->server->loop, &client->watched, EPOLLOUT);
			return;
		}
		if (sent < 0)
			break;
		client->out_at += (size_t)sent;
	}
	close_client(client);
	set_timer(client->server);
}

static void read_request(struct client *client)
{
	char path[REQUEST_PATH] = "";
	enum request_verdict verdict = REQUEST_UNFINISHED;
	ssize_t got = recv(client->watched.fd, client->in + client->in_bytes, sizeof(client->in) - client->in_bytes,
	                   MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got > 0) {
		client->in_bytes += (size_t)got;
		verdict = request_parse(client->in, client->in_bytes, path);
		if (verdict == REQUEST_UNFINISHED)
			return;
	}
	if (got > 0 && prepare_answer(client, verdict, path)) {
		send_answer(client);
	} else {
		close_client(client);
		set_timer(client->server);
	}
}

static void on_client(struct loop_fd *fd, uint32_t events)
{
	struct client *client = (struct client *)(void *)fd; /* its first member */

	(void)events;
	if (client->out)
		send_answer(client);
	else
		read_request(client);
}

/* The process at the other end is this user's, or root's. */
static bool may_ask(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

static void on_port(struct loop_fd *watched, uint32_t events)
{
	struct http_server *server = ((struct port *)(void *)watched)->server; /* its first member */
	struct client *client = server->clients;
	int fd = accept4(watched->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct error err;

	(void)events;
	if (fd < 0)
		return;
	if (!may_ask(fd)) {
		close(fd);
		return;
	}
	for (unsigned i = 1; i < CLIENTS && client->watched.fd >= 0; i++) {
		struct client *other = &server->clients[i];

		if (other->watched.fd < 0 || other->until_ns < client->until_ns)
			client = other;
	}
	if (client->watched.fd >= 0) /* all are taken: the oldest one is closed */
		close_client(client);
	*client = (struct client){
		.watched = {.ready = on_client, .fd = -1}, .server = server, .until_ns = loop_now(server->loop) + PATIENCE};
	if (loop_add(server->loop, &client->watched, fd, EPOLLIN, &err) != ESP_OK)
		close(fd);
	set_timer(server);
}

/* ---- life ---- */

enum esp_status http_server_open(struct loop *loop, http_answer_fn *answer, void *context, struct http_server **out,
                                 struct error *err)
{
	struct http_server *server = calloc(1, sizeof(*server));

	*out = server;
	if (!server)
		return error_set(err, ESP_ENOMEM, "no memory for a status server");
	server->loop = loop;
	server->answer = answer;
	server->context = context;
	server->timer.due = on_due;
	for (unsigned i = 0; i < SOCKETS; i++)
		server->ports[i] = (struct port){.watched = {.ready = on_port, .fd = -1}, .server = server};
	for (unsigned i = 0; i < CLIENTS; i++)
		server->clients[i].watched.fd = -1;
	return ESP_OK;
}

static int open_socket(const struct sockaddr_un *address, size_t bytes)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	/* fchmod() before the file exists: other users must not open it. may_ask() refuses them in any case. */
	if (fd >= 0 && (fchmod(fd, 0600) != 0 || bind(fd, (const struct sockaddr *)address, (socklen_t)bytes) != 0 ||
	                listen(fd, LISTEN_BACKLOG) != 0)) {
		int cause = errno;

		close(fd);
		errno = cause;
		return -1;
	}
	return fd;
}

/* Takes the descriptor. */
static enum esp_status watch_port(struct http_server *server, unsigned which, int fd, struct error *err)
{
	enum esp_status status = loop_add(server->loop, &server->ports[which].watched, fd, EPOLLIN, err);

	if (status != ESP_OK)
		close(fd);
	return status;
}

enum esp_status http_server_listen_name(struct http_server *server, const char *name, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(name);

	if (length + 1 > sizeof(address.sun_path))
		return error_set(err, ESP_ELIMIT, "%.100s is too long for the name of a socket", name);
	memcpy(address.sun_path + 1, name, length);
	int fd = open_socket(&address, offsetof(struct sockaddr_un, sun_path) + 1 + length);
	if (fd < 0)
		return error_set(err, ESP_EIO, "%s", strerror(errno));
	return watch_port(server, AT_NAME, fd, err);
}

/* A killed process leaves a socket behind at which no process listens. */
static bool is_abandoned(const struct sockaddr_un *address)
{
	struct stat file;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool refused =
		fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 && errno == ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return refused && lstat(address->sun_path, &file) == 0 && S_ISSOCK(file.st_mode);
}

enum esp_status http_server_listen_path(struct http_server *server, const char *path, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path))
		return error_set(err, ESP_ELIMIT, "%.100s is too long for a socket, which has %zu characters at most", path,
		                 sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, path, strlen(path));
	if (is_abandoned(&address))
		(void)unlink(path);
	int fd = open_socket(&address, sizeof(address));
	if (fd < 0)
		return error_set(err, errno == EADDRINUSE ? ESP_ESTATE : ESP_EIO, "cannot listen at %.150s: %s", path,
		                 strerror(errno));
	enum esp_status status = watch_port(server, AT_PATH, fd, err);
	if (status == ESP_OK)
		memcpy(server->path, path, strlen(path) + 1);
	else
		(void)unlink(path);
	return status;
}

void http_server_close(struct http_server *server)
{
	if (!server)
		return;
	for (unsigned i = 0; i < CLIENTS; i++) {
		if (server->clients[i].watched.fd >= 0)
			close_client(&server->clients[i]);
	}
	loop_cancel(server->loop, &server->timer);
	for (unsigned i = 0; i < SOCKETS; i++) {
		int fd = server->ports[i].watched.fd;

		loop_remove(server->loop, &server->ports[i].watched);
		if (fd >= 0)
			close(fd);
	}
	if (server->path[0])
		(void)unlink(server->path);
	free(server);
}
