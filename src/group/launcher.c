#include "group/launcher.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void launcher_init(struct launcher *launcher, const char *name, uint64_t now_ns)
{
	*launcher = (struct launcher){.name = name, .fd = -1, .next_ns = name[0] ? now_ns : UINT64_MAX};
}

/* Somebody else may have taken the name after the launcher has gone. */
static bool is_trusted(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

static int ask(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX}; /* the name begins with a NUL: no file */
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

static uint32_t read_answer(int fd, struct ended out[ENDED_MAX])
{
	uint8_t bytes[ENDED_MAX * ENDED_BYTES];
	ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
	uint32_t count = got > 0 ? (uint32_t)got / ENDED_BYTES : 0;
	for (uint32_t i = 0; i < count; i++)
		out[i] = ended_decode(bytes + i * ENDED_BYTES);
	return count;
}

uint32_t launcher_turn(struct launcher *launcher, uint64_t now_ns, struct ended out[ENDED_MAX])
{
	uint32_t count = 0;
	if (now_ns < launcher->next_ns)
		return 0;
	if (launcher->fd >= 0) {
		count = read_answer(launcher->fd, out);
		close(launcher->fd);
	}
	launcher->fd = ask(launcher->name);
	launcher->next_ns = now_ns + LAUNCHER_PAUSE_NS;
	return count;
}

void launcher_fini(struct launcher *launcher)
{
	if (launcher->fd >= 0)
		close(launcher->fd);
	launcher->fd = -1;
}
