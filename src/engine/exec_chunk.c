/*
 * exec_chunk.c - chunks of calls: put into flight while there is room, oldest call first, and taken out again.
 */
#include <assert.h>
#include <stdlib.h>

#include "engine/exec_state.h"

/* ---- the memory of ops, by power of two ---- */

static size_t block_bytes(uint32_t class)
{
	return (size_t)256 << class;
}

static void *block_get(struct exec *exec, size_t bytes, uint32_t *out_class)
{
	uint32_t class = 0;

	while (block_bytes(class) < bytes)
		class ++;
	assert(class < BLOCK_CLASSES);
	void *block = exec->blocks[class];
	*out_class = class;
	if (!block)
		return malloc(block_bytes(class));
	exec->blocks[class] = *(void **)block;
	return block;
}

static void block_put(struct exec *exec, void *block, uint32_t class)
{
	*(void **)block = exec->blocks[class];
	exec->blocks[class] = block;
}

void blocks_close(struct exec *exec)
{
	for (uint32_t class = 0; class < BLOCK_CLASSES; class++) {
		while (exec->blocks[class]) {
			void *block = exec->blocks[class];

			exec->blocks[class] = *(void **)block;
			free(block);
		}
	}
}

/* ---- chunks ---- */

/* Sets of verbs. */
#define VERBS_SEND (1u << PLAN_SEND)
#define VERBS_RECEIVE (1u << PLAN_RECV | 1u << PLAN_TERM)
#define VERBS_WRITE (1u << PLAN_RECV | 1u << PLAN_FOLD | 1u << PLAN_COPY | 1u << PLAN_UPDATE)

/* What the last send of the row reads, while nothing was written there since. */
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

/* Numbers the messages of the row, in the order that both ends know, and what they contain. */
static bool number_messages(struct exec *exec, struct run *run)
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
		if (sends) {
			op->index = op->peer->send_next++;
			op->content = reading_sent(&reading, exec, op->step.place);
			run->sends_left++;
		} else {
			op->index = op->peer->recv_next++;
			peer_expect(exec, op);
		}
	}
	return true;
}

static bool run_load(struct exec *exec, struct run *run, const struct plan_row *row)
{
	size_t ops_bytes = row->count * sizeof(struct op);
	uint8_t *block = block_get(exec, ops_bytes + row->tmp_count * sizeof(void *), &run->block_class);

	if (!block)
		return false;
	run->ops = (struct op *)(void *)block;
	run->tmp = (void **)(void *)(block + ops_bytes);
	run->op_count = row->count;
	run->tmp_count = row->tmp_count;
	for (uint32_t i = 0; i < row->count; i++)
		run->ops[i] = (struct op){.step = row->steps[i], .run = run};
	for (uint32_t i = 0; i < row->tmp_count; i++)
		run->tmp[i] = NULL;
	return true;
}

/* Can this chunk be run with these buffers? */
static enum esp_status piece_check(const struct exec *exec, const struct instance *instance,
                                   const struct plan_piece *piece)
{
	const struct exec_call *call = &instance->call;
	const struct chunks *chunks = &call->plan->chunks;
	uint32_t node = exec->config.node;

	if (piece->bytes > exec->config.slot_bytes)
		return ESP_ELIMIT;
	if (exec->config.dry || piece->bytes == 0 || !piece_gives(chunks, piece, node) || !piece_wants(chunks, piece, node))
		return ESP_OK;
	bool is_one_place = (const uint8_t *)call->in + piece->in_at == (const uint8_t *)call->out + piece->out_at;
	return is_one_place == call->plan->in_place ? ESP_OK : ESP_EINVAL;
}

/* Starts a chunk of the call; exec->run_free is not NULL. */
static void activate(struct exec *exec, struct instance *instance, uint64_t chunk)
{
	struct plan_row *row = &exec->row;

	if (plan_row(instance->call.plan, exec->config.node, chunk, row) != ESP_OK) {
		exec_fail(exec, PLAN_NONE, ESP_ENOMEM);
		return;
	}
	if (row->count == 0)
		return;
	struct run *run = exec->run_free;
	*run = (struct run){
		.chunk = chunk,
		.piece = chunks_piece(&instance->call.plan->chunks, chunk),
		.next_free = run->next_free,
	};
	enum esp_status status = piece_check(exec, instance, &run->piece);
	if (status != ESP_OK) {
		exec_fail(exec, PLAN_NONE, status);
		return;
	}
	if (!run_load(exec, run, row)) {
		exec_fail(exec, PLAN_NONE, ESP_ENOMEM);
		return;
	}
	exec->run_free = run->next_free;
	run->instance = instance;
	instance->active++;
	exec->stats.chunks++;
	exec->stats.steps += row->count;
	if (!number_messages(exec, run))
		exec_fail(exec, PLAN_NONE, ESP_ENOMEM);
	if (!has_failed(exec))
		run_advance(exec, run);
}

/* Gives back what a chunk holds beside its ops. */
void run_drop_buffers(struct exec *exec, struct run *run)
{
	for (uint32_t i = 0; i < run->op_count; i++) {
		if (run->ops[i].slotted)
			pool_put(&exec->pool, (void *)(uintptr_t)run->ops[i].data);
	}
	for (uint32_t i = 0; i < run->tmp_count; i++)
		pool_put(&exec->pool, run->tmp[i]);
}

void run_retire(struct exec *exec, struct run *run)
{
	struct instance *instance = run->instance;

	run_drop_buffers(exec, run);
	block_put(exec, run->ops, run->block_class);
	run->instance = NULL;
	run->next_free = exec->run_free;
	exec->run_free = run;
	instance->active--;
	if (instance->all_active && instance->active == 0)
		instance_finish(exec, instance, ESP_OK);
}

/* The next chunk of the call that is this lane's, or the number of chunks. */
static uint64_t next_chunk(const struct exec *exec, const struct instance *instance)
{
	const struct exec_call *call = &instance->call;
	uint64_t count = call->plan->chunks.chunk_count, chunk = instance->next_chunk;

	for (;; chunk++) {
		chunk = plan_next_chunk(call->plan, exec->config.node, chunk);
		if (chunk == count || !call->lane_of || call->lane_of[chunk] == call->lane)
			return chunk;
	}
}

/* Chunks are activated in order, also those of later calls: one that has to wait holds up all that follow. */
static bool has_window(const struct instance *instance)
{
	return instance->call.window == 0 || instance->active < instance->call.window;
}

void exec_fill(struct exec *exec)
{
	while (exec->queue_first && exec->run_free && has_window(exec->queue_first) && !has_failed(exec)) {
		struct instance *instance = exec->queue_first;
		uint64_t chunk = next_chunk(exec, instance);

		if (chunk < instance->call.plan->chunks.chunk_count) {
			instance->next_chunk = chunk + 1;
			activate(exec, instance, chunk);
			continue;
		}
		exec->queue_first = instance->next;
		instance->all_active = true;
		if (instance->active == 0)
			instance_finish(exec, instance, ESP_OK);
	}
}

