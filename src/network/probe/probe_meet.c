#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "network/probe/probe_parts.h"
#include "wire/bytes.h"

#define RTT_LOW 0.05 /* quantile of the samples that counts as the distance */

const uint8_t *probe_sent_by(const struct prober *prober, uint32_t host, size_t bytes)
{
	return prober->all + (size_t)host * bytes;
}

/* Sends prober->mine, receives prober->all. */
enum esp_status probe_meet(struct prober *prober, size_t bytes, struct error *err)
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
uint32_t probe_first_present(const struct prober *prober)
{
	uint32_t first = 0;

	while (first < prober->config->hosts && !prober->present[first])
		first++;
	return first;
}

bool probe_decides(const struct prober *prober)
{
	return prober->config->self == probe_first_present(prober);
}

enum esp_status probe_exchange_hello(struct prober *prober, struct error *err)
{
	const struct probe_config *config = prober->config;

	randombytes_buf(prober->mine, PACKET_NONCE_BYTES);
	bytes_put16(prober->mine + PACKET_NONCE_BYTES, prober->measures ? prober->udp.port : 0);
	bytes_put16(prober->mine + PACKET_NONCE_BYTES + 2, prober->measures ? prober->port.port : 0);
	enum esp_status status = probe_meet(prober, GREETING_BYTES, err);
	if (status != ESP_OK)
		return status;
	uint32_t first = probe_first_present(prober);
	if (first == config->hosts)
		return error_set(err, ESP_EPEER, "no host is there to be probed");
	probe_packet_session_init(&prober->session, config->key, probe_sent_by(prober, first, GREETING_BYTES));
	for (uint32_t i = 0; i < config->hosts; i++) {
		const uint8_t *said = probe_sent_by(prober, i, GREETING_BYTES) + PACKET_NONCE_BYTES;
		config->places[i].udp_port = prober->present[i] ? bytes_get16(said) : 0;
		config->places[i].tcp_port = prober->present[i] ? bytes_get16(said + 2) : 0;
	}
	probe_echo_init(&prober->echo, &prober->session, config->hosts, config->self);
	return ESP_OK;
}

/* All hosts start together. */
enum esp_status probe_wait_for_all(struct prober *prober, struct error *err)
{
	prober->mine[0] = 1;
	return probe_meet(prober, 1, err);
}

static void sum_up_samples(struct prober *prober)
{
	for (uint32_t i = 0; i < prober->config->hosts; i++) {
		struct samples *samples = &prober->samples[i];
		prober->rows[i].rtt_count = samples->count;
		if (samples->count == 0)
			continue;
		prober->rows[i].rtt_low = probe_samples_quantile(samples, RTT_LOW);
		prober->rows[i].rtt_median = probe_samples_quantile(samples, 0.5);
	}
}

enum esp_status probe_exchange_reports(struct prober *prober, struct error *err)
{
	uint32_t hosts = prober->config->hosts;
	size_t bytes = report_bytes(hosts);

	sum_up_samples(prober);
	probe_report_encode(prober->rows, hosts, prober->mine);
	enum esp_status status = probe_meet(prober, bytes, err);
	for (uint32_t i = 0; i < hosts && status == ESP_OK; i++) {
		struct report_row *rows = prober->all_rows + (size_t)i * hosts;
		if (prober->fates[i] == PROBE_IN && !probe_report_decode(probe_sent_by(prober, i, bytes), hosts, i, rows))
			prober->fates[i] = PROBE_NONSENSE;
		if (prober->fates[i] != PROBE_IN)
			memset(rows, 0, hosts * sizeof(*rows));
	}
	return status;
}

struct collect_input probe_input_of(const struct prober *prober, bool latency, bool bandwidth)
{
	return (struct collect_input){prober->config->hosts, prober->all_rows, latency, bandwidth, prober->window};
}

