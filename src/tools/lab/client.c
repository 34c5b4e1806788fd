#include "tools/lab/client.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/lab/ask.h"
#include "tools/lab/space.h"

#define PATIENCE_S 120 /* setting all links of a large lab takes seconds */

/* ---- asking ---- */

static enum esp_status no_lab(const char *name, struct error *err)
{
	bool usual = strcmp(name, CLIENT_DEFAULT) == 0;
	return error_set(err, ESP_ESTATE, "there is no lab%s%s: espalier lab up%s%s makes one", usual ? "" : " ",
	                 usual ? "" : name, usual ? "" : " --name ", usual ? "" : name);
}

/* Another user's process may have taken the name. */
static bool is_same_user(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

static enum esp_status open_question(const char *name, const struct ask *ask, int *out, struct error *err)
{
	struct sockaddr_un address;
	if (strlen(name) >= LAB_NAME_TEXT)
		return no_lab(name, err);
	socklen_t length = lab_ask_address(name, geteuid(), &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	const struct timeval patience = {PATIENCE_S, 0};
	enum esp_status status = ESP_OK;
	if (fd < 0)
		return error_set(err, ESP_EIO, "cannot make a socket: %s", strerror(errno));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, length) != 0)
		status = errno == ECONNREFUSED ? no_lab(name, err) : error_set(err, ESP_EIO, "cannot ask the lab: %s",
		                                                               strerror(errno));
	else if (!is_same_user(fd))
		status = error_set(err, ESP_EIO, "a process of another user has taken the name of lab %s", name);
	else if (send(fd, ask, sizeof(*ask), MSG_NOSIGNAL) != (ssize_t)sizeof(*ask))
		status = error_set(err, ESP_EIO, "cannot ask the lab: %s", strerror(errno));
	if (status == ESP_OK)
		*out = fd;
	else
		close(fd);
	return status;
}

/* The descriptors of an answer; entries without one stay -1. */
static void take_fds(struct msghdr *message, int fds[ASK_FDS])
{
	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header))
		if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
		    header->cmsg_len <= CMSG_LEN(ASK_FDS * sizeof(int)))
			memcpy(fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
}

static enum esp_status read_answer(int fd, struct answer *answer, int fds[ASK_FDS], struct error *err)
{
	struct iovec place = {answer, sizeof(*answer)};
	union {
		char bytes[CMSG_SPACE(ASK_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct msghdr message = {
		.msg_iov = &place, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
	ssize_t got;
	do {
		got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	for (int i = 0; i < ASK_FDS; i++)
		fds[i] = -1;
	if (got > 0)
		take_fds(&message, fds);
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return error_set(err, ESP_ETIMEOUT, "the lab has not answered for %d s", PATIENCE_S);
	if (got != (ssize_t)sizeof(*answer))
		return error_set(err, ESP_EIO, "the lab has ended, or is of another version of espalier");
	answer->text[sizeof(answer->text) - 1] = '\0';
	return answer->status == ESP_OK ? ESP_OK : error_set(err, (enum esp_status)answer->status, "%s", answer->text);
}

static enum esp_status ask_once(const char *name, const struct ask *ask, struct answer *answer, int fds[ASK_FDS],
                                struct error *err)
{
	int fd = -1;
	enum esp_status status = open_question(name, ask, &fd, err);
	if (status != ESP_OK)
		return status;
	status = read_answer(fd, answer, fds, err);
	close(fd);
	return status;
}

/* ---- the lab ---- */

enum esp_status lab_client_map(const char *name, const struct lab **out, struct error *err)
{
	const struct ask ask = {.version = ASK_VERSION, .kind = ASK_MAP};
	struct answer answer;
	struct stat info = {0};
	int fds[ASK_FDS] = {-1, -1, -1, -1, -1};
	enum esp_status status = ask_once(name, &ask, &answer, fds, err);
	if (status != ESP_OK)
		return status;
	void *memory = MAP_FAILED;
	if (fds[0] >= 0 && fstat(fds[0], &info) == 0 && (size_t)info.st_size >= sizeof(struct lab))
		memory = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_SHARED, fds[0], 0);
	for (int i = 0; i < ASK_FDS; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (memory == MAP_FAILED)
		return error_set(err, ESP_EIO, "cannot see the lab: %s", strerror(errno));
	if (!lab_is_valid(memory, (size_t)info.st_size)) {
		munmap(memory, (size_t)info.st_size);
		return error_set(err, ESP_EUNSUPPORTED, "lab %s was made by another version of espalier", name);
	}
	*out = memory;
	return ESP_OK;
}

void lab_client_unmap(const struct lab *lab)
{
	if (lab)
		munmap((void *)(uintptr_t)lab, lab->bytes);
}

enum esp_status lab_client_enter(const char *name, const char *space, struct error *err)
{
	struct ask ask = {.version = ASK_VERSION, .kind = ASK_ENTER};
	struct answer answer;
	struct space there;
	int fds[ASK_FDS] = {-1, -1, -1, -1, -1};
	if (!lab_ask_add_word(&ask, space))
		return error_set(err, ESP_EINVAL, "the name of a host is too long");
	enum esp_status status = ask_once(name, &ask, &answer, fds, err);
	if (status != ESP_OK)
		return status;
	memcpy(there.fds, fds, sizeof(there.fds));
	status = lab_space_enter(&there, fds[SPACE_PARTS], err);
	lab_space_close(&there);
	if (fds[SPACE_PARTS] >= 0)
		close(fds[SPACE_PARTS]);
	return status;
}

enum esp_status lab_client_set(const char *name, enum lab_ways_given ways, char *const *words, struct error *err)
{
	struct ask ask = {.version = ASK_VERSION, .kind = ASK_SET, .flag = ways};
	struct answer answer;
	int fds[ASK_FDS] = {-1, -1, -1, -1, -1};
	for (; *words; words++)
		if (!lab_ask_add_word(&ask, *words))
			return error_set(err, ESP_ELIMIT, "too much at once: set it in two steps");
	return ask_once(name, &ask, &answer, fds, err);
}

enum esp_status lab_client_check(const char *name, bool all, double seconds, int stop, client_measure_fn *on_measure,
                                 void *context, struct error *err)
{
	const struct ask ask = {.version = ASK_VERSION, .kind = ASK_CHECK, .flag = all, .seconds = seconds};
	struct answer answer = {.more = 1};
	int fd = -1, fds[ASK_FDS] = {-1, -1, -1, -1, -1};
	enum esp_status status = open_question(name, &ask, &fd, err);
	if (status != ESP_OK)
		return status;
	while (status == ESP_OK && answer.more) {
		struct pollfd polls[] = {{fd, POLLIN, 0}, {stop, POLLIN, 0}};
		if (poll(polls, 2, -1) < 0)
			continue;
		if (polls[1].revents)
			status = error_set(err, ESP_EABORTED, "interrupted");
		else
			status = read_answer(fd, &answer, fds, err);
		if (status == ESP_OK && answer.more)
			on_measure(context, &answer.measure, answer.count);
	}
	close(fd);
	return status;
}

enum esp_status lab_client_down(const char *name, uint32_t *out_ended, struct error *err)
{
	const struct ask ask = {.version = ASK_VERSION, .kind = ASK_DOWN};
	const struct lab *lab;
	struct answer answer = {0};
	int fds[ASK_FDS] = {-1, -1, -1, -1, -1};
	enum esp_status status = lab_client_map(name, &lab, err);
	if (status != ESP_OK)
		return status;
	int keeper = (int)syscall(SYS_pidfd_open, lab->keeper, 0);
	lab_client_unmap(lab);
	status = ask_once(name, &ask, &answer, fds, err);
	struct pollfd poll_fd = {keeper, POLLIN, 0};
	while (status == ESP_OK && keeper >= 0 && poll(&poll_fd, 1, -1) < 0 && errno == EINTR)
		continue;
	if (keeper >= 0)
		close(keeper);
	*out_ended = answer.count;
	return status;
}

/* ---- all labs ---- */

enum esp_status lab_client_list(client_name_fn *on_name, void *context, struct error *err)
{
	char prefix[64], line[512];
	FILE *file = fopen("/proc/net/unix", "re");
	if (!file)
		return error_set(err, ESP_EIO, "cannot read /proc/net/unix: %s", strerror(errno));
	snprintf(prefix, sizeof(prefix), " @%s/%u/", ASK_PREFIX, geteuid());
	while (fgets(line, sizeof(line), file)) {
		char *name = strstr(line, prefix);
		/* the flag of a listening socket; connections have the name too */
		if (!name || !strstr(line, " 00010000 "))
			continue;
		name[strcspn(name, "\n")] = '\0';
		on_name(context, name + strlen(prefix));
	}
	fclose(file);
	return ESP_OK;
}
