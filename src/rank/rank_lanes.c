#include "rank/rank_lanes.h"

#include <stdlib.h>

#include "rank/comm/background.h"
#include "rank/comm/callbacks.h"
#include "rank/comm/comm.h"
#include "rank/comm/work.h"
#include "rank/observe/tracer.h"
#include "rank/rail/failover.h"
#include "transport/shm/shm.h"
#include "transport/tcp/tcp.h"

#define LANES_MOST 4u /* unless the settings say otherwise */

uint32_t rank_lanes_choose(const struct roster *roster)
{
	uint32_t lanes = LANES_MOST;

	for (uint32_t i = 0; i < roster->size; i++) {
		uint32_t own = roster->nodes[i].cores / roster->core_ranks[i];

		lanes = own < lanes ? own : lanes;
	}
	return lanes > 0 ? lanes : 1;
}

/* ---- events of progress ---- */

static void on_done(void *argument, uint32_t lane, const struct exec_done *done)
{
	struct rank *rank = argument;
	struct work_part *part = done->cookie;

	if (tracer_has_detail(rank->mod.tracer))
		tracer_add_lane(rank->mod.tracer, lane, call_operation(&part->work->note), part->work->time.launched_ns,
		                clock_now_ns(), RECORD_NONE, RECORD_NO_CHUNK);
	work_part_done(part, done->status);
}

static void on_failed(void *argument, uint32_t lane, const struct lane_failure *failure)
{
	(void)lane;
	comm_stream_failed(argument, failure);
}

static void on_connect(void *argument, uint32_t lane, uint32_t peer)
{
	failover_dial(argument, peer, lane);
}

static void on_sleeps(void *argument)
{
	rank_watch(argument);
}

static void on_waited(void *argument, uint32_t lane, uint64_t from_ns, uint64_t to_ns, const struct exec_wait *wait)
{
	struct rank *rank = argument;

	tracer_add_lane(rank->mod.tracer, lane, "waits", from_ns, to_ns, wait->peer, wait->chunk);
}

static const struct progress_events events = {
	.done = on_done,
	.failed = on_failed,
	.connect = on_connect,
	.sleeps = on_sleeps,
	.waited = on_waited,
	.background = comm_background_run,
	.pending = comm_callbacks_pending,
};

/* ---- opening ---- */

/* Shared memory first: it tells peers what was consumed when it is polled. */
static uint32_t choose_ports(const struct rank *rank, const struct shm_options *options,
                             struct progress_port_config *out)
{
	uint32_t count = 0;

	if (rank->near.local_count > 1)
		out[count++] =
			(struct progress_port_config){.ops = &shm_ops, .options = options, .option_bytes = sizeof(*options)};
	if (rank->size > rank->near.local_count)
		out[count++] = (struct progress_port_config){.ops = &tcp_ops, .resumes = rank_resumes(rank)};
	return count;
}

/*
 * Callers choose a core if ranks of this host are reached by sockets: through memory the small path decides which rank
 * yields to which.
 */
static bool keeps_core(const struct rank *rank)
{
	const struct roster *roster = &rank->roster;

	return rank->conf.core_affinity && rank->host.crowded &&
	       rank->near.local_count < roster->host_ranks[roster->host_of[rank->rank]];
}

enum esp_status rank_lanes_open(struct rank *rank, struct failure *failure)
{
	struct progress_config config = {
		.lanes = rank->lanes,
		.exec = {
			.credits = rank->conf.credits,
			.active_chunks = rank->conf.active_chunks < 2 ? 2 : rank->conf.active_chunks, /* p2p.h */
			.slot_bytes = rank->conf.chunk_bytes ? (uint32_t)rank->conf.chunk_bytes : PLAN_CACHE_CHUNK_MOST,
		},
		.peers = rank->size,
		.is_crowded = rank->host.crowded,
		.keeps_core = keeps_core(rank),
		.place = rank->roster.core_place[rank->rank],
		.has_threads = true,
		.tells_waits = rank->conf.trace[0] && rank->conf.trace_detail,
		.idle = rank->host.idle,
		.idle_context = rank->host.idle_context,
	};
	struct shm_options *options = calloc(rank->lanes, sizeof(*options));
	uint8_t *port_of = calloc(rank->size, 1);
	struct error err;
	enum esp_status status = ESP_OK;

	if (!options || !port_of)
		status = error_set(&err, ESP_ENOMEM, "no memory for %u lanes", rank->lanes);
	for (uint32_t i = 0; status == ESP_OK && i < rank->lanes; i++)
		options[i] = (struct shm_options){.segment = rank->near.segment, .lane = i, .peer_of = rank->near.rank_of};
	for (uint32_t i = 0; status == ESP_OK && i < rank->size; i++)
		port_of[i] = rank->near.local_count > 1 && rank->near.local_of[i] == NO_RANK;
	if (status == ESP_OK) {
		config.port_count = choose_ports(rank, options, config.ports);
		config.port_of = port_of;
		status = progress_open(&rank->progress, &config, &events, rank, &err);
	}
	free(options);
	free(port_of);
	return status == ESP_OK ? ESP_OK : rank_failure_set(failure, status, -1, "%s", err.text);
}

int rank_lanes_shm_fd(const struct rank *rank, uint32_t lane)
{
	void *shm = progress_transport(&rank->progress.lanes[lane], &shm_ops);

	return shm ? shm_descriptor(shm) : -1;
}
