/*
 * reset_test.c - connections are reset, as something between two hosts may do it, and both ranks are there.
 *
 * Ranks are threads of one process, so that a test can reset any of their connections: to connect a socket to nowhere does that, for
 * both ends. One on which much was sent is for data; of the others, one on which something is sent although nobody calls carries beats, and so
 * is one for control.
 */
#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "job.h"

enum { EACH = 4096, SOCKETS_MOST = 256, ESTABLISHED = 1 /* TCP_ESTABLISHED, which is in a header that does not go with linux/tcp.h */ };

/* As no beats are, however many; every two exchange twice as much. */
#define MUCH (EACH * sizeof(int64_t) / 2)

struct sockets {
	int fds[SOCKETS_MOST];
	uint64_t bytes[SOCKETS_MOST]; /* sent */
	unsigned count;
};

static bool look_at(int fd, uint64_t *out_bytes)
{
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || info.tcpi_state != ESTABLISHED)
		return false;
	*out_bytes = info.tcpi_bytes_sent;
	return true;
}

/* All connections of the job through TCP, both ends of each. */
static void find_sockets(struct sockets *out)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;

	CHECK(folder != NULL);
	out->count = 0;
	while ((entry = readdir(folder))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && look_at(fd, &out->bytes[out->count])) {
			out->fds[out->count++] = fd;
			CHECK(out->count < SOCKETS_MOST);
		}
	}
	closedir(folder);
}

/* All have exchanged(), and nobody calls: the first connection on which little was sent, and something is all the same. */
static int find_control(const struct sockets *sockets)
{
	uint64_t bytes;

	for (unsigned i = 0;; i = (i + 1) % sockets->count) {
		if (sockets->bytes[i] < MUCH && look_at(sockets->fds[i], &bytes) && bytes > sockets->bytes[i])
			return sockets->fds[i];
	}
}

static void reset(int fd)
{
	/* Not the library's function: a sanitizer would rightly say that the socket is another thread's. */
	CHECK(syscall(SYS_connect, fd, &(struct sockaddr){.sa_family = AF_UNSPEC}, sizeof(struct sockaddr)) == 0);
}

static enum esp_status sum(struct esp_group *group)
{
	int64_t mine = 1, all = 0;
	enum esp_status status = esp_allreduce(group, &mine, &all, 1, ESP_I64, ESP_SUM);

	CHECK(status != ESP_OK || all == esp_size(group));
	return status;
}

/* Much, between every two. */
static enum esp_status exchange(struct esp_group *group)
{
	int64_t out[8 * EACH], in[8 * EACH] = {0};

	return esp_alltoall(group, in, out, EACH, ESP_I64);
}

/* Every rank tells the next one of a letter over a control connection, and it is asked for there. */
static void pass_letters(struct job_rank *rank, uint64_t round)
{
	uint32_t next = (rank->rank + 1) % rank->size, before = (rank->rank + rank->size - 1) % rank->size;
	uint64_t sent = round * rank->size + rank->rank, got = UINT64_MAX;
	struct esp_work *work;

	OK(esp_send_start(rank->world, &sent, sizeof(sent), next, round, 0, &work));
	OK(esp_recv(rank->world, &got, sizeof(got), before, round, NULL, NULL));
	CHECK_U64(got, round * rank->size + before);
	OK(esp_wait(work, -1));
	esp_work_free(work);
}

/* Control connections are reset, also those that were made anew, while letters are told of on them: nobody notices. */
static void control(struct job_rank *rank)
{
	struct esp_shrink shrink = ESP_SHRINK_INIT;
	struct esp_group *left;
	struct sockets sockets;
	int fd = -1;

	OK(exchange(rank->world));
	for (uint64_t round = 0; round < 8; round++) {
		OK(sum(rank->world));
		job_meet(rank);
		if (rank->rank == 0) {
			find_sockets(&sockets);
			fd = find_control(&sockets);
		}
		job_meet(rank);
		if (rank->rank == 0)
			reset(fd);
		pass_letters(rank, round);
	}
	job_meet(rank);
	OK(esp_group_shrink(rank->world, &shrink, &left));
	CHECK_U64(shrink.lost_count, 0);
	OK(sum(left));
	OK(esp_group_free(left));
}

/* The same in the middle of an agreement, while the last rank is waited for. */
static void agreeing(struct job_rank *rank)
{
	struct esp_shrink shrink = ESP_SHRINK_INIT;
	struct esp_group *left;
	struct sockets sockets;

	OK(exchange(rank->world));
	OK(sum(rank->world));
	job_meet(rank);
	if (rank->rank == rank->size - 1) {
		find_sockets(&sockets);
		int fd = find_control(&sockets);

		while (sum(rank->world) == ESP_OK) /* the others have begun */
			;
		reset(fd);
	}
	OK(esp_group_shrink(rank->world, &shrink, &left));
	CHECK_U64(shrink.lost_count, 0);
	OK(esp_group_free(left));
}

/* A connection on which as much was sent as no beats are. */
static int find_data(const struct sockets *sockets)
{
	uint64_t bytes;

	for (unsigned i = 0; i < sockets->count; i++) {
		if (look_at(sockets->fds[i], &bytes) && bytes > sockets->bytes[i] + MUCH)
			return sockets->fds[i];
	}
	CHECK_MSG(false, "there is no connection for data");
	return -1;
}

/* Shrinks until a group works; false: we are not in it. */
static bool go_on(struct esp_group **group)
{
	struct esp_error error = ESP_ERROR_INIT;

	do {
		enum esp_status status = esp_group_shrink(*group, NULL, group);

		if (status == ESP_EEXCLUDED || status == ESP_EQUORUM) /* the latter if the others have left already */
			return false;
		OK(esp_last_error(&error));
		CHECK_MSG(status == ESP_OK, "%s: %s", esp_status_name(status), error.text);
	} while (sum(*group) != ESP_OK);
	return true;
}

/* One for data is: the two cannot be in one group any more, so one of them has to go, and no more than that. */
static void data(struct job_rank *rank)
{
	struct esp_group *group = rank->world;
	struct sockets sockets = {0};

	OK(exchange(group));
	job_meet(rank);
	if (rank->rank == 0)
		find_sockets(&sockets);
	job_meet(rank);
	OK(exchange(group));
	job_meet(rank);
	if (rank->rank == 0)
		reset(find_data(&sockets));
	job_meet(rank);
	while (exchange(group) == ESP_OK)
		;
	CHECK(!go_on(&group) || esp_size(group) == rank->size - 1);
}

int main(void)
{
	static const char *const settings[] = {"transport=tcp", "liveness_ms=2000", "linger_seconds=1", "log=off", "lanes=1", NULL};

	for (uint32_t size = 2; size <= 5; size++) {
		job_run(size, settings, control, NULL);
		job_run(size, settings, agreeing, NULL);
	}
	job_run(3, settings, data, NULL);
	job_run(5, settings, data, NULL);
	return 0;
}
