#include "tools/diagnose/status_ask.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/vec.h"
#include "rank/observe/status_server.h"
#include "report/complain.h"
#include "tools/diagnose/account_read.h"

#define SOCKETS "/proc/net/unix"
#define QUESTION "GET /status HTTP/1.0\r\n\r\n"
#define RANKS_MOST 4096u
#define READ_BYTES 65536u

struct inquiry {
	uint32_t user, rank;
	uint32_t pid; /* as the kernel has it; 0: unknown */
	uint64_t instance;
	int fd; /* -1: closed */
	bool answered;
	char *in;
	size_t in_bytes, in_capacity;
};

bool diagnose_status_parse_socket(const char *line, uint32_t *out_user, uint64_t *out_instance, uint32_t *out_rank)
{
	const char *name = strstr(line, "@espalier/");
	char inquiry_end = '\0', hex[17] = "";
	unsigned user, rank;
	int fields = name ? sscanf(name, "@" STATUS_SERVER_PREFIX "%16[0-9a-f]/%u%c", &user, hex, &rank, &inquiry_end) : 0;
	if (fields < 3 || strlen(hex) != 16 || (fields == 4 && inquiry_end != '\n'))
		return false;
	*out_user = user;
	*out_instance = strtoull(hex, NULL, 16);
	*out_rank = rank;
	return true;
}

bool diagnose_status_parse_answer(const char *text, size_t size, const char **out_body, size_t *out_size)
{
	const char *body = memmem(text, size, "\r\n\r\n", 4);
	if (!body || size < 12 || memcmp(text, "HTTP/1.", 7) != 0 || memcmp(text + 8, " 200", 4) != 0)
		return false;
	*out_body = body + 4;
	*out_size = size - (size_t)(*out_body - text);
	return true;
}

/* ---- the ranks of this host ---- */

static enum esp_status find_ranks(bool all_users, struct inquiry **out, size_t *out_count, struct error *err)
{
	FILE *file = fopen(SOCKETS, "re");
	char line[512];
	struct inquiry *list = calloc(RANKS_MOST, sizeof(*list));
	size_t count = 0;
	if (!file || !list) {
		if (file)
			fclose(file);
		free(list);
		return error_set(err, file ? ESP_ENOMEM : ESP_EIO, "cannot read " SOCKETS ": %s", strerror(errno));
	}
	while (count < RANKS_MOST && fgets(line, sizeof line, file)) {
		struct inquiry inquiry = {.fd = -1};
		bool is_rank = diagnose_status_parse_socket(line, &inquiry.user, &inquiry.instance, &inquiry.rank);
		bool is_known = false;
		for (size_t i = 0; is_rank && i < count; i++) /* connections have the name of their listener */
			is_known |= list[i].instance == inquiry.instance && list[i].rank == inquiry.rank &&
			            list[i].user == inquiry.user;
		if (is_rank && !is_known && (all_users || inquiry.user == (uint32_t)geteuid()))
			list[count++] = inquiry;
	}
	fclose(file);
	*out = list;
	*out_count = count;
	return ESP_OK;
}

/* ---- asking ---- */

static void inquiry_end(struct inquiry *inquiry)
{
	if (inquiry->fd >= 0)
		close(inquiry->fd);
	inquiry->fd = -1;
}

/* The listening process must belong to the user in the socket's name. */
static bool is_trusted(struct inquiry *inquiry)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	if (getsockopt(inquiry->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != inquiry->user)
		return false;
	inquiry->pid = (uint32_t)peer.pid;
	return true;
}

static void inquiry_begin(struct inquiry *inquiry)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char name[STATUS_SERVER_NAME];
	size_t length = strlen(status_server_name(inquiry->user, inquiry->instance, inquiry->rank, name));
	memcpy(address.sun_path + 1, name, length);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
	inquiry->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	bool asked = inquiry->fd >= 0 && connect(inquiry->fd, (struct sockaddr *)&address, size) == 0 &&
	             is_trusted(inquiry) &&
	             send(inquiry->fd, QUESTION, sizeof QUESTION - 1, MSG_NOSIGNAL) == (ssize_t)(sizeof QUESTION - 1);
	if (asked)
		return;
	inquiry->answered = errno == ECONNREFUSED; /* the rank has ended meanwhile: it is not silent */
	inquiry_end(inquiry);
}

static void read_answer(struct inquiry *inquiry)
{
	size_t needed = inquiry->in_bytes + READ_BYTES;
	if (needed > 2 * ACCOUNT_BYTES_MOST || !vec_reserve(&inquiry->in, &inquiry->in_capacity, needed, 1)) {
		inquiry_end(inquiry);
		return;
	}
	ssize_t got = recv(inquiry->fd, inquiry->in + inquiry->in_bytes, inquiry->in_capacity - inquiry->in_bytes,
	                   MSG_DONTWAIT);
	if (got > 0)
		inquiry->in_bytes += (size_t)got;
	else if (got == 0 || (errno != EAGAIN && errno != EINTR))
		inquiry_end(inquiry);
}

static void read_all(struct inquiry *list, size_t count, struct pollfd *fds, uint64_t until_ns)
{
	for (;;) {
		uint64_t now = clock_now_ns();
		nfds_t open = 0;
		for (size_t i = 0; i < count; i++) {
			fds[i] = (struct pollfd){.fd = list[i].fd, .events = POLLIN}; /* poll(2) skips negative descriptors */
			open += list[i].fd >= 0;
		}
		if (open == 0 || now >= until_ns)
			return;
		if (poll(fds, count, (int)((until_ns - now) / NS_PER_MS + 1)) < 0 && errno != EINTR)
			return;
		for (size_t i = 0; i < count; i++)
			if (fds[i].revents)
				read_answer(&list[i]);
	}
}

static enum esp_status take_answer(struct inquiry *inquiry, struct accounts *accounts)
{
	struct account account;
	struct error err = {0};
	const char *body;
	size_t size;
	if (inquiry->fd >= 0 || !inquiry->in || !diagnose_status_parse_answer(inquiry->in, inquiry->in_bytes, &body, &size))
		return ESP_OK;
	if (diagnose_account_read(body, size, &account, &err) != ESP_OK) {
		complain_note("status: rank %u answers what is no account: %s", inquiry->rank, err.text);
		return ESP_OK;
	}
	inquiry->answered = true;
	return diagnose_accounts_add(accounts, &account);
}

static enum esp_status ask_ranks(struct inquiry *list, size_t count, unsigned patience_ms, struct status_answers *out)
{
	struct pollfd *fds = calloc(count + 1, sizeof(*fds));
	enum esp_status status = fds ? ESP_OK : ESP_ENOMEM;
	out->silent = calloc(count + 1, sizeof(*out->silent));
	for (size_t i = 0; status == ESP_OK && i < count; i++)
		inquiry_begin(&list[i]);
	if (status == ESP_OK)
		read_all(list, count, fds, clock_now_ns() + patience_ms * NS_PER_MS);
	for (size_t i = 0; i < count; i++) {
		if (status == ESP_OK)
			status = take_answer(&list[i], &out->accounts);
		if (!list[i].answered && out->silent)
			out->silent[out->silent_count++] = (struct status_silent){list[i].instance, {list[i].rank, list[i].pid}};
		inquiry_end(&list[i]);
		free(list[i].in);
	}
	free(fds);
	return out->silent ? status : ESP_ENOMEM;
}

enum esp_status diagnose_status_ask(bool all_users, unsigned patience_ms, struct status_answers *out, struct error *err)
{
	struct inquiry *list = NULL;
	size_t count = 0;
	*out = (struct status_answers){0};
	enum esp_status status = find_ranks(all_users, &list, &count, err);
	if (status != ESP_OK)
		return status;
	status = ask_ranks(list, count, patience_ms, out);
	free(list);
	diagnose_accounts_sort(&out->accounts);
	return status == ESP_OK ? ESP_OK : error_set(err, status, "no memory for %zu ranks", count);
}

void diagnose_status_answers_fini(struct status_answers *answers)
{
	diagnose_accounts_fini(&answers->accounts);
	free(answers->silent);
	*answers = (struct status_answers){0};
}
