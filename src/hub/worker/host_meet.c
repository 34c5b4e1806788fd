#include "hub/worker/host_meet.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

#define MAGIC UINT64_C(0x74656d6562756831)
#define GREETING_PATIENCE (1 * NS_PER_S) /* of a process of the same user that connects and says nothing */

/* A worker's first message. */
struct greeting {
	uint64_t magic, session;
	uint32_t worker, pid;
};

/* In the abstract namespace: it needs no file, and ends with its socket. */
static socklen_t make_name(uint64_t number, struct sockaddr_un *out)
{
	*out = (struct sockaddr_un){.sun_family = AF_UNIX};
	int length = snprintf(out->sun_path + 1, sizeof(out->sun_path) - 1, "espalier/hub-host/%016" PRIx64, number);

	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

enum esp_status host_meet_open(struct host_meet *meet, struct error *err)
{
	struct sockaddr_un name;

	randombytes_buf(&meet->number, sizeof(meet->number));
	socklen_t length = make_name(meet->number, &name);
	meet->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (meet->fd >= 0 && bind(meet->fd, (struct sockaddr *)&name, length) == 0 &&
	    listen(meet->fd, HOST_MEMBERS_MOST) == 0)
		return ESP_OK;
	enum esp_status status =
		error_set(err, ESP_ELIMIT, "no socket for other workers of this host: %s", strerror(errno));
	host_meet_close(meet);
	return status;
}

void host_meet_close(struct host_meet *meet)
{
	if (meet->fd >= 0)
		close(meet->fd);
	meet->fd = -1;
}

/* ---- waiting, with an eye on the hub ---- */

/* A hub has nothing to say but that the session has ended. */
static enum esp_status listen_to_hub(struct msg_socket *hub, struct error *err)
{
	struct hub_msg msg;
	struct error why;
	enum esp_status status = msg_socket_take(hub, HUB_MSG_OK, 0, &msg, &why);

	if (status == ESP_PENDING)
		return ESP_OK; /* it was a PING */
	*err = why;
	return status == ESP_OK
	           ? error_set(err, ESP_ECORRUPT, "the hub at %.100s sent a message that does not belong here", hub->hub)
	           : status;
}

static enum esp_status listen_to_hubs(const struct host_meeting *meeting, struct error *err)
{
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; status == ESP_OK && i < meeting->hub_count; i++)
		status = listen_to_hub(&meeting->hubs[i], err);
	return status;
}

/* ESP_ETIMEOUT without a text. */
static enum esp_status await(const struct host_meeting *meeting, int fd, short events, uint64_t until_ns,
                             struct error *err)
{
	struct pollfd fds[LAYOUT_HUBS_MOST + 1];

	for (;;) {
		uint64_t now = clock_now_ns();

		if (now >= until_ns)
			return ESP_ETIMEOUT;
		uint64_t left = (until_ns - now) / NS_PER_MS + 1;
		fds[0] = (struct pollfd){.fd = fd, .events = events};
		for (uint32_t i = 0; i < meeting->hub_count; i++)
			fds[i + 1] = (struct pollfd){.fd = meeting->hubs[i].fd, .events = POLLIN};
		int ready = poll(fds, meeting->hub_count + 1, left < 1000 ? (int)left : 1000);
		if (ready <= 0)
			continue;
		enum esp_status status = listen_to_hubs(meeting, err);
		if (status != ESP_OK)
			return status;
		if (fds[0].revents)
			return ESP_OK;
	}
}

static enum esp_status too_late(struct error *err, uint32_t worker)
{
	return error_set(err, ESP_ETIMEOUT, "worker %u of this host has not come to share memory in time", worker);
}

static bool is_own_user(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

/* ---- the lowest ---- */

/* False: a stranger. */
static bool read_greeting(const struct host_meeting *meeting, int fd, struct greeting *out)
{
	uint64_t until = clock_now_ns() + GREETING_PATIENCE;
	struct error ignored;

	if (!is_own_user(fd) || await(meeting, fd, POLLIN, until, &ignored) != ESP_OK)
		return false;
	return recv(fd, out, sizeof(*out), MSG_DONTWAIT) == (ssize_t)sizeof(*out) && out->magic == MAGIC &&
	       out->session == meeting->session;
}

/* Takes fd. True: a worker that was awaited. */
static bool admit(const struct host_meeting *meeting, int fd, struct host_member *member, uint32_t members,
                  int *sockets)
{
	struct greeting greeting;
	bool is_known = read_greeting(meeting, fd, &greeting);

	for (uint32_t i = 1; is_known && i < members; i++) {
		if (member[i].worker == greeting.worker && sockets[i] < 0) {
			member[i].pid = greeting.pid;
			sockets[i] = fd;
			return true;
		}
	}
	close(fd);
	return false;
}

static uint32_t first_absent(const struct host_member *member, uint32_t members, const int *sockets)
{
	uint32_t i = 1;

	while (i + 1 < members && sockets[i] >= 0)
		i++;
	return member[i].worker;
}

enum esp_status host_meet_gather(const struct host_meet *meet, const struct host_meeting *meeting,
                                 struct host_member *member, uint32_t members, int *out_sockets, struct error *err)
{
	enum esp_status status = ESP_OK;
	uint32_t there = 1;

	for (uint32_t i = 0; i < members; i++)
		out_sockets[i] = -1;
	while (there < members && status == ESP_OK) {
		status = await(meeting, meet->fd, POLLIN, meeting->until_ns, err);
		int fd = status == ESP_OK ? accept4(meet->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;

		there += fd >= 0 && admit(meeting, fd, member, members, out_sockets);
	}
	if (status == ESP_OK)
		return ESP_OK;
	if (status == ESP_ETIMEOUT)
		too_late(err, first_absent(member, members, out_sockets));
	for (uint32_t i = 1; i < members; i++) {
		if (out_sockets[i] >= 0)
			close(out_sockets[i]);
	}
	return status;
}

static bool send_fd(int socket, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
	char byte = 'M';
	struct iovec iov = {&byte, 1};
	const struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room)};

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(int));
	return sendmsg(socket, &msg, MSG_NOSIGNAL) == 1;
}

enum esp_status host_meet_hand_over(const struct host_meeting *meeting, const int *sockets, uint32_t members,
                                    int memory, struct error *err)
{
	for (uint32_t i = 1; i < members; i++) {
		enum esp_status status = listen_to_hubs(meeting, err);

		if (status != ESP_OK)
			return status;
		if (!send_fd(sockets[i], memory)) /* the first bytes on the socket: there is room for them */
			return error_set(err, ESP_EPEER,
			                 "a worker of this host is gone before it shared memory: %s", strerror(errno));
	}
	return ESP_OK;
}

/* ---- the others ---- */

static enum esp_status receive_fd(int socket, int *out)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	char byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room)};
	ssize_t got = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	const struct cmsghdr *head = got == 1 ? CMSG_FIRSTHDR(&msg) : NULL;

	if (!head || byte != 'M' || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS ||
	    head->cmsg_len != CMSG_LEN(sizeof(int)))
		return ESP_EPEER;
	memcpy(out, CMSG_DATA(head), sizeof(int));
	return ESP_OK;
}

static enum esp_status greet(const struct host_meeting *meeting, uint64_t number, int fd)
{
	const struct greeting greeting = {MAGIC, meeting->session, meeting->worker, (uint32_t)getpid()};
	struct sockaddr_un name;
	socklen_t length = make_name(number, &name);

	if (connect(fd, (struct sockaddr *)&name, length) != 0 || !is_own_user(fd) ||
	    send(fd, &greeting, sizeof(greeting), MSG_NOSIGNAL) != (ssize_t)sizeof(greeting))
		return ESP_EPEER;
	return ESP_OK;
}

enum esp_status host_meet_call(const struct host_meeting *meeting, uint64_t number, int *out_socket, int *out_memory,
                               struct error *err)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	enum esp_status status = fd < 0 ? ESP_ELIMIT : greet(meeting, number, fd);

	if (status == ESP_OK)
		status = await(meeting, fd, POLLIN, meeting->until_ns, err);
	if (status == ESP_OK)
		status = receive_fd(fd, out_memory);
	if (status == ESP_OK) {
		*out_socket = fd;
		return ESP_OK;
	}
	if (fd >= 0)
		close(fd);
	/* Its process may have ended: then the hub says so, and how. */
	if (status == ESP_EPEER && await(meeting, -1, 0, clock_now_ns() + GREETING_PATIENCE, err) != ESP_ETIMEOUT)
		return err->status;
	if (status == ESP_EPEER || status == ESP_ELIMIT)
		return error_set(err, status,
		                 "the worker of this host that pushes for this one cannot be reached: with the setting "
		                 "transport=tcp each pushes by itself");
	return status == ESP_ETIMEOUT
	           ? error_set(err, status, "the worker of this host that pushes for this one is not ready in time")
	           : status;
}
