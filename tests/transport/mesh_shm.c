/*
 * mesh_shm.c - shared memory under the suite: every node is a rank of one host, with a segment of its own.
 *
 * Half of the calls' buffers are moved into the segments, where peers read them in place; the
 * rest is copied. Where nobody dies the segments are mapped once, so that tools which look for
 * races see what really happens; where memory is taken back while it is read, which is the
 * purpose, every rank has mappings of its own. A rank that dies says so, or just stops.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "mesh.h"
#include "transport/shm/shm.h"

#define GUARD_BYTES 64u /* around the buffers: as in tests/cluster/data.c */
#define HEAP_BYTES (UINT64_C(256) << 20)

/* What a mesh_lane's transport is. */
struct post {
	struct host *host;
	struct shm *shm;
	uint32_t node, number;
};

struct moved {
	struct cluster_buffers *buffers;
	int which;
	uint8_t *original;
};

struct host {
	struct mesh *mesh;
	pthread_mutex_t lock;
	struct rng rng;
	struct segment **segments;   /* by node */
	struct segment_view **views; /* by node, then peer */
	struct post *posts;          /* by node, then lane */
	uint32_t opened, closed;
	struct moved moved[CLUSTER_CALLS_MOST * 64 * 2];
	uint32_t moved_count;
};

/* One mesh runs at a time; open() of its first lane makes it. */
static struct host *current;

/* ---- the segments ---- */

static uint32_t largest_message(const struct cluster *cluster)
{
	uint64_t most = 1;

	for (uint32_t c = 0; c < cluster->call_count; c++) {
		const struct chunks *chunks = &cluster->calls[c].plan->chunks;

		for (uint64_t i = 0; i < chunks->chunk_count; i++)
			most = plan_chunks_piece(chunks, i).bytes > most ? plan_chunks_piece(chunks, i).bytes : most;
	}
	return (uint32_t)most;
}

static struct segment_view *view_make(struct host *host, uint32_t node, uint32_t peer)
{
	const struct segment *own = host->segments[node], *theirs = host->segments[peer];
	struct segment_view *view;

	if (host->mesh->cluster.spec.victim == PLAN_NONE)
		CHECK(shm_segment_view_borrow(own, peer, theirs, &view, NULL) == ESP_OK);
	else
		CHECK(shm_segment_view_open(own, peer, dup(shm_segment_descriptor(theirs)), &view, NULL) == ESP_OK);
	return view;
}

/* A pointer into what was moved goes with it. */
static void follow(uint8_t **pointer, const uint8_t *from, uint64_t bytes, uint8_t *to)
{
	if (*pointer && *pointer >= from && *pointer <= from + bytes)
		*pointer = to + (*pointer - from);
}

static void move_to(struct cluster_buffers *buffers, int which, uint8_t *to)
{
	uint8_t *from = buffers->memory[which];
	uint64_t bytes = buffers->bytes[which];

	memcpy(to - GUARD_BYTES, from - GUARD_BYTES, bytes + 2 * GUARD_BYTES);
	follow(&buffers->in, from, bytes, to);
	follow(&buffers->out, from, bytes, to);
	buffers->memory[which] = to;
}

static void move_buffer(struct host *host, struct cluster_buffers *buffers, uint32_t node, int which)
{
	if (!buffers->memory[which] || rng_chance(&host->rng, 1, 2))
		return;
	uint8_t *memory = shm_segment_alloc(host->segments[node], buffers->bytes[which] + 2 * GUARD_BYTES);
	CHECK(memory && host->moved_count < sizeof(host->moved) / sizeof(host->moved[0]));
	host->moved[host->moved_count++] = (struct moved){buffers, which, buffers->memory[which]};
	move_to(buffers, which, memory + GUARD_BYTES);
}

static struct host *host_open(struct mesh *mesh)
{
	const struct cluster *cluster = &mesh->cluster;
	uint32_t nodes = cluster->spec.nodes;
	struct host *host = calloc(1, sizeof(*host));

	CHECK(host);
	host->mesh = mesh;
	CHECK(pthread_mutex_init(&host->lock, NULL) == 0);
	rng_init(&host->rng, cluster->spec.seed);
	host->segments = calloc(nodes, sizeof(struct segment *));
	host->views = calloc((size_t)nodes * nodes, sizeof(struct segment_view *));
	host->posts = calloc(mesh->lane_count, sizeof(*host->posts));
	CHECK(host->segments && host->views && host->posts);
	struct segment_config config = {
		.lanes = cluster->spec.lanes,
		.peers = nodes,
		.slot_bytes = largest_message(cluster),
		.slots = 1 + (uint32_t)rng_below(&host->rng, 1u << rng_below(&host->rng, 8)),
		.small_shm_bytes = 64,
		.heap_bytes = HEAP_BYTES,
	};
	for (config.self = 0; config.self < nodes; config.self++) {
		config.is_open = rng_chance(&host->rng, 3, 4);
		CHECK(shm_segment_open(&config, &host->segments[config.self], NULL) == ESP_OK);
	}
	for (uint32_t c = 0; c < cluster->call_count; c++) {
		const struct cluster_call *call = &cluster->calls[c];

		for (uint32_t i = 0; i < 2 * call->plan->workers; i++)
			move_buffer(host, &call->buffers[i / 2], i / 2, (int)(i % 2));
	}
	return host;
}

/* The buffers go back where sim_cluster_close() looks for them. */
static void host_close(struct host *host)
{
	uint32_t nodes = host->mesh->cluster.spec.nodes;

	for (uint32_t i = 0; i < host->mesh->lane_count; i++)
		shm_close(host->posts[i].shm);
	for (uint32_t i = 0; i < nodes * nodes; i++)
		shm_segment_view_close(host->views[i]);
	for (uint32_t i = 0; i < host->moved_count; i++)
		move_to(host->moved[i].buffers, host->moved[i].which, host->moved[i].original);
	for (uint32_t i = 0; i < nodes; i++)
		shm_segment_close(host->segments[i]);
	pthread_mutex_destroy(&host->lock);
	free(host->segments);
	free(host->views);
	free(host->posts);
	free(host);
}

/* ---- lanes ---- */

static void adopt(struct mesh_lane *lane, uint32_t peer, int fd)
{
	struct post *post = lane->transport;

	if (!post) { /* dead */
		close(fd);
		return;
	}
	shm_adopt(post->shm, peer, post->host->views[post->node * lane->mesh->cluster.spec.nodes + peer], fd);
}

/* All lanes are there: they get to know each other, at once or when their threads run. */
static void introduce(struct host *host)
{
	struct mesh *mesh = host->mesh;
	uint32_t nodes = mesh->cluster.spec.nodes, lanes = mesh->cluster.spec.lanes;

	for (uint32_t i = 0; i < mesh->lane_count * nodes; i++) {
		struct post *post = &host->posts[i / nodes];
		uint32_t peer = i % nodes;
		struct segment_view **view = &host->views[post->node * nodes + peer];

		if (peer == post->node)
			continue;
		if (!*view)
			*view = view_make(host, post->node, peer);
		int fd = dup(shm_descriptor(host->posts[peer * lanes + post->number].shm));
		if (rng_chance(&host->rng, 1, 2))
			shm_adopt(post->shm, peer, *view, fd);
		else
			mesh_post(mesh, post->node, post->number, peer, fd);
	}
}

static void *do_open(struct mesh_lane *lane)
{
	struct mesh *mesh = lane->mesh;
	uint32_t nodes = mesh->cluster.spec.nodes, *numbers = calloc(nodes, sizeof(*numbers));
	struct error err;

	CHECK(numbers);
	if (!current)
		current = host_open(mesh);
	struct host *host = current;
	struct post *post = &host->posts[host->opened++];
	*post = (struct post){.host = host, .node = lane->node, .number = lane->number};
	for (uint32_t i = 0; i < nodes; i++)
		numbers[i] = i;
	struct shm_config config = {
		.segment = host->segments[lane->node], .lane = lane->number, .peers = nodes, .peer_of = numbers};
	CHECK_MSG(shm_open_lane(&config, &lane_user, lane_port(lane->lane, 0), &post->shm, &err) == ESP_OK, "open: %s", err.text);
	free(numbers);
	if (host->opened == mesh->lane_count)
		introduce(host);
	return post;
}

static void do_close(void *transport)
{
	struct post *post = transport;
	struct host *host = post->host;

	pthread_mutex_lock(&host->lock);
	if (rng_chance(&host->rng, 1, 2)) { /* or else nobody hears of it from us */
		shm_close(post->shm);
		post->shm = NULL;
	}
	bool is_last = ++host->closed == host->mesh->lane_count;
	pthread_mutex_unlock(&host->lock);
	if (is_last) {
		current = NULL;
		host_close(host);
	}
}

static unsigned do_poll(void *transport, int64_t timeout_ns)
{
	struct shm *shm = ((struct post *)transport)->shm;
	struct pollfd fd = {.fd = shm_descriptor(shm), .events = POLLIN};
	unsigned moved = shm_poll(shm);

	if (moved > 0 || timeout_ns == 0 || !shm_doze(shm))
		return moved;
	(void)poll(&fd, 1, (int)(timeout_ns / (int64_t)NS_PER_MS));
	shm_rouse(shm);
	return shm_poll(shm);
}

static void do_wake(void *transport)
{
	shm_wake(((struct post *)transport)->shm);
}

static void do_drop(void *transport, uint32_t peer, enum esp_status why)
{
	shm_drop(((struct post *)transport)->shm, peer, why);
}

static void do_forget(void *transport, uint16_t channel)
{
	shm_forget(((struct post *)transport)->shm, channel);
}

static bool always(void)
{
	return true;
}

const struct mesh_kind mesh_shm = {
	.name = "shm",
	.works = always,
	.open = do_open,
	.close = do_close,
	.poll = do_poll,
	.wake = do_wake,
	.drop = do_drop,
	.forget = do_forget,
	.adopt = adopt,
	.open_pages = 1,
};
