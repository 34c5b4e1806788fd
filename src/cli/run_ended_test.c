/* Answers to ranks that join, through the socket itself, and the end of a job without one. */
#include "tools/launcher/launcher_ended.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "cli/cli.h"
#include "wire/ended_msg.h"

#define RANKS_MAX 65536u

static struct run_child children[RANKS_MAX];
static uint8_t answer[RANKS_MAX * ENDED_BYTES];
static bool unix_fails;

/* In place of the C library's: Unix sockets run short when a test wants it. */
int listen(int fd, int n)
{
	int domain = 0;
	socklen_t length = sizeof(domain);
	CHECK(getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0);
	errno = ENOBUFS;
	return unix_fails && domain == AF_UNIX ? -1 : (int)syscall(SYS_listen, fd, n);
}

static int ask(const struct run_ended *ended)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(ended->name);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	memcpy(address.sun_path + 1, ended->name, length);
	socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
	CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, bytes) == 0);
	return fd;
}

/* How many ranks the answer is about. */
static uint32_t read_answer(int fd)
{
	size_t used = 0;
	ssize_t got;
	while ((got = recv(fd, answer + used, sizeof(answer) - used, 0)) > 0)
		used += (size_t)got;
	CHECK(got == 0 && used % ENDED_BYTES == 0);
	close(fd);
	return (uint32_t)(used / ENDED_BYTES);
}

static void test_answer(void)
{
	struct run_ended ended;
	launcher_ended_open(&ended, 5);
	CHECK(ended.fd >= 0 && ended.name[0]);
	children[0] = (struct run_child){.state = RUN_CHILD_RUNS};
	children[1] = (struct run_child){.state = RUN_CHILD_GONE, .status = 255};
	children[2] = (struct run_child){.state = RUN_CHILD_LEFT, .status = 3};
	children[3] = (struct run_child){.state = RUN_CHILD_GONE, .signal = 9};
	int early = ask(&ended), late = ask(&ended);
	launcher_ended_answer(&ended, children, 4, 4); /* the last one has not been started yet */
	CHECK_U64(read_answer(early), 4);
	CHECK(ended_get(answer, 0) == ENDED_NOT && ended_get(answer, 1) == 255);
	CHECK(ended_get(answer, 2) == ENDED_NOT && ended_get(answer, 3) == 137);
	CHECK_U64(read_answer(late), 4);
	launcher_ended_answer(&ended, children, 4, 4); /* no rank has asked */
	int after = ask(&ended);
	launcher_ended_answer(&ended, children, 4, 5); /* the job is being ended: it never will be */
	CHECK_U64(read_answer(after), 5);
	CHECK(ended_get(answer, 3) == 137 && ended_get(answer, 4) == RUN_ENDED_NEVER);
	launcher_ended_close(&ended);
	CHECK(ended.fd < 0 && !ended.name[0]);
}

/* However many there are: the last one is in it. */
static void test_all_ranks(void)
{
	struct run_ended ended;
	launcher_ended_open(&ended, RANKS_MAX);
	for (uint32_t rank = 0; rank < RANKS_MAX; rank++)
		children[rank] =
			(struct run_child){.state = rank % 2 ? RUN_CHILD_GONE : RUN_CHILD_RUNS, .status = (int)(rank % 256)};
	int fd = ask(&ended);
	launcher_ended_answer(&ended, children, RANKS_MAX, RANKS_MAX);
	CHECK_U64(read_answer(fd), RANKS_MAX);
	for (uint32_t rank = 0; rank < RANKS_MAX; rank++)
		CHECK(ended_get(answer, rank) == (rank % 2 ? (int)(rank % 256) : ENDED_NOT));
	launcher_ended_close(&ended);
}

/* A crowd is answered in the order in which it came, some in each turn. */
static void test_crowd(void)
{
	struct run_ended ended;
	int fds[3 * RUN_ENDED_ANSWERS];
	launcher_ended_open(&ended, 1);
	children[0] = (struct run_child){.state = RUN_CHILD_GONE};
	for (int i = 0; i < 3 * RUN_ENDED_ANSWERS; i++)
		fds[i] = ask(&ended);
	for (int turn = 0; turn < 3; turn++) {
		const int *now = fds + turn * RUN_ENDED_ANSWERS;
		launcher_ended_answer(&ended, children, 1, 1);
		if (turn < 2)
			CHECK(recv(now[RUN_ENDED_ANSWERS], answer, 1, MSG_PEEK) < 0 && errno == EAGAIN);
		for (int i = 0; i < RUN_ENDED_ANSWERS; i++)
			CHECK_U64(read_answer(now[i]), 1);
	}
	launcher_ended_close(&ended);
}

/* Inside another job: its launcher knows other ranks. */
static void test_no_socket(void)
{
	char *words[] = {"run", "-n", "1", "--", "sh", "-c", "[ \"$ESP_SIZE\" = 1 ] && [ -z \"$ESP_LAUNCHER\" ]", NULL};
	struct run_ended ended;
	unix_fails = true;
	launcher_ended_open(&ended, 5);
	CHECK(ended.fd < 0 && !ended.name[0]);
	launcher_ended_close(&ended);
	setenv("ESP_LAUNCHER", "outer", 1);
	CHECK_U64(cli_run.run(7, words), 0);
}

int main(void)
{
	test_answer();
	test_all_ranks();
	test_crowd();
	test_no_socket();
	return 0;
}
