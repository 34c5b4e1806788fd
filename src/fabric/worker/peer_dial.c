#include "fabric/worker/peer_dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"
#include "base/ready.h"
#include "hub/control/hub_dial.h"

#define DIAL_PATIENCE (1 * NS_PER_S)
#define PIECE 16384u /* bytes that leave at once */

enum esp_status peer_dial(const struct peer_dial *dial, int *out_fd, struct error *err)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	uint64_t soon = clock_now_ns() + DIAL_PATIENCE;
	uint8_t session[HANDSHAKE_KEY_BYTES];
	struct address address = {.port = dial->port};
	bool is_four = memcmp(dial->host, mapped, sizeof(mapped)) == 0;

	if (dial->port == 0 ||
	    !inet_ntop(is_four ? AF_INET : AF_INET6, dial->host + (is_four ? 12 : 0), address.host, sizeof(address.host)))
		return error_set(err, ESP_ELINK, "worker %u has no address", dial->to);
	const struct hub_dial how = {
		.hub = &address,
		.key = dial->ticket->key,
		.job = dial->ticket->job,
		.worker = dial->worker,
		.workers = dial->ticket->workers,
		.purpose = HELLO_FABRIC,
		.is_worker = true,
		.to = dial->to,
		.until_ns = soon < dial->until_ns ? soon : dial->until_ns,
		.proof_ns = DIAL_PATIENCE,
	};
	enum esp_status status = hub_dial(&how, out_fd, session, err);
	explicit_bzero(session, sizeof(session));
	return status;
}

static void sleep_until(uint64_t until_ns)
{
	const struct timespec at = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		continue;
}

enum esp_status peer_put(int fd, const void *data, uint64_t bytes, struct pace *pace, uint64_t until_ns,
                         struct error *err)
{
	for (uint64_t at = 0; at < bytes;) {
		size_t some = bytes - at < PIECE ? bytes - at : PIECE;

		while (!pace_fill(pace, clock_now_ns()))
			sleep_until(pace_due(pace));
		ssize_t sent = send(fd, (const uint8_t *)data + at, some, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent > 0) {
			at += (uint64_t)sent;
			pace->budget -= sent;
		} else if (errno != EINTR && errno != EAGAIN) {
			return error_set(err, ESP_ELINK, "the other worker has closed the connection");
		} else if (!ready_by(fd, POLLOUT, until_ns)) {
			return error_set(err, ESP_ETIMEOUT, "the other worker takes no data");
		}
	}
	return ESP_OK;
}

enum esp_status peer_take(int fd, uint64_t until_ns, struct fabric_msg *out, struct error *err)
{
	uint8_t bytes[FABRIC_MSG_BYTES];
	size_t at = 0;

	while (at < sizeof(bytes)) {
		ssize_t got = recv(fd, bytes + at, sizeof(bytes) - at, MSG_DONTWAIT);

		if (got > 0)
			at += (size_t)got;
		else if (got == 0 || (errno != EAGAIN && errno != EINTR))
			return error_set(err, ESP_ELINK, "the other worker has closed the connection");
		else if (errno == EAGAIN && !ready_by(fd, POLLIN, until_ns))
			return error_set(err, ESP_ETIMEOUT, "the other worker does not answer");
	}
	if (!fabric_msg_decode(bytes, out))
		return error_set(err, ESP_ECORRUPT, "the other worker sent bytes that are no message");
	return ESP_OK;
}
