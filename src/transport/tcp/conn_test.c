/*
 * conn_test.c - how a socket is prepared for data.
 */
#include "transport/tcp/conn.h"

#include <netinet/in.h>
#include <stdbool.h>
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

int main(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), pair[2], lower = 24000;

	CHECK(fd >= 0);
	bool is_known = value_of(fd, RTO_MIN_US) >= 0;
	CHECK_U64(tcp_conn_prepare(fd, 0, 0, 0), 0);
	if (is_known) {
		CHECK_MSG(value_of(fd, RTO_MIN_US) <= 40000, "%d us", value_of(fd, RTO_MIN_US));
		/* A sender that waits for as little must be acknowledged in time. */
		CHECK_MSG(value_of(fd, DELACK_MAX_US) <= 20000, "%d us", value_of(fd, DELACK_MAX_US));
		/* A value that is lower already, as it may be set for the whole machine, stays. */
		CHECK(setsockopt(fd, IPPROTO_TCP, RTO_MIN_US, &lower, sizeof(lower)) == 0);
		lower = value_of(fd, RTO_MIN_US); /* in whole ticks */
		CHECK_U64(tcp_conn_prepare(fd, 0, 0, 0), 0);
		CHECK_U64(value_of(fd, RTO_MIN_US), lower);
	} else {
		printf("this kernel does not know TCP_RTO_MIN_US\n");
	}
	close(fd);

	/* Sockets that are not TCP's are fine too. */
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK_U64(tcp_conn_prepare(pair[0], 0, 0, 0), 0);
	close(pair[0]);
	close(pair[1]);
	return 0;
}
