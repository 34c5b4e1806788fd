#include "tools/sim/sim_network.h"

#include <math.h>
#include <stdlib.h>

#include "base/infile.h"
#include "base/units.h"
#include "report/complain.h"
#include "sim/stand.h"

static const char *const models[] = {"fluid", "fifo", NULL};
static const char *const orders[] = {"shared", "ready", "block", NULL};
/* by the index of those names */
static const enum cluster_order order_of[] = {CLUSTER_SHARED, CLUSTER_READY, CLUSTER_BLOCK};
static const char *const places[] = {"contiguous", "interleaved", NULL};

size_t sim_tool_network_options(struct sim_network *network, struct option_spec *options)
{
	*network = (struct sim_network){
		.gbps = 10,
		.oversubscribe = 1,
		.nics = 1,
		.credits = 16,
		.active_chunks = 64,
		.delay = "0",
		.uplink_delay = "0",
		.grain = "0",
	};
	const struct option_spec all[] = {
		{"topology", 'T', OPTION_STRING, &network->file, "FILE",
		 "hosts, switches and links, as docs/sim.md describes; in place of the next six"},
		{"gbps", 0, OPTION_DOUBLE, &network->gbps, "G", "Gbit/s of a host's link, each way (default 10)",
		 .given = &network->gbps_given},
		{"server-gbps", 0, OPTION_DOUBLE, &network->server_gbps, "G",
		 "Gbit/s of a server's or hub's link (default: as --gbps)",
		 .given = &network->server_gbps_given},
		{"oversubscribe", 0, OPTION_DOUBLE, &network->oversubscribe, "N",
		 "a rack's uplink has hosts * rate / N (default 1)",
		 .given = &network->oversubscribe_given},
		{"delay", 0, OPTION_STRING, &network->delay, "TIME",
		 "of each host's link, one way, such as 5us; a number alone counts microseconds (default 0)",
		 .given = &network->delay_given},
		{"uplink-delay", 0, OPTION_STRING, &network->uplink_delay, "TIME", "of each rack's uplink, one way (default 0)",
		 .given = &network->uplink_delay_given},
		{"nics", 0, OPTION_U64, &network->nics, "N", "links of a host (default 1)", .min = 1, .max = TOPOLOGY_NICS_MAX,
		 .given = &network->nics_given},
		{"place", 0, OPTION_CHOICE, &network->place, "HOW", "how workers fill the racks (default contiguous)",
		 .choices = places},
		{"network", 0, OPTION_CHOICE, &network->model, "MODEL",
		 "fluid: flows share links fairly; fifo: links carry a message at a time (default fluid)", .choices = models},
		{"grain", 0, OPTION_STRING, &network->grain, "TIME",
		 "fluid: flows keep their rates so long while few of them come or go, such as 100us (default 0: never)"},
		{"order", 0, OPTION_CHOICE, &network->order, "ORDER",
		 "of a host's messages: shared by connections, as they get ready, or block, peer by peer (default shared; "
		 "fifo: ready)",
		 .choices = orders},
		{"cut-through", 0, OPTION_FLAG, &network->cut_through, NULL,
		 "switches of the plan add while data streams in; otherwise whole chunks"},
		{"mtu", 0, OPTION_U64, &network->mtu, "BYTES", "count the headers of packets of that size (default 0: none)",
		 .max = 65535},
		{"credits", 0, OPTION_U64, &network->credits, "N", "messages that a peer may send ahead (default 16)",
		 .min = 1, .max = 64},
		{"active-chunks", 0, OPTION_U64, &network->active_chunks, "N",
		 "chunks in flight on a node (default 64), if the plan does not ask for more", .min = 1, .max = 65536},
	};
	size_t count = sizeof(all) / sizeof(all[0]);

	for (size_t i = 0; i < count; i++)
		options[i] = all[i];
	return count;
}

static enum esp_status read_topology(struct sim_network *network, struct error *err)
{
	struct infile file;
	struct error why = {0};
	enum esp_status status = infile_open(&file, network->file, err);

	if (status != ESP_OK)
		return status;
	status = topology_parse(file.text, file.length, &network->topology, &why);
	infile_close(&file);
	return status == ESP_OK ? ESP_OK : error_set(err, status, "%.100s: %.140s", network->file, why.text);
}

/* The first given option that contradicts --topology; NULL: none was given. */
static const char *made_network(const struct sim_network *network)
{
	return network->gbps_given            ? "--gbps"
	       : network->server_gbps_given   ? "--server-gbps"
	       : network->oversubscribe_given ? "--oversubscribe"
	       : network->delay_given         ? "--delay"
	       : network->uplink_delay_given  ? "--uplink-delay"
	       : network->nics_given          ? "--nics"
	                                      : NULL;
}

int sim_tool_network_take(struct sim_network *network, const char *command)
{
	struct topology_spec *spec = &network->spec;
	struct error err = {0};

	if (!(network->gbps >= 1e-6 && network->gbps <= 1e6))
		return complain_usage("%s: --gbps is a rate from 0.000001 to 1000000", command);
	if (!(network->oversubscribe > 0 && network->oversubscribe <= 1e6))
		return complain_usage("%s: --oversubscribe must be above 0, and 1000000 at most", command);
	spec->rate_bits = (uint64_t)llround(network->gbps * 1e9);
	if (!(network->server_gbps == 0 || (network->server_gbps >= 1e-6 && network->server_gbps <= 1e6)))
		return complain_usage("%s: --server-gbps is a rate from 0.000001 to 1000000", command);
	spec->server_bits = (uint64_t)llround(network->server_gbps * 1e9);
	spec->oversubscribe = network->oversubscribe;
	spec->nics = (uint32_t)network->nics;
	if (!units_parse_delay(network->delay, &spec->delay_ns) ||
	    !units_parse_delay(network->uplink_delay, &spec->uplink_delay_ns))
		return complain_usage("%s: a delay is a time such as 5us, up to an hour; a number alone counts microseconds",
		                      command);
	if (!units_parse_delay(network->grain, &network->grain_ns))
		return complain_usage("%s: --grain is a time such as 100us, up to an hour; a number alone counts microseconds",
		                      command);
	if (network->grain_ns && network->model != NETWORK_FLUID)
		return complain_usage(
			"%s: --grain is for --network fluid: links that carry one message at a time have no rates to compute",
			command);
	if (network->mtu && network->mtu < 576)
		return complain_usage("%s: --mtu is 576 to 65535, or 0 for no headers", command);
	if (network->file && made_network(network))
		return complain_usage("%s: --topology FILE says what the network is; %s is for one that is made", command,
		                      made_network(network));
	if (!network->file)
		return -1;
	enum esp_status status = read_topology(network, &err);
	if (status == ESP_EINVAL || status == ESP_EIO)
		return complain_usage("%s: %s", command, err.text);
	return status == ESP_OK ? -1 : complain("%s: %s", command, err.text);
}

void sim_tool_network_fini(struct sim_network *network)
{
	topology_close(network->topology);
	network->topology = NULL;
}

enum esp_status sim_tool_network_place(const struct sim_network *network, uint32_t workers, uint32_t *out_place,
                                       struct error *err)
{
	return topology_place(network->topology, workers, network->place == 1, out_place, err);
}

static enum esp_status place_all(const struct sim_network *network, const struct plan *plan,
                                 const struct topology *topology, uint32_t *place, struct error *err)
{
	enum esp_status status;

	if (!network->topology)
		return sim_stand_nodes(plan, topology, NULL, place, err);
	uint32_t *workers = malloc(plan->workers * sizeof(*workers));
	if (!workers)
		return error_set(err, ESP_ENOMEM, "no memory to place %u workers", plan->workers);
	status = sim_tool_network_place(network, plan->workers, workers, err);
	if (status == ESP_OK)
		status = sim_stand_nodes(plan, topology, workers, place, err);
	free(workers);
	return status;
}

enum esp_status sim_tool_network_run(const struct sim_network *network, const struct plan *plan,
                                     void (*message)(void *user, const struct cluster_message *message), void *user,
                                     struct once_result *out, struct error *err)
{
	struct topology *made = NULL;
	uint32_t *place = malloc(plan->nodes * sizeof(*place));
	enum esp_status status = place ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory to place %u nodes", plan->nodes);

	if (status == ESP_OK && !network->topology)
		status = sim_stand_topology(plan, &network->spec, &made, err);
	const struct topology *topology = network->topology ? network->topology : made;
	if (status == ESP_OK)
		status = place_all(network, plan, topology, place, err);
	if (status == ESP_OK)
		status = sim_once_run(plan,
		                      &(struct once_config){.topology = topology,
		                                            .place = place,
		                                            .model = (enum network_model)network->model,
		                                            .cut_through_sums = network->cut_through,
		                                            .grain = 1e-9 * (double)network->grain_ns,
		                                            .mtu = (uint32_t)network->mtu,
		                                            .order = order_of[network->order],
		                                            .credits = (uint32_t)network->credits,
		                                            .active_chunks = (uint32_t)network->active_chunks,
		                                            .user = user,
		                                            .message = message},
		                      out, err);
	topology_close(made);
	free(place);
	return status;
}

void sim_tool_network_json(const struct sim_network *network, struct json *json)
{
	json_key(json, "network");
	json_object_begin(json);
	json_put_string(json, "model", models[network->model]);
	json_put_string(json, "order", orders[network->model == 1 && network->order == 0 ? 1 : network->order]);
	json_put_string(json, "topology", network->file);
	if (!network->file) {
		json_put_double(json, "gbps", network->gbps);
		json_put_double(json, "server_gbps", network->server_gbps > 0 ? network->server_gbps : network->gbps);
		json_put_double(json, "oversubscribe", network->oversubscribe);
		json_put_double(json, "delay_s", (double)network->spec.delay_ns * 1e-9);
		json_put_double(json, "uplink_delay_s", (double)network->spec.uplink_delay_ns * 1e-9);
		json_put_u64(json, "nics", network->nics);
	}
	json_put_double(json, "grain_s", 1e-9 * (double)network->grain_ns);
	json_put_bool(json, "cut_through", network->cut_through);
	json_put_u64(json, "mtu", network->mtu);
	json_put_u64(json, "credits", network->credits);
	json_put_u64(json, "active_chunks", network->active_chunks);
	json_object_end(json);
}

void sim_tool_bytes_json(const uint64_t *class_bytes, struct json *json)
{
	json_object_begin(json);
	for (unsigned i = 0; i < TOPOLOGY_CLASSES; i++)
		json_put_u64(json, topology_class_name((enum topology_class)i), class_bytes[i]);
	json_object_end(json);
}
