#include "fabric/worker/relay_fetch.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ready.h"
#include "fabric/worker/peer_dial.h"
#include "wire/crc32c.h"

#define START_MOST (10 * NS_PER_S)     /* a later start is not waited for */
#define SILENCE_MOST (2500 * NS_PER_MS) /* of the source, from the start on */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static enum esp_status ask(const struct relay_fetching *fetching, int fd, struct error *err)
{
	const struct fabric_msg_model *from = &fetching->decision->model;
	const struct fabric_msg msg = {
		.type = FABRIC_FETCH, .fetch = {fetching->decision->epoch, from->tree, fetching->bytes,
		                                  pace_behind(from->rate)}};
	uint8_t bytes[FABRIC_MSG_BYTES];
	struct pace any = {.budget = 1};

	fabric_msg_encode(&msg, bytes);
	return peer_put(fd, bytes, sizeof(bytes), &any, fetching->until_ns, err);
}

static enum esp_status take_data(const struct relay_fetching *fetching, int fd, struct error *err)
{
	uint64_t start = earlier(fetching->decision->model.start_ns, START_MOST);
	uint64_t patience = clock_now_ns() + start + SILENCE_MOST;
	uint8_t *data = relay_data(fetching->model);

	for (uint64_t at = 0; at < fetching->bytes;) {
		ssize_t got = recv(fd, data + at, fetching->bytes - at, MSG_DONTWAIT);

		if (got > 0) {
			at += (uint64_t)got;
			relay_advance(fetching->port, fetching->model, at);
			patience = clock_now_ns() + SILENCE_MOST;
		} else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
			return error_set(err, ESP_ELINK, "the worker that has the model has closed the connection");
		} else if (errno == EAGAIN && !ready_by(fd, POLLIN, earlier(patience, fetching->until_ns))) {
			return error_set(err, ESP_ETIMEOUT, "the worker that has the model is silent");
		}
	}
	return ESP_OK;
}

static enum esp_status take_version(const struct relay_fetching *fetching, int fd, uint64_t *out, struct error *err)
{
	uint64_t until = earlier(clock_now_ns() + SILENCE_MOST, fetching->until_ns);
	struct fabric_msg msg;
	enum esp_status status = peer_take(fd, until, &msg, err);

	if (status != ESP_OK)
		return status;
	if (msg.type != FABRIC_FETCHED || msg.fetched.epoch != fetching->decision->epoch ||
	    msg.fetched.tree != fetching->decision->model.tree ||
	    msg.fetched.crc != crc32c(0, relay_data(fetching->model), fetching->bytes))
		return error_set(err, ESP_ECORRUPT, "the worker that has the model sent another one");
	*out = msg.fetched.version;
	return ESP_OK;
}

enum esp_status relay_fetch(const struct relay_fetching *fetching, uint64_t *out_version, struct error *err)
{
	const struct peer_dial dial = {.ticket = fetching->ticket,
	                               .worker = fetching->worker,
	                               .to = fetching->decision->model.source,
	                               .host = fetching->decision->model.host,
	                               .port = fetching->decision->model.port,
	                               .until_ns = fetching->until_ns};
	int fd;

	enum esp_status status = peer_dial(&dial, &fd, err);
	if (status != ESP_OK)
		return status;
	status = ask(fetching, fd, err);
	if (status == ESP_OK)
		status = take_data(fetching, fd, err);
	if (status == ESP_OK)
		status = take_version(fetching, fd, out_version, err);
	close(fd);
	return status;
}
