/*
 * exec_store.c - sums that are stored where they are wanted.
 *
 * Ranks that share memory both ways say with their messages where they want the result (transport.h). The rank that
 * sums a chunk then waits until all terms are here, and stores each piece of the sum to all places while the operands,
 * read there a moment ago, are in the nearest cache. Otherwise every rank would fetch it by itself, from a cache that
 * others have filled, and write it over lines that it has to fetch first.
 *
 * The order of addition is that of the plan, so the bits are those of the messages that this stands for.
 */
#include <stdatomic.h>
#include <string.h>

#include "engine/exec_state.h"

#define TERMS_MOST 64u
#define LINE 64u

/* A sum: folds, of which each goes on with the result of the one before. */
struct sum {
	const void *operands[TERMS_MOST];
	struct op *terms[TERMS_MOST]; /* terms that came from peers */
	uint32_t operand_count, term_count;
	uint32_t end;     /* the op behind the folds, and an update of the sum if there is one */
	uint8_t place;    /* of the last fold                                                */
	bool updates;
};

/* Places that want the result. */
struct wanted {
	struct op *sends[TERMS_MOST]; /* the messages for which it stands */
	struct op *terms[TERMS_MOST];
	uint32_t count;
};

struct op *exec_op_reply(const struct exec *exec, struct op *op)
{
	const struct run *run = op->run;
	struct op *next = op + 1;
	uint32_t shift = run->instance->call.open_pages;

	if (shift == 0 || exec->config.dry || run->piece.bytes == 0 || next >= run->ops + run->op_count ||
	    next->step.verb != PLAN_RECV || next->peer != op->peer || next->step.place != PLAN_OUT)
		return NULL;
	/* Whole pages of it can be withdrawn if need be; at its ends others may have something in the same page. */
	uintptr_t out = (uintptr_t)run->instance->call.out, page = (uintptr_t)1 << shift;
	uintptr_t end = out + plan_chunks_output_bytes(&run->instance->call.plan->chunks, exec->config.node);
	uintptr_t from = (out + run->piece.out_at) / page * page,
	          to = (out + run->piece.out_at + run->piece.bytes + page - 1) / page * page;
	return run->instance->call.owns_ends || (from >= out && to <= end) ? next : NULL;
}

/* Does this op go on with what the fold before it has summed? */
static bool goes_on(const struct run *run, uint32_t at, uint8_t place)
{
	const struct op *op = &run->ops[at];

	return at < run->op_count && op->step.verb == PLAN_FOLD && place >= PLAN_TMP && op[1].step.verb == PLAN_LOCAL &&
	       op[1].step.place == place;
}

/* Where the sum ends, and what follows; its terms are not looked at. */
static void sum_find_end(const struct run *run, struct sum *sum)
{
	uint32_t at = run->at;

	do {
		sum->place = run->ops[at].step.place;
		at += run->ops[at].step.count + 1;
	} while (goes_on(run, at, sum->place));
	sum->updates = at < run->op_count && run->ops[at].step.verb == PLAN_UPDATE && run->ops[at].step.place == sum->place;
	sum->end = at + sum->updates;
}

/* The message that takes the sum to this peer, if that follows at once; NULL: there is none. */
static struct op *send_to(struct run *run, const struct sum *sum, const struct peer *peer)
{
	for (struct op *op = run->ops + sum->end; op < run->ops + run->op_count; op++) {
		if (op->step.verb != PLAN_SEND || op->step.place != sum->place)
			break;
		if (op->peer == peer)
			return op;
	}
	return NULL;
}

/* Does a peer want the sum stored? Otherwise terms are added as they come. */
static bool is_wanted(struct run *run, const struct sum *sum)
{
	for (uint32_t i = run->at; i < sum->end; i++) {
		const struct op *op = &run->ops[i];

		if (op->step.verb == PLAN_TERM && op->state == OP_PARKED && op->reply && send_to(run, sum, op->peer))
			return true;
	}
	return false;
}

/* Takes note of the terms of one fold; false: one is missing, and run->term says which, or there are too many. */
static bool sum_take(struct exec *exec, struct run *run, struct op *fold, bool goes_on, struct sum *sum)
{
	for (uint32_t i = goes_on; i < fold->step.count; i++) {
		struct op *term = fold + 1 + i;

		if (sum->operand_count == TERMS_MOST)
			return false;
		if (term->step.verb == PLAN_LOCAL) {
			sum->operands[sum->operand_count++] = exec_run_place(exec, run, term->step.place);
		} else if (term->state == OP_PARKED) {
			sum->operands[sum->operand_count++] = term->data;
			sum->terms[sum->term_count++] = term;
		} else {
			run->stores = true;
			run->term = (uint32_t)(term - run->ops);
			return false;
		}
	}
	return true;
}

static bool sum_gather(struct exec *exec, struct run *run, struct sum *sum)
{
	bool is_next = false;

	run->stores = false;
	for (uint32_t at = run->at; at < sum->end - sum->updates; at += run->ops[at].step.count + 1) {
		if (!sum_take(exec, run, &run->ops[at], is_next, sum))
			return false;
		is_next = true;
	}
	return true;
}

static void find_wanted(struct run *run, const struct sum *sum, struct wanted *wanted)
{
	wanted->count = 0;
	for (uint32_t i = 0; i < sum->term_count; i++) {
		struct op *send = sum->terms[i]->reply ? send_to(run, sum, sum->terms[i]->peer) : NULL;

		if (send) {
			wanted->sends[wanted->count] = send;
			wanted->terms[wanted->count++] = sum->terms[i];
		}
	}
}

/* Bytes up to the next line; 0: it is one, or elements do not fit. */
static uint64_t to_next_line(const void *memory, uint64_t bytes, size_t element_bytes)
{
	uint64_t lead = -(uintptr_t)memory % LINE;

	return lead < bytes && lead % element_bytes == 0 ? lead : 0;
}

/*
 * Where a sum is stored: what was read there a moment ago is in a cache; the rest goes around the caches if there is so
 * much that it would not stay there.
 */
struct places {
	void *near[TERMS_MOST + 1], *far[TERMS_MOST + 1];
	uint32_t near_count, far_count;
};

static void add_place(struct places *places, void *place, bool is_far)
{
	if (is_far)
		places->far[places->far_count++] = place;
	else
		places->near[places->near_count++] = place;
}

static void advance(void **pointers, uint32_t count, uint64_t bytes)
{
	for (uint32_t i = 0; i < count; i++)
		pointers[i] = (uint8_t *)pointers[i] + bytes;
}

static void store_all(struct exec *exec, struct run *run, struct sum *sum, const struct wanted *wanted, uint8_t *own)
{
	const struct instance *instance = run->instance;
	const struct exec_call *call = &instance->call;
	const uint8_t *in = exec_run_place(exec, run, PLAN_IN);
	struct places places = {.near_count = 0};
	bool own_is_far = instance->streams && own != in && sum->place < PLAN_TMP;

	for (uint32_t i = 0; i < wanted->count; i++)
		add_place(&places, wanted->terms[i]->reply,
		          instance->streams && wanted->terms[i]->reply != wanted->terms[i]->data);
	add_place(&places, own, own_is_far);
	struct math_spread spread = {
		.type = call->type,
		.op = call->op,
		.finishes = instance->finishes && sum->updates,
		.factor = call->factor,
		.contributors = call->plan->workers,
		.sources = sum->operands,
		.source_count = sum->operand_count,
		.places = places.near,
		.place_count = places.near_count,
		.far = places.far,
		.far_count = places.far_count,
	};

	/*
	 * Memory of malloc() begins in the middle of a line, on all ranks at the same place: up to the next line by itself,
	 * then whole ones.
	 */
	uint64_t lead = to_next_line(places.far_count > 0 ? places.far[0] : sum->operands[0], run->piece.bytes,
	                             instance->element_bytes);
	math_spread(&spread, lead / instance->element_bytes);
	advance((void **)sum->operands, sum->operand_count, lead);
	advance(places.near, places.near_count, lead);
	advance(places.far, places.far_count, lead);
	math_spread(&spread, (run->piece.bytes - lead) / instance->element_bytes);
	if (instance->streams)
		math_fence();
}

/*
 * From here on peers that take their memory back wait for us, or have done so before: then there is nothing to be
 * stored.
 */
static bool begin_storing(struct exec *exec, _Atomic uint32_t *storing, const struct wanted *wanted)
{
	atomic_store(storing, atomic_load_explicit(storing, memory_order_relaxed) + 1);
	for (uint32_t i = 0; i < wanted->count; i++) {
		const struct peer *peer = wanted->terms[i]->peer;

		if (peer->revoked && atomic_load(peer->revoked) != 0) {
			exec_fail(exec, peer->node, ESP_EPEER);
			return false;
		}
	}
	return true;
}

static void end_storing(_Atomic uint32_t *storing)
{
	atomic_store(storing, atomic_load_explicit(storing, memory_order_relaxed) + 1);
}

enum store exec_run_store(struct exec *exec, struct run *run)
{
	struct sum sum = {.operand_count = 0};
	struct wanted wanted;

	sum_find_end(run, &sum);
	/* The caller's update wants the whole sum in one place. */
	if (sum.updates && run->instance->call.has_update)
		return STORE_NOT;
	if (!run->stores && !is_wanted(run, &sum))
		return STORE_NOT;
	uint32_t term = run->stores ? 0 : run->term;
	if (!sum_gather(exec, run, &sum)) {
		if (run->stores)
			return STORE_WAITS;
		run->term = term;
		return STORE_NOT;
	}
	run->term = 0;
	find_wanted(run, &sum, &wanted);
	uint8_t *own = exec_run_place(exec, run, sum.place);
	if (has_failed(exec)) /* no memory for a place */
		return STORE_WAITS;
	if (wanted.count == 0)
		return STORE_NOT;
	_Atomic uint32_t *storing = wanted.terms[0]->peer->storing;
	if (begin_storing(exec, storing, &wanted))
		store_all(exec, run, &sum, &wanted, own);
	end_storing(storing);
	for (uint32_t i = 0; i < wanted.count; i++)
		wanted.sends[i]->is_stored = true;
	exec->stats.stored += wanted.count;
	run->at = sum.end;
	/*
	 * Each is looked at once more when it is consumed, after which its sender has its memory back: whether it was still
	 * what the peer had offered.
	 */
	for (uint32_t i = 0; i < sum.term_count && !has_failed(exec); i++)
		exec_peer_consume(exec, sum.terms[i]);
	return has_failed(exec) ? STORE_WAITS : STORE_DONE;
}
