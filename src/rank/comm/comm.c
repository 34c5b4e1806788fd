#include "rank/comm/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rank/comm/retune.h"
#include "rank/comm/split.h"
#include "rank/progress/callbacks.h"
#include "rank/progress/idle_wait.h"

#define LOOK_AGAIN (500 * NS_PER_US) /* at a gate, or at a board that somebody else has */
#define NAP (50 * NS_PER_MS)         /* failures are noticed when it ends */

bool group_is_busy(struct group *group)
{
	/* Both under the group's lock: a call that was let in before the group failed is counted when that is given back. */
	pthread_mutex_lock(&group->lock);
	bool is_at_board = atomic_load_explicit(&group->board_held, memory_order_acquire);
	pthread_mutex_lock(&group->context->lock);
	bool has_works = group->unfinished > 0;
	pthread_mutex_unlock(&group->context->lock);
	pthread_mutex_unlock(&group->lock);
	return has_works || is_at_board;
}

bool group_has(const struct group *group, uint32_t rank)
{
	for (uint32_t i = 0; i < group->size; i++) {
		if (group->ranks[i] == rank)
			return true;
	}
	return false;
}

enum esp_status group_check(struct group *group, const struct call *call, struct failure *failure)
{
	struct context *context = group->context;
	struct call_note note = {0};

	if (context_is_forked(context))
		return failure_set(failure, ESP_EFORKED, -1, "the context belongs to the process that called fork()");
	enum esp_status status = (enum esp_status)atomic_load_explicit(&group->failed, memory_order_acquire);
	if (status == ESP_OK)
		return ESP_OK;
	if (call) /* it is refused, but may tell who has made another one */
		call_note(call, group->size, call->keyed || group->is_aside ? 0 : group->calls + 1, &note);
	pthread_mutex_lock(&context->lock);
	group->is_told = true;
	failure_set(failure, status, group_culprit(group, &note), "the group has failed before: %s", group->reason.text);
	pthread_mutex_unlock(&context->lock);
	if (call) {
		failure->operation = call_operation(&note);
		failure->sequence = note.sequence;
	}
	return status;
}

unsigned group_board_rounds(const struct group *group, const struct call *call)
{
	const struct conf *conf = &group->context->conf;
	struct board_limits limits = {.bytes = group->board_bytes, .redundant_bytes = conf->small_bytes};
	unsigned rounds = group->board && !call->keyed ? board_rounds(call, group->size, &limits) : 0;

	/* A plan that is asked for is that which the board stands for, or made as any other. */
	if (rounds > 0 && call->planner && call->planner != (rounds == 2 ? &planner_flat : &planner_exchange))
		return 0;
	return rounds;
}

/* ---- queues; the group's lock is held ---- */

static void queue_push(struct group *group, struct work_queue *queue, struct work *work)
{
	work->queue_next = NULL;
	if (queue->first)
		queue->last->queue_next = work;
	else
		queue->first = work;
	queue->last = work;
	atomic_fetch_add(&group->queued, 1);
}

static struct work *queue_pop(struct group *group, struct work_queue *queue)
{
	struct work *work = queue->first;

	queue->first = work->queue_next;
	atomic_fetch_sub(&group->queued, 1);
	return work;
}

static bool gate_is_open(const struct work *work)
{
	return !work->options.gate ||
	       atomic_load_explicit(work->options.gate, memory_order_acquire) >= work->options.gate_value;
}

static enum esp_status failed_status(const struct group *group)
{
	return (enum esp_status)atomic_load_explicit(&group->failed, memory_order_acquire);
}

static bool may_go(struct group *group, const struct work *work)
{
	return gate_is_open(work) && retune_admits(group, work);
}

static void go(struct group *group, struct work *work, enum help help)
{
	enum esp_status status = retune_before(group, work);

	if (status == ESP_OK)
		work_launch(work, help);
	else
		work_end(work, status);
}

/* Who waits for one that had to stand in the queue may sleep by now, and who was expected to wait has something else to do. */
static void go_from_queue(struct group *group)
{
	struct work *work = queue_pop(group, &group->lane_queue);

	go(group, work, work->help == HELP_EXPECTED ? HELP_NONE : work->help);
	pthread_mutex_lock(&group->context->lock);
	context_changed(group->context);
	pthread_mutex_unlock(&group->context->lock);
}

static void lanes_turn(struct group *group)
{
	while (group->lane_queue.first && may_go(group, group->lane_queue.first))
		go_from_queue(group);
	while (group->lane_queue.first && failed_status(group) != ESP_OK)
		work_end(queue_pop(group, &group->lane_queue), failed_status(group));
}

/* Acquires what whoever had it before has done on the board. */
static bool board_is_free(const struct group *group)
{
	return !atomic_load_explicit(&group->board_held, memory_order_acquire);
}

static void board_hold(struct group *group)
{
	atomic_store_explicit(&group->board_held, true, memory_order_relaxed);
}

/* Without the lock; the group may be freed right after. */
static void board_give_back(struct group *group)
{
	atomic_store_explicit(&group->board_held, false, memory_order_release);
}

static void board_begin_work(struct group *group, struct work *work)
{
	struct stretch *stretch = work->stretch_count ? &work->stretches[0] : NULL;

	work->on_board_as = work->call;
	if (stretch && stretch->staging) {
		stretch_gather(stretch, &work->call);
		work->on_board_as.in = stretch->in;
		work->on_board_as.out = stretch->out;
	}
	group->board_call = (struct board_call){
		.call = &work->on_board_as, .note = work->note, .digest = work->digest, .rounds = work->board_rounds,
		.started = ticks_now(&group->context->recorder.ticks),
	};
	board_begin(group->board, &group->board_call);
	group->board_begun = true;
}

static void board_mismatch(struct group *group, uint32_t member, const struct call_note *mine,
                           const struct call_note *theirs)
{
	group_mismatch(group, group->context->rank, mine, group->ranks[member], theirs);
}

/* Goes on with the calls on the board as far as they go, unless somebody has it. */
static void board_turn(struct group *group)
{
	struct call_note mine, theirs;

	while (group->board_queue.first && board_is_free(group)) {
		struct work *work = group->board_queue.first;

		if (failed_status(group) != ESP_OK) {
			work_end(queue_pop(group, &group->board_queue), failed_status(group));
			continue;
		}
		if (!group->board_begun && !gate_is_open(work))
			return;
		if (!group->board_begun)
			board_begin_work(group, work);
		enum esp_status status = board_go_on(group->board, &group->board_call, &mine, &theirs);
		if (status == ESP_PENDING)
			return;
		if (status == ESP_EMISMATCH) {
			board_mismatch(group, group->board_call.waits_for, &mine, &theirs);
			continue;
		}
		group->board_begun = false;
		work_end(queue_pop(group, &group->board_queue), ESP_OK);
	}
}

/* Is there something in the queues that nobody looks after? Whoever waits for the board goes on with it, but does not see gates open. */
static bool is_left_alone(const struct group *group)
{
	if (atomic_load(&group->queued) == 0)
		return false;
	return group->lane_queue.first || !group->board_begun || atomic_load(&group->board_waiters) == 0;
}

static void look_after_queues(struct group *group)
{
	pthread_mutex_lock(&group->context->lock);
	group->expected_ns = 0;
	chores_look_after_queues(group->context);
	pthread_mutex_unlock(&group->context->lock);
}

/* A call has been pinned, and who started it waits for it at once, or is expected to. */
static void await_waiter(struct group *group, enum help help)
{
	if (help != HELP_EXPECTED)
		return;
	pthread_mutex_lock(&group->context->lock);
	chores_expect_waiter(group->context, group);
	pthread_mutex_unlock(&group->context->lock);
}

void group_queue(struct group *group, struct work *work, enum help help)
{
	work->help = help;
	/* Mostly nobody is before it. */
	if (work->board_rounds == 0 && atomic_load(&group->queued) == 0 && may_go(group, work)) {
		go(group, work, help);
		return;
	}
	queue_push(group, work->board_rounds > 0 ? &group->board_queue : &group->lane_queue, work);
	lanes_turn(group);
	board_turn(group);
	if (atomic_load(&group->queued) == 0)
		return;
	if (help != HELP_NONE && !group->lane_queue.first && group->board_queue.first == work && group->board_begun)
		await_waiter(group, help);
	else
		look_after_queues(group);
	context_watch(group->context);
}

bool group_turn(struct group *group)
{
	if (atomic_load_explicit(&group->queued, memory_order_relaxed) == 0)
		return false;
	if (pthread_mutex_trylock(&group->lock) != 0)
		return true;
	lanes_turn(group);
	board_turn(group);
	bool is_left = is_left_alone(group);
	pthread_mutex_unlock(&group->lock);
	return is_left;
}

/* ---- waiting for the board ---- */

/* Somebody who sleeps over a small call: what nobody else looks after. */
struct vigil {
	int64_t patience_ns; /* work_options.deadline_ns */
	uint64_t began_ns, asked_ns;
	uint32_t asks;
};

static void end_vigil(struct group *group, const struct call_note *ended)
{
	pthread_mutex_lock(&group->context->lock);
	group->vigil.began_ns = 0;
	if (ended)
		group_forget_absence(group, ended);
	pthread_mutex_unlock(&group->context->lock);
}

static void remember_board(struct group *group)
{
	struct call_note notes[2];

	board_notes(group->board, notes);
	pthread_mutex_lock(&group->context->lock);
	for (unsigned i = 0; i < 2; i++) {
		if (notes[i].sequence > group->notes[notes[i].sequence % NOTES_KEPT].sequence) /* calls on lanes may have come since */
			group_remember(group, &notes[i]);
	}
	pthread_mutex_unlock(&group->context->lock);
}

void group_last_call(struct group *group, struct call_note *out)
{
	uint64_t number = group_calls(group);

	if (group->board)
		remember_board(group);
	pthread_mutex_lock(&group->context->lock);
	const struct call_note *note = &group->notes[number % NOTES_KEPT];
	*out = note->sequence == number ? *note : (struct call_note){0};
	pthread_mutex_unlock(&group->context->lock);
}

/* Now and then asks members whether they make the same call: see group_asked(). */
static void ask_now_and_then(struct group *group, const struct board_call *op, struct vigil *vigil, uint64_t now,
                             uint64_t deadline_ns)
{
	if (vigil->began_ns == 0) {
		vigil->began_ns = now;
		remember_board(group);
	}
	if (now - vigil->began_ns < group_ask_after(group, deadline_ns - vigil->began_ns) ||
	    (vigil->asked_ns && now - vigil->asked_ns < context_patience_ns(group->context)))
		return;
	vigil->asked_ns = now;
	group_ask(group, group->ranks[op->waits_for], vigil->asks++, &op->note);
}

/* A nap of whoever has the board, over a call that waits for a member. Fails the group if it is late. */
static void board_nap(struct group *group, struct board_call *op, struct vigil *vigil, uint64_t now, uint64_t deadline_ns,
                      uint64_t until_ns)
{
	char who[RANK_TEXT], why[CONTROL_TEXT], limit[DEADLINE_TEXT];
	uint64_t until = deadline_ns < until_ns ? deadline_ns : until_ns;

	if (now >= deadline_ns) {
		uint32_t rank = group->ranks[op->waits_for];

		snprintf(why, sizeof(why), "the deadline of rank %u (%s) passed while %s was waited for: is it computing, or stopped?",
		         group->context->rank, work_deadline_text(group->context, vigil->patience_ns, limit),
		         context_rank_text(group->context, rank, who));
		group_fail(group, ESP_ETIMEOUT, (int32_t)rank, why, true);
		return;
	}
	ask_now_and_then(group, op, vigil, now, deadline_ns);
	pthread_mutex_lock(&group->context->lock);
	group->vigil.began_ns = vigil->began_ns;
	recorder_describe_board_call(group, op, &group->vigil.record);
	bool has_left = context_has_left(group->context, group->ranks[op->waits_for], vigil->began_ns, now);
	pthread_mutex_unlock(&group->context->lock);
	if (has_left)
		group_fail_by_leave(group, group->ranks[op->waits_for]);
	uint64_t nap = vigil->asked_ns == 0 ? group_ask_after(group, deadline_ns - vigil->began_ns) : NAP;
	nap = context_idle(group->context, nap < NAP ? nap : NAP);
	if (until > now)
		board_sleep(group->board, op, until - now < nap ? until - now : nap);
}

/*
 * Once its work has ended the group may be freed by whoever saw that first, so it is visited while it cannot have been. False: the work has ended, and the
 * group is not touched.
 */
static bool enter(struct work *work)
{
	struct context *context = work->context;

	pthread_mutex_lock(&context->lock);
	bool is_pending = !work_is_done(work);
	if (is_pending)
		group_visit(work->group);
	pthread_mutex_unlock(&context->lock);
	return is_pending;
}

void group_board_turn(struct work *work)
{
	struct group *group = work->group;
	struct context *context = work->context;

	if (!enter(work))
		return;
	(void)group_turn(group);
	pthread_mutex_lock(&context->lock);
	group_depart(group);
	pthread_mutex_unlock(&context->lock);
}

void group_board_wait(struct work *work, uint64_t until_ns)
{
	struct group *group = work->group;
	struct rest rest;
	struct vigil vigil = {.patience_ns = work->options.deadline_ns};
	uint64_t now = 0;

	if (!enter(work))
		return;
	rest_init(&rest, group->context->crowded);
	atomic_fetch_add(&group->board_waiters, 1);
	while (!work_is_done(work) && now < until_ns) {
		pthread_mutex_lock(&group->lock);
		lanes_turn(group);
		board_turn(group);
		/* Not ours: somebody else waits there, or the next call's gate is closed. */
		bool is_ours = group->board_begun && board_is_free(group);
		if (is_ours)
			board_hold(group);
		pthread_mutex_unlock(&group->lock);
		now = work_is_done(work) ? 0 : rest_turn(&rest);
		if (now != 0 && is_ours)
			board_nap(group, &group->board_call, &vigil, now, work->deadline_ns, until_ns);
		else if (now != 0) /* lane 0's thread looks too, and esp_poke() wakes that */
			driver_wait(group->context, work_is_done, work, now + LOOK_AGAIN < until_ns ? now + LOOK_AGAIN : until_ns);
		if (is_ours)
			board_give_back(group);
	}
	if (vigil.began_ns != 0)
		end_vigil(group, NULL);
	/* What is left is nobody's. */
	if (atomic_fetch_sub(&group->board_waiters, 1) == 1 && atomic_load(&group->queued) > 0)
		look_after_queues(group);
	pthread_mutex_lock(&work->context->lock);
	group_depart(group);
	pthread_mutex_unlock(&work->context->lock);
}

/* ---- blocking calls ---- */

/* A small call that nobody is before: no work is made of it. This thread has the board. */
static enum esp_status run_on_board(struct group *group, struct board_call *op, const struct work_options *options,
                                    struct failure *failure)
{
	struct context *context = group->context;
	struct call_note mine, theirs;
	struct vigil vigil = {.patience_ns = options->deadline_ns};
	struct rest rest;
	enum esp_status status;
	uint64_t deadline_ns = 0;
	bool waited = false;

	op->started = ticks_now(&context->recorder.ticks);
	board_begin(group->board, op);
	rest_init(&rest, context->crowded);
	while ((status = board_go_on(group->board, op, &mine, &theirs)) == ESP_PENDING) {
		waited = true;
		if (rest_has_spun(&rest))
			board_step_aside(group->board, op);
		uint64_t now = rest_turn(&rest);

		if (now != 0) {
			if (deadline_ns == 0)
				deadline_ns = now + (options->deadline_ns > 0 ? (uint64_t)options->deadline_ns
				                                              : context->conf.deadline_seconds * NS_PER_S);
			board_nap(group, op, &vigil, now, deadline_ns, UINT64_MAX);
			status = failed_status(group);
			if (status != ESP_OK)
				break;
		}
	}
	if (status == ESP_EMISMATCH)
		board_mismatch(group, op->waits_for, &mine, &theirs);
	atomic_fetch_add_explicit(&context->board_calls, 1, memory_order_relaxed);
	recorder_add_board_call(group, op, status, waited);
	if (vigil.began_ns != 0)
		end_vigil(group, status == ESP_OK ? &op->note : NULL);
	if (status == ESP_OK)
		return ESP_OK;
	pthread_mutex_lock(&context->lock);
	group->waited = true;
	group->wait = (struct exec_wait){.peer = group->ranks[op->waits_for], .chunk = UINT64_MAX, .step = UINT32_MAX};
	group_note_failed(group, &op->note);
	group_explain(group, &op->note, status, failure);
	pthread_mutex_unlock(&context->lock);
	return status;
}

/* Takes the board and the next number, if nobody is before this call: ESP_PENDING: somebody is. */
static enum esp_status take_board(struct group *group, const struct call *call, uint64_t *out_number, struct failure *failure)
{
	enum esp_status status = ESP_PENDING;

	pthread_mutex_lock(&group->lock);
	if (!group->board_queue.first && board_is_free(group)) {
		status = group_check(group, call, failure);
		if (status == ESP_OK) {
			board_hold(group);
			*out_number = group_number(group);
		}
	}
	pthread_mutex_unlock(&group->lock);
	return status;
}

/* Lets those go on who came meanwhile; whom we overlook, lane 0's thread finds. The group may be freed right after. */
static void leave_board(struct group *group)
{
	if (atomic_load_explicit(&group->queued, memory_order_relaxed) == 0) {
		board_give_back(group);
		return;
	}
	pthread_mutex_lock(&group->lock);
	board_give_back(group);
	lanes_turn(group);
	board_turn(group);
	pthread_mutex_unlock(&group->lock);
}

static enum esp_status run_as_work(struct group *group, const struct call *call, const struct work_options *options, bool is_plain,
                                   struct failure *failure)
{
	struct work *work;
	enum esp_status status = is_plain ? work_make_plain(group, call, options, &work, failure) : work_make(group, call, options, &work, failure);

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
static enum esp_status told(struct context *context, enum esp_status status)
{
	if (status < 0)
		dump_failures_and_wait(context);
	return status;
}

enum esp_status group_run(struct group *group, const struct call *call, const struct work_options *options,
                          struct failure *failure)
{
	bool is_plain = !call->in_parts && !call->out_parts && !options->gate && !options->signal && !options->done;

	unsigned rounds = is_plain ? group_board_rounds(group, call) : 0;

	if (rounds > 0) {
		struct board_call op = {.call = call, .rounds = rounds};
		uint64_t number;
		enum esp_status status = take_board(group, call, &number, failure);

		if (status == ESP_OK) {
			call_note(call, group->size, number, &op.note);
			op.digest = group_digest(group, &op.note);
			status = run_on_board(group, &op, options, failure);
			leave_board(group);
		}
		if (status != ESP_PENDING)
			return told(group->context, status);
	}
	return told(group->context, run_as_work(group, call, options, is_plain && rounds == 0, failure));
}
