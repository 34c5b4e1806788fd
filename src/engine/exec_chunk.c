/*
 * exec_chunk.c - chunks of calls: put into flight while there is room, oldest call first, and taken out again.
 */
#include <assert.h>
#include <stdlib.h>

#include "engine/exec_state.h"
#include "plan/rows.h"

/* ---- the memory of chunks in flight, by size ---- */

#define CLASS_LEAST 2u   /* cache lines of the smallest size */
/* most rows are short, and there may be many of them: a size for each number of cache lines up to a kilobyte */
#define CLASSES_FINE 14u

static size_t class_bytes(uint32_t class)
{
	return class < CLASSES_FINE ? (size_t)(CLASS_LEAST + class) * CACHE_LINE : (size_t)1024 << (class - CLASSES_FINE);
}

static uint32_t class_of(size_t bytes)
{
	size_t lines = (bytes + CACHE_LINE - 1) / CACHE_LINE;
	uint32_t class = lines <= CLASS_LEAST                 ? 0
	                 : lines - CLASS_LEAST < CLASSES_FINE ? (uint32_t)(lines - CLASS_LEAST)
	                                                      : CLASSES_FINE;

	while (class_bytes(class) < bytes)
		class ++;
	return class;
}

static struct run *slab_run(const struct run_slab *slab, uint32_t index)
{
	return (struct run *)(void *)(slab->runs + index * slab->run_bytes);
}

/* As many again as there are of this size; large ones one by one. */
static bool add_runs(struct exec *exec, uint32_t class)
{
	size_t bytes = class_bytes(class);
	uint32_t made = exec->run_made[class], count = made == 0 ? RUNS_FIRST : made < RUNS_MOST ? made : RUNS_MOST;

	if (bytes > RUN_SHARED)
		count = 1;
	struct run_slab *slab = malloc(sizeof(*slab) + CACHE_LINE + count * bytes);
	if (!slab)
		return false;
	slab->runs = next_line(slab + 1);
	slab->run_bytes = bytes;
	slab->count = count;
	slab->next = exec->slabs_of_runs;
	exec->slabs_of_runs = slab;
	exec->run_made[class] += count;
	for (uint32_t i = count; i-- > 0;) {
		struct run *run = slab_run(slab, i);

		run->instance = NULL;
		run->next_free = exec->run_free[class];
		exec->run_free[class] = run;
	}
	return true;
}

static struct run *run_get(struct exec *exec, size_t bytes)
{
	uint32_t class = class_of(bytes);

	assert(class < RUN_CLASSES);
	if (!exec->run_free[class] && !add_runs(exec, class))
		return NULL;
	struct run *run = exec->run_free[class];
	exec->run_free[class] = run->next_free;
	run->class = (uint8_t)class;
	return run;
}

static void run_put(struct exec *exec, struct run *run)
{
	run->instance = NULL;
	run->next_free = exec->run_free[run->class];
	exec->run_free[run->class] = run;
}

struct run *exec_run_each(const struct exec *exec, struct run_walk *walk)
{
	if (!walk->slab)
		walk->slab = exec->slabs_of_runs;
	while (walk->slab) {
		while (walk->index < walk->slab->count) {
			struct run *run = slab_run(walk->slab, walk->index++);

			if (run->instance)
				return run;
		}
		walk->slab = walk->slab->next;
		walk->index = 0;
	}
	return NULL;
}

static void run_drop_scratch(struct exec *exec, struct run *run)
{
	for (uint32_t i = 0; i < run->tmp_count; i++)
		exec_pool_put(&exec->pool, run_tmp(run)[i]);
}

/* Gives back what a chunk holds beside itself. */
static void run_drop_buffers(struct exec *exec, struct run *run)
{
	for (uint32_t i = 0; i < run->op_count; i++) {
		if (run->ops[i].slotted)
			exec_pool_put(&exec->pool, (void *)(uintptr_t)run->ops[i].data);
	}
	run_drop_scratch(exec, run);
}

void exec_runs_close(struct exec *exec)
{
	struct run_walk walk = {0};

	for (struct run *run; exec->active > 0 && (run = exec_run_each(exec, &walk));)
		run_drop_buffers(exec, run);
	while (exec->slabs_of_runs) {
		struct run_slab *slab = exec->slabs_of_runs;

		exec->slabs_of_runs = slab->next;
		free(slab);
	}
}

/* ---- chunks ---- */

/*
 * The memory is the caller's before and after: fetch and deliver, which begin and end most rows, are nothing to do.
 * NULL: no memory.
 */
static struct run *run_load(struct exec *exec, const struct plan_row *row)
{
	uint32_t first = 0, end = row->count;

	while (end > 0 && row->steps[end - 1].verb == PLAN_DELIVER)
		end--;
	while (first < end && row->steps[first].verb == PLAN_FETCH)
		first++;
	size_t bytes = sizeof(struct run) + (end - first) * sizeof(struct op);
	struct run *run = run_get(exec, bytes + row->tmp_count * sizeof(void *));
	if (!run)
		return NULL;
	run->at = run->term = run->sends_left = 0;
	run->op_count = end - first;
	run->row_first = first;
	run->row_count = row->count;
	run->tmp_count = (uint8_t)row->tmp_count;
	run->has_replies = run->stores = false;
	for (uint32_t i = 0; i < run->op_count; i++)
		run->ops[i] = (struct op){.step = row->steps[first + i], .run = run};
	for (uint32_t i = 0; i < row->tmp_count; i++)
		run_tmp(run)[i] = NULL;
	return run;
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

bool exec_row_compute(struct exec *exec, const struct plan *plan, uint64_t chunk, struct plan_row *out)
{
	if (plan->rows) {
		*out = plan_rows_at(plan->rows, exec->config.node, chunk);
		return true;
	}
	bool is_made = plan_row(plan, exec->config.node, chunk, &exec->row) == ESP_OK;
	*out = exec->row;
	return is_made;
}

/* The same, of a chunk that is activated: that of a lap is kept already, by the lap or by the plan. */
static bool row_of(struct exec *exec, struct instance *instance, uint64_t chunk, struct plan_row *out)
{
	const struct plan *plan = instance->call.plan;

	bool has_lap = plan_lap(plan) > 1;

	if (has_lap && chunk >= instance->numbered && !exec_number_lap(exec, instance, chunk))
		return false;
	if (!has_lap || plan->rows)
		return exec_row_compute(exec, plan, chunk, out);
	*out = exec_lap_row(&exec->lap);
	return true;
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
	struct plan_piece piece = plan_chunks_piece(&instance->call.plan->chunks, chunk);
	enum esp_status status = piece_check(exec, instance, &piece);
	struct run *run = status == ESP_OK ? run_load(exec, row) : NULL;
	if (!run) {
		exec_fail(exec, PLAN_NONE, status == ESP_OK ? ESP_ENOMEM : status);
		return;
	}
	run->chunk = chunk;
	run->piece = piece;
	run->instance = instance;
	run->digest = instance->call.digest;
	exec->latest = run;
	instance->active++;
	exec->active++;
	exec->stats.chunks++;
	exec->stats.steps += row->count;
	if (!exec_number_messages(exec, run))
		exec_fail(exec, PLAN_NONE, ESP_ENOMEM);
	/* A simulation has thousands of executors, and what one of them numbers its laps with is warm for the next one. */
	if (exec->config.dry && plan_lap(instance->call.plan) > 1 && exec->lap.next == exec->lap.count &&
	    exec->lap.step_next == exec->lap.step_count)
		exec_lap_close(exec);
	if (!has_failed(exec))
		exec_run_advance(exec, run);
}

void exec_run_retire(struct exec *exec, struct run *run)
{
	struct instance *instance = run->instance;

	run_drop_scratch(exec, run); /* there are no slots: all that came was consumed */
	run_put(exec, run);
	instance->active--;
	exec->active--;
	if (instance->all_active && instance->active == 0)
		exec_instance_finish(exec, instance, ESP_OK);
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
 * Chunks are activated in order, also those of later calls: one that has to wait holds up all that follow. The chunks
 * of a lap wait for each other's messages, so a whole one is let in whatever the settings say; and as many as the plan
 * wants abreast.
 */
static bool has_window(const struct exec *exec, const struct instance *instance)
{
	uint32_t lap = plan_lap(instance->call.plan), window = instance->call.window;

	if (exec->active >= exec->config.active_chunks && exec->active >= lap &&
	    exec->active >= instance->call.plan->abreast)
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
			exec_instance_finish(exec, instance, ESP_OK);
	}
}

