/*
 * prompt_test.c - nothing that a rank sends waits in its kernel, on any connection of the job.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>

#include "base/check.h"
#include "job.h"

static bool is_connection(int fd)
{
	int domain = 0;
	socklen_t bytes = sizeof(domain), peer_bytes = 0;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && (domain == AF_INET || domain == AF_INET6) &&
	       getpeername(fd, &(struct sockaddr){0}, &peer_bytes) == 0;
}

static bool has_no_delay(int fd)
{
	int no_delay = 0;
	socklen_t bytes = sizeof(no_delay);

	return getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &no_delay, &bytes) == 0 && no_delay != 0;
}

/*
 * Whichever rank was first to connect, nothing small waits for an acknowledgement on any connection of the job, which would take 40 ms. One
 * that was made just now gets there; one that never does ends this test by its time limit.
 */
static void sends_at_once(struct job_rank *rank)
{
	uint32_t connections = 0;

	job_meet(rank);
	for (int fd = 0; rank->rank == 0 && fd < 1024; fd++) { /* the ranks are threads: these are everybody's */
		connections += is_connection(fd);
		while (is_connection(fd) && !has_no_delay(fd))
			sched_yield();
	}
	CHECK(rank->rank != 0 || connections > 0);
	job_meet(rank);
}

int main(void)
{
	static const char *const sockets[] = {"transport=tcp", NULL};

	for (unsigned i = 0; i < 30; i++)
		job_run(2 + i % 3, sockets, sends_at_once, NULL);
	return 0;
}
