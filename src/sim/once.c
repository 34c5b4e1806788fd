#include "sim/once.h"

#include <math.h>

struct once {
	const struct once_config *config;
	const struct plan *plan;
	struct agenda agenda;
	uint32_t workers_done;
	double first, last;
};

static void on_done(void *user, uint32_t stream, uint32_t member, void *cookie)
{
	struct once *once = user;
	(void)stream, (void)cookie;

	if (member >= once->plan->workers)
		return;
	if (once->workers_done++ == 0)
		once->first = once->agenda.now;
	once->last = once->agenda.now;
}

static void on_message(void *user, const struct cluster_message *message)
{
	struct once *once = user;

	once->config->message(once->config->user, message);
}

static enum esp_status play(struct once *once, struct cluster *cluster, struct error *err)
{
	uint32_t stream = sim_cluster_stream(cluster, NULL, once->plan->nodes, err);
	enum esp_status status = ESP_ENOMEM;

	if (stream != UINT32_MAX)
		status = sim_cluster_start_all(cluster, stream, once->plan, NULL, err);
	if (status == ESP_OK)
		status = sim_agenda_run(&once->agenda, INFINITY, err);
	if (status == ESP_OK)
		status = sim_cluster_quiet(cluster, err);
	return status == ESP_ESTATE ? ESP_EPLAN : status;
}

enum esp_status sim_once_run(const struct plan *plan, const struct once_config *config, struct once_result *out,
                             struct error *err)
{
	struct once once = {.config = config, .plan = plan};
	struct cluster_config made = {
		.agenda = &once.agenda,
		.topology = config->topology,
		.place = config->place,
		.nodes = plan->nodes,
		.model = config->model,
		.cut_through = !config->store_and_forward,
		.cut_through_sums = config->cut_through_sums,
		.grain = config->grain,
		.mtu = config->mtu,
		.order = config->order,
		.credits = config->credits,
		.active_chunks = config->active_chunks,
		.user = &once,
		.done = on_done,
		.message = config->message ? on_message : NULL,
	};
	struct cluster *cluster = NULL;
	enum esp_status status = sim_cluster_open(&made, &cluster, err);

	if (status == ESP_OK)
		status = play(&once, cluster, err);
	if (status == ESP_OK) {
		struct cluster_stats stats = sim_cluster_stats(cluster);

		*out = (struct once_result){
			.seconds = once.last,
			.first = once.first,
			.messages = stats.messages,
			.bytes = stats.bytes,
			.credits = stats.credits,
			.events = once.agenda.happened,
		};
		for (unsigned i = 0; i < TOPOLOGY_CLASSES; i++)
			out->class_bytes[i] = sim_network_class_bytes(sim_cluster_network(cluster), (enum topology_class)i);
	}
	sim_cluster_close(cluster);
	sim_agenda_fini(&once.agenda);
	return status;
}
