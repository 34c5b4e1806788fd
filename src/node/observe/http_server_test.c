/*
 * http_server_test.c - requests to a status server over its sockets, with a clock of the test's own.
 */
#include "node/observe/http_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"

#define CLIENTS_MOST 8

static uint64_t now_ns = 1;

static uint64_t tell_now(void *unused)
{
	(void)unused;
	return now_ns;
}

static const struct loop_clock test_clock = {tell_now, NULL};

static const char *answer(void *context, const char *path, FILE *out, const char **out_type)
{
	size_t *bytes = context;

	if (strcmp(path, "/long") == 0) {
		for (size_t i = 0; i < *bytes; i++)
			fputc('a' + (int)(i % 26), out);
		*out_type = "application/json";
		return "200 OK";
	}
	return "404 Not Found";
}

static int dial(const struct sockaddr_un *address, size_t bytes)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	if (connect(fd, (const struct sockaddr *)address, (socklen_t)bytes) == 0)
		return fd;
	close(fd);
	return -1;
}

static int dial_path(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, path, strlen(path));
	return dial(&address, sizeof(address));
}

static int dial_name(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path + 1, name, strlen(name));
	return dial(&address, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

static void turns(struct loop *loop, unsigned count)
{
	while (count-- > 0)
		loop_turn(loop, 0);
}

/* All that comes until the server closes. Owned by the caller. */
static char *read_all(struct loop *loop, int fd, size_t *out_bytes)
{
	size_t room = 4096, bytes = 0;
	char *text = malloc(room);

	for (;;) {
		ssize_t got = recv(fd, text + bytes, room - bytes - 1, 0);

		if (got < 0) {
			CHECK(errno == EAGAIN);
			loop_turn(loop, 0);
			continue;
		}
		if (got == 0)
			break;
		bytes += (size_t)got;
		if (room - bytes < 2)
			text = realloc(text, room *= 2);
		CHECK(text != NULL);
	}
	text[bytes] = '\0';
	*out_bytes = bytes;
	close(fd);
	return text;
}

static void expect_answer(struct loop *loop, int fd, const char *request, const char *status, size_t body)
{
	size_t bytes;

	CHECK(fd >= 0);
	/* In two parts: the server waits for the rest. */
	CHECK(send(fd, request, 3, 0) == 3);
	turns(loop, 3);
	CHECK(send(fd, request + 3, strlen(request) - 3, 0) == (ssize_t)(strlen(request) - 3));
	char *text = read_all(loop, fd, &bytes);
	CHECK_MSG(strncmp(text, "HTTP/1.0 ", 9) == 0 && strncmp(text + 9, status, strlen(status)) == 0, "%.60s", text);
	const char *end = strstr(text, "\r\n\r\n");
	CHECK(end != NULL);
	CHECK_U64(bytes - (size_t)(end + 4 - text), body);
	free(text);
}

static void test_requests(struct loop *loop, int (*dial_one)(const char *), const char *place, size_t *size)
{
	*size = 20;
	expect_answer(loop, dial_one(place), "GET /long HTTP/1.0\r\n\r\n", "200 OK", 20);
	*size = 3u << 20; /* more than a socket holds */
	expect_answer(loop, dial_one(place), "GET /long HTTP/1.0\r\n\r\n", "200 OK", *size);
	expect_answer(loop, dial_one(place), "GET /other HTTP/1.0\r\n\r\n", "404 Not Found", 0);
	expect_answer(loop, dial_one(place), "POST /long HTTP/1.0\r\n\r\n", "405 Method", 0);
	expect_answer(loop, dial_one(place), "\001\002\003\004\r\n\r\n", "400 Bad", 0);
}

static bool is_closed(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) == 0;
}

/* A client that asks nothing is closed after a while; the ninth takes the place of the oldest. */
static void test_silent_clients(struct loop *loop, const char *name)
{
	int fds[CLIENTS_MOST + 1];

	for (unsigned i = 0; i < CLIENTS_MOST; i++) {
		fds[i] = dial_name(name);
		turns(loop, 2);
		now_ns += NS_PER_MS;
	}
	for (unsigned i = 0; i < CLIENTS_MOST; i++)
		CHECK(!is_closed(fds[i]));
	fds[CLIENTS_MOST] = dial_name(name);
	turns(loop, 2);
	CHECK(is_closed(fds[0]));
	for (unsigned i = 1; i <= CLIENTS_MOST; i++)
		CHECK(!is_closed(fds[i]));
	now_ns += 6 * NS_PER_S;
	turns(loop, 2);
	for (unsigned i = 1; i <= CLIENTS_MOST; i++)
		CHECK(is_closed(fds[i]));
	for (unsigned i = 0; i <= CLIENTS_MOST; i++)
		close(fds[i]);
}

int main(void)
{
	char folder[] = "/tmp/http_server_test.XXXXXX", path[64], name[64], longer[200];
	struct http_server *server, *other;
	struct loop loop;
	struct stat file;
	struct error err;
	size_t size = 0;

	CHECK(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/socket", folder);
	snprintf(name, sizeof(name), "espalier/test/%d", (int)getpid());
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	CHECK(loop_init(&loop, &test_clock, &err) == ESP_OK);
	CHECK(http_server_open(&loop, answer, &size, &server, &err) == ESP_OK);
	CHECK(http_server_listen_path(server, longer, &err) == ESP_ELIMIT);
	CHECK(http_server_listen_name(server, longer, &err) == ESP_ELIMIT);
	CHECK(http_server_listen_path(server, path, &err) == ESP_OK);
	CHECK(http_server_listen_name(server, name, &err) == ESP_OK);
	CHECK(stat(path, &file) == 0 && (file.st_mode & 0777) == 0600);
	CHECK(http_server_open(&loop, answer, &size, &other, &err) == ESP_OK);
	CHECK(http_server_listen_path(other, path, &err) == ESP_ESTATE);
	CHECK(http_server_listen_name(other, name, &err) == ESP_EIO);
	test_requests(&loop, dial_path, path, &size);
	test_requests(&loop, dial_name, name, &size);
	test_silent_clients(&loop, name);
	http_server_close(server);
	CHECK(stat(path, &file) != 0);

	/* A socket that a killed process has left is replaced. */
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int left = socket(AF_UNIX, SOCK_STREAM, 0);
	memcpy(address.sun_path, path, strlen(path));
	CHECK(left >= 0 && bind(left, (struct sockaddr *)&address, sizeof(address)) == 0);
	close(left);
	CHECK_MSG(http_server_listen_path(other, path, &err) == ESP_OK, "%s", err.text);
	test_requests(&loop, dial_path, path, &size);
	http_server_close(other);
	http_server_close(NULL);
	loop_fini(&loop);
	CHECK(rmdir(folder) == 0);
	return 0;
}
