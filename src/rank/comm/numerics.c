#include "rank/comm/stages.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "math/fixed.h"
#include "math/math.h"
#include "rank/comm/comm.h"
#include "rank/comm/span.h"
#include "rank/comm/switched.h"
#include "rank/comm/work.h"

struct numerics {
	struct work *work;       /* the call that it belongs to                             */
	struct fixed fixed;
	size_t blocks;
	bool may_switch;         /* the integers may go through a switch, alike on all ranks */
	uint8_t *bytes;          /* the exponents: of this rank, then of all; then whether a rank refuses the switch */
	uint8_t *words;          /* the integers: of this rank, then their sum              */
	struct work exponents, integers; /* the stages; in no list, and never ended themselves */
	_Atomic enum numerics_stage stage;
	enum esp_status agreed;  /* how the first stage has ended; written before NUMERICS_AGREED */
	atomic_bool is_float;    /* a block is not finite                                   */
};

/* ---- making ---- */

static enum esp_status plan_stage(struct work *stage, const struct work *work, const struct work_ops *ops,
                                  const struct call *call, struct failure *failure)
{
	struct comm *group = work->group;

	stage->context = work->context;
	stage->group = group;
	stage->kind = WORK_CALL;
	stage->ops = ops;
	stage->call = *call;
	stage->event_fd = -1;
	enum esp_status status = call_check(&stage->call, group->rank, group->size, failure);
	if (status != ESP_OK)
		return status;
	status = comm_spans_make(&stage->call, group->net.layout.chunk_bytes, false, &stage->spans, &stage->span_count);
	if (status != ESP_OK)
		return rank_failure_set(failure, status, -1, "no memory for a call");
	pthread_mutex_lock(&group->lock);
	status = work_plan_parts(stage, &group->plans, STREAM_CALLS, failure);
	pthread_mutex_unlock(&group->lock);
	return status;
}

static bool exponents_done(struct work *stage, enum esp_status status);
static bool integers_done(struct work *stage, enum esp_status status);
static const struct work_ops exponents_ops = {.parts_done = exponents_done};
static const struct work_ops integers_ops = {.parts_done = integers_done};

static enum esp_status plan_exponents(struct numerics *numerics, struct failure *failure)
{
	struct call call = {
		.collective = PLAN_ALLREDUCE,
		.type = ESP_U8,
		.op = ESP_MAX,
		.count = numerics->blocks + numerics->may_switch,
		.in = numerics->bytes,
		.out = numerics->bytes,
	};

	return plan_stage(&numerics->exponents, numerics->work, &exponents_ops, &call, failure);
}

static enum esp_status plan_integers(struct numerics *numerics, struct failure *failure)
{
	struct call call = {
		.collective = PLAN_ALLREDUCE,
		.type = numerics->fixed.form == FIXED_16 ? ESP_U32 : ESP_I32,
		.op = ESP_SUM,
		.count = fixed_bytes(&numerics->fixed, numerics->work->call.count) / sizeof(uint32_t),
		.in = numerics->words,
		.out = numerics->words,
		.planner = numerics->work->call.planner,
	};

	return plan_stage(&numerics->integers, numerics->work, &integers_ops, &call, failure);
}

enum esp_status numerics_make(struct work *work, struct failure *failure)
{
	const struct call *call = &work->call;
	struct numerics *numerics = calloc(1, sizeof(*numerics));

	if (!numerics)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a call");
	work->numerics = numerics; /* which frees it */
	numerics->work = work;
	numerics->fixed = (struct fixed){.form = call->numerics == ESP_NUMERICS_FIXED16 ? FIXED_16 : FIXED_32,
	                                 .type = call->type, .workers = work->group->size};
	numerics->blocks = fixed_blocks(call->count);
	numerics->may_switch =
		!call->planner && comm_switched_may_sum(work->group, fixed_bytes(&numerics->fixed, call->count));
	numerics->bytes = malloc(numerics->blocks + 1);
	numerics->words = malloc(fixed_bytes(&numerics->fixed, call->count));
	if (!numerics->bytes || !numerics->words)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for the integers of a call in fixed point");
	enum esp_status status = plan_exponents(numerics, failure);
	if (status == ESP_OK)
		status = plan_integers(numerics, failure);
	if (status == ESP_OK && numerics->may_switch)
		status = comm_switched_make_sum(&numerics->integers,
		                                numerics->fixed.form == FIXED_16 ? ATP_FIXED_16 : ATP_FIXED_32, failure);
	return status;
}

void numerics_free(struct numerics *numerics)
{
	if (!numerics)
		return;
	work_clear_parts(&numerics->exponents);
	work_clear_parts(&numerics->integers);
	comm_switched_forget(&numerics->integers);
	free(numerics->bytes);
	free(numerics->words);
	free(numerics);
}

enum numerics_stage numerics_stage(const struct work *work)
{
	return atomic_load_explicit(&work->numerics->stage, memory_order_acquire);
}

const struct work *numerics_planned(const struct work *work)
{
	return atomic_load_explicit(&work->numerics->is_float, memory_order_relaxed) ? work : &work->numerics->integers;
}

/* ---- the caller's data, which lies in spans, block by block ---- */

typedef void block_fn(struct numerics *numerics, void *data, size_t count, size_t block);

/* Where the vector is being read or written: the spans hold it in order. */
struct cursor {
	const struct work *work;
	uint32_t span;
	uint64_t at; /* in that span */
	bool is_out;
};

static uint8_t *cursor_data(const struct cursor *cursor)
{
	const struct span *span = &cursor->work->spans[cursor->span];

	return (cursor->is_out ? span->out : (uint8_t *)(uintptr_t)span->in) + cursor->at;
}

static uint64_t cursor_left(struct cursor *cursor)
{
	const struct span *spans = cursor->work->spans;

	while (cursor->at == spans[cursor->span].block_bytes) {
		cursor->span++;
		cursor->at = 0;
		assert(cursor->span < cursor->work->span_count);
	}
	return spans[cursor->span].block_bytes - cursor->at;
}

/* Copies a block that lies in more than one span, to or from memory of its own. */
static void cursor_copy(struct cursor cursor, uint8_t *held, uint64_t bytes)
{
	while (bytes > 0) {
		uint64_t left = cursor_left(&cursor), n = left < bytes ? left : bytes;

		if (cursor.is_out)
			memcpy(cursor_data(&cursor), held, n);
		else
			memcpy(held, cursor_data(&cursor), n);
		cursor.at += n;
		held += n;
		bytes -= n;
	}
}

static void cursor_skip(struct cursor *cursor, uint64_t bytes)
{
	while (bytes > 0) {
		uint64_t left = cursor_left(cursor), n = left < bytes ? left : bytes;

		cursor->at += n;
		bytes -= n;
	}
}

/* Calls the function for runs of blocks, one after the other, each in one piece of memory. */
static void for_blocks(struct numerics *numerics, bool is_out, block_fn *function)
{
	const size_t element = math_type_bytes(numerics->fixed.type), count = numerics->work->call.count;
	struct cursor cursor = {.work = numerics->work, .is_out = is_out};
	uint8_t held[FIXED_BLOCK * sizeof(float)];

	for (size_t at = 0, n; at < count; at += n) {
		size_t here = cursor_left(&cursor) / element;
		bool is_held = here < FIXED_BLOCK && here < count - at;

		n = here >= count - at ? count - at : here - here % FIXED_BLOCK;
		if (is_held)
			n = count - at < FIXED_BLOCK ? count - at : FIXED_BLOCK;
		if (is_held && !is_out)
			cursor_copy(cursor, held, n * element);
		function(numerics, is_held ? held : cursor_data(&cursor), n, at / FIXED_BLOCK);
		if (is_held && is_out)
			cursor_copy(cursor, held, n * element);
		cursor_skip(&cursor, n * element);
	}
}

static uint8_t *words_at(const struct numerics *numerics, size_t block)
{
	return numerics->words + fixed_bytes(&numerics->fixed, block * FIXED_BLOCK);
}

static void find_exponents(struct numerics *numerics, void *data, size_t count, size_t block)
{
	fixed_exponents(numerics->fixed.type, data, count, numerics->bytes + block);
}

static void quantize(struct numerics *numerics, void *data, size_t count, size_t block)
{
	fixed_quantize(&numerics->fixed, data, count, numerics->bytes + block, words_at(numerics, block));
}

static void dequantize(struct numerics *numerics, void *data, size_t count, size_t block)
{
	uint32_t divisor = numerics->work->call.op == ESP_AVG ? numerics->fixed.workers : 1;

	fixed_dequantize(&numerics->fixed, words_at(numerics, block), count, numerics->bytes + block, divisor, data);
}

/* ---- the first stage ---- */

/* A plan that was made with other masters: all ranks are at the same call, and have the same. */
static enum esp_status plan_as_of_now(struct work *stage)
{
	struct comm *group = stage->group;
	struct failure failure;

	if (!work_is_stale(stage) || work_plan_anew(stage, &failure) == ESP_OK)
		return ESP_OK;
	comm_fail(group, ESP_ENOMEM, (int32_t)group->context->rank, "no memory for a plan with other masters", true);
	return ESP_ENOMEM;
}

/* Its messages are those of the call, as other ranks know it. */
static void launch_stage(struct work *stage, const struct work *work, enum drive_by help)
{
	struct rank *context = work->context;

	assert(stage->part_count > 0);
	stage->note = work->note;
	stage->digest = work->digest;
	atomic_store(&stage->worst, ESP_OK);
	pthread_mutex_lock(&context->lock);
	work_launch_locked(stage, help);
	pthread_mutex_unlock(&context->lock);
}

enum esp_status numerics_begin(struct work *work, enum drive_by help)
{
	struct numerics *numerics = work->numerics;

	assert(numerics->stage == NUMERICS_IDLE);
	if (plan_as_of_now(&numerics->exponents) != ESP_OK || plan_as_of_now(&numerics->integers) != ESP_OK)
		return ESP_ENOMEM;
	work->time.launched_ns = clock_now_ns();
	for (uint32_t i = 0; i < work->span_count; i++)
		comm_span_gather(&work->spans[i], &work->call);
	for_blocks(numerics, false, find_exponents);
	if (numerics->may_switch)
		numerics->bytes[numerics->blocks] =
			comm_switched_refuses(work->group, numerics->integers.call.in_bytes, numerics->integers.span_count);
	atomic_store_explicit(&numerics->is_float, false, memory_order_relaxed);
	atomic_store_explicit(&numerics->stage, NUMERICS_AGREEING, memory_order_relaxed);
	launch_stage(&numerics->exponents, work, help);
	return ESP_OK;
}

static struct numerics *numerics_of(struct work *stage, size_t offset)
{
	return (struct numerics *)(void *)((uint8_t *)stage - offset);
}

/* All lanes have ended the first stage. The group is visited, as another thread may end the work once it is agreed. */
static bool exponents_done(struct work *stage, enum esp_status status)
{
	struct numerics *numerics = numerics_of(stage, offsetof(struct numerics, exponents));
	struct comm *group = stage->group;
	struct rank *context = stage->context;
	bool is_finite = status == ESP_OK && fixed_finite(numerics->bytes, numerics->blocks);

	if (is_finite)
		for_blocks(numerics, false, quantize);
	atomic_store_explicit(&numerics->is_float, status == ESP_OK && !is_finite, memory_order_relaxed);
	numerics->agreed = status;
	pthread_mutex_lock(&context->lock);
	comm_visit(group);
	pthread_mutex_unlock(&context->lock);
	atomic_store_explicit(&numerics->stage, NUMERICS_AGREED, memory_order_release);
	comm_go_on(group);
	pthread_mutex_lock(&context->lock);
	comm_depart(group);
	pthread_mutex_unlock(&context->lock);
	return true;
}

/* ---- the second stage ---- */

/* The sum of all ranks' integers, in place: the one place where it is started. The work may end meanwhile. */
static void numerics_start_integers(struct work *work, enum drive_by help)
{
	struct numerics *numerics = work->numerics;
	struct work *stage = &numerics->integers;

	bool goes_through = numerics->may_switch && numerics->bytes[numerics->blocks] == 0;
	if (numerics->may_switch && !goes_through)
		comm_switched_pass_by(stage);
	if (!goes_through) {
		launch_stage(stage, work, help);
		return;
	}
	stage->note = work->note;
	stage->digest = work->digest;
	atomic_store(&stage->worst, ESP_OK);
	comm_switched_sum(stage);
}

void numerics_go_on(struct work *work, enum drive_by help)
{
	struct numerics *numerics = work->numerics;

	assert(numerics->stage == NUMERICS_AGREED);
	atomic_store_explicit(&numerics->stage, NUMERICS_IDLE, memory_order_relaxed);
	if (numerics->agreed != ESP_OK)
		work_parts_ended(work, numerics->agreed);
	else if (atomic_load_explicit(&numerics->is_float, memory_order_relaxed))
		work_launch(work, help);
	else
		numerics_start_integers(work, help);
}

/* All lanes have ended the second stage. */
static bool integers_done(struct work *stage, enum esp_status status)
{
	struct numerics *numerics = numerics_of(stage, offsetof(struct numerics, integers));

	if (status == ESP_OK)
		for_blocks(numerics, true, dequantize);
	work_parts_ended(numerics->work, status);
	return true;
}
