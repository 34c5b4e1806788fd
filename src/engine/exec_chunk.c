/*
 * exec_chunk.c - chunks of calls: put into flight while there is room, oldest call first, and taken out again.
 */
#include <assert.h>
#include <stdlib.h>

#include "engine/exec_state.h"
#include "plan/rows.h"

/* ---- the memory of ops, by size ---- */

#define CLASSES_FINE 8u /* most rows are short, and there may be many of them: four sizes to each power of two up to a kilobyte */

static size_t block_bytes(uint32_t class)
{
	return class < CLASSES_FINE ? (size_t)(4 + class % 4) * 64 << class / 4 : (size_t)1024 << (class - CLASSES_FINE);
}

/* Memory for several at a time, the more the more there are; that of large ones one by one. */
static bool add_blocks(struct exec *exec, uint32_t class)
{
	size_t bytes = block_bytes(class);
	uint32_t count = exec->block_count < BLOCKS_FIRST ? BLOCKS_FIRST : exec->block_count < BLOCKS_MOST ? exec->block_count : BLOCKS_MOST;

	if (bytes > BLOCK_SHARED)
		count = 1;
	struct block_slab *slab = malloc(sizeof(*slab) + count * bytes);
	if (!slab)
		return false;
	slab->next = exec->block_slabs;
	exec->block_slabs = slab;
	exec->block_count += count;
	for (uint32_t i = count; i-- > 0;) {
		void *block = slab->blocks + i * bytes;

		*(void **)block = exec->blocks[class];
		exec->blocks[class] = block;
	}
	return true;
}

static void *block_get(struct exec *exec, size_t bytes, uint32_t *out_class)
{
	uint32_t class = 0;

	while (block_bytes(class) < bytes)
		class ++;
	assert(class < BLOCK_CLASSES);
	*out_class = class;
	if (!exec->blocks[class] && !add_blocks(exec, class))
		return NULL;
	void *block = exec->blocks[class];
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
	while (exec->block_slabs) {
		struct block_slab *slab = exec->block_slabs;

		exec->block_slabs = slab->next;
		free(slab);
	}
}

/* ---- chunks ---- */

/* As many again as there are, but no more than may be in flight. */
static bool add_runs(struct exec *exec, uint32_t lap)
{
	uint32_t most = lap < exec->config.active_chunks ? exec->config.active_chunks : lap;
	uint32_t count = exec->run_count ? exec->run_count : RUNS_FIRST;

	if (exec->run_count + count > most && most > exec->run_count)
		count = most - exec->run_count;
	struct run_slab *slab = malloc(sizeof(*slab) + count * sizeof(struct run));
	if (!slab)
		return false;
	slab->count = count;
	slab->next = exec->runs;
	exec->runs = slab;
	exec->run_count += count;
	for (uint32_t i = count; i-- > 0;) {
		slab->runs[i].instance = NULL;
		slab->runs[i].next_free = exec->run_free;
		exec->run_free = &slab->runs[i];
	}
	return true;
}

/* The memory is the caller's before and after: fetch and deliver, which begin and end most rows, are nothing to do. */
static bool run_load(struct exec *exec, struct run *run, const struct plan_row *row)
{
	uint32_t first = 0, end = row->count;

	while (end > 0 && row->steps[end - 1].verb == PLAN_DELIVER)
		end--;
	while (first < end && row->steps[first].verb == PLAN_FETCH)
		first++;
	size_t ops_bytes = (end - first) * sizeof(struct op);
	uint8_t *block = block_get(exec, ops_bytes + row->tmp_count * sizeof(void *), &run->block_class);

	if (!block)
		return false;
	run->ops = (struct op *)(void *)block;
	run->tmp = (void **)(void *)(block + ops_bytes);
	run->op_count = end - first;
	run->row_first = first;
	run->row_count = row->count;
	run->tmp_count = row->tmp_count;
	for (uint32_t i = 0; i < run->op_count; i++)
		run->ops[i] = (struct op){.step = row->steps[first + i], .run = run};
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

bool row_compute(struct exec *exec, const struct plan *plan, uint64_t chunk, struct plan_row *out)
{
	if (plan->rows) {
		*out = plan_rows_at(plan->rows, exec->config.node, chunk);
		return true;
	}
	bool is_made = plan_row(plan, exec->config.node, chunk, &exec->row) == ESP_OK;
	*out = exec->row;
	return is_made;
}

/* The same, of a chunk that is activated: that of a lap is kept already. */
static bool row_of(struct exec *exec, struct instance *instance, uint64_t chunk, struct plan_row *out)
{
	const struct plan *plan = instance->call.plan;

	if (plan_lap(plan) > 1) {
		if (chunk >= instance->numbered && !number_lap(exec, instance, chunk))
			return false;
		*out = lap_row(&exec->lap);
		return true;
	}
	return row_compute(exec, plan, chunk, out);
}

/* Starts a chunk of the call. */
static void activate(struct exec *exec, struct instance *instance, uint64_t chunk)
{
	struct plan_row made, *row = &made;

	if (!row_of(exec, instance, chunk, row)) {
		exec_fail(exec, PLAN_NONE, ESP_ENOMEM);
		return;
	}
	if (row->count == 0)
		return;
	if (!exec->run_free && !add_runs(exec, plan_lap(instance->call.plan))) {
		exec_fail(exec, PLAN_NONE, ESP_ENOMEM);
		return;
	}
	struct run *run = exec->run_free;
	run->chunk = chunk;
	run->piece = chunks_piece(&instance->call.plan->chunks, chunk);
	run->at = run->term = run->sends_left = 0;
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
	exec->active++;
	exec->stats.chunks++;
	exec->stats.steps += row->count;
	if (!number_messages(exec, run))
		exec_fail(exec, PLAN_NONE, ESP_ENOMEM);
	if (!has_failed(exec))
		run_advance(exec, run);
}

static void run_drop_scratch(struct exec *exec, struct run *run)
{
	for (uint32_t i = 0; i < run->tmp_count; i++)
		pool_put(&exec->pool, run->tmp[i]);
}

/* Gives back what a chunk holds beside its ops. */
void run_drop_buffers(struct exec *exec, struct run *run)
{
	for (uint32_t i = 0; i < run->op_count; i++) {
		if (run->ops[i].slotted)
			pool_put(&exec->pool, (void *)(uintptr_t)run->ops[i].data);
	}
	run_drop_scratch(exec, run);
}

void run_retire(struct exec *exec, struct run *run)
{
	struct instance *instance = run->instance;

	run_drop_scratch(exec, run); /* there are no slots: all that came was consumed */
	block_put(exec, run->ops, run->block_class);
	run->instance = NULL;
	run->next_free = exec->run_free;
	exec->run_free = run;
	instance->active--;
	exec->active--;
	if (instance->all_active && instance->active == 0)
		instance_finish(exec, instance, ESP_OK);
}

uint64_t next_chunk(const struct exec *exec, const struct instance *instance, uint64_t chunk)
{
	const struct exec_call *call = &instance->call;
	uint64_t count = call->plan->chunks.chunk_count;

	for (;; chunk++) {
		chunk = plan_next_chunk(call->plan, exec->config.node, chunk);
		if (chunk == count || !call->lane_of || call->lane_of[chunk] == call->lane)
			return chunk;
	}
}

/*
 * Chunks are activated in order, also those of later calls: one that has to wait holds up all that follow. The chunks of a
 * lap wait for each other's messages, so a whole one is let in whatever the settings say.
 */
static bool has_window(const struct exec *exec, const struct instance *instance)
{
	uint32_t lap = plan_lap(instance->call.plan), window = instance->call.window;

	if (exec->active >= exec->config.active_chunks && exec->active >= lap)
		return false;
	return window == 0 || instance->active < window || instance->active < lap;
}

void exec_fill(struct exec *exec)
{
	while (exec->queue_first && has_window(exec, exec->queue_first) && !has_failed(exec)) {
		struct instance *instance = exec->queue_first;
		uint64_t chunk = next_chunk(exec, instance, instance->next_chunk);

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

