#include "node/auth/proof.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/ready.h"

/* ESP_OK: all of the handshake's output has left. */
static enum esp_status send_output(int fd, struct handshake *hs, uint64_t until_ns, struct error *err)
{
	for (;;) {
		const uint8_t *bytes;
		size_t n;

		handshake_output(hs, &bytes, &n);
		if (n == 0)
			return ESP_OK;
		ssize_t sent = send(fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent >= 0)
			handshake_sent(hs, (size_t)sent);
		else if (errno != EAGAIN && errno != EINTR)
			return handshake_closed(hs, err);
		else if (errno == EAGAIN && !ready_by(fd, POLLOUT, until_ns))
			return error_set(err, ESP_ETIMEOUT, "the handshake was not finished in time: the other end takes no bytes");
	}
}

/* ESP_PENDING: some bytes came, or an interrupt did. */
static enum esp_status receive_input(int fd, struct handshake *hs, uint64_t until_ns, struct error *err)
{
	uint8_t bytes[PROOF_BYTES];
	size_t wanted = handshake_wants(hs), used;
	ssize_t got = recv(fd, bytes, wanted < sizeof(bytes) ? wanted : sizeof(bytes), MSG_DONTWAIT);

	if (got > 0)
		return handshake_input(hs, bytes, (size_t)got, &used, err);
	if (got == 0 || (errno != EAGAIN && errno != EINTR))
		return handshake_closed(hs, err);
	if (errno == EAGAIN && !ready_by(fd, POLLIN, until_ns))
		return error_set(err, ESP_ETIMEOUT, "the handshake was not finished in time: the other end does not answer");
	return ESP_PENDING;
}

enum esp_status proof_run(int fd, enum handshake_role role, const struct handshake_config *config, uint64_t until_ns,
                          struct handshake *out_hs, struct error *err)
{
	enum esp_status status = ESP_PENDING, sent;
	struct error unsaid;

	handshake_init(out_hs, role, config);
	while (status == ESP_PENDING) {
		status = send_output(fd, out_hs, until_ns, err);
		if (status == ESP_OK)
			status = receive_input(fd, out_hs, until_ns, err);
	}
	if (status == ESP_OK) {
		status = send_output(fd, out_hs, until_ns, err);
	} else if (status == ESP_EMISMATCH) { /* a peer that does not fit is told so */
		sent = send_output(fd, out_hs, until_ns, &unsaid);
		(void)sent;
	}
	if (status != ESP_OK) {
		bool refused = out_hs->refused;

		handshake_fini(out_hs);
		out_hs->refused = refused;
	}
	return status;
}
