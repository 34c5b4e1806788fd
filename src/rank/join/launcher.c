#include "rank/join/launcher.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/blame_msg.h"

void launcher_init(struct launcher *launcher, const char *name, uint64_t now_ns)
{
	*launcher = (struct launcher){.name = name, .fd = -1, .next_ns = name[0] ? now_ns : UINT64_MAX};
}

/* Another user's process may have taken the name after the launcher has ended. */
static bool is_trusted(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

static int connect_launcher(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX}; /* abstract: the name begins with a NUL */
	size_t length = strlen(name);
	if (length >= sizeof(address.sun_path))
		return -1;
	memcpy(address.sun_path + 1, name, length);
	socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&address, bytes) == 0 && is_trusted(fd))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* An answer may arrive in parts. The next answer repeats the part that is missing. */
static uint32_t read_answer(int fd, uint8_t *out, size_t bytes)
{
	size_t used = 0;
	ssize_t got;
	do {
		got = recv(fd, out + used, bytes - used, 0);
		used += got > 0 ? (size_t)got : 0;
	} while (used < bytes && (got > 0 || (got < 0 && errno == EINTR)));
	return (uint32_t)(used / ENDED_BYTES);
}

uint32_t launcher_turn(struct launcher *launcher, uint64_t now_ns, uint8_t *out, uint32_t size)
{
	uint32_t count = 0;
	if (now_ns < launcher->next_ns)
		return 0;
	if (launcher->fd >= 0) {
		count = read_answer(launcher->fd, out, (size_t)size * ENDED_BYTES);
		close(launcher->fd);
	}
	launcher->fd = connect_launcher(launcher->name);
	launcher->next_ns = now_ns + LAUNCHER_PAUSE_NS;
	return count;
}

void launcher_fini(struct launcher *launcher)
{
	if (launcher->fd >= 0)
		close(launcher->fd);
	launcher->fd = -1;
}

void launcher_blame(const char *name, uint32_t accuser, uint32_t accused)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	uint8_t message[BLAME_BYTES];
	size_t length = strlen(name) + strlen(BLAME_SUFFIX);
	if (!name[0] || length >= sizeof(address.sun_path) - 1)
		return;
	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s" BLAME_SUFFIX, name);
	socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	blame_encode(accuser, accused, message);
	(void)!sendto(fd, message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&address, bytes);
	close(fd);
}
