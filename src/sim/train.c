/* train.c - a run of training from its first iteration to its last: which worker starts which call when. */
#include "sim/train.h"

#include <math.h>
#include <stdlib.h>

#include "sim/train_state.h"

/* ---- calls ---- */

void sim_train_start(struct train *train, struct train_call *call, uint32_t member)
{
	if (train->status == ESP_OK)
		train->status = sim_cluster_start(train->cluster, call->stream, member, call->plan, call, train->err);
}

/* On the nodes that compute nothing: they take part from the start. */
static void start_passive(struct train *train, struct train_call *call)
{
	for (uint32_t member = train->load->workers; member < call->members; member++)
		sim_train_start(train, call, member);
}

static void start_everywhere(struct train *train, struct train_call *call)
{
	for (uint32_t member = 0; member < call->members; member++)
		sim_train_start(train, call, member);
}

/* ---- iterations ---- */

static void begin_iteration(struct train *train)
{
	/* Without the barrier it is not said when an iteration begins: servers and switches expect all of them. */
	uint32_t expected = train->config.no_barrier ? train->iterations : 1;

	train->sums_left = train->sums.count;
	for (uint32_t k = 0; k < expected; k++) {
		for (uint32_t i = 0; i < train->sums.count; i++)
			start_passive(train, &train->sums.calls[i]);
	}
	for (uint32_t i = 0; i < train->spreads.count; i++)
		start_everywhere(train, &train->spreads.calls[i]);
	for (uint32_t i = 0; !train->servers && i < train->load->workers; i++)
		sim_worker_begin(&train->workers[i]);
}

static void on_begin(void *user)
{
	begin_iteration(user);
}

/* All sums of an iteration are where they belong. */
static void pass_barrier(struct train *train)
{
	train->last_s = train->agenda.now;
	if (++train->iteration < train->iterations)
		begin_iteration(train);
}

/* A sum is where it belongs, and no worker waits for the others. */
static void pass_on(struct train *train, struct train_call *sum)
{
	if (sum == &train->sums.calls[train->first_layer]) {
		if (sum->rounds == 1)
			train->first_s = train->agenda.now;
		train->last_s = train->agenda.now;
	}
	if (!train->servers || sum->rounds == train->iterations)
		return;
	if (sum->rounds > train->iteration) {
		train->iteration = sum->rounds;
		/* Parameters that no gradient changes go out with the first that one does. */
		for (uint32_t i = 0; i < train->spreads.count; i++) {
			if (train->spreads.calls[i].is_fixed)
				start_everywhere(train, &train->spreads.calls[i]);
		}
	}
	if (sum->next != LOAD_NONE)
		start_everywhere(train, &train->spreads.calls[sum->next]);
}

static void sum_complete(struct train *train, struct train_call *sum)
{
	sum->rounds++;
	if (train->config.no_barrier)
		pass_on(train, sum);
	else if (--train->sums_left == 0)
		pass_barrier(train);
}

/* A worker has the result of an allreduce. */
static void result_came(struct train *train, struct train_call *sum, uint32_t rank)
{
	const struct load *load = train->load;

	for (uint32_t i = 0; train->config.no_barrier && i < sum->count; i++) {
		uint32_t item = load->gradients[sum->first + i].item;

		if (item != LOAD_NONE)
			sim_worker_got(&train->workers[rank], load->items[item].layer);
	}
	if (--sum->waits > 0)
		return;
	sum->waits = load->workers;
	sum_complete(train, sum);
}

static void on_done(void *user, uint32_t stream, uint32_t member, void *cookie)
{
	struct train *train = user;
	struct train_call *call = cookie;
	uint32_t workers = train->load->workers;

	(void)stream;
	if (!call->is_sum && member < workers)
		sim_worker_got(&train->workers[member], train->load->items[call->first].layer);
	else if (call->is_sum && train->servers && member == call->owner)
		sum_complete(train, call);
	else if (call->is_sum && !train->servers && member < workers)
		result_came(train, call, (member + call->rotation) % workers);
}

static void on_message(void *user, const struct cluster_message *message)
{
	const struct train *train = user;
	struct train_cargo cargo = sim_train_cargo(train, message->stream, message->call);

	train->config.watch.moved(train->config.watch.user, message, &cargo);
}

/* ---- where everything stands ---- */

static uint32_t last_host(const struct topology *topology, uint32_t rack)
{
	uint32_t found = TOPOLOGY_NONE;

	for (uint32_t i = 0; i < topology->host_count; i++) {
		if (topology_rack(topology, topology->hosts[i]) == rack)
			found = topology->hosts[i];
	}
	return found;
}

static uint32_t count_last_hosts(const struct topology *topology)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < topology->host_count; i++)
		count += last_host(topology, topology_rack(topology, topology->hosts[i])) == topology->hosts[i];
	return count;
}

/*
 * Workers and servers on the hosts in their order; the last host of a rack is left to its hub, if that leaves enough.
 * Servers that find no host share one with a worker, from the first on.
 */
static bool place_hosts(struct train *train)
{
	const struct topology *topology = train->config.topology;
	uint32_t workers = train->load->workers, wanted = workers + train->servers, placed = 0;
	bool leaves_hubs =
		train->config.mechanism->uses_hubs && workers + count_last_hosts(topology) <= topology->host_count;

	for (uint32_t i = 0; i < topology->host_count && placed < wanted; i++) {
		uint32_t host = topology->hosts[i];

		if (!leaves_hubs || last_host(topology, topology_rack(topology, host)) != host)
			train->place[placed++] = host;
	}
	if (placed == 0 || placed < workers)
		return false;
	for (uint32_t shared = 0; placed < wanted; shared++)
		train->place[placed++] = topology->hosts[shared % topology->host_count];
	return true;
}

/* The rack of each worker, and how many extra nodes that makes. */
static enum esp_status find_groups(struct train *train, struct error *err)
{
	uint32_t workers = train->load->workers, count = workers + train->servers;
	const struct mechanism *mechanism = train->config.mechanism;
	enum esp_status status = topology_groups(train->config.topology, train->place, count, train->group_of, err);

	for (uint32_t i = 0; status == ESP_OK && i < count; i++) {
		train->groups = train->group_of[i] >= train->groups ? train->group_of[i] + 1 : train->groups;
		if (i < workers) {
			train->worker_groups = train->groups;
			train->plan_group_of[i] = train->group_of[i];
		}
	}
	if (mechanism->uses_switch)
		train->extras = train->groups > 1 ? train->groups + 1 : 1;
	else if (mechanism->uses_hubs)
		train->extras = train->worker_groups;
	return status;
}

/* A switch in every rack, or a hub on its last host, and a switch above them. */
static void place_extras(struct train *train)
{
	const struct topology *topology = train->config.topology;
	uint32_t count = train->load->workers + train->servers, *extra = train->place + count;

	for (uint32_t i = 0; i < train->extras; i++)
		extra[i] = topology_root(topology);
	for (uint32_t i = count; i-- > 0;) {
		uint32_t group = train->group_of[i], rack = topology_rack(topology, train->place[i]);

		if (group < train->extras)
			extra[group] = train->config.mechanism->uses_hubs ? last_host(topology, rack) : rack;
	}
}

static enum esp_status open_cluster(struct train *train, struct error *err)
{
	const struct train_config *config = &train->config;
	uint32_t chunks = TRAIN_CREDITS / train_ways(train), pieces = config->split ? config->split : train->load->workers;
	const struct cluster_config wanted = {
		.agenda = &train->agenda,
		.topology = config->topology,
		.place = train->place,
		.nodes = train->load->workers + train->servers + train->extras,
		.model = config->fluid ? NETWORK_FLUID : NETWORK_FIFO,
		.cut_through = true,
		.cut_through_sums = config->cut_through_sums,
		.order = config->fluid ? CLUSTER_SHARED_READY : CLUSTER_READY,
		.active_chunks = chunks > pieces ? chunks : pieces, /* all that a stream has at a time */
		.user = train,
		.done = on_done,
		.message = config->watch.moved ? on_message : NULL,
	};
	enum esp_status status = sim_cluster_open(&wanted, &train->cluster, err);

	for (uint32_t i = 0; status == ESP_OK && config->block && i < train->servers; i++)
		sim_cluster_set_order(train->cluster, train->place[train->load->workers + i], CLUSTER_BLOCK);
	return status;
}

/* ---- all of it ---- */

/* The sum that completes last in the first layer: what is measured without the barrier. */
static uint32_t find_first_layer(const struct train *train)
{
	const struct load *load = train->load;
	uint32_t found = train->sums.count - 1;

	for (uint32_t i = 0; i < train->sums.count; i++) {
		uint32_t item = load->gradients[train->sums.calls[i].first].item;

		if (item != LOAD_NONE && load->items[item].layer == 0)
			found = i;
	}
	return found;
}

static enum esp_status check(const struct train_config *config, struct error *err)
{
	if (config->mechanism->spread && config->servers == 0)
		return error_set(err, ESP_EINVAL, "%s needs at least one server", config->mechanism->name);
	if (config->no_barrier && config->iterations == 1)
		return error_set(err, ESP_EINVAL,
		                 "without the barrier at least two iterations are needed: what is measured lies between them");
	if (!(config->compute >= 0) || isinf(config->compute))
		return error_set(err, ESP_EINVAL, "computing %g times faster is no number to go by", config->compute);
	return ESP_OK;
}

static enum esp_status prepare(struct train *train, struct error *err)
{
	const struct load *load = train->load;

	uint32_t count = load->workers + train->servers;

	/* No more extra nodes than racks and one above. */
	train->place = calloc((size_t)count * 2 + 1, sizeof(*train->place));
	train->group_of = calloc(count, sizeof(*train->group_of));
	train->plan_group_of = calloc((size_t)load->workers + 1, sizeof(*train->plan_group_of));
	if (!train->place || !train->group_of || !train->plan_group_of)
		return error_set(err, ESP_ENOMEM, "no memory for the places of %u workers", load->workers);
	if (!place_hosts(train))
		return error_set(err, ESP_EINVAL,
		                 "too few hosts: %u workers need %u, and the topology has %u; take fewer workers (--workers "
		                 "%u) or add hosts to it",
		                 load->workers, load->workers, train->config.topology->host_count,
		                 train->config.topology->host_count);
	enum esp_status status = find_groups(train, err);
	if (status == ESP_OK) {
		place_extras(train);
		status = sim_train_make_calls(train, err);
	}
	if (status == ESP_OK)
		status = sim_train_make_workers(train, err);
	if (status == ESP_OK)
		status = open_cluster(train, err);
	if (status == ESP_OK)
		status = sim_train_make_streams(train, err);
	return status;
}

/* Did all workers come to the end? If not, something was never sent that a forward pass waits for. */
static enum esp_status check_end(const struct train *train, struct error *err)
{
	uint32_t done = train->config.no_barrier ? train->sums.calls[train->first_layer].rounds : train->iteration;

	if (done == train->iterations)
		return ESP_OK;
	return error_set(
		err, ESP_ESTATE,
		"%s: only %u of %u iterations came to their end: some worker waits for parameters that no server sends",
		train->config.mechanism->name, done, train->iterations);
}

static void report(const struct train *train, struct train_result *out)
{
	const struct network *network = sim_cluster_network(train->cluster);

	*out = (struct train_result){.messages = sim_cluster_stats(train->cluster).messages / train->iterations};
	out->iteration_s = train->config.no_barrier ? (train->last_s - train->first_s) / (train->iterations - 1)
	                                            : train->last_s / train->iterations;
	for (unsigned class = 0; class < TOPOLOGY_CLASSES; class++)
		out->class_bytes[class] = sim_network_class_bytes(network, (enum topology_class) class) / train->iterations;
	out->busiest = sim_train_busiest(train);
}

static void drop(struct train *train)
{
	sim_cluster_close(train->cluster);
	sim_train_drop_calls(train);
	sim_train_drop_workers(train);
	free(train->place);
	free(train->group_of);
	free(train->plan_group_of);
	sim_agenda_fini(&train->agenda);
}

enum esp_status sim_train_run(const struct train_config *config, struct train_result *out, struct error *err)
{
	struct train train = {
		.config = *config,
		.load = config->load,
		.speed = config->compute > 0 ? config->compute : 1,
		.iterations = config->iterations ? config->iterations : config->no_barrier ? 3 : 1,
		.servers = config->mechanism->spread ? config->servers : 0,
		.err = err,
	};
	enum esp_status status = check(config, err);

	if (status == ESP_OK)
		status = prepare(&train, err);
	if (status == ESP_OK) {
		train.first_layer = find_first_layer(&train);
		sim_agenda_at(&train.agenda, 0, on_begin, &train);
		status = sim_agenda_run(&train.agenda, INFINITY, err);
	}
	if (status == ESP_OK)
		status = train.status;
	if (status == ESP_OK)
		status = sim_cluster_quiet(train.cluster, err);
	if (status == ESP_OK)
		status = check_end(&train, err);
	if (status == ESP_OK)
		report(&train, out);
	drop(&train);
	return status;
}
