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
	struct exec *exec = aligned_alloc(_Alignof(struct exec), sizeof(*exec));
	if (!exec)
		return error_set(err, ESP_ENOMEM, "no memory for an executor");
	*exec = (struct exec){.config = *config};
	exec->config.credits = exec_credits(config->credits);
	exec->staging = &exec->own_staging;
	exec_pool_init(&exec->pool, config->slot_bytes + TRANSPORT_SHIFTS);
	*out = exec;
	return ESP_OK;
}

void exec_share_staging(struct exec *exec, uint8_t **place)
{
	exec->staging = place;
}

/* Makes memory that only an executor with calls needs: most groups of a large job never make one. */
static bool make_room(struct exec *exec)
{
	if (exec->config.dry) /* read first: this flag is in the cache, and it saves reading what is not */
		return true;
	if (!*exec->staging)
		*exec->staging = aligned_alloc(STAGING_ALIGN, STAGING_BYTES);
	return *exec->staging;
}

static void instances_close(struct exec *exec)
{
	while (exec->instances) {
		struct instance_slab *slab = exec->instances;

		exec->instances = slab->next;
		free(slab);
	}
}

void exec_close(struct exec *exec)
{
	if (!exec)
		return;
	exec_runs_close(exec);
	exec_peers_close(exec);
	exec_lap_close(exec);
	instances_close(exec);
	plan_row_fini(&exec->row);
	exec_pool_fini(&exec->pool);
	free(exec->own_staging);
	free(exec);
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

void exec_instance_finish(struct exec *exec, struct instance *instance, enum esp_status status)
{
	assert(instance->status == ESP_PENDING);
	instance->status = status;
	instance_append(&exec->done_first, &exec->done_last, instance);
}

/* As many again as there are. */
static bool add_instances(struct exec *exec)
{
	uint32_t count = exec->instance_count ? exec->instance_count : INSTANCES_FIRST;
	struct instance_slab *slab = malloc(sizeof(*slab) + CACHE_LINE + count * sizeof(struct instance));

	if (!slab)
		return false;
	slab->next = exec->instances;
	slab->count = count;
	slab->instances = next_line(slab + 1);
	exec->instances = slab;
	exec->instance_count += count;
	for (uint32_t i = count; i-- > 0;) {
		slab->instances[i].status = ESP_OK;
		slab->instances[i].next = exec->instance_free;
		exec->instance_free = &slab->instances[i];
	}
	return true;
}

static struct instance *instance_get(struct exec *exec)
{
	if (!exec->instance_free && !add_instances(exec))
		return NULL;
	struct instance *instance = exec->instance_free;
	exec->instance_free = instance->next;
	return instance;
}

/* ---- calls ---- */

static enum esp_status call_check(const struct exec_call *call, size_t element_bytes, struct error *err)
{
	const struct plan *plan = call->plan;

	if (element_bytes == 0)
		return error_set(err, ESP_EINVAL, "type %d does not exist", (int)call->type);
	if (!plan_chunks_are_whole(&plan->chunks, element_bytes))
		return error_set(err, ESP_EINVAL, "the plan cuts elements of %s, which have %zu bytes",
		                 math_type_name(call->type), element_bytes);
	if (!plan_collective_reduces(plan->chunks.collective))
		return ESP_OK;
	if (!math_op_defined(call->type, call->op))
		return error_set(err, ESP_EINVAL, "there is no %s of %s",
		                 math_op_name(call->op) ? math_op_name(call->op) : "such operation",
		                 math_type_name(call->type));
	if (!call->has_update && math_finish_needed(call->op) &&
	    !math_finish_valid(call->type, call->op, call->factor, plan->workers))
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
	size_t element_bytes = math_type_bytes(call->type);
	enum esp_status status = has_failed(exec) ? error_set(err, exec->failure.status, "an earlier call has failed")
	                                                : call_check(call, element_bytes, err);

	if (status != ESP_OK)
		return status;
	struct instance *instance = make_room(exec) ? instance_get(exec) : NULL;
	if (!instance) {
		/* The peers count this call: without it, all that follow would be taken for another. */
		exec_fail(exec, PLAN_NONE, ESP_ENOMEM);
		return error_set(err, ESP_ENOMEM, "no memory for a call");
	}
	/* One by one: clearing it first takes as long as filling it. */
	instance->call = *call;
	instance->number = exec->stats.calls++;
	instance->fold = reduces ? math_fold(call->type, call->op) : fold_nothing;
	instance->element_bytes = (uint32_t)element_bytes;
	instance->reduces = reduces;
	instance->finishes = reduces && !call->has_update && math_finish_needed(call->op);
	instance->streams =
		!exec->config.dry && plan_chunks_output_bytes(&call->plan->chunks, exec->config.node) >= STREAMS_FROM;
	instance->all_active = false;
	instance->active = 0;
	instance->next_chunk = instance->numbered = 0;
	instance->status = ESP_PENDING;
	instance_append(&exec->queue_first, &exec->queue_last, instance);
	exec_fill(exec);
	return ESP_OK;
}

bool exec_has_news(const struct exec *exec)
{
	return exec->done_first || (exec->ready_first && !has_failed(exec));
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
	struct op *op = cookie;

	if (has_failed(exec))
		return;
	struct run *run = op->run;
	op->state = OP_SENT;
	run->sends_left--;
	if (run->sends_left == 0 && run->at == run->op_count) {
		exec_run_retire(exec, run);
		exec_fill(exec);
	}
}

static bool is_older(const struct run *run, const struct run *other)
{
	uint64_t a = run->instance->number, b = other->instance->number;

	return a < b || (a == b && run->chunk < other->chunk);
}

static const struct run *oldest_run(const struct exec *exec)
{
	const struct run *oldest = NULL;
	struct run_walk walk = {0};
	const struct run *run;

	if (exec->active == 1 && exec->latest->instance) /* it is the only one: there is nothing to look for */
		return exec->latest;

	for (uint32_t seen = 0; seen < exec->active && (run = exec_run_each(exec, &walk)); seen++) {
		if (!oldest || is_older(run, oldest))
			oldest = run;
	}
	return oldest;
}

/*
 * All is done but that messages have not left: the first of them. Its receiver has not made room, or has not read it
 * where it is offered.
 */
static const struct op *first_unsent(const struct run *run)
{
	for (uint32_t i = 0; i < run->at; i++) {
		if (run->ops[i].step.verb == PLAN_SEND && run->ops[i].state != OP_SENT)
			return &run->ops[i];
	}
	return NULL;
}

bool exec_waits(const struct exec *exec, struct exec_wait *out)
{
	const struct run *oldest = has_failed(exec) || exec->active == 0 ? NULL : oldest_run(exec);

	if (!oldest)
		return false;
	*out = (struct exec_wait){oldest->instance->number, oldest->chunk, oldest->row_count, PLAN_NONE, false};
	if (oldest->at < oldest->op_count) {
		out->step = oldest->row_first + oldest->at;
		const struct op *op = &oldest->ops[oldest->at];

		if (oldest->stores)
			op = &oldest->ops[oldest->term];
		else if (op->step.verb == PLAN_FOLD)
			op += 1 + oldest->term;
		if (op->step.verb == PLAN_TERM || op->step.verb == PLAN_RECV)
			out->peer = op->step.node;
		return true;
	}
	const struct op *unsent = first_unsent(oldest);
	if (unsent) {
		out->step = oldest->row_first + (uint32_t)(unsent - oldest->ops);
		out->peer = unsent->step.node;
		out->sends = true;
	}
	return true;
}

/* Two lists of calls, oldest first, as one. */
static struct instance *merge_calls(struct instance *a, struct instance *b)
{
	struct instance *first = NULL, **end = &first;

	while (a && b) {
		struct instance **older = a->number < b->number ? &a : &b;

		*end = *older;
		end = &(*older)->next;
		*older = *end;
	}
	*end = a ? a : b;
	return first;
}

#define RUNS 64u /* of which number i has 2^i calls */

/*
 * All calls that are not done, oldest first. A list of them that is kept would cost every call two of its neighbours'
 * cache lines.
 */
static struct instance *calls_in_flight(struct exec *exec)
{
	struct instance *runs[RUNS] = {NULL}, *all = NULL;

	for (struct instance_slab *slab = exec->instances; slab; slab = slab->next) {
		for (uint32_t i = 0; i < slab->count; i++) {
			struct instance *run = &slab->instances[i];
			uint32_t size = 0;

			if (run->status != ESP_PENDING)
				continue;
			run->next = NULL;
			for (; runs[size]; size++) {
				run = merge_calls(runs[size], run);
				runs[size] = NULL;
			}
			runs[size] = run;
		}
	}
	for (uint32_t size = 0; size < RUNS; size++)
		all = merge_calls(all, runs[size]);
	return all;
}

static void fail_with(struct exec *exec, struct exec_failure failure)
{
	if (has_failed(exec))
		return;
	failure.waited = exec_waits(exec, &failure.wait);
	exec->failure = failure;
	exec->queue_first = NULL;
	for (struct instance *instance = calls_in_flight(exec), *newer; instance; instance = newer) {
		newer = instance->next;
		exec_instance_finish(exec, instance, failure.status);
	}
}

void exec_fail(struct exec *exec, uint32_t node, enum esp_status status)
{
	fail_with(exec, (struct exec_failure){.status = status, .node = node});
}

void exec_mismatch(struct exec *exec, uint32_t node, uint64_t call)
{
	fail_with(exec, (struct exec_failure){.status = ESP_EMISMATCH, .node = node, .call = call});
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
