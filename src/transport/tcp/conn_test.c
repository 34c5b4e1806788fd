/*
 * conn_test.c - how a socket is prepared for data.
 */
#include "transport/tcp/conn.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

enum { RTO_MIN_US = 45, DELACK_MAX_US = 46 }; /* TCP_..., which the C library's header may not have */

/* Microseconds; -1: the kernel does not know the option. */
static int value_of(int fd, int option)
{
	int value = -1;
	socklen_t bytes = sizeof(value);

	return getsockopt(fd, IPPROTO_TCP, option, &value, &bytes) == 0 ? value : -1;
}

static int socket_with_least_wait(int microseconds)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	if (microseconds > 0)
		CHECK(setsockopt(fd, IPPROTO_TCP, RTO_MIN_US, &microseconds, sizeof(microseconds)) == 0);
	CHECK_U64(conn_prepare(fd, 0, 0, 0), 0);
	return fd;
}

int main(void)
{
	int fd = socket_with_least_wait(0), pair[2];

	if (value_of(fd, RTO_MIN_US) >= 0) {
		CHECK_MSG(value_of(fd, RTO_MIN_US) <= 20000, "%d us", value_of(fd, RTO_MIN_US));
		/* Whoever waits for as little must be told in time. */
		CHECK_MSG(value_of(fd, DELACK_MAX_US) < value_of(fd, RTO_MIN_US), "%d us", value_of(fd, DELACK_MAX_US));
		close(fd);
		fd = socket_with_least_wait(8000); /* as it may be set for the whole machine */
		CHECK_MSG(value_of(fd, RTO_MIN_US) <= 8000, "%d us", value_of(fd, RTO_MIN_US));
	} else {
		printf("this kernel does not know TCP_RTO_MIN_US\n");
	}
	close(fd);

	/* Sockets that are not TCP's are fine too. */
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK_U64(conn_prepare(pair[0], 0, 0, 0), 0);
	close(pair[0]);
	close(pair[1]);
	return 0;
}
