#include "rank/join/launcher.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "wire/blame_msg.h"

#define RANKS 1000u

static char name[64];

static int open_listener(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(name, sizeof(name), "espalier-launcher-test-%ld", (long)getpid());
	memcpy(address.sun_path + 1, name, strlen(name));
	CHECK(fd >= 0);
	CHECK(bind(fd, (struct sockaddr *)&address,
	           (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))) == 0);
	CHECK(listen(fd, 4) == 0);
	return fd;
}

static void answer(int listener, const uint8_t *bytes, size_t n, size_t part)
{
	int fd = accept(listener, NULL, NULL);

	CHECK(fd >= 0);
	for (size_t at = 0; at < n; at += part) {
		size_t length = n - at < part ? n - at : part;
		CHECK(send(fd, bytes + at, length, 0) == (ssize_t)length);
	}
	close(fd);
}

static void conversation(void)
{
	static const uint8_t four[] = {0, 0, 1, 0, 138, 0, 0, 1, 77 /* incomplete */};
	struct launcher launcher;
	uint8_t told[RANKS * ENDED_BYTES], many[RANKS * ENDED_BYTES];
	uint64_t now = 5;
	int listener = open_listener();

	launcher_init(&launcher, name, now);
	CHECK(launcher_turn(&launcher, now - 1, told, RANKS) == 0 && launcher.fd < 0); /* not yet */
	CHECK(launcher_turn(&launcher, now, told, RANKS) == 0 && launcher.fd >= 0); /* asks */
	answer(listener, four, sizeof(four), sizeof(four));
	CHECK(launcher_turn(&launcher, now + 1, told, RANKS) == 0);
	CHECK_U64(launcher.next_ns, now + LAUNCHER_PAUSE_NS);
	CHECK_U64(launcher_turn(&launcher, now += LAUNCHER_PAUSE_NS, told, RANKS), 4);
	CHECK(ended_get(told, 0) == ENDED_NOT && ended_get(told, 1) == 0);
	CHECK(ended_get(told, 2) == 137 && ended_get(told, 3) == 255);
	/* No more than there is room for. */
	answer(listener, four, sizeof(four), sizeof(four));
	told[2 * ENDED_BYTES] = 99;
	CHECK_U64(launcher_turn(&launcher, now += LAUNCHER_PAUSE_NS, told, 2), 2);
	CHECK_U64(told[2 * ENDED_BYTES], 99);
	/* In parts that do not end where ranks do. */
	for (uint32_t rank = 0; rank < RANKS; rank++)
		ended_put(many, rank, (int)(rank % 256));
	answer(listener, many, sizeof(many), 17);
	CHECK_U64(launcher_turn(&launcher, now += LAUNCHER_PAUSE_NS, told, RANKS), RANKS);
	CHECK(memcmp(told, many, sizeof(many)) == 0);
	/* No answer to the next question: nothing is known, and the call does not block. */
	CHECK_U64(launcher_turn(&launcher, now + LAUNCHER_PAUSE_NS, told, RANKS), 0);
	launcher_fini(&launcher);
	close(listener);
}

static void nobody(void)
{
	struct launcher launcher;
	uint8_t told[ENDED_BYTES];
	char longest[200] = "";

	launcher_init(&launcher, "", 5);
	CHECK(launcher.next_ns == UINT64_MAX && launcher_turn(&launcher, 1000, told, 1) == 0);
	launcher_fini(&launcher);
	launcher_init(&launcher, name, 5); /* the test above has closed it */
	CHECK(launcher_turn(&launcher, 5, told, 1) == 0 && launcher.fd < 0);
	launcher_fini(&launcher);
	memset(longest, 'x', sizeof(longest) - 1);
	launcher_init(&launcher, longest, 5);
	CHECK(launcher_turn(&launcher, 5, told, 1) == 0 && launcher.fd < 0);
	launcher_fini(&launcher);
}

static void blame(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	uint8_t bytes[2 * BLAME_BYTES];
	uint32_t accuser = 0, accused = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	int length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s" BLAME_SUFFIX, name);

	launcher_blame(name, 1, 2); /* no launcher yet */
	launcher_blame("", 1, 2);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address,
	                      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) == 0);
	launcher_blame(name, 70000, 2);
	CHECK_U64(recv(fd, bytes, sizeof(bytes), 0), BLAME_BYTES);
	CHECK(!blame_decode(bytes, BLAME_BYTES, 70000, &accuser, &accused) &&
	      blame_decode(bytes, BLAME_BYTES, 70001, &accuser, &accused));
	CHECK(accuser == 70000 && accused == 2);
	for (int i = 0; i < 1000; i++) /* also when the launcher does not read */
		launcher_blame(name, 1, 2);
	close(fd);
}

int main(void)
{
	conversation();
	blame();
	nobody();
	return 0;
}
