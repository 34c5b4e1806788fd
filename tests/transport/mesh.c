#include "mesh.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"

/* A lane that gets nothing for so long is taken to hang; far beyond what a loaded machine needs. */
#define DISTURB_NS INT64_C(200000)
#define MAIL_MOST 4096u /* for one lane, not yet taken */
#define HANG_NS (INT64_C(60) * (int64_t)NS_PER_S)

static struct mesh_lane *lane_at(struct mesh *mesh, uint32_t node, uint32_t lane)
{
	return &mesh->lanes[node * mesh->cluster.spec.lanes + lane];
}

static void wake_all(struct mesh *mesh)
{
	for (uint32_t i = 0; i < mesh->lane_count; i++) {
		pthread_mutex_lock(&mesh->lock);
		if (mesh->lanes[i].transport)
			mesh->kind->wake(mesh->lanes[i].transport);
		pthread_mutex_unlock(&mesh->lock);
	}
}

static void post(struct mesh *mesh, uint32_t node, uint32_t lane, struct mesh_mail mail)
{
	struct mesh_lane *to = lane_at(mesh, node, lane);

	pthread_mutex_lock(&mesh->lock);
	CHECK(to->mail_count < MAIL_MOST);
	to->mail[to->mail_count++] = mail;
	if (to->transport)
		mesh->kind->wake(to->transport);
	pthread_mutex_unlock(&mesh->lock);
}

bool mesh_is_first(struct mesh *mesh, uint32_t node, uint32_t lane, uint32_t peer)
{
	struct mesh_lane *lower = lane_at(mesh, node < peer ? node : peer, lane);
	uint32_t higher = node < peer ? peer : node;

	pthread_mutex_lock(&mesh->lock);
	bool is_first = !lower->is_dialled[higher];
	lower->is_dialled[higher] = true;
	pthread_mutex_unlock(&mesh->lock);
	return is_first;
}

void mesh_post(struct mesh *mesh, uint32_t node, uint32_t lane, uint32_t peer, int fd)
{
	post(mesh, node, lane, (struct mesh_mail){peer, fd, false});
}

void mesh_post_replacing(struct mesh *mesh, uint32_t node, uint32_t lane, uint32_t peer, int fd)
{
	post(mesh, node, lane, (struct mesh_mail){peer, fd, true});
}

/* ---- what a lane's thread does ---- */

static void take_mail(struct mesh_lane *lane)
{
	struct mesh *mesh = lane->mesh;
	struct mesh_mail mail;

	for (;;) {
		pthread_mutex_lock(&mesh->lock);
		bool some = lane->mail_count > 0;
		if (some && mesh->kind->disturb) { /* what replaces a connection comes after it */
			mail = lane->mail[0];
			memmove(lane->mail, lane->mail + 1, --lane->mail_count * sizeof(mail));
		} else if (some) {
			mail = lane->mail[--lane->mail_count];
		}
		pthread_mutex_unlock(&mesh->lock);
		if (!some)
			return;
		(mail.replaces ? mesh->kind->replace : mesh->kind->adopt)(lane, mail.peer, mail.fd);
	}
}

/* A call has ended on this lane; on the last one, its caller has its memory back and does what it likes with it. */
static void call_ends(struct mesh_lane *lane, struct cluster_call *call, enum esp_status status)
{
	uint32_t node = lane->node;

	pthread_mutex_lock(&lane->mesh->lock);
	if (status != ESP_OK)
		call->status[node] = status;
	if (--call->lanes_left[node] == 0) {
		if (call->status[node] == ESP_PENDING)
			call->status[node] = ESP_OK;
		if (lane->mesh->cluster.spec.scribble)
			cluster_scribble(call, node);
	}
	pthread_mutex_unlock(&lane->mesh->lock);
	lane->calls_left--;
}

static void start_call(struct mesh_lane *lane, struct cluster_call *call)
{
	bool is_worker = lane->node < call->plan->workers;
	struct exec_call exec_call = {
		.plan = call->plan,
		.in = is_worker ? call->buffers[lane->node].in : NULL,
		.out = is_worker ? call->buffers[lane->node].out : NULL,
		.type = call->type,
		.op = call->op,
		.factor = call->factor,
		.lane_of = call->lane_of,
		.lane = (uint8_t)lane->number,
		.open_pages = lane->mesh->kind->open_pages,
		.digest = (uint32_t)call->data_seed,
		.cookie = call,
	};
	struct error err;
	enum esp_status status = lane_start(lane->lane, (uint16_t)call->group, &exec_call, &err);

	if (status == ESP_OK)
		return;
	CHECK_MSG(lane->mesh->cluster.spec.victim != PLAN_NONE, "start: %s", err.text);
	call_ends(lane, call, status);
}

/* Starts the next calls, now and then only one of them. */
static void start_calls(struct mesh_lane *lane)
{
	struct cluster *cluster = &lane->mesh->cluster;

	while (lane->next_call < cluster->call_count) {
		struct cluster_call *call = &cluster->calls[lane->next_call++];

		if (lane->node < call->plan->nodes)
			start_call(lane, call);
		if (rng_chance(&lane->rng, 1, 2))
			return;
	}
}

/* Streams that have failed are forgotten by the transport before their callers get their memory back. */
static void take_results(struct mesh_lane *lane)
{
	struct lane_failure failure;
	struct exec_done done;

	while (lane_take_failure(lane->lane, &failure)) {
		if (lane->failure.status == ESP_OK)
			lane->failure = failure.why;
		lane->mesh->kind->forget(lane->transport, failure.channel);
	}
	while (lane_take_done(lane->lane, &done))
		call_ends(lane, done.cookie, done.status);
}

/* What a group would do: whoever sees a loss tells all others. */
static void spread_loss(struct mesh_lane *lane)
{
	struct mesh *mesh = lane->mesh;

	if (lane->failure.status != ESP_OK && !atomic_exchange(&mesh->lost, true))
		wake_all(mesh);
	if (atomic_load(&mesh->lost) && !lane->told) {
		lane->told = true;
		mesh->kind->drop(lane->transport, mesh->cluster.spec.victim, ESP_EPEER);
	}
}

/* The process dies, at whatever byte it is. */
static bool dies(struct mesh_lane *lane)
{
	struct mesh *mesh = lane->mesh;

	if (lane->node != mesh->cluster.spec.victim || lane->polls < mesh->victim_after)
		return false;
	pthread_mutex_lock(&mesh->lock);
	void *transport = lane->transport;
	lane->transport = NULL;
	pthread_mutex_unlock(&mesh->lock);
	mesh->kind->close(transport);
	if (!lane->finished)
		atomic_fetch_add(&mesh->finished, 1);
	/* Those who are not connected to it learn of it from the group. */
	atomic_store(&mesh->lost, true);
	wake_all(mesh);
	return true;
}

static void *lane_main(void *context)
{
	struct mesh_lane *lane = context;
	struct mesh *mesh = lane->mesh;
	uint64_t quiet_since = clock_now_ns();

	while (atomic_load(&mesh->finished) < mesh->lane_count) {
		take_mail(lane);
		start_calls(lane);
		take_results(lane);
		spread_loss(lane);
		take_results(lane);
		if (!lane->finished && lane->calls_left == 0 && lane->next_call == mesh->cluster.call_count) {
			lane->finished = true;
			if (atomic_fetch_add(&mesh->finished, 1) + 1 == mesh->lane_count)
				wake_all(mesh);
		}
		if (dies(lane))
			break;
		/* A victim that would sleep until it is called does not get to die: it never sleeps. */
		bool hurries = lane->next_call < mesh->cluster.call_count || lane->node == mesh->cluster.spec.victim;
		if (mesh->kind->disturb)
			mesh->kind->disturb(lane);
		unsigned moved = mesh->kind->poll(lane->transport, hurries ? 0 : mesh->kind->disturb ? DISTURB_NS : HANG_NS);
		lane->polls++;
		lane->moved += moved > 0;
		lane->idle += moved == 0;
		if (moved > 0 || lane->finished)
			quiet_since = clock_now_ns();
		CHECK_MSG(clock_now_ns() - quiet_since < HANG_NS, "node %u lane %u waits in vain, %u of %u lanes are done",
		          lane->node, lane->number, atomic_load(&mesh->finished), mesh->lane_count);
	}
	return NULL;
}

/* ---- the mesh ---- */

static void lane_prepare(struct mesh *mesh, uint32_t i, struct rng *rng)
{
	const struct cluster_spec *spec = &mesh->cluster.spec;
	struct mesh_lane *lane = &mesh->lanes[i];
	struct lane_config config = {
		.peers = spec->nodes,
		.ports = 1,
		.exec = {
			.credits = spec->credits,
			.active_chunks = spec->active_chunks,
			.slot_bytes = spec->slot_bytes,
			.first_index = spec->first_index,
		},
	};

	*lane = (struct mesh_lane){.mesh = mesh, .node = i / spec->lanes, .number = i % spec->lanes};
	rng_init(&lane->rng, rng_next(rng));
	CHECK(lane_open(&config, &mesh->cluster.lanes[i], NULL) == ESP_OK);
	lane->lane = mesh->cluster.lanes[i];
	for (uint32_t channel = 0; channel < spec->streams; channel++) {
		struct lane_stream_config stream = {
			.channel = (uint16_t)channel, .node = i / spec->lanes, .members = spec->nodes};

		CHECK(lane_stream_open(lane->lane, &stream, NULL) == ESP_OK);
	}
	lane->mail = calloc(MAIL_MOST, sizeof(*lane->mail));
	lane->fds = calloc(spec->nodes, sizeof(*lane->fds));
	lane->is_cut = calloc(spec->nodes, sizeof(*lane->is_cut));
	lane->is_dialled = calloc(spec->nodes, sizeof(*lane->is_dialled));
	CHECK(lane->mail && lane->fds && lane->is_cut && lane->is_dialled);
	for (uint32_t peer = 0; peer < spec->nodes; peer++)
		lane->fds[peer] = -1;
	for (uint32_t c = 0; c < mesh->cluster.call_count; c++)
		lane->calls_left += lane->node < mesh->cluster.calls[c].plan->nodes;
	lane->transport = mesh->kind->open(lane);
}

void mesh_run(struct mesh *mesh)
{
	struct cluster *cluster = &mesh->cluster;
	struct rng rng;

	rng_init(&rng, cluster->spec.seed);
	mesh->lane_count = cluster->spec.nodes * cluster->spec.lanes;
	cluster->lanes = calloc(mesh->lane_count, sizeof(struct lane *));
	mesh->lanes = calloc(mesh->lane_count, sizeof(*mesh->lanes));
	CHECK(cluster->lanes && mesh->lanes);
	CHECK(pthread_mutex_init(&mesh->lock, NULL) == 0);
	for (uint32_t i = 0; i < mesh->lane_count; i++)
		lane_prepare(mesh, i, &rng);
	for (uint32_t i = 0; i < mesh->lane_count; i++)
		CHECK(pthread_create(&mesh->lanes[i].thread, NULL, lane_main, &mesh->lanes[i]) == 0);
	for (uint32_t i = 0; i < mesh->lane_count; i++)
		CHECK(pthread_join(mesh->lanes[i].thread, NULL) == 0);
}

void mesh_close(struct mesh *mesh)
{
	for (uint32_t i = 0; i < mesh->lane_count; i++) {
		take_mail(&mesh->lanes[i]); /* came too late: closed with the rest */
		if (mesh->lanes[i].transport)
			mesh->kind->close(mesh->lanes[i].transport);
		free(mesh->lanes[i].mail);
		free(mesh->lanes[i].fds);
		free(mesh->lanes[i].is_cut);
		free(mesh->lanes[i].is_dialled);
	}
	free(mesh->lanes);
	pthread_mutex_destroy(&mesh->lock);
	sim_cluster_close(&mesh->cluster);
}
