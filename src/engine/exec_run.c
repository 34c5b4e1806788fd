/*
 * exec_run.c - a chunk in flight: its row of ops, run as far as the data goes.
 */
#include <string.h>

#include "engine/exec_state.h"

/* ---- places ---- */

static uint8_t *buffer_at(const void *buffer, uint64_t offset)
{
	return buffer ? (uint8_t *)(uintptr_t)buffer + offset : NULL;
}

/* NULL when dry, for a buffer of no bytes, and after running out of memory, which fails the executor. */
uint8_t *exec_run_place(struct exec *exec, struct run *run, uint8_t place)
{
	if (exec->config.dry)
		return NULL;
	if (place == PLAN_IN)
		return buffer_at(run->instance->call.in, run->piece.in_at);
	if (place == PLAN_OUT)
		return buffer_at(run->instance->call.out, run->piece.out_at);
	void **tmp = &run_tmp(run)[place - PLAN_TMP];
	if (!*tmp) {
		*tmp = exec_pool_get(&exec->pool);
		if (!*tmp)
			exec_fail(exec, PLAN_NONE, ESP_ENOMEM);
	}
	return *tmp;
}

static void combine(struct exec *exec, struct run *run, void *target, const void *left, const void *right)
{
	const struct instance *instance = run->instance;

	if (exec->config.dry || has_failed(exec) || run->piece.bytes == 0)
		return;
	instance->fold(target, left, right, run->piece.bytes / instance->element_bytes);
}

static void copy(struct exec *exec, struct run *run, void *target, const void *source)
{
	if (exec->config.dry || has_failed(exec) || run->piece.bytes == 0 || target == source)
		return;
	memcpy(target, source, run->piece.bytes);
}

/* Puts received data where it belongs: around the caches, if it is not read soon. */
static void put_away(struct exec *exec, struct run *run, void *target, const void *source)
{
	bool is_passed_on = run->at + 1 < run->op_count && run->ops[run->at + 1].step.verb == PLAN_SEND;

	if (run->instance->streams && !is_passed_on && !exec->config.dry && !has_failed(exec) && run->piece.bytes > 0)
		math_copy_streaming(target, source, run->piece.bytes);
	else
		copy(exec, run, target, source);
}

/* ---- folds ---- */

static bool is_local(const struct op *term)
{
	return term->step.verb == PLAN_LOCAL;
}

/* Combines the data of the term that is next, which came from a peer, and moves on. */
static void take_term(struct exec *exec, struct run *run, struct op *fold, const void *data)
{
	uint8_t *target = exec_run_place(exec, run, fold->step.place);
	struct op *terms = fold + 1;

	if (run->term == 0 && is_local(&terms[1])) {
		combine(exec, run, target, data, exec_run_place(exec, run, terms[1].step.place));
		run->term = 2;
	} else if (run->term == 0) {
		copy(exec, run, target, data);
		run->term = 1;
	} else if (run->term == 1 && is_local(&terms[0])) {
		combine(exec, run, target, exec_run_place(exec, run, terms[0].step.place), data);
		run->term = 2;
	} else {
		combine(exec, run, target, target, data);
		run->term++;
	}
}

#define FOLD_MOST 64u /* terms at once; more take another round */

/* The operands that are here, from the term that is next on; the sum so far is the first of them, if there is one. */
static uint32_t gather_terms(struct exec *exec, struct run *run, struct op *fold, uint8_t *target, const void **out)
{
	const struct op *terms = fold + 1;
	uint32_t count = 0;

	if (run->term == 1 && is_local(&terms[0]))
		out[count++] = exec_run_place(exec, run, terms[0].step.place);
	else if (run->term > 0)
		out[count++] = target;
	for (uint32_t i = run->term; i < fold->step.count && count < FOLD_MOST; i++) {
		if (is_local(&terms[i]))
			out[count++] = exec_run_place(exec, run, terms[i].step.place);
		else if (terms[i].state == OP_PARKED)
			out[count++] = terms[i].data;
		else
			break;
	}
	return count;
}

/*
 * Combines all terms that are here, if these are at least two beside what is summed already: in
 * one pass, so that the sum is written once. The order is that of the terms for every element,
 * so the bits are those of one pass after the other.
 */
static bool take_many(struct exec *exec, struct run *run, struct op *fold)
{
	const void *operands[FOLD_MOST];
	const struct instance *instance = run->instance;
	struct op *first = fold + 1 + run->term;

	if (fold->step.count - run->term < 2)
		return false;
	uint8_t *target = exec_run_place(exec, run, fold->step.place);
	uint32_t count = gather_terms(exec, run, fold, target, operands), taken = count - (run->term > 0);
	if (taken < 2 || has_failed(exec))
		return false;
	math_fold_many(instance->call.type, instance->call.op, target, operands, count,
	               run->piece.bytes / instance->element_bytes);
	run->term += taken;
	/* Each is looked at once more when it is consumed: whether it was still what the peer had offered. */
	for (uint32_t i = 0; i < taken && !has_failed(exec); i++) {
		if (!is_local(&first[i]))
			exec_peer_consume(exec, &first[i]);
	}
	return true;
}

/* A term that this node holds. The first one waits for the second, to be combined in one pass. */
static void take_local(struct exec *exec, struct run *run, struct op *fold)
{
	struct op *terms = fold + 1;
	uint8_t *target = exec_run_place(exec, run, fold->step.place);
	const uint8_t *mine = exec_run_place(exec, run, terms[run->term].step.place);

	if (run->term > 0) {
		combine(exec, run, target, target, mine);
		run->term++;
	} else if (is_local(&terms[1])) {
		combine(exec, run, target, mine, exec_run_place(exec, run, terms[1].step.place));
		run->term = 2;
	} else {
		run->term = 1;
	}
}

/* Runs a fold as far as its terms are here; false: waits for the term at run->term. */
static bool run_fold(struct exec *exec, struct run *run)
{
	struct op *fold = &run->ops[run->at];
	bool has_data = !exec->config.dry && run->instance->reduces && run->piece.bytes > 0;

	/* Nothing was summed yet: a first term of our own only waits for the second. */
	bool is_whole = run->term == 0 || run->stores || (run->term == 1 && is_local(fold + 1));

	if (has_data && run->has_replies && is_whole) {
		enum store store = exec_run_store(exec, run);

		if (store != STORE_NOT)
			return store == STORE_DONE;
	}
	while (run->term < fold->step.count) {
		if (has_failed(exec))
			return false;
		struct op *term = fold + 1 + run->term;

		if (has_data && take_many(exec, run, fold))
			continue;
		if (is_local(term)) {
			take_local(exec, run, fold);
		} else if (term->state == OP_PARKED) {
			take_term(exec, run, fold, term->data);
			exec_peer_consume(exec, term);
		} else {
			return false;
		}
	}
	run->at += fold->step.count + 1;
	run->term = 0;
	return true;
}

/* ---- the row ---- */

static bool run_recv(struct exec *exec, struct run *run)
{
	struct op *op = &run->ops[run->at];

	if (op->state != OP_PARKED)
		return false;
	if (!op->is_stored)
		put_away(exec, run, exec_run_place(exec, run, op->step.place), op->data);
	exec_peer_consume(exec, op);
	run->at++;
	return true;
}

static void run_update(struct exec *exec, struct run *run)
{
	const struct instance *instance = run->instance;
	uint8_t *data = exec_run_place(exec, run, run->ops[run->at].step.place);

	if (exec->config.dry || has_failed(exec))
		; /* there is no sum */
	else if (instance->call.has_update)
		instance->call.update->run(instance->call.update->context, run->chunk, data, run->piece.bytes);
	else if (instance->finishes)
		math_finish(data, run->piece.bytes / instance->element_bytes, instance->call.type, instance->call.op,
		            instance->call.factor, instance->call.plan->workers);
	run->at++;
}

/* Runs the op that is next; false: it waits for a peer. */
static bool run_op(struct exec *exec, struct run *run)
{
	struct op *op = &run->ops[run->at];

	switch (op->step.verb) {
	case PLAN_SEND:
		exec_peer_queue_send(exec, op);
		break;
	case PLAN_RECV:
		return run_recv(exec, run);
	case PLAN_FOLD:
		return run_fold(exec, run);
	case PLAN_COPY:
		copy(exec, run, exec_run_place(exec, run, op->step.place), exec_run_place(exec, run, (uint8_t)op->step.source));
		break;
	case PLAN_UPDATE:
		run_update(exec, run);
		return true;
	default: /* fetch, deliver: the memory is the caller's already */
		break;
	}
	run->at++;
	return true;
}

void exec_run_advance(struct exec *exec, struct run *run)
{
	while (run->at < run->op_count) {
		if (!run_op(exec, run) || has_failed(exec))
			return;
	}
	if (run->sends_left == 0)
		exec_run_retire(exec, run);
}

bool exec_run_waits_on(const struct run *run, const struct op *op)
{
	const struct op *at;

	if (run->at >= run->op_count)
		return false;
	if (run->stores)
		return op == &run->ops[run->term];
	at = &run->ops[run->at];
	return at->step.verb == PLAN_FOLD ? at + 1 + run->term == op : at == op;
}

void exec_run_aim(struct exec *exec, struct run *run, struct incoming *incoming)
{
	struct op *op = &run->ops[run->at], *terms = op + 1;

	incoming->arrival = ARRIVAL_PLACE;
	incoming->target = exec_run_place(exec, run, op->step.place);
	if (op->step.verb == PLAN_RECV)
		return;
	if (run->term == 0) {
		if (!is_local(&terms[1]))
			return; /* the first of two that arrive: the second is added to it */
		incoming->leads = true;
		incoming->other = exec_run_place(exec, run, terms[1].step.place);
	} else if (run->term == 1 && is_local(&terms[0])) {
		incoming->other = exec_run_place(exec, run, terms[0].step.place);
	} else {
		incoming->other = incoming->target;
	}
	incoming->arrival = ARRIVAL_ADD;
}

void exec_run_received(struct exec *exec, struct run *run)
{
	struct op *op = &run->ops[run->at];

	if (op->step.verb == PLAN_RECV) {
		run->at++;
		exec_peer_consume(exec, op);
	} else {
		struct op *terms = op + 1, *term = &terms[run->term];

		run->term += run->term == 0 && is_local(&terms[1]) ? 2 : 1;
		exec_peer_consume(exec, term);
	}
	exec_run_advance(exec, run);
}
