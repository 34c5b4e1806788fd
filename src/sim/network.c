#include "sim/network.h"

#include <math.h>
#include <stdlib.h>

#include "sim/network_state.h"

/* ---- transfers ---- */

static bool add_slab(struct network *network)
{
	struct transfer_slab *slab = malloc(sizeof(*slab));

	if (!slab)
		return false;
	slab->next = network->slabs;
	network->slabs = slab;
	for (uint32_t i = SLAB_TRANSFERS; i-- > 0;) {
		slab->transfers[i].network = network;
		sim_network_put(&slab->transfers[i]);
	}
	return true;
}

static struct transfer *transfer_get(struct network *network)
{
	if (!network->free && !add_slab(network)) {
		network->config.agenda->failed = true;
		return NULL;
	}
	struct transfer *transfer = network->free;
	network->free = transfer->next_free;
	/* The other fields are set by sim_fluid_start() and sim_fifo_start(). */
	transfer->wire = transfer->delay = transfer->tail = 0;
	transfer->is_background = transfer->tells_head = false;
	transfer->hop = 0;
	return transfer;
}

void sim_network_put(struct transfer *transfer)
{
	transfer->next_free = transfer->network->free;
	transfer->network->free = transfer;
}

static double wire_bytes(const struct network_config *config, uint64_t bytes)
{
	if (config->mtu == 0)
		return (double)bytes;
	uint64_t payload = config->mtu - NETWORK_HEADERS_IN_MTU;
	uint64_t packets = bytes == 0 ? 1 : (bytes - 1) / payload + 1;
	return (double)bytes + (double)packets * NETWORK_HEADERS;
}

static void count_bytes(struct network *network, const struct share_flow *flow, uint64_t bytes)
{
	for (uint32_t i = 0; i < flow->hops; i++) {
		network->links[flow->link[i]].bytes += bytes;
		network->class_bytes[network->config.topology->links[flow->link[i]].class] += bytes;
	}
}

void sim_network_headed(void *user)
{
	struct transfer *transfer = user;

	transfer->network->config.headed(transfer->network->config.user, transfer->cookie);
}

void sim_network_arrived(void *user)
{
	struct transfer *transfer = user;
	const struct network_config *config = &transfer->network->config;
	void *cookie = transfer->cookie;

	sim_network_put(transfer);
	if (config->arrived)
		config->arrived(config->user, cookie);
}

void sim_network_left(void *user)
{
	struct transfer *transfer = user;
	const struct network_config *config = &transfer->network->config;

	if (config->left)
		config->left(config->user, transfer->cookie);
}

/* It has left, and is there at once. */
void sim_network_passed(void *user)
{
	sim_network_left(user);
	sim_network_arrived(user);
}

void sim_network_send(struct network *network, uint32_t from, uint32_t to, uint32_t nic, uint64_t bytes, void *cookie)
{
	const struct topology *topology = network->config.topology;
	struct agenda *agenda = network->config.agenda;
	struct transfer *transfer = transfer_get(network);

	if (!transfer)
		return;
	transfer->cookie = cookie;
	transfer->flow.hops = topology_path(topology, from, to, nic, transfer->flow.link);
	transfer->wire = wire_bytes(&network->config, bytes);
	transfer->delay = topology_delay(topology, transfer->flow.link, transfer->flow.hops);
	transfer->tells_head = network->config.headed && !topology->vertices[to].is_host;
	network->transfers++;
	count_bytes(network, &transfer->flow, bytes);
	/* FIFO: the head may have to queue on its way. */
	if (transfer->tells_head && (network->config.model == NETWORK_FLUID || transfer->flow.hops == 0))
		sim_agenda_at(agenda, agenda->now + transfer->delay, sim_network_headed, transfer);
	if (transfer->flow.hops == 0)
		sim_agenda_at(agenda, agenda->now, sim_network_passed, transfer);
	else if (network->config.model == NETWORK_FLUID)
		sim_fluid_start(transfer);
	else
		sim_fifo_start(transfer);
}

/* ---- rates ---- */

static void rate_changed(struct network *network, uint32_t link)
{
	if (network->config.model == NETWORK_FLUID)
		sim_fluid_changed(network, link);
}

void sim_network_set_rate(struct network *network, uint32_t link, double rate)
{
	network->links[link].rate = rate;
	rate_changed(network, link);
}

static void take_change(void *user)
{
	struct change *change = user;
	const struct topology_vertex *vertex = &change->network->config.topology->vertices[change->what->vertex];

	for (uint32_t i = 0; i < 2u * vertex->nics; i++)
		sim_network_set_rate(change->network, vertex->first_link + i, change->what->rate);
}

/* ---- traffic of others ---- */

static void take_rate(struct background *background, double sign)
{
	struct network *network = background->network;
	uint32_t links[TOPOLOGY_HOPS_MAX];
	uint32_t hops =
		topology_path(network->config.topology, background->what->source, background->what->target, 0, links);

	for (uint32_t i = 0; i < hops; i++) {
		network->links[links[i]].taken += sign * background->what->rate;
		rate_changed(network, links[i]);
	}
}

static void background_begin(void *user)
{
	struct background *background = user;
	struct network *network = background->network;
	const struct topology_background *what = background->what;

	if (what->flows == 0) {
		take_rate(background, 1);
		return;
	}
	for (uint32_t i = 0; i < what->flows; i++) {
		struct transfer *transfer = transfer_get(network);

		if (!transfer)
			return;
		transfer->is_background = true;
		transfer->flow.hops =
			topology_path(network->config.topology, what->source, what->target, i, transfer->flow.link);
		background->transfers[i] = transfer;
		sim_fluid_start(transfer);
	}
}

static void background_end(void *user)
{
	struct background *background = user;

	if (background->what->flows == 0)
		take_rate(background, -1);
	for (uint32_t i = 0; i < background->what->flows; i++) {
		sim_fluid_stop(background->transfers[i]);
		background->transfers[i] = NULL;
	}
}

/* ---- open and close ---- */

static enum esp_status config_check(const struct network_config *config, struct error *err)
{
	for (uint32_t i = 0; i < config->topology->background_count; i++) {
		if (config->topology->backgrounds[i].flows && config->model != NETWORK_FLUID)
			return error_set(err, ESP_EINVAL,
			                 "background flows share links fairly, which links that carry one message at a "
			                 "time do not: give the background a rate");
	}
	if (config->mtu != 0 && (config->mtu < 576 || config->mtu > 65535))
		return error_set(err, ESP_EINVAL, "an MTU of %u: there are 576 to 65535, or 0 for no headers", config->mtu);
	return ESP_OK;
}

static bool put_down_weather(struct network *network)
{
	const struct topology *topology = network->config.topology;
	struct agenda *agenda = network->config.agenda;

	for (uint32_t i = 0; i < topology->change_count; i++) {
		network->changes[i] = (struct change){network, &topology->changes[i]};
		sim_agenda_at(agenda, topology->changes[i].at, take_change, &network->changes[i]);
	}
	for (uint32_t i = 0; i < topology->background_count; i++) {
		const struct topology_background *what = &topology->backgrounds[i];
		struct background *background = &network->backgrounds[i];

		*background = (struct background){network, what, calloc(what->flows + 1, sizeof(struct transfer *))};
		if (!background->transfers)
			return false;
		sim_agenda_at(agenda, what->from, background_begin, background);
		if (what->to < INFINITY)
			sim_agenda_at(agenda, what->to, background_end, background);
	}
	return true;
}

static bool make_links(struct network *network)
{
	const struct topology *topology = network->config.topology;

	network->links = calloc(topology->link_count + 1, sizeof(*network->links));
	network->changes = calloc(topology->change_count + 1, sizeof(*network->changes));
	network->backgrounds = calloc(topology->background_count + 1, sizeof(*network->backgrounds));
	if (!network->links || !network->changes || !network->backgrounds)
		return false;
	for (uint32_t i = 0; i < topology->link_count; i++) {
		network->links[i].rate = topology->links[i].rate;
		if (network->config.model == NETWORK_FLUID)
			sim_share_set_capacity(&network->share, i, topology->links[i].rate);
	}
	return put_down_weather(network);
}

enum esp_status sim_network_open(const struct network_config *config, struct network **out, struct error *err)
{
	enum esp_status status = config_check(config, err);

	if (status != ESP_OK)
		return status;
	struct network *network = calloc(1, sizeof(*network));
	if (!network)
		return error_set(err, ESP_ENOMEM, "no memory for a network");
	network->config = *config;
	network->next_tick = INFINITY;
	if (config->model == NETWORK_FLUID)
		status = sim_share_init(&network->share, config->topology->link_count, err);
	if (status == ESP_OK && !make_links(network))
		status = error_set(err, ESP_ENOMEM, "no memory for %u links", config->topology->link_count);
	if (status != ESP_OK) {
		sim_network_close(network);
		return status;
	}
	*out = network;
	return ESP_OK;
}

void sim_network_close(struct network *network)
{
	if (!network)
		return;
	for (uint32_t i = 0; network->backgrounds && i < network->config.topology->background_count; i++)
		free(network->backgrounds[i].transfers);
	while (network->slabs) {
		struct transfer_slab *slab = network->slabs;

		network->slabs = slab->next;
		free(slab);
	}
	sim_share_fini(&network->share);
	free(network->heap);
	free(network->links);
	free(network->changes);
	free(network->backgrounds);
	free(network);
}

/* ---- counts ---- */

uint64_t sim_network_class_bytes(const struct network *network, enum topology_class class)
{
	return network->class_bytes[class];
}

uint64_t sim_network_link_bytes(const struct network *network, uint32_t link)
{
	return network->links[link].bytes;
}

struct network_stats sim_network_stats(const struct network *network)
{
	return (struct network_stats){network->transfers, network->solved, network->share.flows_seen};
}
