#include "group/launcher.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"

static char name[64];

static int open_listener(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(name, sizeof(name), "espalier-launcher-test-%ld", (long)getpid());
	memcpy(address.sun_path + 1, name, strlen(name));
	CHECK(fd >= 0);
	CHECK(bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) == 0);
	CHECK(listen(fd, 4) == 0);
	return fd;
}

static void answer(int listener, const void *bytes, size_t n)
{
	int fd = accept(listener, NULL, NULL);

	CHECK(fd >= 0 && send(fd, bytes, n, 0) == (ssize_t)n);
	close(fd);
}

static void conversation(void)
{
	static const uint8_t two[] = {3, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 137, 0, 0, 0, 77 /* cut off */};
	struct launcher launcher;
	struct ended ended[ENDED_MAX];
	int listener = open_listener();

	launcher_init(&launcher, name, 5);
	CHECK(launcher_turn(&launcher, 4, ended) == 0 && launcher.fd < 0); /* not yet */
	CHECK(launcher_turn(&launcher, 5, ended) == 0 && launcher.fd >= 0); /* asks */
	answer(listener, two, sizeof(two));
	CHECK(launcher_turn(&launcher, 6, ended) == 0);
	CHECK_U64(launcher.next_ns, 5 + LAUNCHER_PAUSE_NS);
	CHECK_U64(launcher_turn(&launcher, 5 + LAUNCHER_PAUSE_NS, ended), 2);
	CHECK(ended[0].rank == 3 && ended[0].status == 0 && ended[1].rank == 256 && ended[1].status == 137);
	/* No answer to the next question: nothing is known, and nobody waits. */
	CHECK_U64(launcher_turn(&launcher, 5 + 2 * LAUNCHER_PAUSE_NS, ended), 0);
	launcher_fini(&launcher);
	close(listener);
}

static void nobody(void)
{
	struct launcher launcher;
	struct ended ended[ENDED_MAX];
	char longest[200] = "";

	launcher_init(&launcher, "", 5);
	CHECK(launcher.next_ns == UINT64_MAX && launcher_turn(&launcher, 1000, ended) == 0);
	launcher_fini(&launcher);
	launcher_init(&launcher, name, 5); /* the test above has closed it */
	CHECK(launcher_turn(&launcher, 5, ended) == 0 && launcher.fd < 0);
	launcher_fini(&launcher);
	memset(longest, 'x', sizeof(longest) - 1);
	launcher_init(&launcher, longest, 5);
	CHECK(launcher_turn(&launcher, 5, ended) == 0 && launcher.fd < 0);
	launcher_fini(&launcher);
}

int main(void)
{
	conversation();
	nobody();
	return 0;
}
