#include "rank/comm/retune.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rank/comm/callbacks.h"
#include "rank/comm/comm.h"
#include "rank/comm/span.h"
#include "rank/comm/work.h"
#include "rank/observe/tracer.h"
#include "transport/path.h"
#include "tune/tuner.h"

#define WINDOW_FIRST (UINT64_C(1) << 20)  /* bytes of calls */
#define WINDOW_LEAST (UINT64_C(64) << 10)
#define WINDOW_MOST (UINT64_C(1) << 50)
/* for a lane that is being driven; its numbers come with the next window otherwise */
#define LANE_PATIENCE (5 * NS_PER_MS)
#define FLOW_LEAST (UINT64_C(16) << 10)   /* bytes in a window below which a connection's rate says nothing */

/* Counters of a connection at the last check. */
struct flow {
	uint64_t acked_bytes, network_us;
};

struct retune {
	struct tuner tuner;
	uint64_t window_bytes; /* of calls, after which a window closes */
	uint64_t bytes;        /* of calls in this one                  */
	uint64_t closed_bytes; /* of the one that is being summed       */
	uint64_t windows;
	bool is_chain, was_chain; /* the latest call, and that of the window that is being summed, had no masters */
	struct work *exchange; /* NULL: none                            */
	struct tune_node *sum; /* by member                             */
	struct flow *flows;    /* by lane and member                    */

	/* Guarded by context->lock. */
	uint32_t flying;       /* counted calls under way               */
	uint64_t flying_ns;    /* since when                            */
	uint64_t time_ns;      /* in which there were any, in this window */
};

/* ---- which calls ---- */

/* The first of its plans, it may have several spans of memory, that has masters; NULL: none has. */
static const struct plan *plan_of(const struct work *work)
{
	for (uint32_t i = 0; i < work->span_count; i++) {
		const struct plan *plan = work->spans[i].planned->plan;

		if (plan->local_master && plan->planner == &planner_two_level)
			return plan;
	}
	return NULL;
}

/*
 * Is a group of the plan more than one host? Otherwise its members share a link, and it is all the same which of them
 * uses it.
 */
static bool spans_hosts(const struct comm *group, const struct plan *plan)
{
	return group->net.layout.hosts > plan->group_count;
}

bool comm_retune_can(const struct comm *group)
{
	return group->context->conf.autotune != CONF_AUTOTUNE_OFF && group->net.layout.hosts > 1 && group->size > 2;
}

/* Is it large, and run by a plan that was chosen for it, so that another could be? */
static bool has_choice(const struct comm *group, const struct work *work)
{
	return group->net.layout.topology && group->net.layout.hosts == group->net.layout.members && !work->call.planner &&
	       work->call.collective == PLAN_ALLREDUCE && work->call.block_bytes > PLAN_CACHE_BY_MASTERS;
}

/* Is it one of those that are made in the same order by all members, and run by a plan? */
static bool is_in_order(const struct work *work)
{
	return work->kind == WORK_CALL && !work->call.keyed && work->part_count > 0;
}

/*
 * Does it end here only after all members have launched it? Windows close at such calls alone: a root would wait for
 * the others where it need not, and a caller that frees a group could not know that the sum will end.
 */
static bool waits_for_all(const struct call *call)
{
	switch (call->collective) {
	case PLAN_ALLREDUCE:
	case PLAN_ALLGATHER:
	case PLAN_REDUCE_SCATTER:
	case PLAN_ALLTOALL:
		return !call->counts; /* of which some may be 0 */
	default:
		return false;
	}
}

/*
 * The groups that masters of the call have, or would have; NULL: it is not counted. Its plan must be one that is made
 * now: which one it had when it was prepared differs from rank to rank.
 */
static const uint32_t *find_groups(struct comm *group, const struct work *work)
{
	const struct plan *plan = plan_of(work);
	const struct plan_masters *masters = group->retune ? &group->retune->tuner.masters : NULL;

	if (!comm_retune_can(group) || !is_in_order(work) || !waits_for_all(&work->call))
		return NULL;
	if (!plan && has_choice(group, work))
		return masters ? masters->group_of
		               : comm_plan_cache_groups(&group->plans, &group->net.layout, &work->call, work->call.block_bytes);
	if (!plan || (masters && !plan_masters_are_of(masters, plan->group_of, plan->workers)))
		return NULL;
	return masters || group->context->conf.autotune == CONF_AUTOTUNE_ON || spans_hosts(group, plan) ? plan->group_of
	                                                                                                : NULL;
}

/* ---- what was measured ---- */

/* The counters of a connection since the last time. A new one in its place counts from zero. */
static struct flow advance(struct flow *before, const struct path_stats *stats)
{
	struct flow now = {stats->acked_bytes, stats->busy_us > stats->blocked_us ? stats->busy_us - stats->blocked_us : 0};
	bool is_same = now.acked_bytes >= before->acked_bytes && now.network_us >= before->network_us;
	struct flow since =
		is_same ? (struct flow){now.acked_bytes - before->acked_bytes, now.network_us - before->network_us} : now;

	*before = now;
	return since;
}

/*
 * Bytes over the time in which the network had something of ours. The kernel's own estimate is that of its latest
 * moments, and of a connection that has little to send it says how little; it stands in where an older kernel has no
 * such times.
 */
static uint64_t rate_of(const struct flow *since, const struct path_stats *stats)
{
	if (since->acked_bytes < FLOW_LEAST)
		return 0;
	if (since->network_us > 0)
		return since->acked_bytes * 1000000 / since->network_us;
	return stats->busy_us == 0 && !stats->is_app_limited ? stats->delivery_bytes_per_s : 0;
}

static void add_flow(struct comm *group, uint32_t member, const struct flow *since, const struct path_stats *stats,
                     uint64_t time_us)
{
	struct retune *retune = group->retune;
	const uint32_t *group_of = retune->tuner.masters.group_of;
	struct tune_node *own = &retune->sum[group->rank], *other = &retune->sum[member];
	uint64_t rate = rate_of(since, stats), rtt_ns = (uint64_t)stats->rtt_us * NS_PER_US;
	uint64_t share = since->network_us < time_us ? since->network_us * 1000 / time_us : 1000,
	         busy = since->acked_bytes * share;

	own->sent_bytes += since->acked_bytes;
	own->send_rate += rate;
	own->cross_rate += group_of[member] != group_of[group->rank] ? rate : 0;
	own->rtt_ns = rtt_ns > own->rtt_ns ? rtt_ns : own->rtt_ns;
	other->received_bytes += since->acked_bytes;
	other->receive_rate += rate;
	own->send_busy += busy;
	other->receive_busy += busy;
}

/* The time of this window in which calls were under way; the next one begins. */
static uint64_t take_time(struct comm *group)
{
	struct retune *retune = group->retune;

	pthread_mutex_lock(&group->context->lock);
	uint64_t now = clock_now_ns();
	if (retune->flying > 0) {
		retune->time_ns += now - retune->flying_ns;
		retune->flying_ns = now;
	}
	uint64_t time_ns = retune->time_ns;
	retune->time_ns = 0;
	pthread_mutex_unlock(&group->context->lock);
	return time_ns;
}

/*
 * Measurements of this rank: of itself, and of data it sent to each of the others. The rest is left 0, so that all can
 * be added up.
 */
static void measure(struct comm *group)
{
	struct rank *context = group->context;
	struct retune *retune = group->retune;
	struct path_stats stats;

	memset(retune->sum, 0, group->size * sizeof(*retune->sum));
	uint64_t time_ns = take_time(group);
	retune->sum[group->rank].time_ns = time_ns;
	for (uint32_t lane = 0; lane < context->lanes; lane++) {
		struct progress *progress = &context->progress.lanes[lane];

		if (!progress_has_paths(progress) || !progress_try_acquire(progress, clock_now_ns() + LANE_PATIENCE))
			continue;
		for (uint32_t i = 0; i < group->size; i++) {
			if (i == group->rank || !progress_path(progress, group->ranks[i], &stats) || !stats.has_path)
				continue;
			struct flow since = advance(&retune->flows[lane * group->size + i], &stats);

			add_flow(group, i, &since, &stats, time_ns / 1000);
		}
		progress_release(progress);
	}
}

/* ---- the sum ---- */

/* A member that cannot do as the others do must not go on as if nothing had happened. */
static enum esp_status give_up(struct comm *group, const char *why)
{
	comm_fail(group, ESP_ENOMEM, (int32_t)group->context->rank, why, true);
	return ESP_ENOMEM;
}

/* The sum has ended, on its lane. No lock is held. */
static bool exchanged(struct work *work, enum esp_status status)
{
	struct rank *context = work->context;

	pthread_mutex_lock(&context->lock);
	atomic_store_explicit(&work->status, (int)status, memory_order_release);
	if (context->comms.has_queues) /* a call may wait for it */
		comm_callbacks_look_after_queues(context);
	rank_changed(context);
	pthread_mutex_unlock(&context->lock);
	progress_changed(&context->progress);
	work_put(work);
	return true;
}

static const struct work_ops sum_ops = {.parts_done = exchanged};

static enum esp_status make_exchange(struct comm *group, struct work **out, struct failure *failure)
{
	struct retune *retune = group->retune;
	struct call call = {
		.collective = PLAN_ALLREDUCE,
		.type = ESP_U64,
		.op = ESP_SUM,
		.count = (uint64_t)group->size * (sizeof(*retune->sum) / sizeof(uint64_t)),
		.in = retune->sum,
		.out = retune->sum,
	};
	enum esp_status status = call_check(&call, group->rank, group->size, failure);

	if (status != ESP_OK)
		return status;
	struct work *work = work_new(group, &call, &(struct work_options){0});
	if (!work)
		return ESP_ENOMEM;
	work->kind = WORK_TUNE;
	work->ops = &sum_ops;
	status = comm_spans_make(&work->call, group->net.layout.chunk_bytes, false, &work->spans, &work->span_count);
	if (status == ESP_OK)
		status = work_plan_parts(work, NULL, STREAM_TUNE, failure);
	if (status != ESP_OK) {
		work_put(work);
		return status;
	}
	call_note(&call, group->size, retune->windows, &work->note);
	work->digest = comm_digest(group, &work->note);
	*out = work;
	return ESP_OK;
}

/*
 * It is on no list of calls: no thread is told of it, and it has no deadline but those of the calls that wait for it.
 */
static enum esp_status start_exchange(struct comm *group, enum drive_by help)
{
	struct rank *context = group->context;
	struct failure failure;
	struct work *work;

	if (make_exchange(group, &work, &failure) != ESP_OK)
		return give_up(group, "no memory to tell others what was measured");
	group->retune->exchange = work;
	atomic_store(&work->worst, ESP_OK);
	atomic_store(&work->status, ESP_PENDING);
	atomic_fetch_add(&work->references, 1);
	pthread_mutex_lock(&context->lock);
	work_launch_locked(work, help);
	pthread_mutex_unlock(&context->lock);
	return ESP_OK;
}

/* ---- decisions ---- */

static void tell(struct comm *group, const struct tune_report *report)
{
	struct rank *context = group->context;
	char text[TUNE_TEXT];

	atomic_fetch_add_explicit(&context->comms.retunes, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&context->comms.moved_masters, report->moved, memory_order_relaxed);
	tuner_explain(report, text);
	tracer_mark(context->mod.tracer, "%s", text);
	if (group->rank == 0)
		log_write(&context->log, LOG_LEVEL_INFO, LOG_PLAN, "group %u of %u ranks, %s", group->channel, group->size,
		          text);
}

/* Logs every window, to explain why nothing is moved. */
static void tell_window(const struct comm *group, const struct tune_sample *sample, const struct tune_report *report)
{
	static const char *const verdicts[] = {"settling", "steady", "doubt", "paused", "slower", "faster", "shifted"};
	const struct rank *context = group->context;
	char rates[400] = "";
	int length = 0;

	if (group->rank != 0 || context->log.level < LOG_LEVEL_TRACE)
		return;
	for (uint32_t i = 0; i < sample->nodes && length < (int)sizeof(rates) - 24; i++)
		length +=
			snprintf(rates + length, sizeof(rates) - (size_t)length, " %.1f", (double)tune_node_rate(sample, i) / 1e6);
	log_write(&context->log, LOG_LEVEL_TRACE, LOG_PLAN,
	          "window %" PRIu64 " of group %u: %s, %.3f ms for a MiB, rates in MB/s:%s", group->retune->windows,
	          group->channel, verdicts[report->verdict], (double)report->cost / 1e6, rates);
}

/* Windows are to take as long as all members have agreed that the last one did, or should have. */
static void fit_window(struct retune *retune, uint64_t wanted_ns, uint64_t time_ns)
{
	unsigned __int128 bytes = (unsigned __int128)retune->closed_bytes * wanted_ns / (time_ns > 0 ? time_ns : wanted_ns);
	uint64_t least = retune->window_bytes / 4, most = retune->window_bytes * 4;

	retune->window_bytes = bytes < least ? least : bytes > most ? most : (uint64_t)bytes;
	if (retune->window_bytes < WINDOW_LEAST)
		retune->window_bytes = WINDOW_LEAST;
	if (retune->window_bytes > WINDOW_MOST)
		retune->window_bytes = WINDOW_MOST;
}

/* Takes the result of the window before the last. */
static enum esp_status take_sum(struct comm *group)
{
	struct retune *retune = group->retune;
	struct tune_sample sample = {group->size, retune->sum, retune->was_chain};
	struct tune_report report;
	enum esp_status status = (enum esp_status)atomic_load_explicit(&retune->exchange->status, memory_order_acquire);

	work_put(retune->exchange);
	retune->exchange = NULL;
	if (status != ESP_OK) /* the group has failed */
		return ESP_OK;
	fit_window(retune, group->context->conf.autotune_ms * NS_PER_MS, tune_sample_time(&sample));
	bool has_changed = tuner_step(&retune->tuner, &sample, &report);
	tell_window(group, &sample, &report);
	if (retune->tuner.broken)
		return give_up(group, "no memory to move masters");
	if (!has_changed)
		return ESP_OK;
	bool by_masters = tuner_needs_masters(&retune->tuner);
	group->net.layout.masters = &retune->tuner.masters;
	group->net.layout.masters_version++;
	group->net.layout.choice_version += by_masters != group->net.layout.by_masters;
	group->net.layout.by_masters = by_masters;
	tell(group, &report);
	return ESP_OK;
}

static enum esp_status close_window(struct comm *group, enum drive_by help)
{
	struct retune *retune = group->retune;

	if (retune->exchange && take_sum(group) != ESP_OK)
		return ESP_ENOMEM;
	retune->windows++;
	retune->closed_bytes = retune->bytes;
	retune->was_chain = retune->is_chain;
	retune->bytes = 0;
	measure(group);
	return start_exchange(group, help);
}

/* ---- calls ---- */

static bool make_retune(struct comm *group, const uint32_t *group_of)
{
	struct rank *context = group->context;
	struct retune *retune = calloc(1, sizeof(*retune));
	struct error err;

	if (!retune)
		return false;
	retune->window_bytes = WINDOW_FIRST;
	retune->sum = calloc(group->size, sizeof(*retune->sum));
	retune->flows = calloc((size_t)context->lanes * group->size, sizeof(*retune->flows));
	bool has_tuner = retune->sum && retune->flows && tuner_init(&retune->tuner, group_of, group->size, &err) == ESP_OK;
	if (!has_tuner) {
		free(retune->sum);
		free(retune->flows);
		free(retune);
		return false;
	}
	pthread_mutex_lock(&context->lock);
	group->retune = retune;
	pthread_mutex_unlock(&context->lock);
	return true;
}

bool comm_retune_admits(struct comm *group, const struct work *work)
{
	const struct retune *retune = group->retune;

	if (!retune || retune->bytes < retune->window_bytes || !retune->exchange || work_is_done(retune->exchange))
		return true;
	return !is_in_order(work) || !waits_for_all(&work->call) || (!work_is_stale(work) && !find_groups(group, work));
}

/*
 * By the plan that it would have if it were made now: all members have made the same changes by this call, but may have
 * prepared it before or after.
 */
static enum esp_status plan_as_of_now(struct comm *group, struct work *work)
{
	struct failure failure;

	if (work_is_stale(work) && work_plan_anew(work, &failure) != ESP_OK)
		return give_up(group, "no memory for a plan with other masters");
	return ESP_OK;
}

enum esp_status comm_retune_before(struct comm *group, struct work *work)
{
	struct rank *context = group->context;

	if (group->retune && is_in_order(work) && plan_as_of_now(group, work) != ESP_OK)
		return ESP_ENOMEM;
	const uint32_t *group_of = find_groups(group, work);
	if (!group_of)
		return ESP_OK;
	if (!group->retune && !make_retune(group, group_of))
		return give_up(group, "no memory to retune");
	struct retune *retune = group->retune;
	if (retune->bytes >= retune->window_bytes) {
		if (close_window(group, work->help) != ESP_OK || plan_as_of_now(group, work) != ESP_OK)
			return ESP_ENOMEM;
	}
	for (uint32_t i = 0; i < work->span_count; i++)
		retune->bytes += work->spans[i].block_bytes;
	retune->is_chain = !plan_of(work);
	pthread_mutex_lock(&context->lock);
	work->is_counted = true;
	if (retune->flying++ == 0)
		retune->flying_ns = clock_now_ns();
	pthread_mutex_unlock(&context->lock);
	return ESP_OK;
}

void comm_retune_landed(struct work *work)
{
	struct retune *retune = work->group->retune;

	if (!work->is_counted)
		return;
	work->is_counted = false;
	if (--retune->flying == 0)
		retune->time_ns += clock_now_ns() - retune->flying_ns;
}

/* ---- the end ---- */

static void settle(struct comm *group, uint64_t until_ns)
{
	struct retune *retune = group->retune;

	if (!retune || !retune->exchange ||
	    !progress_wait(&group->context->progress, work_is_done, retune->exchange, until_ns))
		return;
	work_put(retune->exchange);
	retune->exchange = NULL;
}

void comm_retune_settle(struct comm *group)
{
	/*
	 * All members have begun it, as the call at which it was begun has ended here, or are gone, of which the group is
	 * told.
	 */
	settle(group, clock_now_ns() + group->context->conf.deadline_seconds * NS_PER_S);
	if (!group->retune || !group->retune->exchange)
		return;
	comm_fail(group, ESP_ETIMEOUT, -1, "what members had measured did not reach all of them", true);
	settle(group, UINT64_MAX);
}

void comm_retune_settle_all(struct rank *context)
{
	uint64_t until = clock_now_ns() + rank_patience_ns(context);

	pthread_mutex_lock(&context->lock);
	for (struct comm *group = context->comms.list; group; group = group->next) {
		if (!group->retune || group->unfinished > 0) /* it is about to fail: rank_end_work() */
			continue;
		comm_visit(group);
		pthread_mutex_unlock(&context->lock);
		settle(group, until);
		pthread_mutex_lock(&context->lock);
		comm_depart(group);
	}
	pthread_mutex_unlock(&context->lock);
}

void comm_retune_fini(struct comm *group)
{
	struct retune *retune = group->retune;

	if (!retune)
		return;
	tuner_fini(&retune->tuner);
	free(retune->sum);
	free(retune->flows);
	free(retune);
	group->retune = NULL;
}

const struct comm_tuner retune_tuner = {
	.admits = comm_retune_admits,
	.before = comm_retune_before,
	.landed = comm_retune_landed,
};
