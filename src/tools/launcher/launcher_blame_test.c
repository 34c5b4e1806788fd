/* Reports of blame: through the socket itself, and the cause that follows from them. */
#include "tools/launcher/launcher_blame.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "rank/join/launcher.h"
#include "wire/blame_msg.h"

#define RANKS 5u

static struct run_child children[RANKS];
static char name[64];

static void send_bytes(const void *bytes, size_t length)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int written = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s" BLAME_SUFFIX, name);
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)written);
	CHECK(fd >= 0 && sendto(fd, bytes, length, 0, (struct sockaddr *)&address, size) == (ssize_t)length);
	close(fd);
}

static void open_all(struct run_blame *blame)
{
	for (uint32_t rank = 0; rank < RANKS; rank++)
		children[rank] = (struct run_child){.state = RUN_CHILD_GONE, .status = (int)rank + 1};
	launcher_blame_open(blame, name, RANKS);
	CHECK(blame->fd >= 0);
}

static void test_words(void)
{
	static const uint8_t many[] = {0, 0, 0, 0, 1, 0, 0, 0, 9};
	struct run_blame blame;
	open_all(&blame);
	CHECK_U64(launcher_blame_read(&blame), 0);
	send_bytes(many, 0);
	send_bytes(many, BLAME_BYTES - 1);
	send_bytes(many, BLAME_BYTES + 1);
	launcher_blame(name, RANKS, 0);
	launcher_blame(name, 0, RANKS);
	launcher_blame(name, 2, 2);
	CHECK_U64(launcher_blame_read(&blame), 6); /* none of them is valid */
	CHECK(blame.first == RUN_BLAME_NONE && !launcher_blame_has_named(&blame, 0) &&
	      !launcher_blame_has_named(&blame, 1));
	launcher_blame(name, 3, 1);
	launcher_blame(name, 0, 4);
	launcher_blame(name, 3, 2); /* later, when the job has gone on without rank 1 */
	CHECK_U64(launcher_blame_read(&blame), 3);
	CHECK(blame.first == 3 && blame.accused[3] == 2 && blame.accused[0] == 4);
	CHECK(launcher_blame_has_named(&blame, 2) && !launcher_blame_has_named(&blame, 1));
	launcher_blame_close(&blame);
	launcher_blame(name, 0, 1); /* no launcher is there */
	launcher_blame("", 0, 1);
	CHECK(blame.fd < 0 && !launcher_blame_has_named(&blame, 1));
}

static void say(struct run_blame *blame, uint32_t accuser, uint32_t accused)
{
	launcher_blame(name, accuser, accused);
	CHECK_U64(launcher_blame_read(blame), 1);
}

static void test_follow(void)
{
	struct run_blame blame;
	open_all(&blame);
	CHECK_U64(launcher_blame_follow(&blame, children, 1), 1);
	say(&blame, 0, 3);
	say(&blame, 3, 2);
	CHECK_U64(launcher_blame_follow(&blame, children, 0), 2);
	CHECK_U64(launcher_blame_follow(&blame, children, 2), 2); /* it reports nothing and is named: the cause */
	CHECK_U64(launcher_blame_follow(&blame, children, 1), 2); /* its own report was lost */
	/* A rank that ended well, or was told to end, or still runs is not the cause. */
	children[2].was_told = true;
	CHECK_U64(launcher_blame_follow(&blame, children, 0), 3);
	children[2] = (struct run_child){.state = RUN_CHILD_GONE, .signal = 9, .was_lost = true};
	CHECK_U64(launcher_blame_follow(&blame, children, 0), 3);
	children[2] = (struct run_child){.state = RUN_CHILD_GONE};
	CHECK_U64(launcher_blame_follow(&blame, children, 0), 3);
	children[2] = (struct run_child){.state = RUN_CHILD_RUNS, .status = 3};
	CHECK_U64(launcher_blame_follow(&blame, children, 0), 3);
	children[2] = (struct run_child){.state = RUN_CHILD_LEFT, .signal = 9};
	CHECK_U64(launcher_blame_follow(&blame, children, 0), 2);
	say(&blame, 2, 0); /* a cycle */
	CHECK_U64(launcher_blame_follow(&blame, children, 0), 0);
	CHECK_U64(launcher_blame_follow(&blame, children, 3), 3);
	launcher_blame_close(&blame);
}

static void test_no_socket(void)
{
	struct run_blame blame;
	launcher_blame_open(&blame, "", RANKS);
	CHECK(blame.fd < 0 && launcher_blame_read(&blame) == 0 && launcher_blame_follow(&blame, children, 1) == 1);
	launcher_blame_close(&blame);
}

int main(void)
{
	snprintf(name, sizeof(name), "espalier-blame-test-%ld", (long)getpid());
	test_words();
	test_follow();
	test_no_socket();
	return 0;
}
