#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "network/probe/probe_parts.h"
#include "wire/bytes.h"

#define RTT_LOW 0.05 /* quantile of the samples that counts as the distance */

const uint8_t *sent_by(const struct prober *prober, uint32_t host, size_t bytes)
{
	return prober->all + (size_t)host * bytes;
}

/* Sends prober->mine, receives prober->all. */
enum esp_status meet(struct prober *prober, size_t bytes, struct error *err)
{
	const struct probe_config *config = prober->config;

	assert(bytes <= prober->room);
	enum esp_status status = config->exchange(config->exchange_context, config->self == PROBE_OBSERVER
	                                          ? NULL : prober->mine, bytes, prober->all, prober->present, err);
	for (uint32_t i = 0; i < config->hosts && status == ESP_OK; i++)
		if (!prober->present[i] && prober->fates[i] != PROBE_NONSENSE)
			prober->fates[i] = PROBE_ABSENT;
	return status;
}

/* The host that decides where one has to. */
uint32_t first_present(const struct prober *prober)
{
	uint32_t first = 0;

	while (first < prober->config->hosts && !prober->present[first])
		first++;
	return first;
}

bool decides(const struct prober *prober)
{
	return prober->config->self == first_present(prober);
}

enum esp_status exchange_hello(struct prober *prober, struct error *err)
{
	const struct probe_config *config = prober->config;

	randombytes_buf(prober->mine, PACKET_NONCE_BYTES);
	bytes_put16(prober->mine + PACKET_NONCE_BYTES, prober->measures ? prober->udp.port : 0);
	bytes_put16(prober->mine + PACKET_NONCE_BYTES + 2, prober->measures ? prober->port.port : 0);
	enum esp_status status = meet(prober, GREETING_BYTES, err);
	if (status != ESP_OK)
		return status;
	uint32_t first = first_present(prober);
	if (first == config->hosts)
		return error_set(err, ESP_EPEER, "no host is there to be probed");
	packet_session_init(&prober->session, config->key, sent_by(prober, first, GREETING_BYTES));
	for (uint32_t i = 0; i < config->hosts; i++) {
		const uint8_t *said = sent_by(prober, i, GREETING_BYTES) + PACKET_NONCE_BYTES;
		config->places[i].udp_port = prober->present[i] ? bytes_get16(said) : 0;
		config->places[i].tcp_port = prober->present[i] ? bytes_get16(said + 2) : 0;
	}
	echo_init(&prober->echo, &prober->session, config->hosts, config->self);
	return ESP_OK;
}

/* All hosts start together. */
enum esp_status wait_for_all(struct prober *prober, struct error *err)
{
	prober->mine[0] = 1;
	return meet(prober, 1, err);
}

static void sum_up_samples(struct prober *prober)
{
	for (uint32_t i = 0; i < prober->config->hosts; i++) {
		struct samples *samples = &prober->samples[i];
		prober->rows[i].rtt_count = samples->count;
		if (samples->count == 0)
			continue;
		prober->rows[i].rtt_low = samples_quantile(samples, RTT_LOW);
		prober->rows[i].rtt_median = samples_quantile(samples, 0.5);
	}
}

enum esp_status exchange_reports(struct prober *prober, struct error *err)
{
	uint32_t hosts = prober->config->hosts;
	size_t bytes = report_bytes(hosts);

	sum_up_samples(prober);
	report_encode(prober->rows, hosts, prober->mine);
	enum esp_status status = meet(prober, bytes, err);
	for (uint32_t i = 0; i < hosts && status == ESP_OK; i++) {
		struct report_row *rows = prober->all_rows + (size_t)i * hosts;
		if (prober->fates[i] == PROBE_IN && !report_decode(sent_by(prober, i, bytes), hosts, i, rows))
			prober->fates[i] = PROBE_NONSENSE;
		if (prober->fates[i] != PROBE_IN)
			memset(rows, 0, hosts * sizeof(*rows));
	}
	return status;
}

struct collect_input input_of(const struct prober *prober, bool latency, bool bandwidth)
{
	return (struct collect_input){prober->config->hosts, prober->all_rows, latency, bandwidth, prober->window};
}

