#include "rank/comm/call_record.h"

#include "base/clock.h"
#include "rank/comm/comm_state.h"
#include "rank/observe/recorder.h"
#include "rank/observe/tracer.h"

_Static_assert((int)RECORD_SEND == (int)PLAN_COLLECTIVE_COUNT, "messages come behind collectives");

/* ---- what a call is ---- */

/* Of the whole vector, or of all blocks. */
static uint64_t bytes_of(const struct call *call, uint32_t size)
{
	uint64_t bytes = call->in_bytes > call->out_bytes ? call->in_bytes : call->out_bytes;
	bool has_blocks = call->collective == PLAN_GATHER || call->collective == PLAN_SCATTER;
	uint64_t all = call->block_bytes * (has_blocks ? size : 1); /* fits, or the call had been refused */

	return bytes > all ? bytes : all;
}

static uint8_t kind_of(const struct call *call)
{
	return call->makes_group ? (uint8_t)RECORD_GROUP : (uint8_t)call->collective;
}

static const char *shm_small_plan(unsigned rounds)
{
	return rounds == 2 ? "flat" : "exchange";
}

void call_record_describe(const struct comm *group, const struct call *call, const struct call_note *note,
                          struct record *out)
{
	*out = (struct record){
		.note = *note,
		.bytes = bytes_of(call, group->size),
		.chunk = RECORD_NO_CHUNK,
		.step = RECORD_NONE,
		.waits_for = RECORD_NONE,
		.channel = group->channel,
		.first = group->ranks[0],
		.members = group->size,
		.peer = RECORD_NONE,
		.kind = kind_of(call),
		.plan = "",
	};
}

void call_record_small(const struct comm *group, const struct shm_small_call *op, struct record *out)
{
	struct ticks_scale scale = ticks_scale(&group->context->mod.recorder->ticks);

	call_record_describe(group, op->call, &op->note, out);
	out->started_ns = ticks_to_ns(&scale, op->started);
	out->plan = shm_small_plan(op->rounds);
	out->waits_for = group->ranks[op->waits_for];
}

void call_record_work(const struct work *work, const char *plan, struct record *out)
{
	const struct comm *group = work->group;

	call_record_describe(group, &work->call, &work->note, out);
	out->started_ns = work->time.started_ns;
	out->plan = plan;
	if (work->kind == WORK_CALL)
		return;
	out->kind = work->kind == WORK_SEND ? RECORD_SEND : RECORD_RECEIVE;
	out->note.flags |= CALL_LETTER;
	out->note.key = work->msg.tag;
	out->bytes = work->kind == WORK_SEND ? work->msg.room_bytes : work->msg.moved_bytes;
	out->peer = work->msg.peer < group->size ? group->ranks[work->msg.peer] : RECORD_NONE;
	out->members = 2;
}

/* ---- the end of a call ---- */

/* A rank that finds others missing waits for the last of them until the end; its own part after that is little. */
static uint64_t shm_small_waited(bool waited, uint64_t started_ns, uint64_t ended_ns)
{
	return waited ? ended_ns - started_ns : 0;
}

static void add_failed(const struct comm *group, const struct shm_small_call *op, enum esp_status status)
{
	struct record record;

	call_record_small(group, op, &record);
	record.ended_ns = clock_now_ns();
	record.status = status;
	record.waited_ns = shm_small_waited(true, record.started_ns, record.ended_ns);
	recorder_add(group->context->mod.recorder, group->context->mod.tracer, &record);
}

void call_record_add_small(const struct comm *group, const struct shm_small_call *op, enum esp_status status,
                           bool waited)
{
	struct recorder_queue *queue = group->small.records;
	uint64_t added = atomic_load_explicit(&queue->added, memory_order_relaxed);
	bool is_plain = status == ESP_OK && !group->context->mod.tracer;

	if (status == ESP_OK) {
		queue->entries[added % RECORDER_QUEUE] = (struct recorder_entry){
			.started = op->started,
			.ended = ticks_now(&group->context->mod.recorder->ticks),
			.bytes = bytes_of(op->call, group->size),
			.note = op->note,
			.kind = kind_of(op->call),
			.rounds = (uint8_t)op->rounds,
			.waited = waited,
		};
		atomic_store_explicit(&queue->added, ++added, memory_order_release);
	}
	/* There is always room for one more. */
	if (!is_plain || added - atomic_load_explicit(&queue->taken, memory_order_acquire) == RECORDER_QUEUE)
		call_record_drain(group);
	if (status != ESP_OK)
		add_failed(group, op, status);
}

/* With the recorder's lock held. */
static void drain(struct recorder *recorder, const struct comm *group)
{
	struct recorder_queue *queue = group->small.records;
	uint64_t added = atomic_load_explicit(&queue->added, memory_order_acquire);
	struct record record = {
		.chunk = RECORD_NO_CHUNK,
		.step = RECORD_NONE,
		.waits_for = RECORD_NONE,
		.channel = group->channel,
		.first = group->ranks[0],
		.members = group->size,
		.peer = RECORD_NONE,
	};

	struct ticks_scale scale = ticks_scale(&recorder->ticks);

	for (uint64_t at = atomic_load_explicit(&queue->taken, memory_order_relaxed); at < added; at++) {
		const struct recorder_entry *entry = &queue->entries[at % RECORDER_QUEUE];

		record.note = entry->note;
		record.started_ns = ticks_to_ns(&scale, entry->started);
		record.ended_ns = ticks_to_ns(&scale, entry->ended);
		record.waited_ns = shm_small_waited(entry->waited, record.started_ns, record.ended_ns);
		record.bytes = entry->bytes;
		record.kind = entry->kind;
		record.plan = shm_small_plan(entry->rounds);
		ring_add(recorder->ring, &record);
		tally_add(recorder->tally, &record);
		tracer_add_call(group->context->mod.tracer, &record);
	}
	atomic_store_explicit(&queue->taken, added, memory_order_release); /* the places may be used again */
}

void call_record_drain(const struct comm *group)
{
	struct recorder *recorder = group->context->mod.recorder;

	if (!group->small.records)
		return;
	pthread_mutex_lock(&recorder->lock);
	drain(recorder, group);
	pthread_mutex_unlock(&recorder->lock);
}

void call_record_add_work(const struct work *work, const char *plan, enum esp_status status)
{
	struct rank *context = work->context;
	const struct failure *failure = &work->failure;
	struct record record;

	call_record_work(work, plan, &record);
	record.ended_ns = clock_now_ns();
	record.status = status;
	record.waited_ns = (progress_idle_ns(&context->progress) - work->time.idle_ns) / context->lanes;
	if (work->time.launched_ns > work->time.started_ns) /* until it was its turn */
		record.waited_ns += work->time.launched_ns - work->time.started_ns;
	if (status != ESP_OK && failure->status == status) {
		record.waits_for = failure->waits_for >= 0 ? (uint32_t)failure->waits_for : RECORD_NONE;
		record.chunk = failure->chunk >= 0 ? (uint64_t)failure->chunk : RECORD_NO_CHUNK;
		record.step = failure->step >= 0 ? (uint32_t)failure->step : RECORD_NONE;
	}
	recorder_add(context->mod.recorder, context->mod.tracer, &record);
}

void call_record_copy(struct rank *context, struct ring *ring, struct tally *tally)
{
	pthread_mutex_lock(&context->lock);
	call_record_copy_locked(context, ring, tally);
	pthread_mutex_unlock(&context->lock);
}

void call_record_copy_locked(struct rank *context, struct ring *ring, struct tally *tally)
{
	struct recorder *recorder = context->mod.recorder;

	for (const struct comm *group = context->comms.list; group; group = group->next)
		call_record_drain(group);
	recorder_copy(recorder, ring, tally);
}
