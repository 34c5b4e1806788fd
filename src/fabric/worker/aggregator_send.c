#include "fabric/worker/aggregator_send.h"

#include <unistd.h>

#include "base/clock.h"
#include "fabric/worker/peer_dial.h"
#include "wire/crc32c.h"

static struct fabric_msg_give describe(const struct aggregator_sending *sending)
{
	struct fabric_msg_give give = {.epoch = sending->decision->epoch, .bundle = sending->decision->decide.bundle};

	for (uint32_t i = 0; i < sending->count; i++) {
		give.bytes += sending->parts[i].bytes;
		give.crc = crc32c(give.crc, sending->parts[i].data, sending->parts[i].bytes);
	}
	return give;
}

static enum esp_status take_answer(int fd, const struct fabric_msg_give *give, uint64_t until_ns, struct error *err)
{
	struct fabric_msg msg;
	enum esp_status status = peer_take(fd, until_ns, &msg, err);

	if (status != ESP_OK)
		return status;
	if (msg.type != FABRIC_TAKEN || msg.taken.epoch != give->epoch || msg.taken.bundle != give->bundle)
		return error_set(err, ESP_ECORRUPT, "the aggregator answered with another message");
	return ESP_OK;
}

static enum esp_status send_all(const struct aggregator_sending *sending, int fd, struct error *err)
{
	struct pace pace = {.budget = 0};
	const struct fabric_msg msg = {.type = FABRIC_GIVE, .give = describe(sending)};
	uint8_t head[FABRIC_MSG_BYTES];

	pace_set(&pace, sending->decision->decide.rate, clock_now_ns());
	fabric_msg_encode(&msg, head);
	enum esp_status status = peer_put(fd, head, sizeof(head), &pace, sending->until_ns, err);
	for (uint32_t i = 0; status == ESP_OK && i < sending->count; i++)
		status = peer_put(fd, sending->parts[i].data, sending->parts[i].bytes, &pace, sending->until_ns, err);
	return status == ESP_OK ? take_answer(fd, &msg.give, sending->until_ns, err) : status;
}

enum esp_status aggregator_send(const struct aggregator_sending *sending, uint64_t *out_took_ns, struct error *err)
{
	const struct peer_dial dial = {.ticket = sending->ticket,
	                               .worker = sending->worker,
	                               .to = sending->decision->decide.aggregator,
	                               .host = sending->decision->decide.host,
	                               .port = sending->decision->decide.port,
	                               .until_ns = sending->until_ns};
	uint64_t began;
	int fd;

	enum esp_status status = peer_dial(&dial, &fd, err);
	if (status != ESP_OK)
		return status;
	began = clock_now_ns();
	status = send_all(sending, fd, err);
	close(fd);
	*out_took_ns = clock_now_ns() - began;
	return status;
}
