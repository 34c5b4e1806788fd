#include "fabric/worker/aggregator_send.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pace.h"
#include "base/ready.h"
#include "hub/control/hub_dial.h"
#include "wire/crc32c.h"

#define DIAL_PATIENCE (1 * NS_PER_S)
#define PIECE 16384u /* bytes that leave at once */

/* ---- pace ---- */

static void sleep_until(uint64_t until_ns)
{
	const struct timespec at = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		continue;
}

/* Sleeps until something may leave. */
static void await_pace(struct pace *pace)
{
	while (!pace_fill(pace, clock_now_ns()))
		sleep_until(pace_due(pace));
}

/* ---- bytes ---- */

static enum esp_status put(int fd, const void *data, uint64_t bytes, struct pace *pace, uint64_t until_ns,
                           struct error *err)
{
	for (uint64_t at = 0; at < bytes;) {
		size_t some = bytes - at < PIECE ? bytes - at : PIECE;

		await_pace(pace);
		ssize_t sent = send(fd, (const uint8_t *)data + at, some, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent > 0) {
			at += (uint64_t)sent;
			pace->budget -= sent;
		} else if (errno != EINTR && errno != EAGAIN) {
			return error_set(err, ESP_ELINK, "the aggregator has closed the connection");
		} else if (!ready_by(fd, POLLOUT, until_ns)) {
			return error_set(err, ESP_ETIMEOUT, "the aggregator takes no data");
		}
	}
	return ESP_OK;
}

static enum esp_status take_answer(int fd, const struct fabric_msg_give *give, uint64_t until_ns, struct error *err)
{
	uint8_t bytes[FABRIC_MSG_BYTES];
	struct fabric_msg msg;
	size_t at = 0;

	while (at < sizeof(bytes)) {
		ssize_t got = recv(fd, bytes + at, sizeof(bytes) - at, MSG_DONTWAIT);

		if (got > 0)
			at += (size_t)got;
		else if (got == 0 || (errno != EAGAIN && errno != EINTR))
			return error_set(err, ESP_ELINK, "the aggregator has closed the connection");
		else if (errno == EAGAIN && !ready_by(fd, POLLIN, until_ns))
			return error_set(err, ESP_ETIMEOUT, "the aggregator does not answer");
	}
	if (!fabric_msg_decode(bytes, &msg) || msg.type != FABRIC_TAKEN || msg.taken.epoch != give->epoch ||
	    msg.taken.bundle != give->bundle)
		return error_set(err, ESP_ECORRUPT, "the aggregator answered with another message");
	return ESP_OK;
}

/* ---- the update ---- */

static struct fabric_msg_give describe(const struct aggregator_sending *sending)
{
	struct fabric_msg_give give = {.epoch = sending->decision->epoch, .bundle = sending->decision->decide.bundle};

	for (uint32_t i = 0; i < sending->count; i++) {
		give.bytes += sending->parts[i].bytes;
		give.crc = crc32c(give.crc, sending->parts[i].data, sending->parts[i].bytes);
	}
	return give;
}

static enum esp_status dial(const struct aggregator_sending *sending, int *out_fd, struct error *err)
{
	const struct fabric_msg_decide *decide = &sending->decision->decide;
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	uint64_t soon = clock_now_ns() + DIAL_PATIENCE;
	uint8_t session[HANDSHAKE_KEY_BYTES];
	struct address address = {.port = decide->port};
	bool is_four = memcmp(decide->host, mapped, sizeof(mapped)) == 0;

	if (decide->port == 0 ||
	    !inet_ntop(is_four ? AF_INET : AF_INET6, decide->host + (is_four ? 12 : 0), address.host, sizeof(address.host)))
		return error_set(err, ESP_ELINK, "the aggregator has no address");
	const struct hub_dial how = {
		.hub = &address,
		.key = sending->ticket->key,
		.job = sending->ticket->job,
		.worker = sending->worker,
		.workers = sending->ticket->workers,
		.purpose = HELLO_FABRIC,
		.is_worker = true,
		.to = decide->aggregator,
		.until_ns = soon < sending->until_ns ? soon : sending->until_ns,
		.proof_ns = DIAL_PATIENCE,
	};
	enum esp_status status = hub_dial(&how, out_fd, session, err);
	explicit_bzero(session, sizeof(session));
	return status;
}

static enum esp_status send_all(const struct aggregator_sending *sending, int fd, struct error *err)
{
	struct pace pace = {.budget = 0};
	const struct fabric_msg msg = {.type = FABRIC_GIVE, .give = describe(sending)};
	uint8_t head[FABRIC_MSG_BYTES];

	pace_set(&pace, sending->decision->decide.rate, clock_now_ns());
	fabric_msg_encode(&msg, head);
	enum esp_status status = put(fd, head, sizeof(head), &pace, sending->until_ns, err);
	for (uint32_t i = 0; status == ESP_OK && i < sending->count; i++)
		status = put(fd, sending->parts[i].data, sending->parts[i].bytes, &pace, sending->until_ns, err);
	return status == ESP_OK ? take_answer(fd, &msg.give, sending->until_ns, err) : status;
}

enum esp_status aggregator_send(const struct aggregator_sending *sending, uint64_t *out_took_ns, struct error *err)
{
	uint64_t began;
	int fd;

	enum esp_status status = dial(sending, &fd, err);
	if (status != ESP_OK)
		return status;
	began = clock_now_ns();
	status = send_all(sending, fd, err);
	close(fd);
	*out_took_ns = clock_now_ns() - began;
	return status;
}
