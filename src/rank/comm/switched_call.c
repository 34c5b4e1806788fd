/*
 * switched_call.c - a call that may go through the switch: the question, the decision, the sum.
 */
#include <stddef.h>
#include <stdlib.h>

#include "base/clock.h"
#include "network/topo/topology.h"
#include "rank/comm/callbacks.h"
#include "rank/comm/comm.h"
#include "rank/comm/span.h"
#include "rank/comm/switched_state.h"
#include "rank/comm/work.h"
#include "tune/through.h"

#define LEAST_BYTES (16u << 10) /* of a call: below, asking costs more than the network */

bool comm_switched_is_through(const struct work *work)
{
	return work->switched && work->switched->stage == SWITCHED_THROUGH;
}

/* ---- a call ---- */

bool comm_switched_may_sum(const struct comm *comm, uint64_t bytes)
{
	return comm->switched && !comm->is_aside && bytes >= LEAST_BYTES;
}

/* From facts that all members have alike. */
static bool may_go_through(const struct work *work)
{
	const struct call *call = &work->call;

	return work->kind == WORK_CALL && !call->keyed && !call->makes_group && !call->planner &&
	       work->shm_small_rounds == 0 && !work->ops && call->collective == PLAN_ALLREDUCE && call->op == ESP_SUM &&
	       (call->type == ESP_I32 || call->type == ESP_U32) && comm_switched_may_sum(work->group, call->in_bytes);
}

static bool parts_done(struct work *work, enum esp_status status);
static const struct work_ops switched_ops = {.parts_done = parts_done};

static void summed(struct switch_sum *sum, enum esp_status status)
{
	struct work_part *part = (struct work_part *)((char *)sum - offsetof(struct switched_call, sum) +
	                                              offsetof(struct switched_call, summing));
	work_part_done(part, status);
}

static enum esp_status plan_question(struct work *work, struct switched_call *switched, struct failure *failure)
{
	struct comm *comm = work->group;
	struct layout layout = comm->net.layout;
	struct call call = {.collective = PLAN_ALLREDUCE, .type = ESP_U64, .op = ESP_MAX, .count = QUESTIONS,
	                    .in = switched->mine, .out = switched->all};

	layout.masters = NULL; /* they move while a call waits for its turn */
	layout.by_masters = false;
	layout.masters_version = layout.choice_version = 0;
	enum esp_status status = call_check(&call, comm->rank, comm->size, failure);
	if (status == ESP_OK)
		status = comm_plan_cache_get(&comm->plans, &layout, &call, sizeof(switched->mine), false, &switched->planned,
		                        failure);
	if (status != ESP_OK)
		return status;
	switched->asking = calloc(switched->planned->lanes, sizeof(*switched->asking));
	return switched->asking ? ESP_OK : rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a call");
}

static void make_question(struct work *work, struct switched_call *switched)
{
	const struct planned *planned = switched->planned;

	for (uint32_t lane = 0; lane < planned->lanes; lane++) {
		struct work_part *part = &switched->asking[lane];
		*part = (struct work_part){
			.cmd = {.kind = PROGRESS_START, .channel = (uint16_t)(work->group->channel + STREAM_CALLS),
			        .is_embedded = true, .call = &part->call},
			.work = work,
			.lane = work->group->net.lane_order[lane],
			.call = {.plan = planned->plan, .type = ESP_U64, .op = ESP_MAX, .lane_of = planned->lane_of,
			         .lane = (uint8_t)lane, .cookie = part, .in = switched->mine, .out = switched->all,
			         .window = planned->window},
		};
	}
}

enum esp_status comm_switched_make_sum(struct work *work, enum atp_kind kind, struct failure *failure)
{
	struct switched_call *switched = calloc(1, sizeof(*switched));

	work->switched = switched; /* which frees it */
	if (switched)
		switched->pieces = calloc(work->span_count, sizeof(*switched->pieces));
	if (!switched || !switched->pieces)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a call");
	switched->stage = SWITCHED_PLANNED;
	switched->summing.work = work;
	switched->sum = (struct switch_sum){
		.pieces = switched->pieces, .piece_count = work->span_count, .done = summed, .kind = kind};
	return ESP_OK;
}

enum esp_status comm_switched_prepare(struct work *work, struct failure *failure)
{
	if (!may_go_through(work))
		return ESP_OK;
	enum esp_status status =
		comm_switched_make_sum(work, work->call.type == ESP_I32 ? ATP_SIGNED : ATP_UNSIGNED, failure);
	if (status == ESP_OK)
		status = plan_question(work, work->switched, failure);
	if (status != ESP_OK)
		return status;
	make_question(work, work->switched);
	work->ops = &switched_ops;
	return ESP_OK;
}

void comm_switched_forget(struct work *work)
{
	struct switched_call *switched = work->switched;

	if (!switched)
		return;
	if (switched->planned)
		comm_plan_cache_put(switched->planned);
	free(switched->asking);
	free(switched->pieces);
	free(switched);
	work->switched = NULL;
}

/* ---- asking ---- */

static uint64_t greatest_signed(const int32_t *values, uint64_t count)
{
	int32_t least = 0, most = 0;

	for (uint64_t i = 0; i < count; i++) {
		least = values[i] < least ? values[i] : least;
		most = values[i] > most ? values[i] : most;
	}
	uint64_t below = (uint64_t)-(int64_t)least;
	return below > (uint64_t)most ? below : (uint64_t)most;
}

static uint64_t greatest_unsigned(const uint32_t *values, uint64_t count)
{
	uint32_t most = 0;

	for (uint64_t i = 0; i < count; i++)
		most = values[i] > most ? values[i] : most;
	return most;
}

static uint64_t greatest(const struct work *work)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < work->span_count; i++) {
		const struct span *span = &work->spans[i];
		uint64_t count = span->block_bytes / 4;
		uint64_t here = work->call.type == ESP_I32 ? greatest_signed((const void *)span->in, count) :
		                greatest_unsigned((const void *)span->in, count);
		most = here > most ? here : most;
	}
	return most;
}

/* The least rate of the members' hosts, in bits per second, by the topology that all of them have; 0: there is none. */
static double host_bps(const struct comm *comm)
{
	const struct layout *layout = &comm->net.layout;
	double least = 0;

	for (uint32_t i = 0; layout->topology && i < comm->size; i++) {
		const struct topology_vertex *host = &layout->topology->vertices[layout->place[i]];
		double rate = 8 * host->nics * layout->topology->links[host->first_link].rate;
		least = least == 0 || rate < least ? rate : least;
	}
	return least;
}

/*
 * A switch that is named is used unless it is known not to pay: its operator has said how fast its link is, a topology
 * says how fast the members' hosts are, and the best ordinary plan would be faster. That sends the sum of a host's
 * members over the host's link once, as a ring of hosts does; the switch has the data of each member over it.
 */
static bool pays(const struct comm *comm)
{
	double link = (double)switch_flow_rate_bps(comm->switched->flow), host = link > 0 ? host_bps(comm) : 0;

	return host <= 0 || tune_through_pays(comm->size, comm->net.layout.hosts, link / host);
}

bool comm_switched_refuses(const struct comm *comm, uint64_t bytes, uint32_t pieces)
{
	struct switch_flow *flow = comm->switched->flow;

	return !flow || !switch_flow_helps(flow) || !pays(comm) || !switch_flow_has_numbers(flow, bytes / 4, pieces);
}

void comm_switched_launch(struct work *work, enum drive_by help)
{
	struct switched_call *switched = work->switched;
	struct rank *context = work->context;

	for (uint32_t i = 0; i < work->span_count; i++)
		comm_span_gather(&work->spans[i], &work->call);
	switched->stage = SWITCHED_ASKS;
	switched->mine[ASK_REFUSES] = comm_switched_refuses(work->group, work->call.in_bytes, work->span_count);
	switched->mine[ASK_MAGNITUDE] = switched->mine[ASK_REFUSES] ? 0 : greatest(work);
	atomic_store_explicit(&work->group->switched->decides, true, memory_order_release);
	pthread_mutex_lock(&context->lock);
	if (work->time.launched_ns == 0)
		work->time.launched_ns = clock_now_ns();
	atomic_store(&work->parts_left, switched->planned->lanes);
	for (uint32_t i = 0, count = switched->planned->lanes; i < count; i++) {
		struct work_part *part = &switched->asking[i];
		part->call.digest = work->digest;
		progress_post(&context->progress.lanes[part->lane], &part->cmd, i == 0 ? help : BY_LANE_THREAD);
	}
	pthread_mutex_unlock(&context->lock);
}

/* ---- the decision ---- */

/* All members see the same answers. */
static bool agreed(const struct work *work)
{
	const uint64_t *all = work->switched->all;
	uint64_t limit = work->call.type == ESP_I32 ? INT32_MAX : UINT32_MAX;

	return all[ASK_REFUSES] == 0 && all[ASK_MAGNITUDE] <= limit / work->group->size;
}

void comm_switched_sum(struct work *work)
{
	struct switched_call *switched = work->switched;

	for (uint32_t i = 0; i < work->span_count; i++) {
		const struct span *span = &work->spans[i];
		switched->pieces[i] = (struct switch_piece){.in = span->in, .out = span->out, .words = span->block_bytes / 4};
	}
	switched->stage = SWITCHED_THROUGH;
	switched->sum.call = work->digest;
	atomic_store(&work->parts_left, 1);
	if (!switch_flow_start(work->group->switched->flow, &switched->sum))
		work_part_done(&switched->summing, comm_status(work->group, ESP_EABORTED));
}

void comm_switched_pass_by(struct work *work)
{
	work->switched->stage = SWITCHED_PLANNED;
}

static void go_planned(struct work *work)
{
	struct rank *context = work->context;

	work->switched->stage = SWITCHED_PLANNED;
	if (work->part_count == 0) {
		work_end(work, ESP_OK);
		return;
	}
	pthread_mutex_lock(&context->lock);
	work_launch_locked(work, BY_LANE_THREAD);
	pthread_mutex_unlock(&context->lock);
}

/* The next call of the communicator may go. */
static void end_decision(struct comm *comm)
{
	struct rank *context = comm->context;

	atomic_store_explicit(&comm->switched->decides, false, memory_order_release);
	pthread_mutex_lock(&context->lock);
	if (atomic_load(&comm->queued) > 0)
		comm_callbacks_look_after_queues(context);
	comm_depart(comm);
	pthread_mutex_unlock(&context->lock);
}

static bool parts_done(struct work *work, enum esp_status status)
{
	struct comm *comm = work->group;

	if (work->switched->stage != SWITCHED_ASKS)
		return false;
	/* Once the second stage has begun the work may end, and the communicator may be freed. */
	pthread_mutex_lock(&comm->context->lock);
	comm_visit(comm);
	pthread_mutex_unlock(&comm->context->lock);
	if (status == ESP_OK && agreed(work))
		comm_switched_sum(work);
	else if (status == ESP_OK)
		go_planned(work);
	else
		work->switched->stage = SWITCHED_PLANNED; /* it has ended */
	end_decision(comm);
	return status == ESP_OK;
}
