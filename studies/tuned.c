#include "studies/tuned.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/once.h"

enum esp_status tuned_init(struct tuned *tuned, const uint32_t *group_of, uint32_t machines, struct error *err)
{
	size_t pairs = (size_t)machines * machines;

	*tuned = (struct tuned){
		.machines = machines,
		.group_of = calloc(machines, sizeof(*tuned->group_of)),
		.nodes = calloc(machines, sizeof(*tuned->nodes)),
		.bytes = calloc(pairs, sizeof(*tuned->bytes)),
		.busy = calloc(pairs, sizeof(*tuned->busy)),
	};
	enum esp_status status = ESP_OK;
	if (!tuned->group_of || !tuned->nodes || !tuned->bytes || !tuned->busy) {
		status = error_set(err, ESP_ENOMEM, "no memory to tune %u machines", machines);
	} else {
		memcpy(tuned->group_of, group_of, machines * sizeof(*group_of));
		status = tuner_init(&tuned->tuner, group_of, machines, err);
	}
	if (status != ESP_OK)
		tuned_fini(tuned);
	return status;
}

void tuned_fini(struct tuned *tuned)
{
	tuner_fini(&tuned->tuner);
	free(tuned->group_of);
	free(tuned->nodes);
	free(tuned->bytes);
	free(tuned->busy);
	*tuned = (struct tuned){0};
}

/* ---- measuring ---- */

static void on_message(void *user, const struct cluster_message *message)
{
	struct tuned *tuned = user;
	size_t at = (size_t)message->from * tuned->machines + message->to;

	tuned->bytes[at] += message->bytes;
	tuned->busy[at] += message->left - message->begun;
}

static uint64_t rate_of(const struct tuned *tuned, uint32_t from, uint32_t to)
{
	size_t at = (size_t)from * tuned->machines + to;

	return tuned->busy[at] > 0 ? (uint64_t)llround((double)tuned->bytes[at] / tuned->busy[at]) : 0;
}

static uint64_t round_trip_ns(const struct topology *topology, uint32_t a, uint32_t b)
{
	uint32_t links[TOPOLOGY_HOPS_MAX];
	uint32_t count = topology_path(topology, topology->hosts[a], topology->hosts[b], 0, links);

	return (uint64_t)llround(2e9 * topology_delay(topology, links, count));
}

static struct tune_node node_of(const struct tuned *tuned, const struct topology *topology, uint32_t machine,
                                double seconds)
{
	struct tune_node node = {.time_ns = (uint64_t)llround(seconds * 1e9)};

	for (uint32_t other = 0; other < tuned->machines; other++) {
		uint64_t out = rate_of(tuned, machine, other), in = rate_of(tuned, other, machine);

		node.sent_bytes += tuned->bytes[(size_t)machine * tuned->machines + other];
		node.received_bytes += tuned->bytes[(size_t)other * tuned->machines + machine];
		node.send_rate += out;
		node.receive_rate += in;
		node.cross_rate += tuned->group_of[machine] != tuned->group_of[other] ? out : 0;
		uint64_t rtt = out > 0 ? round_trip_ns(topology, machine, other) : 0;
		node.rtt_ns = rtt > node.rtt_ns ? rtt : node.rtt_ns;
	}
	return node;
}

double tuned_balance(const struct tuned *tuned)
{
	uint64_t most = 0, least = UINT64_MAX;

	for (uint32_t i = 0; i < tuned->machines; i++) {
		most = tuned->nodes[i].sent_bytes > most ? tuned->nodes[i].sent_bytes : most;
		least = tuned->nodes[i].sent_bytes < least ? tuned->nodes[i].sent_bytes : least;
	}
	return least > 0 ? (double)most / (double)least : INFINITY;
}

/* ---- running ---- */

static enum esp_status play(const struct tuned *tuned, const struct plan_masters *masters,
                            const struct topology *topology, const struct once_load *load, struct tuned *watcher,
                            double *out_seconds, struct error *err)
{
	const struct plan_spec spec = {
		.chunks = {.collective = PLAN_ALLREDUCE, .workers = tuned->machines, .bytes = load->bytes,
		           .chunk_bytes = load->chunk_bytes, .align = 4},
		.in_place = true,
		.group_of = tuned->group_of,
		.masters = masters,
	};
	const struct once_config once = {.topology = topology, .place = topology->hosts, .model = NETWORK_FLUID,
	                                 .order = CLUSTER_SHARED,
	                                 .grain = load->grain, .credits = 16, .user = watcher,
	                                 .message = watcher ? on_message : NULL};
	struct once_result result;
	struct plan *plan = NULL;

	if (topology->host_count != tuned->machines)
		return error_set(err, ESP_EINVAL, "a topology of %u hosts for %u machines", topology->host_count,
		                 tuned->machines);
	enum esp_status status = plan_open(&planner_two_level, &spec, &plan, err);
	if (status == ESP_OK)
		status = sim_once_run(plan, &once, &result, err);
	if (status == ESP_OK)
		*out_seconds = result.seconds;
	plan_close(plan);
	return status;
}

enum esp_status tuned_without(const struct tuned *tuned, const struct plan_masters *masters,
                              const struct topology *topology, const struct once_load *load, double *out_seconds,
                              struct error *err)
{
	return play(tuned, masters, topology, load, NULL, out_seconds, err);
}

enum esp_status tuned_step(struct tuned *tuned, const struct topology *topology, const struct once_load *load,
                           double *out_seconds, struct tune_report *out_report, struct error *err)
{
	size_t pairs = (size_t)tuned->machines * tuned->machines;
	struct tune_report report = {0};

	memset(tuned->bytes, 0, pairs * sizeof(*tuned->bytes));
	memset(tuned->busy, 0, pairs * sizeof(*tuned->busy));
	enum esp_status status = play(tuned, &tuned->tuner.masters, topology, load, tuned, out_seconds, err);
	if (status != ESP_OK)
		return status;
	for (uint32_t i = 0; i < tuned->machines; i++)
		tuned->nodes[i] = node_of(tuned, topology, i, *out_seconds);
	const struct tune_sample sample = {tuned->machines, tuned->nodes};
	(void)tuner_step(&tuned->tuner, &sample, &report);
	if (out_report)
		*out_report = report;
	return ESP_OK;
}
