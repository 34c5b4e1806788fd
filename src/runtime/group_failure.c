/*
 * group_failure.c - how groups fail, and what people are told about it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/chores.h"
#include "runtime/group.h"

#define VERDICT_PATIENCE NS_PER_S

struct group *group_find(struct context *context, uint32_t channel, uint32_t first_rank)
{
	for (struct group *group = context->groups; group; group = group->next) {
		if (group->channel == channel && group->ranks[0] == first_rank)
			return group;
	}
	return NULL;
}

/* ---- failing ---- */

/* Work that no lane knows: it waits for other ranks, or for a reason. With the lock held: the first one, taken off. */
static struct work *take_waiting(struct group *group)
{
	for (struct work *work = group->context->live; work; work = work->live_next) {
		if (work->group == group && (work->awaits_verdict || work->is_waiting)) {
			if (work->is_waiting) {
				keyed_forget(&group->keyed, work);
				letters_forget(&group->letters, work);
			}
			work->awaits_verdict = work->is_waiting = false;
			return work;
		}
	}
	return NULL;
}

static void end_waiting(struct group *group, enum esp_status status)
{
	struct context *context = group->context;
	struct work *work;

	do {
		pthread_mutex_lock(&context->lock);
		work = take_waiting(group);
		pthread_mutex_unlock(&context->lock);
		if (work)
			work_end(work, status);
	} while (work);
}

static void tell_members(struct group *group, enum esp_status status, int32_t culprit, const char *why)
{
	struct control_msg msg = {
		.type = CONTROL_FAILED,
		.from = group->context->rank,
		.about = culprit < 0 ? UINT32_MAX : (uint32_t)culprit,
		.channel = group->channel,
		.first = group->ranks[0],
		.status = status,
		.peer = UINT32_MAX,
	};

	snprintf(msg.text, sizeof(msg.text), "%s", why);
	steward_send_all(group->context->steward, &msg);
}

void group_fail(struct group *group, enum esp_status status, int32_t culprit, const char *why, bool tell)
{
	struct context *context = group->context;

	pthread_mutex_lock(&context->lock);
	bool is_first = atomic_load(&group->failed) == ESP_OK;
	if (is_first) {
		group->culprit = culprit;
		snprintf(group->why, sizeof(group->why), "%s", why);
		atomic_store_explicit(&group->failed, (int)status, memory_order_release);
		for (uint32_t i = 0; i < context->lanes * STREAMS; i++) {
			group->fail_mail[i] = (struct mail){
				.kind = MAIL_FAIL,
				.peer = culprit < 0 ? PLAN_NONE : (uint32_t)culprit,
				.channel = (uint16_t)(group->channel + i % STREAMS),
				.fd = -1,
				.status = status,
				.embedded = true,
			};
			driver_post(&context->drivers[i / STREAMS], &group->fail_mail[i], false);
		}
		chores_look_after_queues(context);
		context_changed(context);
	}
	pthread_mutex_unlock(&context->lock);
	if (!is_first)
		return;
	if (tell)
		tell_members(group, status, culprit, why);
	end_waiting(group, status);
}

void group_fail_by_leave(struct group *group, uint32_t rank)
{
	char who[RANK_TEXT], why[CONTROL_TEXT];

	snprintf(why, sizeof(why), "%s has left the job", context_rank_text(group->context, rank, who));
	group_fail(group, ESP_EPEER, (int32_t)rank, why, true);
}

/* ---- reasons ---- */

/* For whom it is an answer to "why": "rank 3 on node7 has died: its connection was closed". */
static void name_loss(struct context *context, uint32_t rank, enum esp_status status, char why[CONTROL_TEXT])
{
	char who[RANK_TEXT];

	context_rank_text(context, rank, who);
	if (status == ESP_ECORRUPT)
		snprintf(why, CONTROL_TEXT, "%s sent what it cannot have meant: its memory or the network is broken", who);
	else
		snprintf(why, CONTROL_TEXT, "%s is gone: its connection was closed", who);
}

static void ask_about_all(struct group *group, uint32_t peer)
{
	struct context *context = group->context;
	struct call_note notes[16];
	uint32_t count = 0;

	pthread_mutex_lock(&context->lock);
	for (struct work *work = context->live; work && count < 16; work = work->live_next) {
		if (work->group == group && work->note.flags == 0)
			notes[count++] = work->note;
	}
	pthread_mutex_unlock(&context->lock);
	for (uint32_t i = 0; i < count; i++)
		group_ask(group, peer, &notes[i]);
}

/* The lanes know that, the steward will know why: a rank has died, or has failed before it closed its connections. */
static void await_verdict(struct group *group, const struct exec_failure *why)
{
	struct context *context = group->context;

	pthread_mutex_lock(&context->lock);
	if (group->verdict_ns == 0) {
		group->verdict_ns = clock_now_ns() + VERDICT_PATIENCE;
		group->suspicion = *why;
	}
	pthread_mutex_unlock(&context->lock);
	context_watch(context);
}

void group_pass_verdict(struct group *group)
{
	struct context *context = group->context;
	char text[CONTROL_TEXT] = "ranks have made calls that do not fit together";

	pthread_mutex_lock(&context->lock);
	struct exec_failure why = group->suspicion;
	bool has_left = context->fates[why.node] == FATE_LEFT;
	pthread_mutex_unlock(&context->lock);
	if (has_left && why.status != ESP_EMISMATCH) {
		group_fail_by_leave(group, why.node);
		return;
	}
	if (why.status != ESP_EMISMATCH)
		name_loss(context, why.node, why.status, text);
	group_fail(group, why.status, (int32_t)why.node, text, true);
}

static void stream_failed(struct group *group, const struct exec_failure *why)
{
	struct context *context = group->context;
	char text[CONTROL_TEXT];
	bool has_culprit = why->node != PLAN_NONE && why->node < context->size;

	if (has_culprit && group_is_suspicion(why->status)) {
		await_verdict(group, why);
		if (why->status == ESP_EMISMATCH)
			ask_about_all(group, why->node);
		return;
	}
	if (has_culprit && why->status == ESP_ECORRUPT)
		name_loss(context, why->node, why->status, text);
	else
		snprintf(text, sizeof(text), "%s", why->status == ESP_ENOMEM ? "out of memory" : "the executor has failed");
	group_fail(group, why->status, has_culprit ? (int32_t)why->node : (int32_t)context->rank, text, true);
}

void group_stream_failed(struct context *context, const struct lane_failure *failure)
{
	const struct exec_failure *why = &failure->why;
	struct group *group;

	pthread_mutex_lock(&context->lock);
	for (group = context->groups; group && group->channel != failure->channel / GROUP_CHANNELS * GROUP_CHANNELS; group = group->next)
		;
	if (group && !group->waited && why->waited) {
		group->waited = true;
		group->wait = why->wait;
	}
	bool is_news = group && atomic_load(&group->failed) == ESP_OK;
	if (is_news)
		group_visit(group);
	pthread_mutex_unlock(&context->lock);
	if (!is_news)
		return;
	stream_failed(group, why);
	pthread_mutex_lock(&context->lock);
	group_depart(group);
	pthread_mutex_unlock(&context->lock);
}
static void describe_wait(struct group *group, char *text, size_t size)
{
	char who[RANK_TEXT];

	text[0] = '\0';
	if (!group->waited || group->wait.peer >= group->context->size || !group->size)
		return;
	snprintf(text, size, "; this rank waited for %s (chunk %" PRIu64 ", step %u)",
	         context_rank_text(group->context, group->wait.peer, who), group->wait.chunk, group->wait.step);
}

void group_explain(struct group *group, const struct call_note *note, enum esp_status status, struct failure *out)
{
	char call[CALL_TEXT], wait[RANK_TEXT + 64];

	*out = FAILURE_NONE;
	out->status = status;
	out->rank = group->culprit;
	out->operation = note->flags & CALL_LETTER ? "message" : plan_collective_name(note->collective);
	out->sequence = note->sequence;
	describe_wait(group, wait, sizeof(wait));
	if (group->waited) {
		out->waits_for = group->wait.peer < group->context->size ? (int32_t)group->wait.peer : -1;
		out->chunk = (int64_t)group->wait.chunk;
		out->step = (int32_t)group->wait.step;
	}
	if (out->rank < 0 && status == ESP_ETIMEOUT)
		out->rank = out->waits_for;
	snprintf(out->text, sizeof(out->text), "call %" PRIu64 ", %s: %s%s", note->sequence, call_describe(note, call),
	         group->why[0] ? group->why : "failed", wait);
}

/* ---- calls that do not fit ---- */

void group_remember(struct group *group, const struct call_note *note)
{
	group->notes[note->sequence % NOTES_KEPT] = *note;
}

void group_mismatch(struct group *group, uint32_t one, const struct call_note *ones, uint32_t other,
                    const struct call_note *others)
{
	char a[CALL_TEXT], b[CALL_TEXT], why[CONTROL_TEXT], which[32] = "";

	if (ones->sequence > 0)
		snprintf(which, sizeof(which), "call %" PRIu64 ": ", ones->sequence);
	snprintf(why, sizeof(why), "%scalls do not fit: rank %u made %s, rank %u made %s", which, one,
	         call_describe(ones, a), other, call_describe(others, b));
	group_fail(group, ESP_EMISMATCH, (int32_t)other, why, true);
}

bool group_awaits_verdict(struct group *group, struct work *work)
{
	struct context *context = group->context;

	pthread_mutex_lock(&context->lock);
	bool awaits = atomic_load(&group->failed) == ESP_OK;
	work->awaits_verdict = awaits;
	pthread_mutex_unlock(&context->lock);
	if (awaits)
		context_watch(context);
	return awaits;
}

void group_ask(struct group *group, uint32_t member_rank, const struct call_note *note)
{
	struct control_msg msg = {
		.type = CONTROL_ASK,
		.from = group->context->rank,
		.about = member_rank,
		.channel = group->channel,
		.first = group->ranks[0],
		.sequence = note->sequence,
		.peer = UINT32_MAX,
		.note = *note,
	};

	if (member_rank != group->context->rank)
		steward_send(group->context->steward, member_rank, &msg);
}

void group_asked(struct context *context, uint32_t from, const struct control_msg *msg)
{
	struct call_note mine = {0};

	pthread_mutex_lock(&context->lock);
	struct group *group = group_find(context, msg->channel, msg->first);
	if (group && msg->sequence > 0)
		mine = group->notes[msg->sequence % NOTES_KEPT];
	/* A call that we have not made yet, or long ago, says nothing. */
	bool differs = group && mine.sequence == msg->sequence && msg->note.sequence == msg->sequence && msg->sequence > 0 &&
	               call_note_digest(&mine) != call_note_digest(&msg->note);
	if (differs)
		group_visit(group);
	pthread_mutex_unlock(&context->lock);
	if (!differs)
		return;
	group_mismatch(group, context->rank, &mine, from, &msg->note);
	pthread_mutex_lock(&context->lock);
	group_depart(group);
	pthread_mutex_unlock(&context->lock);
}
