/*
 * exec_number.c - the numbers of messages, in an order that both ends of a connection know.
 *
 * Most plans: chunk by chunk, step by step. A plan with laps: as many chunks together, by turn. Messages sent and
 * consumed in this order need a window no larger than those under way, however many chunks are (docs/plans.md).
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "engine/exec_state.h"

/* Sets of verbs. */
#define VERBS_SEND (1u << PLAN_SEND)
#define VERBS_RECEIVE (1u << PLAN_RECV | 1u << PLAN_TERM)
#define VERBS_WRITE (1u << PLAN_RECV | 1u << PLAN_FOLD | 1u << PLAN_COPY | 1u << PLAN_UPDATE)

/* ---- laps ---- */

static bool lap_grow(struct lap *lap)
{
	size_t messages = lap->capacity, order = lap->capacity, spare = lap->capacity, needed = (size_t)lap->count + 1;

	if (!vec_reserve(&lap->messages, &messages, needed, sizeof(*lap->messages)) ||
	    !vec_reserve(&lap->order, &order, needed, sizeof(*lap->order)) ||
	    !vec_reserve(&lap->spare, &spare, needed, sizeof(*lap->spare)))
		return false;
	lap->capacity = spare; /* and that of the others: they are grown alike */
	return true;
}

/* Keeps a row: its chunk is activated later, and need not be asked for again. */
static bool lap_keep(struct lap *lap, const struct plan_row *row)
{
	uint32_t needed = lap->step_count + row->count + 1;

	if (!vec_reserve(&lap->steps, &lap->step_capacity, needed, sizeof(*lap->steps)))
		return false;
	struct plan_step *head = &lap->steps[lap->step_count];
	*head = (struct plan_step){.verb = PLAN_ROW, .place = (uint8_t)row->tmp_count, .count = row->count};
	if (row->count > 0)
		memcpy(head + 1, row->steps, row->count * sizeof(*row->steps));
	lap->step_count = needed;
	return true;
}

struct plan_row exec_lap_row(struct lap *lap)
{
	struct plan_step *head = &lap->steps[lap->step_next];

	lap->step_next += head->count + 1;
	return (struct plan_row){.steps = head + 1, .count = head->count, .tmp_count = head->place};
}

void exec_lap_close(struct exec *exec)
{
	free(exec->lap.steps);
	free(exec->lap.messages);
	free(exec->lap.order);
	free(exec->lap.spare);
	exec->lap = (struct lap){0};
}

static bool lap_add(struct exec *exec, const struct plan *plan, uint64_t chunk, const struct plan_step *step)
{
	struct lap *lap = &exec->lap;
	struct peer *peer = peer_get(exec, step->node);
	bool sends = 1u << step->verb & VERBS_SEND;

	if (!peer || (lap->count == lap->capacity && !lap_grow(lap)))
		return false;
	uint32_t self = exec->config.node, from = sends ? self : step->node, to = sends ? step->node : self;
	uint32_t turn = plan_turn(plan, chunk, from, to, sends ? peer->row_sent++ : peer->row_received++);
	lap->order[lap->count] = (uint64_t)turn << 32 | lap->count;
	lap->most = turn > lap->most ? turn : lap->most;
	lap->messages[lap->count++] = (struct lap_message){.peer = peer, .sends = sends};
	return true;
}

static bool lap_add_row(struct exec *exec, const struct plan *plan, uint64_t chunk, const struct plan_row *row)
{
	struct lap *lap = &exec->lap;
	uint32_t first = lap->count;

	for (uint32_t i = 0; i < row->count; i++) {
		if (1u << row->steps[i].verb & (VERBS_SEND | VERBS_RECEIVE) && !lap_add(exec, plan, chunk, &row->steps[i]))
			return false;
	}
	for (uint32_t i = first; i < lap->count; i++)
		lap->messages[i].peer->row_sent = lap->messages[i].peer->row_received = 0;
	return true;
}

#define DIGIT_BITS 6u
#define DIGITS (1u << DIGIT_BITS)

/*
 * By turn, in one pass for every digit that the largest has, most often one or two; what has the same turn stays as it
 * was put down.
 */
static void lap_sort(struct lap *lap)
{
	for (uint32_t shift = 0; shift < 32 && lap->most >> shift != 0; shift += DIGIT_BITS) {
		uint32_t first[DIGITS + 1] = {0};
		uint64_t *sorted = lap->spare;

		for (uint32_t i = 0; i < lap->count; i++)
			first[(lap->order[i] >> (32 + shift)) % DIGITS + 1]++;
		for (uint32_t i = 1; i < DIGITS; i++)
			first[i] += first[i - 1];
		for (uint32_t i = 0; i < lap->count; i++)
			sorted[first[(lap->order[i] >> (32 + shift)) % DIGITS]++] = lap->order[i];
		lap->spare = lap->order;
		lap->order = sorted;
	}
}

bool exec_number_lap(struct exec *exec, struct instance *instance, uint64_t chunk)
{
	const struct plan *plan = instance->call.plan;
	uint64_t end = (chunk / plan_lap(plan) + 1) * plan_lap(plan);
	struct lap *lap = &exec->lap;

	lap->count = lap->next = lap->most = 0;
	lap->step_count = lap->step_next = 0;
	for (; chunk < end && chunk < plan->chunks.chunk_count; chunk = next_chunk(exec, instance, chunk + 1)) {
		struct plan_row row;

		if (!exec_row_compute(exec, plan, chunk, &row) || (!plan->rows && !lap_keep(lap, &row)) ||
		    !lap_add_row(exec, plan, chunk, &row))
			return false;
	}
	lap_sort(lap);
	for (uint32_t i = 0; i < lap->count; i++) {
		struct lap_message *message = &lap->messages[(uint32_t)lap->order[i]];

		message->index = message->sends ? message->peer->send_next++ : message->peer->recv_next++;
	}
	instance->numbered = end;
	return true;
}

static uint32_t next_number(struct exec *exec, const struct run *run, struct peer *peer, bool sends)
{
	if (plan_lap(run->instance->call.plan) > 1)
		return exec->lap.messages[exec->lap.next++].index;
	return sends ? peer->send_next++ : peer->recv_next++;
}

/* ---- rows ---- */

/* The data that the last send of the row reads, while nothing was written there since. */
struct reading {
	uint8_t place;
	bool is_one_buffer; /* in and out may be one place */
	uint64_t content;   /* 0: nothing, or not any more */
};

static void reading_written(struct reading *reading, uint8_t place)
{
	if (place == reading->place || (reading->is_one_buffer && place < PLAN_TMP && reading->place < PLAN_TMP))
		reading->content = 0;
}

static uint64_t reading_sent(struct reading *reading, struct exec *exec, uint8_t place)
{
	if (reading->content == 0 || reading->place != place) {
		reading->place = place;
		reading->content = ++exec->contents;
	}
	return reading->content;
}

bool exec_number_messages(struct exec *exec, struct run *run)
{
	struct reading reading = {.is_one_buffer = run->instance->call.plan->in_place};

	for (uint32_t i = 0; i < run->op_count; i++) {
		struct op *op = &run->ops[i];
		uint32_t verb = 1u << op->step.verb;
		bool sends = verb & VERBS_SEND;

		if (verb & VERBS_WRITE && reading.content)
			reading_written(&reading, op->step.place);
		if (!(verb & (VERBS_SEND | VERBS_RECEIVE)))
			continue;
		op->peer = peer_get(exec, op->step.node);
		if (!op->peer)
			return false;
		op->index = next_number(exec, run, op->peer, sends);
		if (sends) {
			op->content = reading_sent(&reading, exec, op->step.place);
			run->sends_left++;
		} else if (!exec_peer_expect(exec, op)) {
			return false;
		}
	}
	return true;
}
