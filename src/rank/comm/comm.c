#include "rank/comm/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/progress/wait_policy.h"
#include "rank/comm/call_record.h"
#include "rank/comm/callbacks.h"
#include "rank/comm/span.h"
#include "rank/comm/stages.h"
#include "rank/comm/work.h"
#include "rank/observe/dump.h"
#include "rank/observe/recorder.h"

#define LOOK_AGAIN (500 * NS_PER_US) /* at a gate, or at the small path while another thread holds it */
#define NAP (50 * NS_PER_MS)         /* failures are noticed when it ends */

bool comm_is_busy(struct comm *group)
{
	/*
	 * Both under the group's lock: a call that was let in before the group failed is counted when that is given back.
	 */
	pthread_mutex_lock(&group->lock);
	bool is_at_small = atomic_load_explicit(&group->small.is_held, memory_order_acquire);
	pthread_mutex_lock(&group->context->lock);
	bool has_works = group->unfinished > 0;
	pthread_mutex_unlock(&group->context->lock);
	pthread_mutex_unlock(&group->lock);
	return has_works || is_at_small;
}

bool comm_has(const struct comm *group, uint32_t rank)
{
	for (uint32_t i = 0; i < group->size; i++) {
		if (group->ranks[i] == rank)
			return true;
	}
	return false;
}

enum esp_status comm_check(struct comm *group, const struct call *call, struct failure *failure)
{
	struct rank *context = group->context;
	struct call_note note = {0};

	if (rank_is_forked(context))
		return rank_failure_set(failure, ESP_EFORKED, -1, "the context belongs to the process that called fork()");
	enum esp_status status = (enum esp_status)atomic_load_explicit(&group->fail.status, memory_order_acquire);
	if (status == ESP_OK)
		return ESP_OK;
	if (call) /* it is refused, but its note may tell which rank has made another one */
		call_note(call, group->size, call->keyed || group->is_aside ? 0 : group->calls + 1, &note);
	pthread_mutex_lock(&context->lock);
	group->fail.is_told = true;
	rank_failure_set(failure, status, comm_culprit(group, &note), "the group has failed before: %s",
	                 group->fail.reason.failed.text);
	pthread_mutex_unlock(&context->lock);
	if (call) {
		failure->operation = call_operation(&note);
		failure->sequence = note.sequence;
	}
	return status;
}

unsigned comm_small_rounds(const struct comm *group, const struct call *call)
{
	const struct conf *conf = &group->context->conf;
	struct shm_small_limits limits = {.bytes = group->small.bytes, .redundant_bytes = conf->small_bytes};
	bool has_lanes = call->keyed || call_is_fixed(call); /* the small path has no stages */
	unsigned rounds = group->small.shm && !has_lanes ? shm_small_rounds(call, group->size, &limits) : 0;

	/* A plan that is asked for is the plan that the small path stands for, or made as any other. */
	if (rounds > 0 && call->planner && call->planner != (rounds == 2 ? &planner_flat : &planner_exchange))
		return 0;
	return rounds;
}

/* ---- queues; the group's lock is held ---- */

static void queue_push(struct comm *group, struct work_queue *queue, struct work *work)
{
	work->link.queue_next = NULL;
	if (queue->first)
		queue->last->link.queue_next = work;
	else
		queue->first = work;
	queue->last = work;
	atomic_fetch_add(&group->queued, 1);
}

static struct work *queue_pop(struct comm *group, struct work_queue *queue)
{
	struct work *work = queue->first;

	queue->first = work->link.queue_next;
	atomic_fetch_sub(&group->queued, 1);
	return work;
}

static bool gate_is_open(const struct work *work)
{
	return !work->options.gate ||
	       atomic_load_explicit(work->options.gate, memory_order_acquire) >= work->options.gate_value;
}

static enum esp_status failed_status(const struct comm *group)
{
	return (enum esp_status)atomic_load_explicit(&group->fail.status, memory_order_acquire);
}

/* Does the head of the queue hold it back until the ranks have agreed on its exponents? */
static bool is_agreeing(const struct work *work)
{
	return work->numerics && numerics_stage(work) == NUMERICS_AGREEING;
}

static bool may_go(struct comm *group, const struct work *work)
{
	if (work->numerics && numerics_stage(work) != NUMERICS_IDLE)
		return !is_agreeing(work);
	return gate_is_open(work) && !comm_switched_decides(group) && (!group->tuner || group->tuner->admits(group, work));
}

static enum esp_status tuner_before(struct comm *group, struct work *work)
{
	return group->tuner ? group->tuner->before(group, work) : ESP_OK;
}

static void go(struct comm *group, struct work *work, enum drive_by help)
{
	enum esp_status status = tuner_before(group, work);

	if (status == ESP_OK)
		work_launch(work, help);
	else
		work_end(work, status);
}

/*
 * A call in fixed point stays at the head of the queue while its exponents are agreed upon, so that its second stage
 * comes before all later calls on every rank.
 */
static void go_in_stages(struct comm *group, struct work *work, enum drive_by help)
{
	if (numerics_stage(work) == NUMERICS_AGREED) {
		(void)queue_pop(group, &group->lane_queue);
		numerics_go_on(work, help);
		return;
	}
	enum esp_status status = tuner_before(group, work);
	if (status == ESP_OK)
		status = numerics_begin(work, help);
	if (status != ESP_OK)
		work_end(queue_pop(group, &group->lane_queue), status);
}

/*
 * The caller of a call that had to stand in the queue may be asleep by now, and the predicted waiter may be busy
 * elsewhere: such a call goes to the lane thread.
 */
static void go_from_queue(struct comm *group)
{
	struct work *work = group->lane_queue.first;
	enum drive_by help = work->help == BY_CALLER_SOON ? BY_LANE_THREAD : work->help;

	if (work->numerics)
		go_in_stages(group, work, help);
	else
		go(group, queue_pop(group, &group->lane_queue), help);
	progress_changed(&group->context->progress);
}

static void lanes_turn(struct comm *group)
{
	while (group->lane_queue.first && may_go(group, group->lane_queue.first))
		go_from_queue(group);
	/* One whose exponents are under way ends when its lanes have given it back. */
	while (group->lane_queue.first && failed_status(group) != ESP_OK && !is_agreeing(group->lane_queue.first))
		work_end(queue_pop(group, &group->lane_queue), failed_status(group));
}

/* Acquires all that the previous holder of the small path has written. */
static bool shm_small_is_free(const struct comm *group)
{
	return !atomic_load_explicit(&group->small.is_held, memory_order_acquire);
}

static void shm_small_hold(struct comm *group)
{
	atomic_store_explicit(&group->small.is_held, true, memory_order_relaxed);
}

/* Without the lock; the group may be freed right after. */
static void shm_small_give_back(struct comm *group)
{
	atomic_store_explicit(&group->small.is_held, false, memory_order_release);
}

static void shm_small_begin_work(struct comm *group, struct work *work)
{
	struct span *span = work->span_count ? &work->spans[0] : NULL;

	work->on_small_as = work->call;
	if (span && span->staging) {
		comm_span_gather(span, &work->call);
		work->on_small_as.in = span->in;
		work->on_small_as.out = span->out;
	}
	group->small.call = (struct shm_small_call){
		.call = &work->on_small_as, .note = work->note, .digest = work->digest, .rounds = work->shm_small_rounds,
		.started = ticks_now(&group->context->mod.recorder->ticks),
	};
	shm_small_begin(group->small.shm, &group->small.call);
	group->small.has_begun = true;
}

static void shm_small_mismatch(struct comm *group, uint32_t member, const struct call_note *mine,
                           const struct call_note *theirs)
{
	comm_mismatch(group, group->context->rank, mine, group->ranks[member], theirs);
}

/* Goes on with the calls on the small path as far as they go, unless another thread holds it. */
static void shm_small_turn(struct comm *group)
{
	struct call_note mine, theirs;

	while (group->small.queue.first && shm_small_is_free(group)) {
		struct work *work = group->small.queue.first;

		if (failed_status(group) != ESP_OK) {
			work_end(queue_pop(group, &group->small.queue), failed_status(group));
			continue;
		}
		if (!group->small.has_begun && !gate_is_open(work))
			return;
		if (!group->small.has_begun)
			shm_small_begin_work(group, work);
		enum esp_status status = shm_small_go_on(group->small.shm, &group->small.call, &mine, &theirs);
		if (status == ESP_PENDING)
			return;
		if (status == ESP_EMISMATCH) {
			shm_small_mismatch(group, group->small.call.waits_for, &mine, &theirs);
			continue;
		}
		group->small.has_begun = false;
		work_end(queue_pop(group, &group->small.queue), ESP_OK);
	}
}

/* Are there only calls behind one whose exponents are under way? The thread that ends that stage looks after them. */
static bool is_held_back(const struct comm *group)
{
	return group->lane_queue.first && is_agreeing(group->lane_queue.first) && !group->small.queue.first;
}

/*
 * Do the queues have calls that no thread looks after? A thread that waits at the small path goes on with it, but does
 * not see gates open.
 */
static bool is_left_alone(const struct comm *group)
{
	if (atomic_load(&group->queued) == 0)
		return false;
	if (is_held_back(group))
		return false;
	return group->lane_queue.first || !group->small.has_begun || atomic_load(&group->small.waiters) == 0;
}

static void look_after_queues(struct comm *group)
{
	pthread_mutex_lock(&group->context->lock);
	group->small.expected_ns = 0;
	comm_callbacks_look_after_queues(group->context);
	pthread_mutex_unlock(&group->context->lock);
}

/* A call has been pinned, and its caller waits for it at once, or is expected to. */
static void await_waiter(struct comm *group, enum drive_by help)
{
	if (help != BY_CALLER_SOON)
		return;
	pthread_mutex_lock(&group->context->lock);
	comm_callbacks_expect_waiter(group->context, group);
	pthread_mutex_unlock(&group->context->lock);
}

void comm_queue(struct comm *group, struct work *work, enum drive_by help)
{
	work->help = help;
	/* Mostly no call is queued before it. */
	if (work->shm_small_rounds == 0 && !work->numerics && atomic_load(&group->queued) == 0 && may_go(group, work)) {
		go(group, work, help);
		return;
	}
	queue_push(group, work->shm_small_rounds > 0 ? &group->small.queue : &group->lane_queue, work);
	lanes_turn(group);
	shm_small_turn(group);
	if (atomic_load(&group->queued) == 0)
		return;
	if (help != BY_LANE_THREAD && !group->lane_queue.first && group->small.queue.first == work &&
	    group->small.has_begun)
		await_waiter(group, help);
	else if (!is_held_back(group))
		look_after_queues(group);
	rank_watch(group->context);
}

void comm_go_on(struct comm *group)
{
	if (comm_turn(group))
		look_after_queues(group);
}

bool comm_turn(struct comm *group)
{
	if (atomic_load_explicit(&group->queued, memory_order_relaxed) == 0)
		return false;
	if (pthread_mutex_trylock(&group->lock) != 0)
		return true;
	lanes_turn(group);
	shm_small_turn(group);
	bool is_left = is_left_alone(group);
	pthread_mutex_unlock(&group->lock);
	return is_left;
}

/* ---- waiting for the small path ---- */

/* State of a thread that sleeps over a small call: checks that no other thread makes. */
struct vigil {
	int64_t patience_ns; /* work_options.deadline_ns */
	uint64_t began_ns, asked_ns;
	uint32_t asks;
};

static void end_vigil(struct comm *group, const struct call_note *ended)
{
	pthread_mutex_lock(&group->context->lock);
	group->small.vigil.began_ns = 0;
	if (ended)
		comm_forget_absence(group, ended);
	pthread_mutex_unlock(&group->context->lock);
}

static void remember_small(struct comm *group)
{
	struct call_note notes[2];

	shm_small_notes(group->small.shm, notes);
	pthread_mutex_lock(&group->context->lock);
	for (unsigned i = 0; i < 2; i++) {
		/* calls on lanes may have come since */
		if (notes[i].sequence > group->fail.notes[notes[i].sequence % NOTES_KEPT].sequence)
			comm_remember(group, &notes[i]);
	}
	pthread_mutex_unlock(&group->context->lock);
}

void comm_last_call(struct comm *group, struct call_note *out)
{
	uint64_t number = comm_calls(group);

	if (group->small.shm)
		remember_small(group);
	pthread_mutex_lock(&group->context->lock);
	const struct call_note *note = &group->fail.notes[number % NOTES_KEPT];
	*out = note->sequence == number ? *note : (struct call_note){0};
	pthread_mutex_unlock(&group->context->lock);
}

/* Now and then asks members whether they make the same call: see comm_asked(). */
static void ask_now_and_then(struct comm *group, const struct shm_small_call *op, struct vigil *vigil, uint64_t now,
                             uint64_t deadline_ns)
{
	if (vigil->began_ns == 0) {
		vigil->began_ns = now;
		remember_small(group);
	}
	if (now - vigil->began_ns < comm_ask_after(group, deadline_ns - vigil->began_ns) ||
	    (vigil->asked_ns && now - vigil->asked_ns < rank_patience_ns(group->context)))
		return;
	vigil->asked_ns = now;
	comm_ask(group, group->ranks[op->waits_for], vigil->asks++, &op->note);
}

/*
 * One sleep of the thread that holds the small path, over a call that waits for a member. Fails the group if it is
 * late.
 */
static void shm_small_nap(struct comm *group, struct shm_small_call *op, struct vigil *vigil, uint64_t now,
                          uint64_t deadline_ns, uint64_t until_ns)
{
	char who[RANK_TEXT], why[CONTROL_TEXT], limit[DEADLINE_TEXT];
	uint64_t until = deadline_ns < until_ns ? deadline_ns : until_ns;

	if (now >= deadline_ns) {
		uint32_t rank = group->ranks[op->waits_for];

		snprintf(why, sizeof(why),
		         "the deadline of rank %u (%s) passed while %s was waited for: is it computing, or stopped?",
		         group->context->rank, work_deadline_text(group->context, vigil->patience_ns, limit),
		         rank_text(group->context, rank, who));
		comm_fail(group, ESP_ETIMEOUT, (int32_t)rank, why, true);
		return;
	}
	ask_now_and_then(group, op, vigil, now, deadline_ns);
	pthread_mutex_lock(&group->context->lock);
	group->small.vigil.began_ns = vigil->began_ns;
	call_record_small(group, op, &group->small.vigil.record);
	bool has_left = rank_has_left(group->context, group->ranks[op->waits_for], vigil->began_ns, now);
	pthread_mutex_unlock(&group->context->lock);
	if (has_left)
		comm_fail_by_leave(group, group->ranks[op->waits_for]);
	uint64_t nap = vigil->asked_ns == 0 ? comm_ask_after(group, deadline_ns - vigil->began_ns) : NAP;
	nap = progress_idle(&group->context->progress, nap < NAP ? nap : NAP);
	if (until > now)
		shm_small_sleep(group->small.shm, op, until - now < nap ? until - now : nap);
}

/*
 * Once its work has ended the group may be freed by the first thread that saw that, so it is visited while it cannot
 * have been. False: the work has ended, and the group is not touched.
 */
static bool enter(struct work *work)
{
	struct rank *context = work->context;

	pthread_mutex_lock(&context->lock);
	bool is_pending = !work_is_done(work);
	if (is_pending)
		comm_visit(work->group);
	pthread_mutex_unlock(&context->lock);
	return is_pending;
}

void comm_small_turn(struct work *work)
{
	struct comm *group = work->group;
	struct rank *context = work->context;

	if (!enter(work))
		return;
	(void)comm_turn(group);
	pthread_mutex_lock(&context->lock);
	comm_depart(group);
	pthread_mutex_unlock(&context->lock);
}

void comm_small_wait(struct work *work, uint64_t until_ns)
{
	struct comm *group = work->group;
	struct idle_wait rest;
	struct vigil vigil = {.patience_ns = work->options.deadline_ns};
	uint64_t now = 0;

	if (!enter(work))
		return;
	idle_wait_init(&rest, group->context->host.crowded);
	atomic_fetch_add(&group->small.waiters, 1);
	while (!work_is_done(work) && now < until_ns) {
		pthread_mutex_lock(&group->lock);
		lanes_turn(group);
		shm_small_turn(group);
		/* Not ours: another thread waits there, or the next call's gate is closed. */
		bool is_ours = group->small.has_begun && shm_small_is_free(group);
		if (is_ours)
			shm_small_hold(group);
		pthread_mutex_unlock(&group->lock);
		now = work_is_done(work) ? 0 : idle_wait_turn(&rest);
		if (now != 0 && is_ours)
			shm_small_nap(group, &group->small.call, &vigil, now, work->time.deadline_ns, until_ns);
		else if (now != 0) /* lane 0's thread looks too, and esp_poke() wakes that */
			progress_wait(&group->context->progress, work_is_done, work,
			              now + LOOK_AGAIN < until_ns ? now + LOOK_AGAIN : until_ns);
		if (is_ours)
			shm_small_give_back(group);
	}
	if (vigil.began_ns != 0)
		end_vigil(group, NULL);
	/* No thread looks after the calls that are left. */
	if (atomic_fetch_sub(&group->small.waiters, 1) == 1 && atomic_load(&group->queued) > 0)
		look_after_queues(group);
	pthread_mutex_lock(&work->context->lock);
	comm_depart(group);
	pthread_mutex_unlock(&work->context->lock);
}

/* ---- blocking calls ---- */

/* A small call with no call queued before it: no work is made of it. This thread holds the small path. */
static enum esp_status run_on_small(struct comm *group, struct shm_small_call *op, const struct work_options *options,
                                    struct failure *failure)
{
	struct rank *context = group->context;
	struct call_note mine, theirs;
	struct vigil vigil = {.patience_ns = options->deadline_ns};
	struct idle_wait rest;
	enum esp_status status;
	uint64_t deadline_ns = 0;
	bool waited = false;

	op->started = ticks_now(&context->mod.recorder->ticks);
	shm_small_begin(group->small.shm, op);
	idle_wait_init(&rest, context->host.crowded);
	while ((status = shm_small_go_on(group->small.shm, op, &mine, &theirs)) == ESP_PENDING) {
		waited = true;
		if (idle_wait_has_spun(&rest))
			shm_small_step_aside(group->small.shm, op);
		uint64_t now = idle_wait_turn(&rest);

		if (now != 0) {
			if (deadline_ns == 0)
				deadline_ns = now + (options->deadline_ns > 0 ? (uint64_t)options->deadline_ns
				                                              : context->conf.deadline_seconds * NS_PER_S);
			shm_small_nap(group, op, &vigil, now, deadline_ns, UINT64_MAX);
			status = failed_status(group);
			if (status != ESP_OK)
				break;
		}
	}
	if (status == ESP_EMISMATCH)
		shm_small_mismatch(group, op->waits_for, &mine, &theirs);
	atomic_fetch_add_explicit(&context->comms.shm_small_calls, 1, memory_order_relaxed);
	call_record_add_small(group, op, status, waited);
	if (vigil.began_ns != 0)
		end_vigil(group, status == ESP_OK ? &op->note : NULL);
	if (status == ESP_OK)
		return ESP_OK;
	pthread_mutex_lock(&context->lock);
	group->fail.waited = true;
	group->fail.wait = (struct exec_wait){.peer = group->ranks[op->waits_for], .chunk = UINT64_MAX, .step = UINT32_MAX};
	comm_note_failed(group, &op->note);
	comm_explain(group, &op->note, status, failure);
	pthread_mutex_unlock(&context->lock);
	return status;
}

/* Takes the small path and the next number, if no call is queued before this one. ESP_PENDING: one is. */
static enum esp_status take_small(struct comm *group, const struct call *call, uint64_t *out_number,
                                  struct failure *failure)
{
	enum esp_status status = ESP_PENDING;

	pthread_mutex_lock(&group->lock);
	if (!group->small.queue.first && shm_small_is_free(group)) {
		status = comm_check(group, call, failure);
		if (status == ESP_OK) {
			shm_small_hold(group);
			*out_number = comm_number(group);
		}
	}
	pthread_mutex_unlock(&group->lock);
	return status;
}

/*
 * Lets calls go on that came meanwhile; lane 0's thread finds any that are missed here. The group may be freed right
 * after.
 */
static void leave_small(struct comm *group)
{
	if (atomic_load_explicit(&group->queued, memory_order_relaxed) == 0) {
		shm_small_give_back(group);
		return;
	}
	pthread_mutex_lock(&group->lock);
	shm_small_give_back(group);
	lanes_turn(group);
	shm_small_turn(group);
	pthread_mutex_unlock(&group->lock);
}

static enum esp_status run_as_work(struct comm *group, const struct call *call, const struct work_options *options,
                                   bool is_plain, struct failure *failure)
{
	struct work *work;
	enum esp_status status = is_plain ? work_make_plain(group, call, options, &work, failure)
	                                  : work_make(group, call, options, &work, failure);

	if (status != ESP_OK)
		return status;
	status = work_start(work, true, failure);
	if (status == ESP_OK) {
		status = work_wait(work, UINT64_MAX);
		if (status != ESP_OK)
			*failure = work->failure;
	}
	if (is_plain && status == ESP_OK)
		work_leave(work);
	else
		work_put(work);
	return status;
}

/* Before a caller hears of a failure, which may be the last thing that it does, it is written down. */
static enum esp_status told(struct rank *context, enum esp_status status)
{
	if (status < 0)
		dump_failures_and_wait(context);
	return status;
}

enum esp_status comm_run(struct comm *group, const struct call *call, const struct work_options *options,
                          struct failure *failure)
{
	bool is_plain = !call->in_parts && !call->out_parts && !options->gate && !options->signal && !options->done;

	unsigned rounds = is_plain ? comm_small_rounds(group, call) : 0;

	if (rounds > 0) {
		struct shm_small_call op = {.call = call, .rounds = rounds};
		uint64_t number;
		enum esp_status status = take_small(group, call, &number, failure);

		if (status == ESP_OK) {
			call_note(call, group->size, number, &op.note);
			op.digest = comm_digest(group, &op.note);
			status = run_on_small(group, &op, options, failure);
			leave_small(group);
		}
		if (status != ESP_PENDING)
			return told(group->context, status);
	}
	return told(group->context, run_as_work(group, call, options, is_plain && rounds == 0, failure));
}
