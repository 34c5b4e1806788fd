#include "tools/launcher/launcher_blame.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "wire/blame_msg.h"

void launcher_blame_open(struct run_blame *blame, const char *name, uint32_t size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX}; /* abstract: the name begins with a NUL */
	const int yes = 1;
	*blame = (struct run_blame){.fd = -1, .size = size, .first = RUN_BLAME_NONE};
	if (!name[0])
		return;
	int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s" BLAME_SUFFIX, name);
	socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	blame->accused = malloc(size * sizeof(*blame->accused));
	blame->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (!blame->accused || blame->fd < 0 || setsockopt(blame->fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) != 0 ||
	    bind(blame->fd, (struct sockaddr *)&address, bytes) != 0) {
		launcher_blame_close(blame);
		return;
	}
	for (uint32_t rank = 0; rank < size; rank++)
		blame->accused[rank] = RUN_BLAME_NONE;
}

static bool is_ours(const struct msghdr *message)
{
	struct ucred sender;
	for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR((struct msghdr *)message, part)) {
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS ||
		    part->cmsg_len != CMSG_LEN(sizeof(sender)))
			continue;
		memcpy(&sender, CMSG_DATA(part), sizeof(sender));
		return sender.uid == geteuid() || sender.uid == 0;
	}
	return false;
}

static void note_blame(struct run_blame *blame, uint32_t accuser, uint32_t accused)
{
	blame->accused[accuser] = accused;
	if (blame->first == RUN_BLAME_NONE)
		blame->first = accuser;
}

int launcher_blame_read(struct run_blame *blame)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
	} control;
	uint8_t data[BLAME_BYTES];
	struct iovec place = {data, sizeof(data)};
	int taken = 0;
	for (; blame->fd >= 0 && taken < RUN_BLAME_EACH; taken++) {
		struct msghdr message = {
			.msg_iov = &place, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
		uint32_t accuser, accused;
		/* MSG_TRUNC: the datagram's length, not the part that fits */
		ssize_t got = recvmsg(blame->fd, &message, MSG_TRUNC | MSG_CMSG_CLOEXEC);
		if (got < 0)
			break;
		if (is_ours(&message) && blame_decode(data, (size_t)got, blame->size, &accuser, &accused))
			note_blame(blame, accuser, accused);
	}
	return taken;
}

bool launcher_blame_has_named(const struct run_blame *blame, uint32_t rank)
{
	for (uint32_t accuser = 0; blame->accused && accuser < blame->size; accuser++)
		if (blame->accused[accuser] == rank)
			return true;
	return false;
}

/* False if espalier run has told the rank to end, and if the job went on without it. */
static bool has_failed_itself(const struct run_child *child)
{
	bool has_ended = child->state == RUN_CHILD_LEFT || child->state == RUN_CHILD_GONE;
	return has_ended && launcher_child_failed(child) && !child->was_told && !child->was_lost;
}

/* The last rank of the chain of blame from this one, perhaps itself; RUN_BLAME_NONE: the chain is a cycle. */
static uint32_t follow_chain(const struct run_blame *blame, const struct run_child *children, uint32_t rank)
{
	for (uint32_t steps = 0; steps < blame->size; steps++) {
		uint32_t next = blame->accused[rank];
		if (next == RUN_BLAME_NONE || !has_failed_itself(&children[next]))
			return rank;
		rank = next;
	}
	return RUN_BLAME_NONE;
}

/* If the report of `failed` was lost because the socket was full, the chain begins at the first report. */
uint32_t launcher_blame_follow(const struct run_blame *blame, const struct run_child *children, uint32_t failed)
{
	uint32_t from = failed;
	if (blame->first == RUN_BLAME_NONE)
		return failed;
	if (blame->accused[failed] == RUN_BLAME_NONE && !launcher_blame_has_named(blame, failed))
		from = blame->first;
	uint32_t end = follow_chain(blame, children, from);
	return end == RUN_BLAME_NONE || end == from ? failed : end;
}

void launcher_blame_close(struct run_blame *blame)
{
	if (blame->fd >= 0)
		close(blame->fd);
	free(blame->accused);
	*blame = (struct run_blame){.fd = -1, .first = RUN_BLAME_NONE};
}
