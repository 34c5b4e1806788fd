#include "hub/worker/hub_link.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "hub/control/host_place.h"
#include "hub/worker/link_state.h"
#include "node/net/listen.h"

/* ---- joining ---- */

static void make_dial(const struct hub_link *link, uint8_t purpose, uint32_t lane, struct hub_dial *out)
{
	*out = (struct hub_dial){
		.hub = &link->ticket.hub,
		.key = link->ticket.key,
		.job = link->ticket.job,
		.worker = link->config.worker,
		.workers = link->config.workers,
		.purpose = purpose,
		.lane = lane,
		.session = link->session,
		.until_ns = clock_now_ns() + link->config.join_ns,
	};
}

static enum esp_status join(struct hub_link *link, struct error *err)
{
	uint64_t until = clock_now_ns() + link->config.join_ns;
	struct hub_msg msg = {.type = HUB_MSG_JOIN,
	                      .join = {.worker = link->config.worker,
	                               .workers = link->config.workers,
	                               .pid = (uint32_t)getpid()}};
	struct hub_dial dial;
	char host[NODE_INFO_HOST_NAME];

	snprintf(link->host_name, sizeof(link->host_name), "%s", host_info_name(host));
	memcpy(msg.join.host, link->host_name, sizeof(msg.join.host));
	if (link->config.shares && host_meet_open(&link->meet, err) != ESP_OK)
		return err->status;
	msg.join.memory = link->config.shares ? host_place() : 0;
	msg.join.meeting = link->meet.number;
	make_dial(link, HELLO_CONTROL, 0, &dial);
	enum esp_status status = msg_socket_open(&link->socket, &dial, err);
	if (status == ESP_OK)
		status = msg_socket_put(&link->socket, &msg, until, err);
	if (status == ESP_OK)
		status = msg_socket_take(&link->socket, HUB_MSG_WELCOME, until, &msg, err);
	if (status != ESP_OK)
		return status;
	link->session = msg.welcome.session;
	link->lane_count = msg.welcome.lanes;
	link->chunk_bytes = msg.welcome.chunk_bytes;
	link->delay_bound = msg.welcome.delay_bound;
	if (link->lane_count < 1 || link->lane_count > LAYOUT_LANES_MOST ||
	    !optimizer_decode(msg.welcome.optimizer, &link->optimizer))
		return error_set(err, ESP_ECORRUPT, "the hub at %.100s welcomes with values that are out of range",
		                 link->socket.hub);
	return ESP_OK;
}

static void init_locks(struct hub_link *link)
{
	pthread_condattr_t attributes;

	pthread_mutex_init(&link->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&link->changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

enum esp_status hub_link_open(const struct hub_link_config *config, struct hub_link **out, struct error *err)
{
	const struct ticket *ticket = config->ticket;

	assert(config->worker < config->workers);
	if (ticket->workers != config->workers)
		return error_set(err, ESP_EMISMATCH, "job %s was created for %u workers (--workers), and %u were started",
		                 ticket->name, ticket->workers, config->workers);
	struct hub_link *link = calloc(1, sizeof(*link));
	if (!link)
		return error_set(err, ESP_ENOMEM, "no memory for a link to a hub");
	link->config = *config;
	link->ticket = *ticket;
	link->config.ticket = &link->ticket;
	link->process = getpid();
	link->socket.fd = link->meet.fd = -1;
	init_locks(link);
	enum esp_status status = poller_init(&link->poller);
	status = status == ESP_OK ? join(link, err) : error_set(err, status, "no descriptors for a link to a hub");
	if (status != ESP_OK) {
		hub_link_close(link);
		return status;
	}
	*out = link;
	return ESP_OK;
}

/* ---- declaring ---- */

static enum esp_status send_tensors(struct hub_link *link, const struct layout_tensor *tensors, uint32_t count,
                                    uint64_t until_ns, struct error *err)
{
	static _Thread_local uint8_t rows[HUB_MSG_TENSORS_EACH * HUB_MSG_TENSOR_BYTES];
	uint32_t at = 0;

	do {
		uint32_t some = count - at < HUB_MSG_TENSORS_EACH ? count - at : HUB_MSG_TENSORS_EACH;
		const struct hub_msg msg = {
			.type = HUB_MSG_TENSORS, .tensors = {.total = count, .first = at, .count = some, .rows = rows}};

		for (uint32_t i = 0; i < some; i++) {
			const struct layout_tensor *tensor = &tensors[at + i];
			const struct hub_msg_tensor row = {tensor->name, tensor->elements, tensor->type, tensor->group};

			hub_msg_tensor_put(rows + i * HUB_MSG_TENSOR_BYTES, &row);
		}
		enum esp_status status = msg_socket_put(&link->socket, &msg, until_ns, err);
		if (status != ESP_OK)
			return status;
		at += some;
	} while (at < count);
	return ESP_OK;
}

/* Until all workers have declared the same. */
static enum esp_status await_ready(struct hub_link *link, uint64_t until_ns, struct hub_msg_ready *out,
                                   struct error *err)
{
	struct hub_msg msg;
	enum esp_status status = msg_socket_take(&link->socket, HUB_MSG_READY, until_ns, &msg, err);

	*out = msg.ready;
	if (status == ESP_ETIMEOUT)
		return error_set(err, status,
		                 "not all %u workers of job %s have come to the hub at %.100s in time: 'espalier hub "
		                 "status' on its host says how many are there",
		                 link->config.workers, link->ticket.name, link->socket.hub);
	if (status == ESP_OK && msg.ready.digest != hub_layout_digest(&link->layout))
		return error_set(err, ESP_EMISMATCH, "the hub at %.100s cuts tensors in another way: is it of another version?",
		                 link->socket.hub);
	return status;
}

static enum esp_status open_lane(struct hub_link *link, uint32_t number, struct error *err)
{
	struct link_lane *lane = &link->lanes[number];
	const struct client_lane_config config = {.layout = &link->layout,
	                                          .lane = number,
	                                          .is_async = link->delay_bound > 0,
	                                          .push_budget = link->delay_bound > 0 ? &link->push_pace.budget : NULL,
	                                          .pull_budget = link->delay_bound > 0 ? &link->pull_pace.budget : NULL};
	const struct tcp_config tcp = {.peers = 1, .poller = &link->poller};
	uint8_t session[HANDSHAKE_KEY_BYTES];
	struct hub_dial dial;
	int fd;

	enum esp_status status = client_lane_open(&config, &lane->client, err);
	if (status == ESP_OK)
		status = tcp_open(&tcp, &client_lane_user, lane->client, &lane->tcp, err);
	if (status != ESP_OK)
		return status;
	make_dial(link, HELLO_LANE, number, &dial);
	status = hub_dial(&dial, &fd, session, err);
	if (status == ESP_OK)
		status = tcp_adopt(lane->tcp, 0, fd, !address_is_loopback(&link->ticket.hub), err);
	return status;
}

static enum esp_status open_lanes(struct hub_link *link, struct error *err)
{
	uint32_t lanes = link->lane_count;
	enum esp_status status = ESP_OK;

	link->lanes = calloc(lanes, sizeof(*link->lanes));
	link->next_version = calloc(link->layout.tensors + 1u, sizeof(*link->next_version));
	if (!link->lanes || !link->next_version)
		return error_set(err, ESP_ENOMEM, "no memory for lanes to the hub");
	for (uint32_t i = 0; status == ESP_OK && i < lanes; i++)
		status = open_lane(link, i, err);
	return status;
}

enum esp_status hub_link_declare(struct hub_link *link, const struct layout_tensor *tensors, uint32_t count,
                                 struct error *err)
{
	uint64_t until = clock_now_ns() + link->config.join_ns;
	struct hub_msg_ready ready = {0};

	assert(!link->is_declared);
	enum esp_status status = hub_layout_make(tensors, count, link->chunk_bytes, link->lane_count, &link->layout, err);
	if (status == ESP_OK)
		status = send_tensors(link, tensors, count, until, err);
	if (status == ESP_OK)
		status = await_ready(link, until, &ready, err);
	if (status == ESP_OK)
		status = link_host_open(link, &ready, until, err);
	host_meet_close(&link->meet);
	if (status == ESP_OK)
		status = open_lanes(link, err);
	if (status == ESP_OK)
		status = link_control_begin(link, err);
	if (status == ESP_OK)
		status = link_thread_start(link, err);
	if (status == ESP_OK)
		link->is_declared = true;
	else if (link->failure.status == ESP_OK && err)
		link->failure = *err;
	return status;
}

/* ---- the end ---- */

static void close_lanes(struct hub_link *link)
{
	for (uint32_t i = 0; link->lanes && i < link->lane_count; i++) {
		tcp_close(link->lanes[i].tcp);
		client_lane_close(link->lanes[i].client);
	}
	free(link->lanes);
	link->lanes = NULL;
}

/* Calls that were under way: no thread moves their data any more. */
static void end_ops(struct hub_link *link, struct hub_op_list *list)
{
	while (list->first) {
		struct hub_op *op = list->first;

		op_list_remove(list, op);
		pthread_mutex_lock(&link->lock);
		op_end_locked(link, op, ESP_EABORTED);
		pthread_cond_broadcast(&link->changed);
		pthread_mutex_unlock(&link->lock);
		hub_op_put(op);
	}
}

void hub_link_close(struct hub_link *link)
{
	if (!link)
		return;
	bool leaves = link->unfinished == 0;
	link_thread_stop(link, leaves);
	if (link->is_declared)
		link_control_end(link);
	close_lanes(link);
	end_ops(link, &link->queue);
	end_ops(link, &link->under_way);
	link_host_close(link);
	host_meet_close(&link->meet);
	msg_socket_close(&link->socket);
	poller_fini(&link->poller);
	hub_layout_fini(&link->layout);
	free(link->next_version);
	pthread_cond_destroy(&link->changed);
	pthread_mutex_destroy(&link->lock);
	explicit_bzero(link, sizeof(*link));
	free(link);
}

/* ---- what is known ---- */

const struct hub_layout *hub_link_layout(const struct hub_link *link)
{
	return link->is_declared ? &link->layout : NULL;
}

const struct optimizer *hub_link_optimizer(const struct hub_link *link)
{
	return &link->optimizer;
}

float *hub_link_weights(const struct hub_link *link, uint32_t tensor)
{
	return link_host_weights(link, tensor);
}

float *hub_link_gradient(const struct hub_link *link, uint32_t tensor)
{
	return link_host_gradient(link, tensor);
}

const float *hub_link_map(const struct hub_link *link, uint32_t tensor)
{
	return link_host_map(link, tensor);
}

uint32_t hub_link_worker(const struct hub_link *link)
{
	return link->config.worker;
}

uint32_t hub_link_workers(const struct hub_link *link)
{
	return link->config.workers;
}

const char *hub_link_job(const struct hub_link *link)
{
	return link->ticket.name;
}

uint64_t hub_link_session(const struct hub_link *link)
{
	return link->session;
}

const struct ticket *hub_link_ticket(const struct hub_link *link)
{
	return &link->ticket;
}

bool hub_link_is_forked(const struct hub_link *link)
{
	return link->process != getpid();
}

enum esp_status hub_link_failure(struct hub_link *link, struct error *out)
{
	pthread_mutex_lock(&link->lock);
	enum esp_status status = link->failure.status;
	*out = link->failure;
	pthread_mutex_unlock(&link->lock);
	return status;
}

struct hub_link_stats hub_link_stats(struct hub_link *link)
{
	pthread_mutex_lock(&link->lock);
	struct hub_link_stats stats = link->stats;
	pthread_mutex_unlock(&link->lock);
	return stats;
}
