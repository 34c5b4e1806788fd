#include "sim/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "sim/cluster_state.h"

#define CREDITS_MOST 64u
#define ACTIVE_CHUNKS 64u
#define ACTIVE_CHUNKS_SWITCH 1024u /* at line rate, it has whatever is under way */
#define SLOT_BYTES (1u << 30) /* the largest chunk an executor takes; dry ones hold none */

/* ---- executors ---- */

void sim_cluster_fail(struct cluster *cluster, enum esp_status status, const char *what, const struct seat *seat)
{
	if (cluster->has_failed)
		return;
	cluster->has_failed = true;
	cluster->failure.status = status;
	snprintf(cluster->failure.text, sizeof(cluster->failure.text), "node %u, stream %u: %s was refused (status %d)",
	         seat->node, seat->stream, what, (int)status);
}

/* A demand of a plan that an executor has no room for, as the caller can change: another size, or another mechanism. */
static void fail_by_size(struct cluster *cluster)
{
	if (cluster->has_failed)
		return;
	cluster->has_failed = true;
	(void)error_set(&cluster->failure, ESP_EINVAL,
	                "a message would have more than %u bytes: use smaller chunks, or more messages of a parameter",
	                SLOT_BYTES);
}

struct exec *sim_seat_exec(struct cluster *cluster, struct seat *seat)
{
	const struct cluster_config *config = &cluster->config;

	if (seat->exec)
		return seat->exec;
	struct exec_config exec = {
		.node = seat->member,
		.credits = config->credits ? config->credits : CREDITS_MOST,
		.active_chunks = config->active_chunks ? config->active_chunks : ACTIVE_CHUNKS,
		.slot_bytes = SLOT_BYTES,
		.dry = true,
	};

	if (seat->is_switch && exec.active_chunks < ACTIVE_CHUNKS_SWITCH)
		exec.active_chunks = ACTIVE_CHUNKS_SWITCH;
	if (exec_open(&exec, &seat->exec, NULL) != ESP_OK)
		config->agenda->failed = true;
	return seat->exec;
}

static void settle(struct cluster *cluster, struct seat *seat)
{
	struct exec_done done;

	sim_post_collect(cluster, seat);
	while (exec_take_done(seat->exec, &done)) {
		if (done.status == ESP_ELIMIT)
			fail_by_size(cluster);
		else if (done.status != ESP_OK)
			sim_cluster_fail(cluster, done.status, "a call", seat);
		else if (cluster->config.done)
			cluster->config.done(cluster->config.user, seat->stream, seat->member, done.cookie);
	}
}

/* One after the other, whichever stirs another meanwhile: the functions that are called may start calls. */
void sim_cluster_stir(struct cluster *cluster, struct seat *seat)
{
	if (!cluster->is_settling && !exec_has_news(seat->exec))
		return;
	if (!seat->stirred) {
		seat->stirred = true;
		seat->next_stirred = NULL;
		if (cluster->stirred_first)
			cluster->stirred_last->next_stirred = seat;
		else
			cluster->stirred_first = seat;
		cluster->stirred_last = seat;
	}
	if (cluster->is_settling)
		return;
	cluster->is_settling = true;
	while (cluster->stirred_first) {
		struct seat *first = cluster->stirred_first;

		cluster->stirred_first = first->next_stirred;
		first->stirred = false;
		settle(cluster, first);
	}
	cluster->is_settling = false;
}

/* ---- open and close ---- */

static enum esp_status config_check(const struct cluster_config *config, struct error *err)
{
	if (config->nodes == 0)
		return error_set(err, ESP_EINVAL, "a cluster needs a node");
	for (uint32_t i = 0; i < config->nodes; i++) {
		if (config->place[i] >= config->topology->vertex_count)
			return error_set(err, ESP_EINVAL, "node %u is placed where nothing is", i);
	}
	if (config->credits > CREDITS_MOST)
		return error_set(err, ESP_EINVAL, "%u credits: there can be %u", config->credits, CREDITS_MOST);
	return ESP_OK;
}

static bool make_tables(struct cluster *cluster)
{
	const struct cluster_config *config = &cluster->config;
	uint32_t vertices = config->topology->vertex_count;

	cluster->place = malloc(config->nodes * sizeof(*cluster->place));
	cluster->order = malloc(vertices);
	cluster->nics = calloc(vertices, sizeof(struct outbox *));
	if (!cluster->place || !cluster->order || !cluster->nics)
		return false;
	memcpy(cluster->place, config->place, config->nodes * sizeof(*cluster->place));
	memset(cluster->order, (int)config->order, vertices);
	return true;
}

enum esp_status sim_cluster_open(const struct cluster_config *config, struct cluster **out, struct error *err)
{
	enum esp_status status = config_check(config, err);

	if (status != ESP_OK)
		return status;
	struct cluster *cluster = calloc(1, sizeof(*cluster));
	if (!cluster)
		return error_set(err, ESP_ENOMEM, "no memory for a cluster");
	cluster->config = *config;
	if (config->model == NETWORK_FIFO && (config->order == CLUSTER_SHARED || config->order == CLUSTER_SHARED_READY))
		cluster->config.order = CLUSTER_READY;
	if (!make_tables(cluster))
		status = error_set(err, ESP_ENOMEM, "no memory for a cluster of %u nodes", config->nodes);
	if (status == ESP_OK)
		status = sim_network_open(&(struct network_config){.topology = config->topology,
		                                                   .agenda = config->agenda,
		                                                   .model = config->model,
		                                                   .cut_through = config->cut_through,
		                                                   .grain = config->grain,
		                                                   .mtu = config->mtu,
		                                                   .user = cluster,
		                                                   .headed = sim_post_headed,
		                                                   .left = sim_post_left,
		                                                   .arrived = sim_post_arrived},
		                          &cluster->network, err);
	if (status != ESP_OK) {
		sim_cluster_close(cluster);
		return status;
	}
	*out = cluster;
	return ESP_OK;
}

void sim_cluster_close(struct cluster *cluster)
{
	if (!cluster)
		return;
	for (uint32_t s = 0; s < cluster->stream_count; s++) {
		for (uint32_t i = 0; i < cluster->streams[s].count; i++)
			exec_close(cluster->streams[s].seats[i].exec);
		free(cluster->streams[s].seats);
	}
	sim_network_close(cluster->network);
	sim_outboxes_close(cluster);
	sim_joints_close(cluster);
	sim_post_close(cluster);
	free(cluster->streams);
	free(cluster->place);
	free(cluster->order);
	free(cluster);
}

void sim_cluster_set_order(struct cluster *cluster, uint32_t vertex, enum cluster_order order)
{
	bool cannot_share = cluster->config.model == NETWORK_FIFO && order == CLUSTER_SHARED;

	cluster->order[vertex] = (uint8_t)(cannot_share ? CLUSTER_READY : order);
}

/* ---- streams and calls ---- */

uint32_t sim_cluster_stream(struct cluster *cluster, const uint32_t *members, uint32_t count, struct error *err)
{
	uint32_t number = cluster->stream_count;
	struct seat *seats = NULL;

	if (vec_reserve(&cluster->streams, &cluster->stream_room, (size_t)number + 1, sizeof(*cluster->streams)))
		seats = calloc(count, sizeof(*seats));
	if (!seats) {
		error_set(err, ESP_ENOMEM, "no memory for a stream of %u nodes", count);
		return UINT32_MAX;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t node = members ? members[i] : i;

		if (node >= cluster->config.nodes) {
			free(seats);
			error_set(err, ESP_EINVAL, "member %u is node %u, and there are %u", i, node, cluster->config.nodes);
			return UINT32_MAX;
		}
		uint32_t vertex = cluster->place[node];
		bool is_switch = !cluster->config.topology->vertices[vertex].is_host;

		seats[i] = (struct seat){.stream = number, .member = i, .node = node, .vertex = vertex, .is_switch = is_switch};
	}
	cluster->streams[cluster->stream_count++] = (struct stream){seats, count};
	return number;
}

enum esp_status sim_cluster_start(struct cluster *cluster, uint32_t stream, uint32_t member, const struct plan *plan,
                                  void *cookie, struct error *err)
{
	if (stream >= cluster->stream_count || member >= cluster->streams[stream].count)
		return error_set(err, ESP_EINVAL, "there is no member %u of a stream %u", member, stream);
	if (plan->nodes > cluster->streams[stream].count)
		return error_set(err, ESP_EINVAL, "the plan has %u nodes, and the stream %u", plan->nodes,
		                 cluster->streams[stream].count);
	if (cluster->has_failed)
		return error_set(err, cluster->failure.status, "%s", cluster->failure.text);
	struct seat *seat = &cluster->streams[stream].seats[member];
	struct exec *exec = sim_seat_exec(cluster, seat);
	if (!exec)
		return error_set(err, ESP_ENOMEM, "no memory for an executor");
	struct exec_call call = {.plan = plan, .type = ESP_U8, .op = ESP_SUM, .cookie = cookie};
	enum esp_status status = exec_start(exec, &call, err);
	if (status == ESP_OK)
		sim_cluster_stir(cluster, seat);
	return status;
}

enum esp_status sim_cluster_start_all(struct cluster *cluster, uint32_t stream, const struct plan *plan, void *cookie,
                                      struct error *err)
{
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; status == ESP_OK && i < plan->nodes; i++)
		status = sim_cluster_start(cluster, stream, i, plan, cookie, err);
	return status;
}

enum esp_status sim_cluster_quiet(const struct cluster *cluster, struct error *err)
{
	if (cluster->has_failed)
		return error_set(err, cluster->failure.status, "%s", cluster->failure.text);
	for (uint32_t s = 0; s < cluster->stream_count; s++) {
		const struct stream *stream = &cluster->streams[s];

		for (uint32_t i = 0; i < stream->count; i++) {
			struct exec_wait wait;

			if (!stream->seats[i].exec || !exec_waits(stream->seats[i].exec, &wait))
				continue;
			if (wait.sends || wait.peer == PLAN_NONE)
				return error_set(err, ESP_ESTATE, "node %u has not got rid of its messages of call %llu, chunk %llu",
				                 stream->seats[i].node, (unsigned long long)wait.call, (unsigned long long)wait.chunk);
			return error_set(err, ESP_ESTATE,
			                 "node %u waits for node %u in call %llu of stream %u, chunk %llu, for ever",
			                 stream->seats[i].node, stream->seats[wait.peer].node, (unsigned long long)wait.call, s,
			                 (unsigned long long)wait.chunk);
		}
	}
	return ESP_OK;
}

struct network *sim_cluster_network(struct cluster *cluster)
{
	return cluster->network;
}

struct cluster_stats sim_cluster_stats(const struct cluster *cluster)
{
	return cluster->stats;
}
