#include "engine/exec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/exec_state.h"

/* ---- open and close ---- */

static enum esp_status config_check(const struct exec_config *config, struct error *err)
{
	if (config->credits == 0 || config->credits > CREDITS_MAX)
		return error_set(err, ESP_EINVAL, "%u credits: there must be 1 to %u", config->credits, CREDITS_MAX);
	if (config->active_chunks == 0)
		return error_set(err, ESP_EINVAL, "at least one chunk must be allowed in flight");
	if (config->slot_bytes == 0 || config->slot_bytes > 1u << 30)
		return error_set(err, ESP_EINVAL, "chunks of %u bytes: there must be 1 to 2^30", config->slot_bytes);
	return ESP_OK;
}

enum esp_status exec_open(const struct exec_config *config, struct exec **out, struct error *err)
{
	enum esp_status status = config_check(config, err);

	if (status != ESP_OK)
		return status;
	struct exec *exec = calloc(1, sizeof(*exec));
	if (!exec)
		return error_set(err, ESP_ENOMEM, "no memory for an executor");
	exec->config = *config;
	/* A power of two, so that a number modulo credits survives the wrap at 2^32. */
	while (exec->config.credits & (exec->config.credits - 1))
		exec->config.credits += exec->config.credits & -exec->config.credits;
	pool_init(&exec->pool, config->slot_bytes);
	exec->runs = calloc(config->active_chunks, sizeof(*exec->runs));
	exec->staging = config->dry ? NULL : aligned_alloc(64, STAGING_BYTES);
	if (!exec->runs || (!config->dry && !exec->staging)) {
		exec_close(exec);
		return error_set(err, ESP_ENOMEM, "no memory for %u chunks in flight", config->active_chunks);
	}
	for (uint32_t i = config->active_chunks; i-- > 0;) {
		exec->runs[i].next_free = exec->run_free;
		exec->run_free = &exec->runs[i];
	}
	*out = exec;
	return ESP_OK;
}

/* Gives back what a chunk holds beside its ops. */
static void run_drop_buffers(struct exec *exec, struct run *run)
{
	for (uint32_t i = 0; i < run->op_count; i++) {
		if (run->ops[i].slotted)
			pool_put(&exec->pool, (void *)(uintptr_t)run->ops[i].data);
	}
	for (uint32_t i = 0; i < run->tmp_count; i++)
		pool_put(&exec->pool, run->tmp[i]);
}

static void instances_free(struct instance *first)
{
	while (first) {
		struct instance *next = first->next;

		free(first);
		first = next;
	}
}

static void live_free(struct instance *first)
{
	while (first) {
		struct instance *next = first->live_next;

		free(first);
		first = next;
	}
}

void exec_close(struct exec *exec)
{
	if (!exec)
		return;
	for (uint32_t i = 0; exec->runs && i < exec->config.active_chunks; i++) {
		if (exec->runs[i].instance) {
			run_drop_buffers(exec, &exec->runs[i]);
			free(exec->runs[i].ops);
		}
	}
	peers_close(exec);
	for (uint32_t class = 0; class < BLOCK_CLASSES; class++) {
		while (exec->blocks[class]) {
			void *block = exec->blocks[class];

			exec->blocks[class] = *(void **)block;
			free(block);
		}
	}
	instances_free(exec->done_first);
	instances_free(exec->instance_free);
	live_free(exec->live);
	plan_row_fini(&exec->row);
	pool_fini(&exec->pool);
	free(exec->runs);
	free(exec->staging);
	free(exec);
}

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

/* ---- instances ---- */

static void instance_append(struct instance **first, struct instance **last, struct instance *instance)
{
	instance->next = NULL;
	if (*first)
		(*last)->next = instance;
	else
		*first = instance;
	*last = instance;
}

static void instance_finish(struct exec *exec, struct instance *instance, enum esp_status status)
{
	assert(instance->status == ESP_PENDING);
	if (instance->live_before)
		instance->live_before->live_next = instance->live_next;
	else
		exec->live = instance->live_next;
	if (instance->live_next)
		instance->live_next->live_before = instance->live_before;
	instance->status = status;
	instance_append(&exec->done_first, &exec->done_last, instance);
}

static struct instance *instance_get(struct exec *exec)
{
	struct instance *instance = exec->instance_free;

	if (!instance)
		return malloc(sizeof(*instance));
	exec->instance_free = instance->next;
	return instance;
}

/* ---- chunks ---- */

/* Numbers the messages of the row, in the order that both ends know. */
static bool number_messages(struct exec *exec, struct run *run)
{
	for (uint32_t i = 0; i < run->op_count; i++) {
		struct op *op = &run->ops[i];
		bool sends = op->step.verb == PLAN_SEND;

		if (!sends && op->step.verb != PLAN_RECV && op->step.verb != PLAN_TERM)
			continue;
		op->peer = peer_get(exec, op->step.node);
		if (!op->peer)
			return false;
		if (sends) {
			op->index = op->peer->send_next++;
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

void exec_fill(struct exec *exec)
{
	while (exec->queue_first && exec->run_free && !has_failed(exec)) {
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

/* ---- calls ---- */

static enum esp_status call_check(const struct exec_call *call, struct error *err)
{
	const struct plan *plan = call->plan;

	if (math_type_bytes(call->type) == 0)
		return error_set(err, ESP_EINVAL, "type %d does not exist", (int)call->type);
	if (!chunks_are_whole(&plan->chunks, math_type_bytes(call->type)))
		return error_set(err, ESP_EINVAL, "the plan cuts elements of %s, which have %zu bytes",
		                 math_type_name(call->type), math_type_bytes(call->type));
	if (!plan_collective_reduces(plan->chunks.collective))
		return ESP_OK;
	if (!math_op_defined(call->type, call->op))
		return error_set(err, ESP_EINVAL, "there is no %s of %s", math_op_name(call->op) ? math_op_name(call->op) : "such operation",
		                 math_type_name(call->type));
	if (math_finish_needed(call->op) && !math_finish_valid(call->type, call->op, call->factor, plan->workers))
		return error_set(err, ESP_EINVAL, "a sum of %s cannot be scaled by %g", math_type_name(call->type),
		                 call->factor);
	return ESP_OK;
}

/* Barriers and moves have nothing to combine. */
static void fold_nothing(void *dst, const void *a, const void *b, size_t count)
{
	(void)dst, (void)a, (void)b, (void)count;
}

enum esp_status exec_start(struct exec *exec, const struct exec_call *call, struct error *err)
{
	bool reduces = plan_collective_reduces(call->plan->chunks.collective);
	enum esp_status status = has_failed(exec) ? error_set(err, exec->failure.status, "an earlier call has failed")
	                                                : call_check(call, err);

	if (status != ESP_OK)
		return status;
	struct instance *instance = instance_get(exec);
	if (!instance) {
		/* The peers count this call: without it, all that follow would be taken for another. */
		exec_fail(exec, PLAN_NONE, ESP_ENOMEM);
		return error_set(err, ESP_ENOMEM, "no memory for a call");
	}
	*instance = (struct instance){
		.call = *call,
		.number = exec->stats.calls++,
		.fold = reduces ? math_fold(call->type, call->op) : fold_nothing,
		.element_bytes = (uint32_t)math_type_bytes(call->type),
		.finishes = reduces && math_finish_needed(call->op),
		.status = ESP_PENDING,
		.live_next = exec->live,
	};
	if (exec->live)
		exec->live->live_before = instance;
	exec->live = instance;
	instance_append(&exec->queue_first, &exec->queue_last, instance);
	exec_fill(exec);
	return ESP_OK;
}

bool exec_take_done(struct exec *exec, struct exec_done *out)
{
	struct instance *instance = exec->done_first;

	if (!instance)
		return false;
	*out = (struct exec_done){.cookie = instance->call.cookie, .status = instance->status};
	exec->done_first = instance->next;
	instance->next = exec->instance_free;
	exec->instance_free = instance;
	return true;
}

void exec_sent(struct exec *exec, void *cookie)
{
	struct run *run = cookie;

	if (has_failed(exec))
		return;
	run->sends_left--;
	if (run->sends_left == 0 && run->at == run->op_count) {
		run_retire(exec, run);
		exec_fill(exec);
	}
}

bool exec_waits(const struct exec *exec, struct exec_wait *out)
{
	const struct run *oldest = NULL;

	for (uint32_t i = 0; !has_failed(exec) && i < exec->config.active_chunks; i++) {
		const struct run *run = &exec->runs[i];

		if (run->instance &&
		    (!oldest || run->instance->number < oldest->instance->number ||
		     (run->instance->number == oldest->instance->number && run->chunk < oldest->chunk)))
			oldest = run;
	}
	if (!oldest)
		return false;
	*out = (struct exec_wait){oldest->instance->number, oldest->chunk, oldest->at, PLAN_NONE};
	if (oldest->at < oldest->op_count) {
		const struct op *op = &oldest->ops[oldest->at];

		if (op->step.verb == PLAN_FOLD)
			op += 1 + oldest->term;
		if (op->step.verb == PLAN_TERM || op->step.verb == PLAN_RECV)
			out->peer = op->step.node;
	}
	return true;
}

void exec_fail(struct exec *exec, uint32_t node, enum esp_status status)
{
	struct exec_failure failure = {.status = status, .node = node};

	if (has_failed(exec))
		return;
	failure.waited = exec_waits(exec, &failure.wait);
	exec->failure = failure;
	exec->queue_first = NULL;
	/* The list is newest first; results come oldest first. */
	struct instance *instance = exec->live;
	while (instance && instance->live_next)
		instance = instance->live_next;
	while (instance) {
		struct instance *newer = instance->live_before;

		instance_finish(exec, instance, status);
		instance = newer;
	}
}

struct exec_failure exec_failure(const struct exec *exec)
{
	return exec->failure;
}

struct exec_stats exec_stats(const struct exec *exec)
{
	struct exec_stats stats = exec->stats;

	stats.slots = exec->pool.count;
	return stats;
}
