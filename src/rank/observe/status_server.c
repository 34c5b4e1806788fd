#include "rank/observe/status_server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/observe/status_request.h"
#include "node/observe/tally.h"
#include "rank/comm/call_record.h"
#include "rank/observe/join_status.h"
#include "rank/observe/recorder.h"
#include "rank/rank_account.h"
#include "rank/rank_log.h"

#define CLIENTS 8u
#define PATIENCE (5 * NS_PER_S)         /* with one client */
#define LANES_PATIENCE (50 * NS_PER_MS) /* until lanes must have reported their waits */
#define RECENT_CALLS 16u
#define LISTEN_BACKLOG 64

enum { AT_NAME, AT_PATH, SOCKETS };

struct client {
	int fd; /* -1: none */
	uint64_t until_ns;
	char in[REQUEST_BYTES];
	size_t in_bytes;
	char *out;
	size_t out_bytes, out_at;
};

struct status_server {
	struct rank *context;
	int epoll_fd, timer_fd;
	int listen_fds[SOCKETS];
	char path[RANK_PATH]; /* of the socket AT_PATH; "": none */
	struct client clients[CLIENTS];
};

const char *status_server_name(uint32_t user, uint64_t instance, uint32_t rank, char name[STATUS_SERVER_NAME])
{
	snprintf(name, STATUS_SERVER_NAME, STATUS_SERVER_PREFIX "%016" PRIx64 "/%u", user, instance, rank);
	return name;
}

/* ---- answers ---- */

static enum esp_status write_metrics(struct rank *context, FILE *out)
{
	struct account_wishes wishes = {.patience_ns = 0};
	struct account account;
	struct metrics metrics;
	struct tally *tally = malloc(sizeof(*tally));
	enum esp_status status = tally ? rank_account(context, &wishes, &account) : ESP_ENOMEM;

	if (status == ESP_OK) {
		call_record_copy(context, NULL, tally);
		rank_metrics(context, &account, LANES_PATIENCE, &metrics);
		metrics.version = ESPALIER_VERSION;
		metrics.tally = tally;
		status = metrics_write(&metrics, out);
		account_fini(&account);
	}
	free(tally);
	return status;
}

static enum esp_status write_account(struct rank *context, uint32_t ended, FILE *out)
{
	struct account_wishes wishes = {.ended = ended, .patience_ns = LANES_PATIENCE};
	struct account account;
	enum esp_status status = ESP_OK;

	if (context->mod.join_status)
		join_status_account(context, &account);
	else
		status = rank_account(context, &wishes, &account);
	if (status == ESP_OK) {
		status = account_write(&account, out);
		account_fini(&account);
	}
	return status;
}

/* Writes the body; returns the HTTP status, and the body's type. */
static const char *write_body(struct rank *context, enum request_verdict verdict, const char *path, FILE *out,
                              const char **out_type)
{
	enum esp_status status = ESP_OK;

	*out_type = "text/plain; charset=utf-8";
	if (verdict == REQUEST_BAD)
		return "400 Bad Request";
	if (verdict == REQUEST_OTHER)
		return "405 Method Not Allowed";
	if (strcmp(path, "/metrics") == 0 && context->mod.join_status)
		return "503 Service Unavailable"; /* there are no statistics before the rank has joined */
	if (strcmp(path, "/metrics") == 0) {
		*out_type = "text/plain; version=0.0.4; charset=utf-8";
		status = write_metrics(context, out);
	} else if (strcmp(path, "/status") == 0 || strcmp(path, "/account") == 0) {
		*out_type = "application/json";
		status = write_account(context, strcmp(path, "/account") == 0 ? RING_RECORDS : RECENT_CALLS, out);
	} else if (strcmp(path, "/") == 0) {
		fputs("/metrics /status /account\n", out);
	} else {
		return "404 Not Found";
	}
	return status == ESP_OK ? "200 OK" : "500 Internal Server Error";
}

/* Prepares the answer, head and body. False: no memory. */
static bool answer(struct status_server *server, struct client *client, enum request_verdict verdict, const char *path)
{
	char *body = NULL;
	const char *type;
	size_t bytes = 0;
	FILE *out = open_memstream(&body, &bytes);

	if (!out)
		return false;
	const char *status = write_body(server->context, verdict, path, out, &type);
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

static void close_client(struct client *client)
{
	close(client->fd); /* which removes it from the epoll set */
	free(client->out);
	*client = (struct client){.fd = -1};
}

static void watch(struct status_server *server, struct client *client, int how, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = client};

	(void)epoll_ctl(server->epoll_fd, how, client->fd, &event);
}

/* Sets the timer to the first deadline of a client. */
static void set_timer(struct status_server *server)
{
	uint64_t first = 0;

	for (unsigned i = 0; i < CLIENTS; i++) {
		const struct client *client = &server->clients[i];

		if (client->fd >= 0 && (first == 0 || client->until_ns < first))
			first = client->until_ns;
	}
	struct itimerspec at = {.it_value = {(time_t)(first / NS_PER_S), (long)(first % NS_PER_S)}};
	(void)timerfd_settime(server->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* The process at the other end is this user's, or root's. */
static bool may_ask(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

static void accept_client(struct status_server *server, int listen_fd)
{
	struct client *client = server->clients, *oldest = server->clients;
	int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (!may_ask(fd)) {
		close(fd);
		return;
	}
	for (unsigned i = 0; i < CLIENTS && client->fd >= 0; i++) {
		client = &server->clients[i];
		oldest = client->until_ns < oldest->until_ns ? client : oldest;
	}
	if (client->fd >= 0) { /* all are taken: the oldest one is closed */
		client = oldest;
		close_client(client);
	}
	*client = (struct client){.fd = fd, .until_ns = clock_now_ns() + PATIENCE};
	watch(server, client, EPOLL_CTL_ADD, EPOLLIN);
	set_timer(server);
}

static void send_answer(struct status_server *server, struct client *client)
{
	while (client->out_at < client->out_bytes) {
		ssize_t sent = send(client->fd, client->out + client->out_at, client->out_bytes - client->out_at,
		                    MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN) {
			watch(server, client, EPOLL_CTL_MOD, EPOLLOUT);
			return;
		}
		if (sent < 0)
			break;
		client->out_at += (size_t)sent;
	}
	close_client(client);
}

static void read_request(struct status_server *server, struct client *client)
{
	char path[REQUEST_PATH] = "";
	ssize_t got = recv(client->fd, client->in + client->in_bytes, sizeof(client->in) - client->in_bytes, MSG_DONTWAIT);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		close_client(client);
		return;
	}
	client->in_bytes += (size_t)got;
	enum request_verdict verdict = request_parse(client->in, client->in_bytes, path);
	if (verdict == REQUEST_UNFINISHED)
		return;
	if (answer(server, client, verdict, path))
		send_answer(server, client);
	else
		close_client(client);
}

static void close_late_clients(struct status_server *server)
{
	uint64_t now = clock_now_ns(), drained;
	ssize_t got = read(server->timer_fd, &drained, sizeof(drained));

	(void)got;
	for (unsigned i = 0; i < CLIENTS; i++) {
		if (server->clients[i].fd >= 0 && server->clients[i].until_ns <= now)
			close_client(&server->clients[i]);
	}
	set_timer(server);
}

void status_server_turn(struct status_server *server)
{
	struct epoll_event event; /* one at a time: handling one may close the client that the next one names */

	if (epoll_wait(server->epoll_fd, &event, 1, 0) != 1)
		return;
	if (event.data.ptr == &server->timer_fd) {
		close_late_clients(server);
	} else if (event.data.ptr == &server->listen_fds[AT_NAME] || event.data.ptr == &server->listen_fds[AT_PATH]) {
		accept_client(server, *(int *)event.data.ptr);
	} else {
		struct client *client = event.data.ptr;

		if (client->out)
			send_answer(server, client);
		else
			read_request(server, client);
	}
}

/* ---- life ---- */

static int listen_on(const struct sockaddr_un *address, size_t bytes)
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

static int listen_on_name(const struct rank *context)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char name[STATUS_SERVER_NAME];
	size_t length = strlen(status_server_name((uint32_t)geteuid(), context->instance, context->rank, name));

	memcpy(address.sun_path + 1, name, length);
	return listen_on(&address, offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

/* A killed rank leaves a socket behind at which no process listens. */
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

static int listen_on_path(struct status_server *server, struct error *err)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (rank_path(server->context, server->context->conf.metrics, server->path, err) != ESP_OK)
		return -1;
	if (strlen(server->path) >= sizeof(address.sun_path)) {
		error_set(err, ESP_ELIMIT, "%.100s is too long for a socket, which has %zu characters at most", server->path,
		          sizeof(address.sun_path) - 1);
		return -1;
	}
	memcpy(address.sun_path, server->path, strlen(server->path));
	if (is_abandoned(&address))
		(void)unlink(server->path);
	int fd = listen_on(&address, sizeof(address));
	if (fd < 0 && errno == EADDRINUSE)
		error_set(err, ESP_EIO,
		          "cannot listen at %.130s: another rank does; put %%r into ESP_METRICS, so that each has a socket of "
		          "its own",
		          server->path);
	else if (fd < 0)
		error_set(err, ESP_EIO, "cannot listen at %.150s: %s", server->path, strerror(errno));
	return fd;
}

static bool watch_own(struct status_server *server, int *fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = fd};

	return *fd < 0 || epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, *fd, &event) == 0;
}

static void open_sockets(struct status_server *server)
{
	struct rank *context = server->context;
	struct error err;

	if (context->conf.status) {
		server->listen_fds[AT_NAME] = listen_on_name(context);
		/* While joining it is no warning: two processes that claim to be one rank have one name, and are told later. */
		if (server->listen_fds[AT_NAME] < 0 && !context->mod.join_status)
			log_write(&context->log, LOG_LEVEL_WARN, LOG_WATCH, "espalier status will not find this rank: %s",
			          strerror(errno));
	}
	if (context->conf.metrics[0] && !context->mod.join_status) {
		server->listen_fds[AT_PATH] = listen_on_path(server, &err);
		if (server->listen_fds[AT_PATH] < 0) {
			server->path[0] = '\0';
			log_write(&context->log, LOG_LEVEL_WARN, LOG_WATCH, "metrics: %s", err.text);
		}
	}
}

struct status_server *status_server_open(struct rank *context)
{
	if (!context->conf.status && !context->conf.metrics[0])
		return NULL;
	struct status_server *server = calloc(1, sizeof(*server));
	if (!server)
		return NULL;
	server->context = context;
	for (unsigned i = 0; i < CLIENTS; i++)
		server->clients[i].fd = -1;
	server->listen_fds[AT_NAME] = server->listen_fds[AT_PATH] = -1;
	server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	server->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (server->epoll_fd >= 0 && server->timer_fd >= 0)
		open_sockets(server);
	bool is_open = server->listen_fds[AT_NAME] >= 0 || server->listen_fds[AT_PATH] >= 0;
	if (!is_open || !watch_own(server, &server->timer_fd) || !watch_own(server, &server->listen_fds[AT_NAME]) ||
	    !watch_own(server, &server->listen_fds[AT_PATH])) {
		status_server_close(server);
		return NULL;
	}
	return server;
}

void status_server_close(struct status_server *server)
{
	if (!server)
		return;
	for (unsigned i = 0; i < CLIENTS; i++) {
		if (server->clients[i].fd >= 0)
			close_client(&server->clients[i]);
	}
	int fds[] = {server->listen_fds[AT_NAME], server->listen_fds[AT_PATH], server->epoll_fd, server->timer_fd};
	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	if (server->path[0])
		(void)unlink(server->path);
	free(server);
}

int status_server_descriptor(const struct status_server *server)
{
	return server ? server->epoll_fd : -1;
}
