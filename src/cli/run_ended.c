#include "cli/run_ended.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/ended_msg.h"

void run_ended_open(struct run_ended *ended)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX}; /* the name begins with a NUL: no file */
	uint64_t number = 0;
	*ended = (struct run_ended){.fd = -1};
	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return;
	int length = snprintf(ended->name, sizeof(ended->name), "espalier-run-%ld-%016" PRIx64, (long)getpid(), number);
	memcpy(address.sun_path + 1, ended->name, (size_t)length);
	socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	ended->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (ended->fd >= 0 && (bind(ended->fd, (struct sockaddr *)&address, bytes) != 0 || listen(ended->fd, SOMAXCONN) != 0))
		run_ended_close(ended);
}

static bool is_ours(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

/* Only what nothing is left of: a script may have ended before the program that it has started. */
static size_t write_answer(const struct run_child *children, uint32_t count, uint8_t out[ENDED_MAX * ENDED_BYTES])
{
	size_t used = 0;
	for (uint32_t rank = 0; rank < count && used < ENDED_MAX * ENDED_BYTES; rank++) {
		if (children[rank].state != RUN_CHILD_GONE)
			continue;
		ended_encode(&(struct ended){rank, run_child_exit_status(&children[rank])}, out + used);
		used += ENDED_BYTES;
	}
	return used;
}

void run_ended_answer(const struct run_ended *ended, const struct run_child *children, uint32_t count)
{
	uint8_t answer[ENDED_MAX * ENDED_BYTES];
	size_t bytes = write_answer(children, count, answer);
	int fd;
	while ((fd = accept4(ended->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		if (is_ours(fd))
			(void)!send(fd, answer, bytes, MSG_NOSIGNAL); /* whoever has asked may be gone */
		close(fd);
	}
}

void run_ended_close(struct run_ended *ended)
{
	if (ended->fd >= 0)
		close(ended->fd);
	ended->fd = -1;
}
