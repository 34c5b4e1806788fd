/*
 * shm_process_test.c - two processes that pass each other their descriptors; one is killed while the other reads.
 */
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "support/shm_rig.h"

#define A 0u
#define B 1u
#define BUFFERS 64u
#define MESSAGES 20000u

static void send_descriptors(int socket, const int fds[2])
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control = {0};
	char byte = 0;
	struct iovec part = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	control.head =
		(struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(2 * sizeof(int))};
	memcpy(CMSG_DATA(&control.head), fds, 2 * sizeof(int));
	CHECK(sendmsg(socket, &message, 0) == 1);
}

static void receive_descriptors(int socket, int fds[2])
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control;
	char byte;
	struct iovec part = {&byte, 1};
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	CHECK(recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1);
	CHECK(control.head.cmsg_type == SCM_RIGHTS && control.head.cmsg_len == CMSG_LEN(2 * sizeof(int)));
	memcpy(fds, CMSG_DATA(&control.head), 2 * sizeof(int));
}

/* Opens a rank and meets the other. */
static struct rig *meet(uint32_t self, int socket)
{
	struct rig *rig = calloc(1, sizeof(*rig));
	uint32_t peer = 1 - self;
	int fds[2];

	CHECK(rig);
	rig_open_rank(rig, self, 16);
	struct rig_rank *rank = &rig->ranks[self];
	send_descriptors(socket, (int[2]){shm_segment_descriptor(rank->segment), shm_descriptor(rank->shm)});
	receive_descriptors(socket, fds);
	CHECK(shm_segment_view_open(rank->segment, peer, fds[0], &rank->views[peer], NULL) == ESP_OK);
	shm_adopt(rank->shm, peer, rank->views[peer], fds[1]);
	return rig;
}

static void rest(struct shm *shm)
{
	if (shm_doze(shm)) {
		CHECK(rig_is_readable(shm, 60000));
		shm_rouse(shm);
	}
}

static uint32_t bytes_of(uint32_t index)
{
	return index % 16 == 1 ? RIG_SLOT_BYTES : 1 + index * 31 % 1000;
}

/* Sends for ever: every second message from the heap. */
static void sender_main(int socket)
{
	struct rig *rig = meet(B, socket);
	struct rig_rank *b = &rig->ranks[B];
	uint8_t *heap = shm_segment_alloc(b->segment, BUFFERS * RIG_SLOT_BYTES), *own = malloc(BUFFERS * RIG_SLOT_BYTES);

	CHECK(heap && own);
	for (uint32_t next = 0;;) {
		while (next - b->user.sent[A] < BUFFERS / 4) {
			uint8_t *data = (next % 2 ? heap : own) + next % BUFFERS * RIG_SLOT_BYTES;

			rig_fill(data, bytes_of(next), next);
			rig_send(b, A,
			         (struct transport_message){.channel = 5, .index = next, .bytes = bytes_of(next), .data = data});
			next++;
		}
		if (shm_poll(b->shm) == 0)
			rest(b->shm);
	}
}

int main(void)
{
	int sockets[2], status;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) == 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		alarm(300); /* if the parent fails */
		sender_main(sockets[1]);
	}
	struct rig *rig = meet(A, sockets[0]);
	struct rig_rank *a = &rig->ranks[A];
	struct rig_inbox *in = &a->user.inbox[B][5];
	const struct transport_message *last = &in->last;
	while (in->count < MESSAGES) {
		if (shm_poll(a->shm) == 0)
			rest(a->shm);
		if (in->count == in->consumed)
			continue;
		CHECK(rig_holds(last->data, last->bytes, last->index));
		in->consumed = in->count;
	}
	/* Something that is not consumed yet. */
	uint32_t before = in->count;
	while (in->count == before) {
		if (shm_poll(a->shm) == 0)
			rest(a->shm);
	}
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
	while (shm_poll(a->shm) > 0)
		;
	CHECK(in->count > before && a->user.lost[B] == 0); /* the death is not reported */
	CHECK(rig_holds(last->data, last->bytes, last->index) && atomic_load(last->revoked) == 0);
	CHECK(shm_doze(a->shm) && !rig_is_readable(a->shm, 0));
	shm_rouse(a->shm);
	rig_send(a, B, (struct transport_message){.channel = 5, .bytes = 1, .data = "x"});
	CHECK(shm_poll(a->shm) > 0 && a->user.sent[B] == 1);
	shm_drop(a->shm, RIG_NUMBER + B, ESP_EPEER);
	CHECK(a->user.lost[B] == 1 && a->shm->slots.taken == 0);
	close(sockets[0]);
	close(sockets[1]);
	rig_close(rig);
	return 0;
}
