#include "tools/lab/sweep.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"

#define PATIENCE_NS (2 * NS_PER_S)
#define FOUND_MAX 4096

/* A process to end; the pidfd keeps its number from being reused. */
struct found {
	int pidfd;
};

static int compare(const void *a, const void *b)
{
	ino_t left = *(const ino_t *)a, right = *(const ino_t *)b;
	return left < right ? -1 : left > right;
}

/* The inode numbers of the networks, sorted. NULL: no memory. */
static ino_t *number_networks(const struct space *spaces, uint32_t count)
{
	ino_t *networks = calloc(count ? count : 1, sizeof(*networks));
	struct stat info;
	for (uint32_t i = 0; networks && i < count; i++)
		networks[i] = fstat(spaces[i].fds[SPACE_NET], &info) == 0 ? info.st_ino : 0;
	if (networks)
		qsort(networks, count, sizeof(*networks), compare);
	return networks;
}

/* "PID (name) S PPID": the name may have any bytes, so it is searched from the right. */
static bool is_ours(const char *pid)
{
	char path[64], text[512] = "";
	int parent = 0;
	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	FILE *file = fopen(path, "re");
	if (!file)
		return true; /* gone */
	size_t got = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[got] = '\0';
	const char *behind = strrchr(text, ')');
	return atoi(pid) == getpid() || !behind || sscanf(behind, ") %*c %d", &parent) != 1 || parent == getpid();
}

static bool is_inside(const char *pid, const ino_t *networks, uint32_t count)
{
	char path[64];
	struct stat info;
	snprintf(path, sizeof(path), "/proc/%s/ns/net", pid);
	return stat(path, &info) == 0 && bsearch(&info.st_ino, networks, count, sizeof(*networks), compare) != NULL;
}

static size_t find(const ino_t *networks, uint32_t count, struct found *out)
{
	size_t found = 0;
	DIR *folder = opendir("/proc");
	const struct dirent *entry;
	while (folder && found < FOUND_MAX && (entry = readdir(folder))) {
		const char *pid = entry->d_name;
		uint64_t number;
		if (!number_parse_u64(pid, strlen(pid), &number) || !is_inside(pid, networks, count) || is_ours(pid))
			continue;
		int fd = (int)syscall(SYS_pidfd_open, (pid_t)number, 0);
		if (fd >= 0 && is_inside(pid, networks, count))
			out[found++].pidfd = fd;
		else if (fd >= 0)
			close(fd);
	}
	if (folder)
		closedir(folder);
	return found;
}

/* Waits until all are gone or the time is over. */
static void wait_for(const struct found *found, size_t count, uint64_t end_ns)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t now_ns = clock_now_ns();
		struct pollfd poll_fd = {found[i].pidfd, POLLIN, 0};
		(void)poll(&poll_fd, 1, now_ns < end_ns ? (int)((end_ns - now_ns) / NS_PER_MS) + 1 : 0);
	}
}

static size_t end_found(struct found *found, size_t count)
{
	static const int numbers[] = {SIGTERM, SIGKILL};
	for (int step = 0; step < 2; step++) {
		for (size_t i = 0; i < count; i++)
			(void)syscall(SYS_pidfd_send_signal, found[i].pidfd, numbers[step], NULL, 0);
		wait_for(found, count, clock_now_ns() + PATIENCE_NS);
	}
	for (size_t i = 0; i < count; i++)
		close(found[i].pidfd);
	return count;
}

uint32_t lab_sweep(const struct space *spaces, uint32_t count)
{
	ino_t *networks = number_networks(spaces, count);
	struct found *found = calloc(FOUND_MAX, sizeof(*found));
	uint32_t total = 0;
	/* Again, as ending processes may have started others meanwhile. */
	for (int round = 0; networks && found && round < 3; round++) {
		size_t ended = end_found(found, find(networks, count, found));
		total += (uint32_t)ended;
		if (ended == 0)
			break;
	}
	free(networks);
	free(found);
	return total;
}
