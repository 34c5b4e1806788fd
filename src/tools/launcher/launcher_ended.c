#include "tools/launcher/launcher_ended.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/ended_msg.h"

void launcher_ended_open(struct run_ended *ended, uint32_t size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX}; /* abstract: the name begins with a NUL */
	uint64_t number = 0;
	*ended = (struct run_ended){.fd = -1};
	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return;
	ended->answer = malloc((size_t)size * ENDED_BYTES);
	int length = snprintf(ended->name, sizeof(ended->name), "espalier-run-%ld-%016" PRIx64, (long)getpid(), number);
	memcpy(address.sun_path + 1, ended->name, (size_t)length);
	socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	ended->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (!ended->answer || ended->fd < 0 || bind(ended->fd, (struct sockaddr *)&address, bytes) != 0 ||
	    listen(ended->fd, SOMAXCONN) != 0)
		launcher_ended_close(ended);
}

static bool is_ours(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

/* Ranks count as ended when no process of them is left: a script may end before the program that it has started. */
static void write_answer(const struct run_child *children, uint32_t count, uint8_t *out)
{
	for (uint32_t rank = 0; rank < count; rank++) {
		const struct run_child *child = &children[rank];
		ended_put(out, rank, child->state == RUN_CHILD_GONE ? launcher_child_exit_status(child) : ENDED_NOT);
	}
}

void launcher_ended_answer(struct run_ended *ended, const struct run_child *children, uint32_t count, uint32_t settled)
{
	write_answer(children, count, ended->answer);
	for (; count < settled; count++)
		ended_put(ended->answer, count, RUN_ENDED_NEVER);
	for (int i = 0; i < RUN_ENDED_ANSWERS; i++) {
		int fd = accept4(ended->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		if (is_ours(fd)) /* the asking rank may be gone */
			(void)!send(fd, ended->answer, (size_t)count * ENDED_BYTES, MSG_NOSIGNAL);
		close(fd);
	}
}

void launcher_ended_close(struct run_ended *ended)
{
	if (ended->fd >= 0)
		close(ended->fd);
	free(ended->answer);
	*ended = (struct run_ended){.fd = -1};
}
