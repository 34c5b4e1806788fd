#include "tools/lab/measure.h"

#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "tools/lab/flow.h"

#define ETHERNET_BYTES 14u
#define TRIES 3u
#define OPEN_MS 5000
#define WARM_UP_NS (300 * NS_PER_MS)
#define PINGS 101
#define PING_MS 2000

/* ---- the list of measurements ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static const struct lab_settings *host_settings(const struct lab *lab, uint32_t host, uint32_t rail)
{
	return &lab_link(lab, lab_host_link(lab, host, rail))->set;
}

static const struct lab_settings *uplink_settings(const struct lab *lab, uint32_t rack, uint32_t rail)
{
	return &lab_link(lab, lab_uplink(lab, rack, rail))->set;
}

static bool is_passable(const struct lab_settings *settings)
{
	return !settings->down && !settings->faults[LAB_FROM].cut && !settings->faults[LAB_TO].cut;
}

static uint64_t both_delays(const struct lab_settings *settings)
{
	return settings->faults[LAB_FROM].delay_ns + settings->faults[LAB_TO].delay_ns;
}

static bool plan_host(const struct lab *lab, uint32_t rail, uint32_t from, uint32_t to, struct measure *out)
{
	const struct lab_settings *a = host_settings(lab, from, rail), *b = host_settings(lab, to, rail);
	*out = (struct measure){
		.class = MEASURE_HOST,
		.rail = rail,
		.from = from,
		.to = to,
		.asked_bits = least(a->rate, b->rate),
		.asked_rtt_ns = both_delays(a) + both_delays(b),
	};
	return is_passable(a) && is_passable(b);
}

static bool plan_uplink(const struct lab *lab, uint32_t rail, uint32_t from, uint32_t to, struct measure *out)
{
	const struct lab_settings *up = uplink_settings(lab, from, rail), *down = uplink_settings(lab, to, rail);
	uint32_t hosts = lab->config.hosts;
	uint64_t pairs = 0, host_delays = 0;
	bool passable = is_passable(up) && is_passable(down);
	for (uint32_t i = 0; i < hosts; i++) {
		const struct lab_settings *a = host_settings(lab, from * hosts + i, rail),
		    *b = host_settings(lab, to * hosts + i, rail);
		pairs += least(a->rate, b->rate);
		passable = passable && is_passable(a) && is_passable(b);
		if (i == 0)
			host_delays = both_delays(a) + both_delays(b);
	}
	*out = (struct measure){
		.class = MEASURE_UPLINK,
		.rail = rail,
		.from = from,
		.to = to,
		.asked_bits = least(pairs, least(up->rate, down->rate)),
		.asked_rtt_ns = both_delays(up) + both_delays(down) + host_delays,
	};
	return passable;
}

size_t lab_measure_plan(const struct lab *lab, bool all, struct measure *out, size_t room)
{
	const struct lab_config *config = &lab->config;
	uint32_t hosts = config->hosts, racks = config->racks;
	size_t count = 0;
	struct measure measure;
	for (uint32_t rail = 0; rail < config->rails; rail++) {
		bool found = false;
		for (uint32_t host = 0; hosts > 1 && host < lab->host_count && (all || !found); host++) {
			uint32_t rack = host / hosts, next = rack * hosts + (host + 1) % hosts;
			if (!plan_host(lab, rail, host, next, &measure))
				continue;
			found = true;
			if (count < room)
				out[count] = measure;
			count++;
		}
		found = false;
		for (uint32_t rack = 0; racks > 1 && rack < racks && (all || !found); rack++) {
			if (!plan_uplink(lab, rail, rack, (rack + 1) % racks, &measure))
				continue;
			found = true;
			if (count < room)
				out[count] = measure;
			count++;
		}
	}
	return count;
}

bool lab_measure_is_right(const struct measure *measure)
{
	double asked = (double)measure->asked_bits, rtt = (double)measure->asked_rtt_ns;
	if (measure->tries == 0 || measure->failure[0])
		return false;
	return fabs(measure->bits - asked) <= MEASURE_TOLERANCE * asked &&
	       (measure->asked_rtt_ns == 0 || fabs((double)measure->rtt_ns - rtt) <= MEASURE_TOLERANCE * rtt);
}

/* ---- a rate ---- */

/* The ratio of a frame's bytes to TCP's payload. */
static double frame_factor(const struct fabric *fabric, const struct flow *flow)
{
	struct tcp_info info = {0};
	socklen_t length = sizeof(info);
	if (getsockopt(flow->sender, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || info.tcpi_snd_mss == 0)
		return 1;
	return (double)(fabric->lab->config.mtu + ETHERNET_BYTES) / info.tcpi_snd_mss;
}

/* Bytes that all flows deliver until a time; -1: a flow broke. */
static double move_until(struct flow *flows, uint32_t count, struct pollfd *polls, uint64_t end_ns)
{
	double bytes = 0;
	for (uint64_t now_ns = clock_now_ns(); now_ns < end_ns; now_ns = clock_now_ns()) {
		for (uint32_t i = 0; i < count; i++) {
			polls[2 * i] = (struct pollfd){flows[i].sender, POLLOUT, 0};
			polls[2 * i + 1] = (struct pollfd){flows[i].receiver, POLLIN, 0};
		}
		int wait_ms = (int)((end_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS);
		if (poll(polls, 2 * count, wait_ms) <= 0)
			continue;
		for (uint32_t i = 0; i < count; i++) {
			ssize_t got = polls[2 * i + 1].revents ? lab_flow_drain(&flows[i]) : 0;
			if (got < 0 || (polls[2 * i].revents && !lab_flow_fill(&flows[i])))
				return -1;
			bytes += (double)got;
		}
	}
	return bytes;
}

static enum esp_status open_flows(const struct fabric *fabric, const struct measure *measure, struct flow *flows,
                                  uint32_t count, struct error *err)
{
	uint32_t hosts = fabric->lab->config.hosts;
	enum esp_status status = ESP_OK;
	for (uint32_t i = 0; i < count && status == ESP_OK; i++) {
		bool uplink = measure->class == MEASURE_UPLINK;
		uint32_t from = uplink ? measure->from * hosts + i : measure->from;
		uint32_t to = uplink ? measure->to * hosts + i : measure->to;
		status = lab_flow_open(&flows[i], fabric, from, to, measure->rail, OPEN_MS, err);
	}
	return status;
}

/* flows and polls have room for `count` flows; the caller closes them afterwards. */
static enum esp_status move_and_count(const struct fabric *fabric, double seconds, struct measure *measure,
                                      struct flow *flows, uint32_t count, struct pollfd *polls, struct error *err)
{
	enum esp_status status = open_flows(fabric, measure, flows, count, err);
	if (status != ESP_OK)
		return status;
	double warm = move_until(flows, count, polls, clock_now_ns() + WARM_UP_NS);
	uint64_t began_ns = clock_now_ns();
	double bytes = move_until(flows, count, polls, began_ns + (uint64_t)(seconds * (double)NS_PER_S));
	double took = (double)(clock_now_ns() - began_ns) / (double)NS_PER_S;
	if (warm < 0 || bytes < 0)
		return error_set(err, ESP_ELINK, "a connection broke");
	measure->bits = bytes * 8 / took * frame_factor(fabric, &flows[0]);
	return ESP_OK;
}

static enum esp_status measure_rate(const struct fabric *fabric, double seconds, struct measure *measure,
                                    struct error *err)
{
	uint32_t count = measure->class == MEASURE_UPLINK ? fabric->lab->config.hosts : 1;
	struct flow *flows = calloc(count, sizeof(*flows));
	struct pollfd *polls = calloc(2 * (size_t)count, sizeof(*polls));
	enum esp_status status = ESP_ENOMEM;
	if (flows && polls) {
		for (uint32_t i = 0; i < count; i++)
			flows[i] = (struct flow){-1, -1};
		status = move_and_count(fabric, seconds, measure, flows, count, polls, err);
		for (uint32_t i = 0; i < count; i++)
			lab_flow_close(&flows[i]);
	} else {
		error_set(err, ESP_ENOMEM, "no memory for %u flows", count);
	}
	free(flows);
	free(polls);
	return status;
}

/* ---- a latency ---- */

static int open_datagrams(const struct fabric *fabric, uint32_t host, uint32_t rail, struct sockaddr_storage *address,
                          socklen_t *length)
{
	*length = lab_flow_address(fabric->lab, host, rail, 0, address);
	int fd = lab_space_socket(&fabric->spaces[host], address->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	if (bind(fd, (struct sockaddr *)address, *length) == 0 && getsockname(fd, (struct sockaddr *)address, length) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Waits for the datagram with this number; skips older ones. False: none in time. */
static bool receive_ping(int fd, uint32_t wanted)
{
	uint32_t number;
	struct pollfd poll_fd = {fd, POLLIN, 0};
	while (poll(&poll_fd, 1, PING_MS) > 0)
		if (recv(fd, &number, sizeof(number), 0) == (ssize_t)sizeof(number) && number == wanted)
			return true;
	return false;
}

static int compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
	return left < right ? -1 : left > right;
}

static enum esp_status measure_latency(const struct fabric *fabric, struct measure *measure, struct error *err)
{
	uint32_t hosts = fabric->lab->config.hosts;
	bool uplink = measure->class == MEASURE_UPLINK;
	struct sockaddr_storage here, there;
	socklen_t here_length, there_length;
	uint64_t times[PINGS];
	size_t heard = 0;
	int a = open_datagrams(fabric, uplink ? measure->from * hosts : measure->from, measure->rail, &here, &here_length);
	int b = open_datagrams(fabric, uplink ? measure->to * hosts : measure->to, measure->rail, &there, &there_length);
	uint32_t misses = 0;
	for (uint32_t i = 0; a >= 0 && b >= 0 && i < PINGS && misses < 3; i++) {
		uint64_t began_ns = clock_now_ns();
		bool sent = sendto(a, &i, sizeof(i), 0, (struct sockaddr *)&there, there_length) > 0;
		if (sent && receive_ping(b, i) && sendto(b, &i, sizeof(i), 0, (struct sockaddr *)&here, here_length) > 0 &&
		    receive_ping(a, i))
			times[heard++] = clock_now_ns() - began_ns;
		else
			misses++;
	}
	if (a >= 0)
		close(a);
	if (b >= 0)
		close(b);
	if (heard == 0)
		return error_set(err, ESP_ELINK, "no datagram came back");
	qsort(times, heard, sizeof(times[0]), compare);
	measure->rtt_ns = times[heard / 2];
	return ESP_OK;
}

/* Latency first, while the path is idle. */
void lab_measure_run(const struct fabric *fabric, double seconds, struct measure *measure)
{
	struct error err = {0};
	do {
		enum esp_status status = measure_latency(fabric, measure, &err);
		if (status == ESP_OK)
			status = measure_rate(fabric, seconds, measure, &err);
		measure->tries++;
		snprintf(measure->failure, sizeof(measure->failure), "%.*s", status == ESP_OK ? 0 : 95, err.text);
	} while (!lab_measure_is_right(measure) && !measure->failure[0] && measure->tries < TRIES);
}
