/*
 * node.c - opens and closes a fleet, and the events of its nodes.
 */
#include "node.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "transport/shm/shm.h"
#include "transport/tcp/tcp.h"

#define PATIENCE (60 * NS_PER_S)

/* ---- waiting ---- */

static void changed(struct fleet *fleet)
{
	pthread_cond_broadcast(&fleet->changed);
}

void fleet_await(struct fleet *fleet, bool (*is_so)(const struct fleet *fleet, const void *argument), const void *argument, const char *what)
{
	uint64_t until = clock_now_ns() + PATIENCE;
	struct timespec at = {(time_t)(until / NS_PER_S), (long)(until % NS_PER_S)};

	pthread_mutex_lock(&fleet->lock);
	while (!is_so(fleet, argument)) {
		CHECK_MSG(clock_now_ns() < until, "waited in vain: %s", what);
		pthread_cond_timedwait(&fleet->changed, &fleet->lock, &at);
	}
	pthread_mutex_unlock(&fleet->lock);
}

/* ---- events of control ---- */

static void on_lane(void *argument, uint32_t peer, uint32_t lane, int fd, uint32_t rail, bool again)
{
	struct node *node = argument;

	(void)rail;
	CHECK(!again && lane == 0);
	progress_send(&node->progress.lanes[0], &(struct progress_cmd){.kind = PROGRESS_ADOPT, .peer = peer, .endpoint = {.fd = fd, .checked = true}});
}

static void on_lane_unreachable(void *argument, uint32_t peer, uint32_t lane, bool again, const struct error *why)
{
	(void)argument, (void)again;
	CHECK_MSG(false, "lane %u to node %u: %s", lane, peer, why->text);
}

static void on_opened(void *argument, uint32_t peer, bool dialled)
{
	struct node *node = argument;

	(void)dialled;
	pthread_mutex_lock(&node->fleet->lock);
	node->is_open[peer] = true;
	changed(node->fleet);
	pthread_mutex_unlock(&node->fleet->lock);
}

static void on_connected(void *argument, uint32_t peer)
{
	(void)argument, (void)peer;
}

static void on_unreachable(void *argument, uint32_t peer, const struct error *why)
{
	(void)argument;
	CHECK_MSG(false, "node %u: %s", peer, why->text);
}

static void on_unanswered(void *argument, uint32_t peer, const char *way, bool by_kernel)
{
	(void)argument, (void)peer, (void)way, (void)by_kernel; /* a busy machine */
}

/* The other end has forgotten this node, which forgets it too: see control_forget(). */
static void on_closed(void *argument, uint32_t peer, const struct error *why)
{
	struct node *node = argument;

	(void)why;
	control_forget(node->control, peer);
	pthread_mutex_lock(&node->fleet->lock);
	node->is_open[peer] = false;
	node->closed[peer]++;
	changed(node->fleet);
	pthread_mutex_unlock(&node->fleet->lock);
}

static bool doubts(void *argument, uint32_t peer)
{
	(void)argument, (void)peer;
	return false;
}

static bool forwards_to(void *argument, uint32_t peer)
{
	(void)argument, (void)peer;
	return true;
}

static void on_neighbour(void *argument, uint32_t peer, const int *fds, uint32_t count)
{
	struct node *node = argument;
	struct segment_view *view;
	struct error err;

	CHECK_U64(count, 2);
	CHECK_MSG(shm_segment_view_open(node->segment, peer, fds[0], &view, &err) == ESP_OK, "%s", err.text);
	pthread_mutex_lock(&node->fleet->lock);
	node->views[peer] = view;
	node->wake_fds[peer] = fds[1];
	changed(node->fleet);
	pthread_mutex_unlock(&node->fleet->lock);
	node_adopt_memory(node, peer);
}

static void on_left(void *argument, uint32_t peer)
{
	(void)argument, (void)peer;
}

static void on_piece(void *argument, uint32_t peer, const struct control_msg *msg)
{
	struct node *node = argument;

	CHECK_U64(msg->from, peer);
	pthread_mutex_lock(&node->fleet->lock);
	node->heard[peer]++;
	node->last[peer] = msg->piece.bytes[0];
	changed(node->fleet);
	pthread_mutex_unlock(&node->fleet->lock);
}

static const struct control_lane_events lane_events = {on_lane, on_lane_unreachable};
static const struct control_fd_events fd_events = {on_neighbour, on_left};
static const struct control_peer_events peer_events = {
	on_opened, on_connected, on_unreachable, on_unanswered, on_closed, doubts, forwards_to};
static const struct control_events control_events = {.lanes = &lane_events, .fds = &fd_events, .peers = &peer_events};

/* ---- events of progress ---- */

static void on_done(void *argument, uint32_t lane, const struct exec_done *done)
{
	struct node *node = argument;
	struct node_call *call = done->cookie;

	(void)lane;
	pthread_mutex_lock(&node->fleet->lock);
	call->status = done->status;
	atomic_store(&call->is_done, true);
	changed(node->fleet);
	pthread_mutex_unlock(&node->fleet->lock);
	progress_changed(&node->progress);
}

static void on_failed(void *argument, uint32_t lane, const struct lane_failure *failure)
{
	struct node *node = argument;

	(void)lane;
	pthread_mutex_lock(&node->fleet->lock);
	node->failed++;
	node->failed_channel = failure->channel;
	changed(node->fleet);
	pthread_mutex_unlock(&node->fleet->lock);
}

static void on_connect(void *argument, uint32_t lane, uint32_t peer)
{
	struct node *node = argument;

	control_dial_lane(node->control, peer, lane);
}

static const struct progress_events progress_events = {.done = on_done, .failed = on_failed, .connect = on_connect};

/* ---- opening ---- */

static void prepare(struct node *node, uint8_t role)
{
	struct listen_config config = {.loopback_only = true};
	struct error err;

	node->info = (struct node_info){.role = role, .rank = node->index, .size = node->fleet->count, .version = HELLO_VERSION};
	CHECK_MSG(listen_open(&config, &node->listener, &node->info, &err) == ESP_OK, "%s", err.text);
	host_info_describe(&node->info);
	for (uint32_t i = 0; i < FLEET_MOST; i++)
		node->wake_fds[i] = -1;
}

static void open_segment(struct node *node)
{
	struct segment_config config = {.lanes = 1, .peers = node->fleet->count, .self = node->index, .slot_bytes = 16384, .slots = 16,
	                                .small_shm_bytes = 4096, .heap_bytes = 1 << 20};
	struct error err;

	CHECK_MSG(shm_segment_open(&config, &node->segment, &err) == ESP_OK, "%s", err.text);
}

static void open_progress(struct node *node)
{
	struct fleet *fleet = node->fleet;
	struct shm_options shm = {.segment = node->segment, .peer_of = fleet->rank_of};
	struct progress_config config = {
		.lanes = 1,
		.exec = {.credits = 4, .active_chunks = 8, .slot_bytes = 16384},
		.peers = fleet->count,
		.port_count = 1,
		.is_crowded = true,
		.has_threads = node->index % 2 == 0,
	};
	struct error err;

	if (fleet->kind == FLEET_TCP)
		config.ports[0] = (struct progress_port_config){.ops = &tcp_ops};
	else
		config.ports[0] = (struct progress_port_config){.ops = &shm_ops, .options = &shm, .option_bytes = sizeof(shm)};
	CHECK_MSG(progress_open(&node->progress, &config, &progress_events, node, &err) == ESP_OK, "%s", err.text);
}

static void open_control(struct node *node)
{
	struct fleet *fleet = node->fleet;
	bool is_shm = fleet->kind == FLEET_SHM;
	struct control_config config = {
		.roster = &fleet->roster,
		.rails = &fleet->rails,
		.is_local = fleet->is_local,
		.local_of = fleet->local_of,
		.rank_of = fleet->rank_of,
		.local_self = is_shm ? node->index : 0,
		.local_count = is_shm ? fleet->count : 1,
		.lanes = 1,
		.listener = &node->listener,
		.local_fd = -1,
		.join_fd = -1,
		.join_free_fd = -1,
		.netlink_fd = -1,
		.descriptors = node->own_fds,
		.descriptor_count = 2,
		.patience_ns = PATIENCE,
		.interval_ns = 10 * NS_PER_S,
		.events = &control_events,
		.subscribers = &node->subscribers,
		.context = node,
	};
	struct error err;

	config.self.hello = (struct hello){.from = node->index, .role = node->info.role, .epoch = 1, .job = "a job"};
	memcpy(config.self.key, fleet->key, sizeof(fleet->key));
	node->own_fds[0] = is_shm ? shm_segment_descriptor(node->segment) : -1;
	node->own_fds[1] = is_shm ? shm_descriptor(progress_transport(&node->progress.lanes[0], &shm_ops)) : -1;
	if (is_shm)
		CHECK(control_local_socket(&node->info, &config.local_fd, &err) == ESP_OK);
	control_subscribe(&node->subscribers, CONTROL_PIECE, on_piece);
	CHECK_MSG(control_open(&config, &node->control, &err) == ESP_OK, "%s", err.text);
	node->listener.count = 0; /* taken */
}

/* A daemon's own loop: no lane thread, and nothing that blocks. */
static void *drive(void *argument)
{
	struct node *node = argument;

	while (!atomic_load(&node->quits)) {
		if (progress_turn(&node->progress.lanes[0]) == 0)
			sched_yield();
	}
	return NULL;
}

static bool have_all_views(const struct fleet *fleet, const void *unused)
{
	(void)unused;
	for (uint32_t i = 0; i < fleet->count; i++) {
		for (uint32_t k = 0; k < fleet->count; k++) {
			if (i != k && !fleet->nodes[i].views[k])
				return false;
		}
	}
	return true;
}

void fleet_open(struct fleet *fleet, enum fleet_kind kind, const uint8_t *roles, uint32_t count)
{
	struct node_info *infos = calloc(count, sizeof(*infos));
	pthread_condattr_t attributes;
	struct error err;

	memset(fleet, 0, sizeof(*fleet));
	CHECK(infos && count <= FLEET_MOST);
	fleet->kind = kind;
	fleet->count = count;
	memset(fleet->key, 0x5a, sizeof(fleet->key));
	pthread_mutex_init(&fleet->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&fleet->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	for (uint32_t i = 0; i < count; i++) {
		fleet->is_local[i] = kind == FLEET_SHM;
		fleet->local_of[i] = fleet->rank_of[i] = i;
		fleet->nodes[i].fleet = fleet;
		fleet->nodes[i].index = i;
		prepare(&fleet->nodes[i], roles[i]);
		infos[i] = fleet->nodes[i].info;
	}
	CHECK_MSG(roster_init(&fleet->roster, infos, count, &err) == ESP_OK, "%s", err.text);
	CHECK(rails_find(&fleet->roster, 1, &fleet->rails) == ESP_OK);
	for (uint32_t i = 0; i < count; i++) {
		if (kind == FLEET_SHM)
			open_segment(&fleet->nodes[i]);
		open_progress(&fleet->nodes[i]);
	}
	for (uint32_t i = 0; i < count; i++)
		open_control(&fleet->nodes[i]);
	for (uint32_t i = 1; i < count; i += 2)
		CHECK(pthread_create(&fleet->nodes[i].driver, NULL, drive, &fleet->nodes[i]) == 0);
	if (kind == FLEET_TCP)
		return;
	for (uint32_t i = 1; i < count; i++)
		control_dial_fds(fleet->nodes[i].control);
	fleet_await(fleet, have_all_views, NULL, "descriptors of all nodes");
}

void fleet_close(struct fleet *fleet)
{
	for (uint32_t i = 1; i < fleet->count; i += 2) {
		atomic_store(&fleet->nodes[i].quits, true);
		pthread_join(fleet->nodes[i].driver, NULL);
	}
	for (uint32_t i = 0; i < fleet->count; i++)
		progress_stop(&fleet->nodes[i].progress);
	for (uint32_t i = 0; i < fleet->count; i++)
		control_close(fleet->nodes[i].control);
	for (uint32_t i = 0; i < fleet->count; i++) {
		struct node *node = &fleet->nodes[i];

		progress_close(&node->progress);
		for (uint32_t k = 0; k < fleet->count; k++) {
			shm_segment_view_close((struct segment_view *)(uintptr_t)node->views[k]);
			if (node->wake_fds[k] >= 0)
				close(node->wake_fds[k]);
		}
		listener_close(&node->listener);
	}
	for (uint32_t i = 0; i < fleet->count; i++)
		shm_segment_close(fleet->nodes[i].segment);
	rails_fini(&fleet->rails);
	roster_fini(&fleet->roster);
	pthread_cond_destroy(&fleet->changed);
	pthread_mutex_destroy(&fleet->lock);
}

/* ---- doing ---- */

void node_say(struct node *node, uint32_t peer, uint8_t byte)
{
	struct control_msg msg = {.type = CONTROL_PIECE, .from = node->index, .about = peer, .piece = {.whole = 1, .bytes = {byte}}};

	control_send(node->control, peer, &msg);
}

enum esp_status node_open_stream(struct node *node, uint16_t channel, struct error *err)
{
	struct lane_stream_config config = {.channel = channel, .node = node->index, .members = node->fleet->count};
	struct progress *progress = &node->progress.lanes[0];

	progress_acquire(progress);
	enum esp_status status = lane_stream_open(progress->lane, &config, err);
	progress_release(progress);
	return status;
}

void node_close_stream(struct node *node, uint16_t channel)
{
	struct progress *progress = &node->progress.lanes[0];

	progress_acquire(progress);
	progress_close_stream(progress, channel);
	progress_release(progress);
}

void node_start(struct node *node, uint16_t channel, struct node_call *call)
{
	atomic_store(&call->is_done, false);
	call->exec.cookie = call;
	call->cmd = (struct progress_cmd){.kind = PROGRESS_START, .channel = channel, .is_embedded = true, .call = &call->exec};
	progress_post(&node->progress.lanes[0], &call->cmd, BY_LANE_THREAD);
}

static bool is_done(const struct fleet *fleet, const void *call)
{
	(void)fleet;
	return atomic_load(&((const struct node_call *)call)->is_done);
}

static bool has_ended(void *call)
{
	return atomic_load(&((struct node_call *)call)->is_done);
}

/* A node with lane threads waits as a caller does, and drives; one without waits for its own loop. */
void node_wait(struct node *node, struct node_call *call)
{
	if (node->index % 2 == 0)
		CHECK_MSG(progress_wait(&node->progress, has_ended, call, clock_now_ns() + PATIENCE), "node %u waited in vain for a call", node->index);
	fleet_await(node->fleet, is_done, call, "a call");
}

void node_readmit(struct node *node, uint32_t peer)
{
	struct progress *progress = &node->progress.lanes[0];
	struct error err;

	progress_acquire(progress);
	CHECK(lane_has_lost(progress->lane, peer));
	CHECK_MSG(progress_readmit(progress, peer, &err) == ESP_OK, "%s", err.text);
	CHECK(!lane_has_lost(progress->lane, peer));
	progress_release(progress);
}

void node_adopt_memory(struct node *node, uint32_t peer)
{
	int fd = dup(node->wake_fds[peer]);

	CHECK(fd >= 0);
	progress_send(&node->progress.lanes[0],
	              &(struct progress_cmd){.kind = PROGRESS_ADOPT, .peer = peer, .endpoint = {.fd = fd, .memory = node->views[peer]}});
}
