#include "hub/worker/hub_link.h"

#include <assert.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "hub/control/host_place.h"
#include "hub/worker/link_state.h"
#include "node/auth/key.h"
#include "node/net/listen.h"

#define TELL_PATIENCE (1 * NS_PER_S)

/* ---- joining ---- */

static void make_dial(const struct hub_link *link, uint32_t hub, uint8_t purpose, uint32_t lane, struct hub_dial *out)
{
	*out = (struct hub_dial){
		.hub = &link->ticket.hubs[hub],
		.key = link->ticket.key,
		.job = link->ticket.job,
		.worker = link->config.worker,
		.workers = link->config.workers,
		.purpose = purpose,
		.lane = lane,
		.session = link->hubs[hub].session,
		.until_ns = clock_now_ns() + link->config.join_ns,
	};
}

static enum esp_status make_hubs(struct hub_link *link, struct error *err)
{
	link->hub_count = link->ticket.hub_count;
	link->sockets = calloc(link->hub_count, sizeof(*link->sockets));
	link->hubs = calloc(link->hub_count, sizeof(*link->hubs));
	for (uint32_t i = 0; link->sockets && i < link->hub_count; i++)
		link->sockets[i].fd = -1;
	for (uint32_t i = 0; link->hubs && i < link->hub_count; i++)
		link->hubs[i].socket = link->sockets + i;
	return link->sockets && link->hubs ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for links to hubs");
}

/* All hubs of a job were told the same when it was created. */
static enum esp_status check_welcome(const struct hub_link *link, uint32_t number,
                                     const struct hub_msg_welcome *welcome, struct error *err)
{
	const char *hub = link->sockets[number].hub;
	struct optimizer optimizer;

	if (welcome->lanes < 1 || welcome->lanes > LAYOUT_LANES_MOST || !optimizer_decode(welcome->optimizer, &optimizer))
		return error_set(err, ESP_ECORRUPT, "the hub at %.100s welcomes with values that are out of range", hub);
	if (welcome->hubs != link->hub_count || welcome->own != number)
		return error_set(err, ESP_EMISMATCH,
		                 "the hub at %.100s is hub %u of %u of job %s, and in the ticket it is hub %u of %u", hub,
		                 welcome->own + 1u, welcome->hubs, link->ticket.name, number + 1, link->hub_count);
	if (number > 0 && (welcome->chunk_bytes != link->chunk_bytes || welcome->delay_bound != link->delay_bound ||
	                   memcmp(&optimizer, &link->optimizer, sizeof(optimizer)) != 0))
		return error_set(err, ESP_EMISMATCH, "the hubs at %.100s and %.100s have job %s with other values",
		                 link->sockets[0].hub, hub, link->ticket.name);
	return ESP_OK;
}

static enum esp_status join_hub(struct hub_link *link, uint32_t number, const struct hub_msg *join, struct error *err)
{
	uint64_t until = clock_now_ns() + link->config.join_ns;
	struct msg_socket *socket = &link->sockets[number];
	struct link_hub *hub = &link->hubs[number];
	struct hub_msg msg;
	struct hub_dial dial;

	make_dial(link, number, HELLO_CONTROL, 0, &dial);
	enum esp_status status = msg_socket_open(socket, &dial, err);
	if (status == ESP_OK)
		status = msg_socket_put(socket, join, until, err);
	if (status == ESP_OK)
		status = msg_socket_take(socket, HUB_MSG_WELCOME, until, &msg, err);
	if (status == ESP_OK)
		status = check_welcome(link, number, &msg.welcome, err);
	if (status != ESP_OK)
		return status;
	hub->session = msg.welcome.session;
	hub->first_lane = link->lane_count;
	hub->lanes = msg.welcome.lanes;
	link->lane_count += hub->lanes;
	link->chunk_bytes = msg.welcome.chunk_bytes;
	link->delay_bound = msg.welcome.delay_bound;
	(void)optimizer_decode(msg.welcome.optimizer, &link->optimizer);
	return ESP_OK;
}

static enum esp_status join(struct hub_link *link, struct error *err)
{
	struct hub_msg msg = {.type = HUB_MSG_JOIN,
	                      .join = {.worker = link->config.worker,
	                               .workers = link->config.workers,
	                               .pid = (uint32_t)getpid()}};
	char host[NODE_INFO_HOST_NAME];

	snprintf(link->host_name, sizeof(link->host_name), "%s", host_info_name(host));
	memcpy(msg.join.host, link->host_name, sizeof(msg.join.host));
	if (link->config.shares && host_meet_open(&link->meet, err) != ESP_OK)
		return err->status;
	msg.join.memory = link->config.shares ? host_place() : 0;
	msg.join.meeting = link->meet.number;
	enum esp_status status = make_hubs(link, err);
	for (uint32_t i = 0; status == ESP_OK && i < link->hub_count; i++)
		status = join_hub(link, i, &msg, err);
	return status;
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
	key_hide(link->ticket.key, sizeof(link->ticket.key));
	link->ticket = *ticket;
	link->config.ticket = &link->ticket;
	link->process = getpid();
	link->meet.fd = -1;
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

static enum esp_status send_to_all(struct hub_link *link, const struct hub_msg *msg, uint64_t until_ns,
                                   struct error *err)
{
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; status == ESP_OK && i < link->hub_count; i++)
		status = msg_socket_put(&link->sockets[i], msg, until_ns, err);
	return status;
}

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
		enum esp_status status = send_to_all(link, &msg, until_ns, err);
		if (status != ESP_OK)
			return status;
		at += some;
	} while (at < count);
	return ESP_OK;
}

static enum esp_status check_ready(const struct hub_link *link, uint32_t number, const struct hub_msg_ready *ready,
                                   const struct hub_msg_ready *first, struct error *err)
{
	const char *hub = link->sockets[number].hub;

	if (ready->digest != hub_layout_digest(&link->layout, number))
		return error_set(err, ESP_EMISMATCH, "the hub at %.100s cuts tensors in another way: is it of another version?",
		                 hub);
	if (number > 0 && (ready->set != first->set || ready->meeting != first->meeting))
		return error_set(err, ESP_EMISMATCH, "the hubs at %.100s and %.100s have this worker push with others",
		                 link->sockets[0].hub, hub);
	return ESP_OK;
}

/* ESP_PENDING: the hub says nothing. Once it is ready it says no more than why it ends. */
static enum esp_status hear(struct hub_link *link, uint32_t number, bool is_ready, struct hub_msg_ready *out,
                            struct error *err)
{
	struct msg_socket *socket = &link->sockets[number];
	struct hub_msg msg;
	enum esp_status status = msg_socket_take(socket, is_ready ? HUB_MSG_OK : HUB_MSG_READY, 0, &msg, err);

	if (status == ESP_OK && is_ready)
		return error_set(err, ESP_ECORRUPT, "the hub at %.100s sent a message that does not belong here", socket->hub);
	if (status == ESP_OK)
		*out = msg.ready;
	return status;
}

/* The first hub that is not ready; NULL: all are. */
static const struct msg_socket *hear_all(struct hub_link *link, bool *is_ready, struct hub_msg_ready *ready,
                                         enum esp_status *out_status, struct error *err)
{
	const struct msg_socket *absent = NULL;

	for (uint32_t i = 0; *out_status == ESP_OK && i < link->hub_count; i++) {
		enum esp_status status = hear(link, i, is_ready[i], &ready[i], err);

		is_ready[i] |= status == ESP_OK;
		*out_status = status == ESP_PENDING ? ESP_OK : status;
		absent = !is_ready[i] && !absent ? &link->sockets[i] : absent;
	}
	return absent;
}

static void sleep_until_heard(const struct hub_link *link, uint64_t until_ns)
{
	struct pollfd fds[LAYOUT_HUBS_MOST];
	uint64_t now = clock_now_ns(), ms = until_ns > now ? (until_ns - now) / NS_PER_MS + 1 : 0;

	for (uint32_t i = 0; i < link->hub_count; i++)
		fds[i] = (struct pollfd){.fd = link->sockets[i].fd, .events = POLLIN};
	(void)poll(fds, link->hub_count, ms < 1000 ? (int)ms : 1000);
}

/* Until all workers have declared the same at all hubs. */
static enum esp_status await_ready(struct hub_link *link, uint64_t until_ns, struct hub_msg_ready *out,
                                   struct error *err)
{
	struct hub_msg_ready ready[LAYOUT_HUBS_MOST];
	bool is_ready[LAYOUT_HUBS_MOST] = {false};
	enum esp_status status = ESP_OK;
	const struct msg_socket *absent;

	while ((absent = hear_all(link, is_ready, ready, &status, err)) != NULL && status == ESP_OK) {
		if (clock_now_ns() >= until_ns)
			return error_set(err, ESP_ETIMEOUT,
			                 "not all %u workers of job %s have come to the hub at %.100s in time: 'espalier hub "
			                 "status' on its host says how many are there",
			                 link->config.workers, link->ticket.name, absent->hub);
		sleep_until_heard(link, until_ns);
	}
	for (uint32_t i = 0; status == ESP_OK && i < link->hub_count; i++)
		status = check_ready(link, i, &ready[i], &ready[0], err);
	*out = ready[0];
	return status;
}

static enum esp_status open_lane(struct hub_link *link, uint32_t number, struct error *err)
{
	struct link_lane *lane = &link->lanes[number];
	const struct client_lane_config config = {.layout = &link->layout,
	                                          .lane = number,
	                                          .is_async = link->delay_bound > 0,
	                                          .push_budget = link->delay_bound > 0 ? &link->push_pace.budget : NULL,
	                                          .ready = link->delay_bound > 0 ? &link->chunks_ready : NULL,
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
	const struct link_hub *hub = link_control_hub_of(link, number);
	uint32_t of = (uint32_t)(hub - link->hubs);
	make_dial(link, of, HELLO_LANE, number - hub->first_lane, &dial);
	status = hub_dial(&dial, &fd, session, err);
	if (status == ESP_OK)
		status = tcp_adopt(lane->tcp, 0, fd, !address_is_loopback(&link->ticket.hubs[of]), err);
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

/* The other hubs end the session too, and their workers learn why. */
static void tell_all(struct hub_link *link, const struct error *why)
{
	struct hub_msg msg = {.type = HUB_MSG_WHY, .why = {.status = why->status, .worker = UINT32_MAX}};
	struct error ignored;

	snprintf(msg.why.text, sizeof(msg.why.text), "%s", why->text);
	for (uint32_t i = 0; i < link->hub_count; i++)
		(void)!msg_socket_put(&link->sockets[i], &msg, clock_now_ns() + TELL_PATIENCE, &ignored);
}

static enum esp_status make_layout(struct hub_link *link, const struct layout_tensor *tensors, uint32_t count,
                                   struct error *err)
{
	uint32_t lanes[LAYOUT_HUBS_MOST];
	const struct layout_split split = {.hubs = link->hub_count, .own = LAYOUT_ALL_HUBS, .lanes = lanes};

	for (uint32_t i = 0; i < link->hub_count; i++)
		lanes[i] = link->hubs[i].lanes;
	return hub_layout_split(tensors, count, link->chunk_bytes, &split, &link->layout, err);
}

enum esp_status hub_link_declare(struct hub_link *link, const struct layout_tensor *tensors, uint32_t count,
                                 struct error *err)
{
	uint64_t until = clock_now_ns() + link->config.join_ns;
	struct hub_msg_ready ready = {0};

	assert(!link->is_declared);
	enum esp_status status = make_layout(link, tensors, count, err);
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
	else if (link->failure.status == ESP_OK)
		link->failure = *err;
	if (status != ESP_OK && link->hub_count > 1)
		tell_all(link, err);
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
	for (uint32_t i = 0; link->sockets && i < link->hub_count; i++)
		msg_socket_close(&link->sockets[i]);
	free(link->sockets);
	free(link->hubs);
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
	return link->hubs[0].session;
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
