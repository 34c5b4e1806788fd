#include "rank/comm/work.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "rank/comm/call_record.h"
#include "rank/comm/callbacks.h"
#include "rank/comm/comm.h"
#include "rank/comm/numerics.h"
#include "rank/comm/span.h"
#include "rank/comm/switched.h"
#include "rank/observe/recorder.h"
#include "transport/shm/annex.h"

#define COMPARED_LEAST (256u << 10) /* bytes of a block */

/* ---- making ---- */

void work_clear_parts(struct work *work)
{
	for (uint32_t i = 0; i < work->span_count; i++)
		comm_plan_cache_put(work->spans[i].planned);
	comm_spans_fini(work->spans, work->span_count);
	work->spans = NULL;
	work->span_count = 0;
	free(work->parts);
	work->parts = NULL;
	work->part_count = 0;
	free((void *)(uintptr_t)work->call.counts);
	work->call.counts = NULL;
}

static void leave_list(struct work *work)
{
	struct rank *context = work->context;

	pthread_mutex_lock(&context->lock);
	if (work->link.all_before)
		work->link.all_before->link.all_next = work->link.all_next;
	else
		context->comms.works = work->link.all_next;
	if (work->link.all_next)
		work->link.all_next->link.all_before = work->link.all_before;
	pthread_mutex_unlock(&context->lock);
}

void work_free(struct work *work)
{
	leave_list(work);
	if (work->event_fd >= 0)
		close(work->event_fd);
	numerics_free(work->numerics);
	work_clear_parts(work);
	comm_switched_forget(work);
	free((void *)(uintptr_t)work->call.in_parts);
	free((void *)(uintptr_t)work->call.out_parts);
	free(work);
}

/* The caller's arrays may go once the call is made. */
static bool copy_array(const void **array, size_t bytes)
{
	if (!*array)
		return true;
	void *copy = malloc(bytes ? bytes : 1);
	if (copy)
		memcpy(copy, *array, bytes);
	*array = copy;
	return copy != NULL;
}

static bool copy_arrays(struct call *call, uint32_t size)
{
	uint64_t blocks = call->collective == PLAN_ALLTOALL ? (uint64_t)size * size : size;
	bool counts = copy_array((const void **)&call->counts, blocks * sizeof(*call->counts));
	bool in = copy_array((const void **)&call->in_parts, call->in_part_count * sizeof(*call->in_parts));
	bool out = copy_array((const void **)&call->out_parts, call->out_part_count * sizeof(*call->out_parts));

	return counts && in && out;
}

/* Do others read it where it lies? */
static bool is_lent(const struct work *work, const struct span *span)
{
	const struct segment *segment = work->context->near.local_count > 1 ? work->context->near.segment : NULL;
	uint64_t bytes = span->block_bytes;

	return segment && shm_segment_owns(segment, span->in, bytes) && shm_segment_owns(segment, span->out, bytes);
}

/* Sets where the data is that a part works on, and which threads may write there. */
static void part_set_memory(struct work_part *part, const struct work *work, const struct span *span)
{
	const struct planned *planned = span->planned;
	bool lent = is_lent(work, span);

	part->call.in = span->in;
	part->call.out = span->out;
	part->call.window = lent ? planned->window_lent : planned->window;
	part->call.open_pages =
		lent && shm_segment_is_open(work->context->near.segment) ? work->context->host.page_shift : 0;
	part->call.owns_ends = span->out_annex && shm_annex_is_whole(span->out_annex, span->own_out, span->out_bytes);
}

static struct work_part *add_parts(struct work *work, struct work_part *part, const struct span *span,
                                   uint16_t channel)
{
	const struct planned *planned = span->planned;

	for (uint32_t lane = 0; lane < planned->lanes; lane++, part++) {
		*part = (struct work_part){
			.cmd = {.kind = PROGRESS_START, .channel = channel, .is_embedded = true, .call = &part->call},
			.work = work,
			.lane = work->group->net.lane_order[lane],
			.call = {
				.plan = planned->plan,
				.type = work->call.type,
				.op = work->call.op,
				.factor = work->call.factor,
				.lane_of = planned->lane_of,
				.lane = (uint8_t)lane,
				.cookie = part,
			},
		};
		part_set_memory(part, work, span);
	}
	return part;
}

/* Why it is that plan; of small calls it is not worth a line. */
static void tell_compared(const struct work *work, const struct span *span, struct plan_cache *plans,
                          const struct layout *layout)
{
	char text[PLAN_CACHE_COMPARED_TEXT];

	if (span->block_bytes >= COMPARED_LEAST &&
	    comm_plan_cache_compare(plans, layout, &work->call, span->block_bytes, text)[0])
		log_write(&work->context->log, LOG_LEVEL_INFO, LOG_PLAN,
		          "%" PRIu64 " bytes, by the topology, would take at best: %s", span->block_bytes, text);
}

/*
 * Once for each plan that is made, by one rank for all, as they choose alike. Point-to-point messages have many, and
 * always the same; sums of measurements, and calls of the library before the program's first, are not the program's:
 * such lines would leave no room for the others (log_limit.h).
 */
static void tell_plan(const struct work *work, const struct span *span, struct plan_cache *plans,
                      const struct layout *layout, unsigned stream)
{
	struct planned *planned = span->planned;

	bool is_own = stream == STREAM_MESSAGES || stream == STREAM_TUNE || work->group->is_aside ||
	              work->group->is_internal;

	if (planned->is_told || is_own || work->group->rank != 0)
		return;
	char how[PLANNED_TEXT];
	planned->is_told = true;
	log_write(&work->context->log, LOG_LEVEL_INFO, LOG_PLAN,
	          "%s of blocks of %" PRIu64 " bytes between %u ranks: %s, chunks of %" PRIu64 " bytes on %u lane%s",
	          plan_collective_name(work->call.collective), span->block_bytes, work->group->size,
	          comm_planned_describe(planned, how), planned->chunk_bytes, planned->lanes,
	          planned->lanes == 1 ? "" : "s");
	tell_compared(work, span, plans, layout);
}

enum esp_status work_plan_parts(struct work *work, struct plan_cache *plans, unsigned stream, struct failure *failure)
{
	struct comm *group = work->group;
	uint16_t channel = (uint16_t)(group->channel + stream);
	struct layout layout = group->net.layout;
	enum esp_status status = ESP_OK;

	/* Masters change at a call of the one order that all members have: other streams know nothing of it. */
	if (stream != STREAM_CALLS) {
		layout.masters = NULL;
		layout.by_masters = false;
		layout.masters_version = layout.choice_version = 0;
	}

	for (uint32_t i = 0; i < work->span_count && status == ESP_OK; i++) {
		struct span *span = &work->spans[i];

		status = comm_plan_cache_get(plans, &layout, &work->call, span->block_bytes, span->in_place, &span->planned,
		                             failure);
		if (status != ESP_OK)
			break;
		tell_plan(work, span, plans, &layout, stream);
		work->part_count += span->planned->lanes;
	}
	if (status != ESP_OK)
		return status;
	work->parts = calloc(work->part_count ? work->part_count : 1, sizeof(*work->parts));
	if (!work->parts)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a call");
	struct work_part *part = work->parts;
	for (uint32_t i = 0; i < work->span_count; i++)
		part = add_parts(work, part, &work->spans[i], channel);
	return ESP_OK;
}

bool work_is_stale(const struct work *work)
{
	for (uint32_t i = 0; i < work->span_count; i++) {
		if (comm_plan_cache_is_stale(&work->group->net.layout, work->spans[i].planned))
			return true;
	}
	return false;
}

enum esp_status work_plan_anew(struct work *work, struct failure *failure)
{
	for (uint32_t i = 0; i < work->span_count; i++) {
		comm_plan_cache_put(work->spans[i].planned);
		work->spans[i].planned = NULL;
	}
	free(work->parts);
	work->parts = NULL;
	work->part_count = 0;
	enum esp_status status = work_plan_parts(work, &work->group->plans, STREAM_CALLS, failure);
	if (status != ESP_OK)
		work->part_count = 0;
	return status;
}

struct work *work_new(struct comm *group, const struct call *call, const struct work_options *options)
{
	struct work *work = calloc(1, sizeof(*work));

	if (!work)
		return NULL;
	work->context = group->context;
	work->group = group;
	work->call = *call;
	work->options = *options;
	work->event_fd = -1;
	work->failure = FAILURE_NONE;
	atomic_init(&work->references, 1);
	atomic_init(&work->status, ESP_ESTATE);
	pthread_mutex_lock(&work->context->lock);
	work->link.all_next = work->context->comms.works;
	if (work->link.all_next)
		work->link.all_next->link.all_before = work;
	work->context->comms.works = work;
	pthread_mutex_unlock(&work->context->lock);
	return work;
}

enum esp_status work_make(struct comm *group, const struct call *call, const struct work_options *options,
                          struct work **out, struct failure *failure)
{
	struct work *work = work_new(group, call, options);

	if (!work)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a call");
	work->ops = call->keyed ? group->keyed_ops : NULL;
	work->shm_small_rounds = comm_small_rounds(group, call);
	enum esp_status status = copy_arrays(&work->call, group->size) ? ESP_OK : ESP_ENOMEM;
	if (status == ESP_OK)
		status = comm_spans_make(&work->call, group->net.layout.chunk_bytes, work->shm_small_rounds > 0, &work->spans,
		                         &work->span_count);
	if (status != ESP_OK)
		rank_failure_set(failure, status, -1, "no memory for a call");
	if (status == ESP_OK && work->shm_small_rounds == 0) {
		pthread_mutex_lock(&group->lock);
		status = work_plan_parts(work, &group->plans, call->keyed ? STREAM_KEYED : STREAM_CALLS, failure);
		if (status == ESP_OK)
			status = comm_switched_prepare(work, failure);
		pthread_mutex_unlock(&group->lock);
	}
	if (status == ESP_OK && call_is_fixed(call) && call->count > 0)
		status = numerics_make(work, failure);
	if (status != ESP_OK) {
		work_put(work);
		return status;
	}
	*out = work;
	return ESP_OK;
}

/* Would it be planned like this one, on memory of its own? */
static bool is_alike(const struct call *call, const struct call *other)
{
	return call->collective == other->collective && call->type == other->type && call->op == other->op &&
	       call->factor == other->factor && !signbit(call->factor) == !signbit(other->factor) &&
	       call->root == other->root && call->count == other->count && call->planner == other->planner &&
	       call->numerics == other->numerics &&
	       call->in_place == other->in_place && call->makes_group == other->makes_group;
}

static bool is_plain(const struct call *call)
{
	return !call->keyed && !call->counts && !call->in_parts && !call->out_parts;
}

/* Takes the work that an ended plain call of the same kind left; NULL: none has, or another thread has it. */
static struct work *take_left(struct comm *group, const struct call *call)
{
	struct work *work = NULL;

	pthread_mutex_lock(&group->lock);
	for (uint32_t i = 0; i < COMM_LEFT && !work; i++) {
		if (group->left[i] && is_alike(&group->left[i]->call, call)) {
			work = group->left[i];
			group->left[i] = NULL;
		}
	}
	pthread_mutex_unlock(&group->lock);
	return work;
}

enum esp_status work_make_plain(struct comm *group, const struct call *call, const struct work_options *options,
                                struct work **out, struct failure *failure)
{
	struct work *work = is_plain(call) ? take_left(group, call) : NULL;

	if (!work)
		return work_make(group, call, options, out, failure);
	work->call = *call;
	/* all else is zero, and may still be read by the thread that has ended it */
	work->options.deadline_ns = options->deadline_ns;
	work->spans[0].in = call->in;
	work->spans[0].out = call->out;
	*out = work;
	return ESP_OK;
}

/* A free one, or that of whichever has its turn. */
static struct work **find_place(struct comm *group)
{
	for (uint32_t i = 0; i < COMM_LEFT; i++) {
		if (!group->left[i])
			return &group->left[i];
	}
	return &group->left[group->left_next++ % COMM_LEFT];
}

void work_leave(struct work *work)
{
	struct comm *group = work->group;

	if (work->shm_small_rounds == 0 && work->span_count == 1 && is_plain(&work->call)) {
		pthread_mutex_lock(&group->lock);
		struct work **place = find_place(group), *before = *place;
		*place = work;
		pthread_mutex_unlock(&group->lock);
		work = before;
	}
	work_put(work);
}

void work_put(struct work *work)
{
	if (!work || atomic_fetch_sub(&work->references, 1) != 1)
		return;
	work_free(work);
}

/* ---- starting ---- */

static void add_live(struct work *work)
{
	struct rank *context = work->group->context;

	work->link.live_before = NULL;
	work->link.live_next = context->comms.live;
	if (context->comms.live)
		context->comms.live->link.live_before = work;
	context->comms.live = work;
	work->group->unfinished++;
}

static void remove_live(struct work *work)
{
	struct rank *context = work->group->context;

	if (work->link.live_before)
		work->link.live_before->link.live_next = work->link.live_next;
	else
		context->comms.live = work->link.live_next;
	if (work->link.live_next)
		work->link.live_next->link.live_before = work->link.live_before;
	work->group->unfinished--;
}

void work_launch_locked(struct work *work, enum drive_by help)
{
	struct rank *context = work->group->context;

	for (uint32_t i = 0; i < work->span_count; i++)
		comm_span_gather(&work->spans[i], &work->call);
	if (work->time.launched_ns == 0)
		work->time.launched_ns = clock_now_ns();
	atomic_store(&work->parts_left, work->part_count);
	for (uint32_t i = 0; i < work->part_count; i++)
		work->parts[i].call.digest = work->digest;
	/* A waiting caller drives one lane; the others are driven at the same time by their own threads. */
	/* Once the last part is posted the work may have ended and be gone. */
	struct work_part *parts = work->parts;
	for (uint32_t i = 0, count = work->part_count; i < count; i++)
		progress_post(&context->progress.lanes[parts[i].lane], &parts[i].cmd,
		              parts[i].call.lane == 0 ? help : BY_LANE_THREAD);
}

void work_launch(struct work *work, enum drive_by help)
{
	struct rank *context = work->group->context;

	if (work->switched) {
		comm_switched_launch(work, help);
		return;
	}
	if (work->part_count == 0) {
		work_end(work, ESP_OK);
		return;
	}
	pthread_mutex_lock(&context->lock);
	/* Once the lock is given back the work may end and be gone. */
	work_launch_locked(work, help);
	pthread_mutex_unlock(&context->lock);
}

const char *work_deadline_text(const struct rank *context, int64_t deadline_ns, char text[DEADLINE_TEXT])
{
	if (deadline_ns > 0)
		snprintf(text, DEADLINE_TEXT, "%g s", (double)deadline_ns / NS_PER_S);
	else
		snprintf(text, DEADLINE_TEXT, "deadline_seconds is %u", context->conf.deadline_seconds);
	return text;
}

/* The memory that the caller shares may be another than when the work was made. */
static void look_at_memory(struct work *work)
{
	struct work_part *part = work->parts;

	if (work->kind != WORK_CALL || work->part_count == 0)
		return;
	for (uint32_t i = 0; i < work->span_count; i++) {
		struct span *span = &work->spans[i];

		comm_span_set_out(span, work->context->near.segment);
		for (uint32_t lane = 0; lane < span->planned->lanes; lane++)
			part_set_memory(part++, work, span);
	}
}

void work_set_out(struct work *work)
{
	const struct rank *context = work->group->context;
	int64_t patience = work->options.deadline_ns;

	work->time.started_ns = clock_now_ns();
	work->time.launched_ns = 0;
	look_at_memory(work);
	work->time.idle_ns = progress_idle_ns(&context->progress);
	work->time.asked_ns = work->time.looked_ns = 0;
	work->end.forgoes_callback = false;
	work->time.asks = 0;
	work->time.deadline_ns =
		work->time.started_ns + (patience > 0 ? (uint64_t)patience : context->conf.deadline_seconds * NS_PER_S);
	uint64_t drained;
	if (work->event_fd >= 0 && read(work->event_fd, &drained, sizeof(drained)) < 0)
		drained = 0; /* it was empty */
	work->failure = FAILURE_NONE;
	atomic_store(&work->worst, ESP_OK);
	atomic_store(&work->status, ESP_PENDING);
	atomic_fetch_add(&work->references, 1);
	add_live(work);
}

/* With the lock held. A caller that polls a descriptor does not wait, and a callback may not. */
static enum drive_by find_help(struct work *work, bool is_blocking)
{
	const struct rank *context = work->context;
	bool may_wait =
		!is_blocking && work->event_fd < 0 && !pthread_equal(pthread_self(), context->progress.lanes[0].thread);
	bool is_expected = may_wait && work_is_small(work) && wait_hint_expects(&context->progress.hint);

	atomic_store_explicit(&work->is_expected, is_expected, memory_order_relaxed);
	return is_blocking ? BY_CALLER_NOW : is_expected ? BY_CALLER_SOON : BY_LANE_THREAD;
}

enum esp_status work_start(struct work *work, bool is_blocking, struct failure *failure)
{
	struct comm *group = work->group;
	struct rank *context = group->context;

	if (atomic_load(&work->status) == ESP_PENDING)
		return rank_failure_set(failure, ESP_ESTATE, -1, "the work is under way: wait for its end first");
	if (work->ops && work->ops->start)
		return work->ops->start(work, failure);
	pthread_mutex_lock(&group->lock);
	enum esp_status status = comm_check(group, &work->call, failure);
	if (status == ESP_OK) {
		call_note(&work->call, group->size, comm_number(group), &work->note);
		work->digest = comm_digest(group, &work->note);
		pthread_mutex_lock(&context->lock);
		comm_remember(group, &work->note);
		work_set_out(work);
		enum drive_by help = find_help(work, is_blocking);
		pthread_mutex_unlock(&context->lock);
		comm_queue(group, work, help);
	}
	pthread_mutex_unlock(&group->lock);
	return status;
}

/* ---- the end ---- */

void work_part_done(struct work_part *part, enum esp_status status)
{
	struct work *work = part->work;
	int none = ESP_OK;

	if (status != ESP_OK)
		atomic_compare_exchange_strong(&work->worst, &none, (int)status);
	if (atomic_fetch_sub(&work->parts_left, 1) != 1)
		return;
	status = (enum esp_status)atomic_load(&work->worst);
	if (work->ops && work->ops->parts_done && work->ops->parts_done(work, status))
		return;
	work_parts_ended(work, status);
}

void work_parts_ended(struct work *work, enum esp_status status)
{
	/* The cause is found out first: comm_fail() ends it then. */
	if (comm_is_suspicion(status) && comm_awaits_verdict(work->group, work))
		return;
	work_end(work, comm_status(work->group, status));
}

static void tell_end(struct work *work, enum esp_status status)
{
	uint64_t one = 1;

	if (work->options.signal)
		atomic_store_explicit(work->options.signal, work->options.signal_value, memory_order_release);
	if (work->event_fd >= 0) {
		ssize_t done = write(work->event_fd, &one, sizeof(one));
		(void)done;
	}
	(void)status;
}

/* With the lock held. */
static void explain(struct work *work, enum esp_status status)
{
	if (work->ops && work->ops->explain)
		work->ops->explain(work, status);
	else
		comm_explain(work->group, &work->note, status, &work->failure);
}

void work_end(struct work *work, enum esp_status status)
{
	struct rank *context = work->group->context;

	if (status == ESP_OK) {
		for (uint32_t i = 0; i < work->span_count; i++)
			comm_span_scatter(&work->spans[i], &work->call);
	}
	for (uint32_t i = 0; i < work->span_count; i++)
		comm_span_land(&work->spans[i]);
	pthread_mutex_lock(&context->lock);
	bool calls_back = work->options.done && !work->end.forgoes_callback;
	remove_live(work);
	if (work->group->tuner)
		work->group->tuner->landed(work);
	if (work->ops && work->ops->forget)
		work->ops->forget(work);
	if (work->shm_small_rounds > 0)
		atomic_fetch_add_explicit(&context->comms.shm_small_calls, 1, memory_order_relaxed);
	else
		context->comms.ended_calls++;
	if (status != ESP_OK)
		comm_note_failed(work->group, &work->note);
	else if (work->kind == WORK_CALL)
		comm_forget_absence(work->group, &work->note);
	if (status != ESP_OK && work->failure.status != status)
		explain(work, status);
	call_record_add_work(work, work_plan(work), status);
	work->end.status = status;
	atomic_store_explicit(&work->status, (int)status, memory_order_release);
	tell_end(work, status);
	if (calls_back) /* takes our reference */
		comm_callbacks_call_back(context, work);
	rank_changed(context);
	pthread_mutex_unlock(&context->lock);
	progress_changed(&context->progress);
	if (!calls_back)
		work_put(work);
	if (status != ESP_OK) /* perhaps no caller waits: the control thread writes it down then */
		rank_watch(context);
}

/* ---- for people ---- */

const char *work_describe(const struct work *work, char text[WORK_TEXT])
{
	char call[CALL_TEXT], number[32] = "";

	if (work->ops && work->ops->describe)
		return work->ops->describe(work, text);
	if (work->note.sequence > 0)
		snprintf(number, sizeof(number), "call %" PRIu64 ", ", work->note.sequence);
	snprintf(text, WORK_TEXT, "%s%s", number, call_describe(&work->note, call));
	return text;
}

const char *work_plan(const struct work *work)
{
	if (work->shm_small_rounds > 0)
		return work->shm_small_rounds == 2 ? "flat" : "exchange";
	if (work->numerics)
		work = numerics_planned(work);
	if (comm_switched_is_through(work))
		return "switch";
	return work->span_count && work->spans[0].planned ? plan_planner_name(work->spans[0].planned->planner) : "";
}
