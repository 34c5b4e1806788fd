#include "node/control/fd_exchange.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGE_MOST 253u /* descriptors; the kernel's limit */
#define BYTE 'D'

enum esp_status control_fd_exchange_init(struct fd_exchange *exchange, uint32_t self, uint32_t count, const int *own,
                                         uint32_t each)
{
	assert(each > 0 && each <= FD_EXCHANGE_EACH_MOST && self < count);
	*exchange = (struct fd_exchange){.self = self, .count = count, .each = each, .own = own, .missing = count - 1};
	if (self > 0 || count == 1)
		return ESP_OK;
	exchange->fds = malloc((size_t)count * each * sizeof(int));
	if (!exchange->fds)
		return ESP_ENOMEM;
	memset(exchange->fds, 0xff, (size_t)count * each * sizeof(int));
	memcpy(exchange->fds, own, each * sizeof(int));
	return ESP_OK;
}

static void close_all(const int *fds, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

void control_fd_exchange_fini(struct fd_exchange *exchange)
{
	if (exchange->fds) /* the own ones are borrowed */
		close_all(exchange->fds + exchange->each, (exchange->count - 1) * exchange->each);
	free(exchange->fds);
	*exchange = (struct fd_exchange){0};
}

bool control_fd_exchange_is_full(const struct fd_exchange *exchange)
{
	return exchange->missing == 0;
}

/* ---- messages ---- */

static enum esp_status send_message(int socket, const int *fds, uint32_t count, bool *out_busy, struct error *err)
{
	char control[CMSG_SPACE(MESSAGE_MOST * sizeof(int))] = {0};
	char byte = BYTE;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(count * sizeof(int))};
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(head), fds, count * sizeof(int));
	*out_busy = false;
	if (sendmsg(socket, &msg, MSG_NOSIGNAL) == 1)
		return ESP_OK;
	*out_busy = errno == ETOOMANYREFS;
	if (errno == EAGAIN || errno == EINTR || *out_busy)
		return ESP_PENDING;
	if (errno == EPIPE || errno == ECONNRESET)
		return error_set(err, ESP_EPEER, "its connection was closed");
	return error_set(err, ESP_ELINK, "cannot hand descriptors over: %s", strerror(errno));
}

/* Exactly `count` descriptors, or none. */
static enum esp_status receive_message(int socket, int *fds, uint32_t count, struct error *err)
{
	char control[CMSG_SPACE(MESSAGE_MOST * sizeof(int))];
	char byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
	ssize_t got = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
	uint32_t arrived = 0;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return ESP_PENDING;
	if (got <= 0)
		return error_set(err, ESP_EPEER, "its connection was closed");
	for (struct cmsghdr *head = CMSG_FIRSTHDR(&msg); head; head = CMSG_NXTHDR(&msg, head)) {
		if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
			continue;
		uint32_t more = (uint32_t)((head->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		for (uint32_t i = 0; i < more; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(head) + i * sizeof(int), sizeof(int));
			if (arrived < count)
				fds[arrived] = fd;
			else
				close(fd);
			arrived++;
		}
	}
	if (byte == BYTE && !(msg.msg_flags & MSG_CTRUNC) && arrived == count)
		return ESP_OK;
	close_all(fds, arrived < count ? arrived : count);
	return error_set(err, ESP_ELIMIT, "descriptors did not arrive: is the limit of open files (ulimit -n) too low?");
}

/*
 * The ranks whose descriptors are in the next message to a rank; both ends compute the same. Returns their number; *at
 * moves behind them.
 */
static uint32_t next_ranks(const struct fd_exchange *exchange, uint32_t to, uint32_t *at, uint32_t ranks[MESSAGE_MOST])
{
	uint32_t most = MESSAGE_MOST / exchange->each, found = 0;

	for (; *at < exchange->count && found < most; ++*at) {
		if (*at != to)
			ranks[found++] = *at;
	}
	if (*at == to && *at + 1 == exchange->count) /* only the receiver itself is left */
		++*at;
	return found;
}

/* ---- ranks but the first ---- */

enum esp_status control_fd_exchange_leave(const struct fd_exchange *exchange, int socket, bool *out_busy,
                                          struct error *err)
{
	return send_message(socket, exchange->own, exchange->each, out_busy, err);
}

enum esp_status control_fd_exchange_fetch(const struct fd_exchange *exchange, int socket, uint32_t *at,
                                          fd_exchange_fn *take, void *context, struct error *err)
{
	uint32_t ranks[MESSAGE_MOST], behind = *at, count = next_ranks(exchange, exchange->self, &behind, ranks);
	int fds[MESSAGE_MOST];

	if (count == 0)
		return ESP_OK;
	enum esp_status status = receive_message(socket, fds, count * exchange->each, err);
	if (status != ESP_OK)
		return status;
	*at = behind;
	for (uint32_t i = 0; i < count; i++)
		take(context, ranks[i], fds + i * exchange->each);
	return ESP_OK;
}

/* ---- the first rank ---- */

enum esp_status control_fd_exchange_put(struct fd_exchange *exchange, int socket, uint32_t rank, struct error *err)
{
	int fds[FD_EXCHANGE_EACH_MOST], *place = exchange->fds ? exchange->fds + (size_t)rank * exchange->each : NULL;

	if (!place || rank == 0 || rank >= exchange->count || place[0] >= 0)
		return error_set(err, ESP_ELINK,
		                 "descriptors were handed to a rank that has them, or is not the first of its host");
	enum esp_status status = receive_message(socket, fds, exchange->each, err);
	if (status != ESP_OK)
		return status;
	memcpy(place, fds, exchange->each * sizeof(int));
	exchange->missing--;
	return ESP_OK;
}

enum esp_status control_fd_exchange_hand(const struct fd_exchange *exchange, int socket, uint32_t to, uint32_t *at,
                                         bool *out_busy, struct error *err)
{
	enum esp_status status = ESP_OK;

	assert(control_fd_exchange_is_full(exchange));
	*out_busy = false;
	while (status == ESP_OK && *at < exchange->count) {
		uint32_t ranks[MESSAGE_MOST], behind = *at, count = next_ranks(exchange, to, &behind, ranks);
		int fds[MESSAGE_MOST];

		for (uint32_t i = 0; i < count; i++)
			memcpy(fds + i * exchange->each, exchange->fds + (size_t)ranks[i] * exchange->each,
			       exchange->each * sizeof(int));
		if (count > 0)
			status = send_message(socket, fds, count * exchange->each, out_busy, err);
		if (status == ESP_OK)
			*at = behind;
	}
	return status;
}

void control_fd_exchange_clear(struct fd_exchange *exchange, fd_exchange_fn *take, void *context)
{
	for (uint32_t i = 1; exchange->fds && i < exchange->count; i++) {
		int *place = exchange->fds + (size_t)i * exchange->each;

		if (place[0] >= 0)
			take(context, i, place);
		memset(place, 0xff, exchange->each * sizeof(int));
	}
}
