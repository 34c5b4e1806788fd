/*
 * switch_status.c - the state of a switch: as text, as JSON, for Prometheus; and the request to drain it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/observe/http_server.h"
#include "report/rows.h"
#include "switch/endpoint/tag.h"
#include "switch/server/switch_state.h"

const char *switch_status_name(uint32_t user, uint16_t port, char name[SWITCH_STATUS_NAME])
{
	snprintf(name, SWITCH_STATUS_NAME, "espalier/%u/switch/%u", user, port);
	return name;
}

/* ---- rates ---- */

static void tick_flow(struct switch_flow *flow)
{
	flow->contributions_per_s = (double)(flow->contributions - flow->last_contributions);
	flow->results_per_s = (double)(flow->results - flow->last_results);
	flow->last_contributions = flow->contributions;
	flow->last_results = flow->results;
}

void switch_status_tick(struct switch_server *server)
{
	const struct trains_counters *udp = trains_counters(server->udp);

	server->received_bps = 8.0 * (double)(udp->received_bytes - server->last_received_bytes);
	server->sent_bps = 8.0 * (double)(udp->sent_bytes - server->last_sent_bytes);
	server->last_received_bytes = udp->received_bytes;
	server->last_sent_bytes = udp->sent_bytes;
	for (uint32_t i = 0; i < SWITCH_BUCKETS; i++)
		for (struct switch_flow *flow = server->flows[i]; flow; flow = flow->next)
			tick_flow(flow);
}

/* ---- counters by what they mean ---- */

struct sums {
	uint64_t hits;       /* contributions that a slot took in */
	uint64_t complete;   /* sums of all children that left */
	uint64_t collisions; /* found their slot taken, or no slot left for their address */
	uint64_t resends;    /* came again */
	uint64_t repeats;    /* came twice, and were dropped */
	uint64_t aged;       /* slots that were forgotten for another number */
};

static struct sums sums_of(const uint64_t step[STEP_EVENTS])
{
	return (struct sums){
		.hits = step[STEP_CLAIMED] + step[STEP_RECLAIMED] + step[STEP_ADDED] + step[STEP_COMPLETED] +
		        step[STEP_RELEASED_ADDED] + step[STEP_ALONE],
		.complete = step[STEP_COMPLETED] + step[STEP_ALONE],
		.collisions = step[STEP_COLLIDED],
		.resends = step[STEP_RESEND_UNKNOWN] + step[STEP_RELEASED] + step[STEP_RELEASED_ADDED],
		.repeats = step[STEP_REPEATED],
		.aged = step[STEP_RECLAIMED],
	};
}

static double seconds_since(const struct switch_server *server, uint64_t then_ns)
{
	uint64_t now = loop_now(&server->loop);

	return now > then_ns ? (double)(now - then_ns) / (double)NS_PER_S : 0;
}

/* ---- flows ---- */

static const struct column columns[] = {
	{"FLOW", "flow"},
	{"MEMBERS", "members"},
	{"AGE S", "age_seconds", "%.0f"},
	{"IDLE S", "idle_seconds", "%.1f"},
	{"SLOTS", "slots"},
	{"PACKETS", "contributions"},
	{"HITS", "hits"},
	{"SUMS", "complete"},
	{"COLLISIONS", "collisions"},
	{"OVER QUOTA", "over_quota"},
	{"RESENDS", "resends"},
	{"REPEATS", "repeats"},
	{"PACKETS/S", "contributions_per_second", "%.0f"},
	{"RESULTS/S", "results_per_second", "%.0f"},
	{0},
};

static void put_flow(struct rows *rows, const struct switch_server *server, const struct switch_flow *flow)
{
	struct sums sums = sums_of(flow->step);
	uint8_t bytes[8];
	char name[17];

	/* The number itself is a secret of the members. */
	bytes_put64(bytes, flow->id);
	snprintf(name, sizeof(name), "%08x", (unsigned)tag_siphash(server->secret, bytes, sizeof(bytes)));
	rows_text(rows, name);
	rows_u64(rows, flow->count);
	rows_double(rows, seconds_since(server, flow->began_ns));
	rows_double(rows, seconds_since(server, flow->used_ns));
	rows_u64(rows, flow->slots);
	rows_u64(rows, flow->contributions);
	rows_u64(rows, sums.hits);
	rows_u64(rows, sums.complete);
	rows_u64(rows, sums.collisions);
	rows_u64(rows, flow->over_quota);
	rows_u64(rows, sums.resends);
	rows_u64(rows, sums.repeats);
	rows_double(rows, flow->contributions_per_s);
	rows_double(rows, flow->results_per_s);
}

static enum esp_status put_flows(const struct switch_server *server, struct json *json, FILE *out)
{
	struct rows rows;

	rows_begin(&rows, columns, json);
	for (uint32_t i = 0; i < SWITCH_BUCKETS; i++)
		for (const struct switch_flow *flow = server->flows[i]; flow; flow = flow->next)
			put_flow(&rows, server, flow);
	return rows_end(&rows, out);
}

/* ---- the whole, one line or key per value ---- */

struct value {
	const char *key, *help;
	double value;
	bool is_counter;
};

#define VALUES_MOST 40u

static uint32_t list_values(const struct switch_server *server, struct value out[VALUES_MOST])
{
	const struct trains_counters *udp = trains_counters(server->udp);
	const struct switch_traffic *traffic = &server->traffic;
	struct sums sums = sums_of(server->step);
	const struct value values[] = {
		{"uptime_seconds", "since the switch was started", seconds_since(server, server->began_ns), false},
		{"draining", "1 while members are told to go on without the switch", server->is_draining, false},
		{"flows", "flows with members", server->flow_count, false},
		{"members", "members of all flows", server->member_count, false},
		{"slots", "aggregators", server->config.slots, false},
		{"slots_in_use", "aggregators that hold contributions", server->slots_used, false},
		{"slots_in_use_peak", "the most at once", server->slots_peak, false},
		{"link_rate_bits_per_second", "as set; 0: not known", (double)server->config.rate_bps, false},
		{"received_bits_per_second", "in the last second", server->received_bps, false},
		{"sent_bits_per_second", "in the last second", server->sent_bps, false},
		{"hits", "contributions that an aggregator took in", (double)sums.hits, true},
		{"complete", "sums of all contributions that left", (double)sums.complete, true},
		{"collisions", "contributions that found their aggregator taken", (double)sums.collisions, true},
		{"resends", "contributions that were sent again", (double)sums.resends, true},
		{"repeats", "contributions that came twice", (double)sums.repeats, true},
		{"aged", "aggregators that were forgotten for another number", (double)sums.aged, true},
		{"hellos", "hellos of members", (double)traffic->hellos, true},
		{"strangers", "packets from addresses that are not registered", (double)traffic->strangers, true},
		{"malformed", "packets that are none of this protocol", (double)traffic->malformed, true},
		{"foreign", "packets of another version of the protocol", (double)traffic->foreign, true},
		{"refused_flows", "hellos that were refused: no room, too many flows of a host, or no key",
		 (double)traffic->refused_flows, true},
		{"undelivered", "packets for members that are not registered", (double)traffic->undelivered, true},
		{"received_packets", "packets that arrived", (double)udp->received, true},
		{"received_bytes", "of these", (double)udp->received_bytes, true},
		{"sent_packets", "packets that left", (double)udp->sent, true},
		{"sent_bytes", "of these", (double)udp->sent_bytes, true},
		{"unsent_packets", "packets that the kernel did not take", (double)udp->unsent, true},
		{"faults_lost", "packets lost by a fault for tests", (double)server->impair.lost, true},
		{"faults_repeated", "packets repeated by a fault for tests", (double)server->impair.repeated, true},
		{"faults_reordered", "packets held back by a fault for tests", (double)server->impair.reordered, true},
		{"faults_corrupted", "packets changed by a fault for tests", (double)server->impair.corrupted, true},
	};
	uint32_t count = sizeof(values) / sizeof(values[0]);

	_Static_assert(sizeof(values) / sizeof(values[0]) <= VALUES_MOST, "room for all values");
	memcpy(out, values, sizeof(values));
	return count;
}

/* ---- answers ---- */

static void answer_text(const struct switch_server *server, FILE *out)
{
	const struct trains_counters *udp = trains_counters(server->udp);
	struct sums sums = sums_of(server->step);
	char listen[ADDRESS_TEXT];

	fprintf(out, "switch at %s (process %d)%s: %u flow%s, %u of %u aggregators in use (%u at most)\n",
	        address_format(&server->config.listen, listen), (int)getpid(),
	        server->is_draining ? ", drained: jobs go on without it" : "", server->flow_count,
	        server->flow_count == 1 ? "" : "s", server->slots_used, server->config.slots, server->slots_peak);
	fprintf(out, "%" PRIu64 " hits, %" PRIu64 " complete sums, %" PRIu64 " collisions, %" PRIu64 " resends, %" PRIu64
	        " repeats, %" PRIu64 " from strangers, %" PRIu64 " malformed\n",
	        sums.hits, sums.complete, sums.collisions, sums.resends, sums.repeats, server->traffic.strangers,
	        server->traffic.malformed);
	fprintf(out,
	        "in %.1f Mbit/s, out %.1f Mbit/s; %.1f packets a system call in, %.1f out\n", server->received_bps / 1e6,
	        server->sent_bps / 1e6, udp->receives ? (double)udp->received / (double)udp->receives : 0.0,
	        udp->sends ? (double)udp->sent / (double)udp->sends : 0.0);
	if (server->flow_count > 0 && put_flows(server, NULL, out) != ESP_OK)
		fputs("no memory for the table of flows\n", out);
}

static void answer_json(const struct switch_server *server, FILE *out)
{
	struct value values[VALUES_MOST];
	uint32_t count = list_values(server, values);
	char listen[ADDRESS_TEXT];
	struct json json;

	json_init(&json, out);
	json_object_begin(&json);
	json_put_string(&json, "listen", address_format(&server->config.listen, listen));
	json_put_u64(&json, "pid", (uint64_t)getpid());
	for (uint32_t i = 0; i < count; i++)
		json_put_double(&json, values[i].key, values[i].value);
	json_key(&json, "by_flow");
	enum esp_status status = put_flows(server, &json, NULL);
	json_object_end(&json);
	if (status == ESP_OK)
		status = json_fini(&json);
	(void)status; /* the answer is written to memory: a want of it shows as an answer that is cut off */
}

static void answer_metrics(const struct switch_server *server, FILE *out)
{
	struct value values[VALUES_MOST];
	uint32_t count = list_values(server, values);

	fprintf(out, "# HELP espalier_switch_info the version of the switch\n# TYPE espalier_switch_info gauge\n");
	fprintf(out, "espalier_switch_info{version=\"%s\"} 1\n", server->config.version);
	for (uint32_t i = 0; i < count; i++) {
		const char *total = values[i].is_counter ? "_total" : "";
		fprintf(out, "# HELP espalier_switch_%s%s %s\n# TYPE espalier_switch_%s%s %s\nespalier_switch_%s%s %.17g\n",
		        values[i].key, total, values[i].help, values[i].key, total, values[i].is_counter ? "counter" : "gauge",
		        values[i].key, total, values[i].value);
	}
}

static void answer_drain(struct switch_server *server, bool drains, FILE *out)
{
	if (server->is_draining != drains)
		switch_log(server, drains ? "drained: members are told to go on without the switch"
		                          : "members are told that the switch helps again");
	server->is_draining = drains;
	fprintf(out, "the switch at port %u %s\n", server->config.listen.port,
	        drains ? "is drained: jobs go on without it" : "helps again");
}

static const char *answer(void *context, const char *path, FILE *out, const char **out_type)
{
	struct switch_server *server = context;

	if (strcmp(path, "/text") == 0) {
		answer_text(server, out);
	} else if (strcmp(path, "/status") == 0) {
		*out_type = "application/json";
		answer_json(server, out);
	} else if (strcmp(path, "/metrics") == 0) {
		*out_type = "text/plain; version=0.0.4; charset=utf-8";
		answer_metrics(server, out);
	} else if (strcmp(path, "/drain") == 0 || strcmp(path, "/undrain") == 0) {
		answer_drain(server, path[1] == 'd', out);
	} else {
		fputs("/status, /text, /metrics, /drain and /undrain are served\n", out);
		return "404 Not Found";
	}
	return "200 OK";
}

enum esp_status switch_status_open(struct switch_server *server, struct error *err)
{
	char name[SWITCH_STATUS_NAME];
	struct error why;
	enum esp_status status = http_server_open(&server->loop, answer, server, &server->status, err);

	if (status != ESP_OK)
		return status;
	switch_status_name((uint32_t)geteuid(), server->config.listen.port, name);
	if (http_server_listen_name(server->status, name, &why) != ESP_OK)
		switch_log(server, "'espalier switch status' will not find this switch: %s", why.text);
	return ESP_OK;
}

void switch_status_close(struct switch_server *server)
{
	http_server_close(server->status);
	server->status = NULL;
}
