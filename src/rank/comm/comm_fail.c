/*
 * comm_fail.c - how groups fail, and what people are told about it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clip.h"
#include "base/clock.h"
#include "rank/comm/callbacks.h"
#include "rank/comm/comm.h"
#include "rank/comm/keyed.h"
#include "rank/comm/p2p.h"
#include "rank/comm/switched.h"
#include "rank/comm/work.h"
#include "rank/join/launcher.h"
#include "rank/member/membership.h"
#include "rank/observe/dump.h"
#include "rank/observe/recorder.h"
#include "rank/observe/tracer.h"

struct comm *comm_find(struct rank *context, uint32_t channel, uint32_t first_rank)
{
	for (struct comm *group = context->comms.list; group; group = group->next) {
		if (group->channel == channel && group->ranks[0] == first_rank)
			return group;
	}
	return NULL;
}

/* ---- failing ---- */

/* Work that no lane knows: it waits for other ranks, or for a reason. With the lock held: the first one, taken off. */
static struct work *take_waiting(struct comm *group)
{
	for (struct work *work = group->context->comms.live; work; work = work->link.live_next) {
		if (work->group == group && (work->end.awaits_verdict || work->end.is_waiting)) {
			if (work->end.is_waiting) {
				comm_keyed_forget(&group->keyed, work);
				p2p_forget(&group->p2p, work);
			}
			work->end.awaits_verdict = work->end.is_waiting = false;
			return work;
		}
	}
	return NULL;
}

static void end_waiting(struct comm *group, enum esp_status status)
{
	struct rank *context = group->context;
	struct work *work;

	do {
		pthread_mutex_lock(&context->lock);
		work = take_waiting(group);
		pthread_mutex_unlock(&context->lock);
		if (work)
			work_end(work, status);
	} while (work);
}

static struct control_msg new_reason(const struct comm *group, enum esp_status status, int32_t culprit, const char *why)
{
	struct control_msg reason = {
		.type = CONTROL_FAILED,
		.from = group->context->rank,
		.about = culprit < 0 ? UINT32_MAX : (uint32_t)culprit,
		.channel = group->channel,
		.first = group->ranks[0],
		.failed = {.status = status, .other = UINT32_MAX},
	};

	clip(reason.failed.text, sizeof(reason.failed.text), "%s", why);
	return reason;
}

void comm_fail(struct comm *group, enum esp_status status, int32_t culprit, const char *why, bool tell)
{
	struct control_msg reason = new_reason(group, status, culprit, why);

	comm_fail_as(group, &reason, tell);
}

/*
 * The launcher sees which process ends first, not which rank has failed which. So it is told before a caller here can
 * hear of the failure and end. Of calls that do not fit no rank can tell which is at fault.
 */
static void blame(struct comm *group, const struct control_msg *reason)
{
	struct rank *context = group->context;
	uint32_t culprit = reason->about;
	bool is_news = atomic_load(&group->fail.status) == ESP_OK && atomic_load(&context->member.blamed) != culprit + 1;

	if (!is_news || culprit >= context->size || culprit == context->rank || reason->failed.status == ESP_EMISMATCH)
		return;
	launcher_blame(context->join.launch.launcher, context->rank, culprit);
	/* only now: another thread that fails the group just now may not overtake it */
	atomic_store(&context->member.blamed, culprit + 1);
}

void comm_fail_as(struct comm *group, const struct control_msg *reason, bool tell)
{
	struct rank *context = group->context;
	enum esp_status status = reason->failed.status < 0 ? (enum esp_status)reason->failed.status : ESP_EJOB;

	blame(group, reason);
	pthread_mutex_lock(&context->lock);
	bool is_first = atomic_load(&group->fail.status) == ESP_OK;
	if (is_first) {
		group->fail.reason = *reason;
		group->fail.at_ns = clock_now_ns();
		atomic_store_explicit(&group->fail.status, (int)status, memory_order_release);
		for (uint32_t i = 0; i < context->lanes * STREAMS; i++) {
			group->fail.cmds[i] = (struct progress_cmd){
				.kind = PROGRESS_FAIL,
				.peer = reason->about < context->size ? reason->about : PLAN_NONE,
				.channel = (uint16_t)(group->channel + i % STREAMS),
				.status = status,
				.is_embedded = true,
			};
			progress_post(&context->progress.lanes[i / STREAMS], &group->fail.cmds[i], BY_LANE_THREAD);
		}
		comm_callbacks_look_after_queues(context);
		rank_changed(context);
	}
	pthread_mutex_unlock(&context->lock);
	progress_changed(&context->progress);
	if (!is_first)
		return;
	comm_switched_fail(group, status);
	tracer_mark(context->mod.tracer, "group %u failed: %s", group->channel, reason->failed.text);
	log_write(&context->log, LOG_LEVEL_INFO, LOG_CALL, "group %u of %u ranks has failed: %s", group->channel,
	          group->size, reason->failed.text);
	if (tell)
		control_send_all(context->control, reason);
	if (status != ESP_EABORTED) { /* that needs no explanation */
		atomic_fetch_add(&context->mod.recorder->failures, 1);
		dump_failures(context);
	}
	end_waiting(group, status);
}

void comm_fail_by_leave(struct comm *group, uint32_t rank)
{
	char who[RANK_TEXT], why[CONTROL_TEXT];

	snprintf(why, sizeof(why), "%s has left the job", rank_text(group->context, rank, who));
	comm_fail(group, ESP_EPEER, (int32_t)rank, why, true);
}

/* ---- what has ended well ---- */

uint64_t comm_calls(struct comm *group)
{
	pthread_mutex_lock(&group->lock);
	uint64_t calls = group->calls;
	pthread_mutex_unlock(&group->lock);
	return calls;
}

static void set_aside(struct comm *group, bool is_aside)
{
	pthread_mutex_lock(&group->lock);
	group->is_aside = is_aside;
	pthread_mutex_unlock(&group->lock);
}

void comm_begin_aside(struct comm *group)
{
	set_aside(group, true);
}

void comm_end_aside(struct comm *group)
{
	set_aside(group, false);
	comm_drop_left(group); /* it may have been agreed since on other lanes */
}

void comm_note_failed(struct comm *group, const struct call_note *note)
{
	uint64_t first = group->fail.first_call, number = note->sequence;

	/* a receive can fail alone */
	group->fail.is_told = group->fail.is_told || atomic_load(&group->fail.status) != ESP_OK;
	if (number == 0 || note->flags != 0)
		return;
	if (first == 0 || number < first) {
		group->fail.calls = first == 0 || first - number > 63 ? 0 : group->fail.calls << (first - number);
		group->fail.first_call = first = number;
	}
	if (number - first < 64)
		group->fail.calls |= UINT64_C(1) << (number - first);
}

void comm_count_done(struct comm *group, uint64_t *out_all, uint64_t *out_some)
{
	struct rank *context = group->context;

	*out_all = *out_some = comm_calls(group);
	pthread_mutex_lock(&context->lock);
	uint64_t first = group->fail.first_call;
	if (first != 0) {
		*out_all = first - 1;
		while (*out_some >= first && *out_some - first < 64 && group->fail.calls >> (*out_some - first) & 1)
			--*out_some;
	}
	pthread_mutex_unlock(&context->lock);
}

/* ---- reasons ---- */

static void ask(struct comm *group, uint32_t member_rank, const struct call_note *note)
{
	struct control_msg msg = {
		.type = CONTROL_ASK,
		.from = group->context->rank,
		.about = member_rank,
		.channel = group->channel,
		.first = group->ranks[0],
		.call = {.note = *note},
	};

	if (member_rank != group->context->rank)
		control_send(group->context->control, member_rank, &msg);
}

/* An answer to "why": "rank 3 on node7 has died: its connection was closed". */
static void name_loss(struct rank *context, uint32_t rank, enum esp_status status, char why[CONTROL_TEXT])
{
	char who[RANK_TEXT];

	rank_text(context, rank, who);
	if (status == ESP_ECORRUPT)
		snprintf(why, CONTROL_TEXT, "%s sent what it cannot have meant: its memory or the network is broken", who);
	else
		snprintf(why, CONTROL_TEXT, "%s has died, or ended without esp_fini(): its connection was closed", who);
}

/*
 * Something of another call has come. That may be an earlier one than any that is under way: of two roots that only
 * send, neither notices at the time. So about all calls that are remembered, the first first.
 */
static void ask_about_all(struct comm *group, uint32_t peer)
{
	struct rank *context = group->context;
	struct call_note notes[NOTES_KEPT];

	pthread_mutex_lock(&context->lock);
	memcpy(notes, group->fail.notes, sizeof(notes));
	uint64_t last = 0;
	for (uint32_t i = 0; i < NOTES_KEPT; i++)
		last = notes[i].sequence > last ? notes[i].sequence : last;
	pthread_mutex_unlock(&context->lock);
	for (uint64_t i = 1; i <= NOTES_KEPT; i++) {
		const struct call_note *note = &notes[(last + i) % NOTES_KEPT];

		if (note->sequence > 0)
			ask(group, peer, note);
	}
}

/* The lanes know that, the control will know why: a rank has died, or has failed before it closed its connections. */
static void await_verdict(struct comm *group, const struct exec_failure *why)
{
	struct rank *context = group->context;

	pthread_mutex_lock(&context->lock);
	if (group->fail.verdict_ns == 0) {
		group->fail.verdict_ns = clock_now_ns() + rank_patience_ns(context);
		group->fail.suspicion = *why;
	}
	pthread_mutex_unlock(&context->lock);
	rank_watch(context);
}

void comm_pass_verdict(struct comm *group)
{
	struct rank *context = group->context;
	char text[CONTROL_TEXT], who[RANK_TEXT], self[RANK_TEXT];

	pthread_mutex_lock(&context->lock);
	struct exec_failure why = group->fail.suspicion;
	const struct unreachable *found = unreachable_find(&context->opening.unreached, why.node);
	struct unreachable unreached = found ? *found : (struct unreachable){0};
	bool is_unreached = found != NULL;
	bool has_left = context->fates.of[why.node] == FATE_LEFT, is_here = context->fates.of[why.node] == FATE_HERE;
	pthread_mutex_unlock(&context->lock);
	if (has_left && why.status != ESP_EMISMATCH) {
		comm_fail_by_leave(group, why.node);
		return;
	}
	if (why.status == ESP_EABORTED)
		snprintf(text, sizeof(text), "%s shrinks the group", rank_text(context, why.node, who));
	else if (why.status == ESP_EMISMATCH) /* so long ago that its note is no longer kept */
		snprintf(text, sizeof(text), "calls do not fit: rank %u sent rank %u something of another call", why.node,
		         context->rank);
	else if (is_here && is_unreached)
		unreachable_text(&unreached, rank_text(context, context->rank, self), rank_text(context, why.node, who), text);
	else if (is_here)
		snprintf(text, sizeof(text), "the connection for data between rank %u and %s broke, although both are there",
		         context->rank, rank_text(context, why.node, who));
	else
		name_loss(context, why.node, why.status, text);
	comm_fail(group, why.status, (int32_t)why.node, text, true);
	/* A lane does not connect twice: the two cannot be in a group any more, and when it is shrunk one of them goes. */
	if (is_here && (why.status == ESP_EPEER || why.status == ESP_ELINK))
		membership_part(context, why.node);
}

void comm_shrinks(struct comm *group, uint32_t rank)
{
	struct exec_failure why = {.status = ESP_EABORTED, .node = rank};

	if (atomic_load(&group->fail.status) == ESP_OK)
		await_verdict(group, &why);
}

uint64_t comm_look_for_verdict(struct comm *group, uint64_t now)
{
	struct rank *context = group->context;

	pthread_mutex_lock(&context->lock);
	uint64_t due =
		atomic_load(&group->fail.status) == ESP_OK && group->fail.verdict_ns != 0 ? group->fail.verdict_ns : UINT64_MAX;
	pthread_mutex_unlock(&context->lock);
	if (due > now)
		return due;
	comm_pass_verdict(group);
	return UINT64_MAX;
}

static void stream_failed(struct comm *group, const struct exec_failure *why)
{
	struct rank *context = group->context;
	char text[CONTROL_TEXT];
	bool has_culprit = why->node != PLAN_NONE && why->node < context->size;

	if (has_culprit && comm_is_suspicion(why->status)) {
		await_verdict(group, why);
		if (why->status == ESP_EMISMATCH)
			ask_about_all(group, why->node);
		return;
	}
	if (has_culprit && why->status == ESP_ECORRUPT)
		name_loss(context, why->node, why->status, text);
	else
		snprintf(text, sizeof(text), "%s", why->status == ESP_ENOMEM ? "out of memory" : "the executor has failed");
	comm_fail(group, why->status, has_culprit ? (int32_t)why->node : (int32_t)context->rank, text, true);
}

void comm_stream_failed(struct rank *context, const struct lane_failure *failure)
{
	const struct exec_failure *why = &failure->why;
	struct comm *group;

	pthread_mutex_lock(&context->lock);
	for (group = context->comms.list; group && group->channel != failure->channel / COMM_CHANNELS * COMM_CHANNELS;
	     group = group->next)
		;
	if (group && !group->fail.waited && why->waited) {
		group->fail.waited = true;
		group->fail.wait = why->wait;
	}
	bool is_news = group && atomic_load(&group->fail.status) == ESP_OK;
	if (is_news)
		comm_visit(group);
	pthread_mutex_unlock(&context->lock);
	if (!is_news)
		return;
	stream_failed(group, why);
	pthread_mutex_lock(&context->lock);
	comm_depart(group);
	pthread_mutex_unlock(&context->lock);
}

/* ---- what is told about it ---- */

/* Did two ranks make calls that do not fit? note is then that of `about`; peer's had the number `sequence`. */
static bool is_mismatch(const struct control_msg *reason)
{
	return reason->failed.status == ESP_EMISMATCH && reason->failed.other != UINT32_MAX;
}

/* Are these two of the calls that must be alike? */
static bool belong_together(const struct call_note *one, const struct call_note *other)
{
	return one->flags == other->flags && one->key == other->key && one->sequence == other->sequence;
}

/* Does the group's reason say what this call is? */
static bool is_in_reason(const struct control_msg *reason, const struct call_note *note)
{
	struct call_note peers = reason->failed.note;

	peers.sequence = reason->failed.other_sequence;
	return is_mismatch(reason) && (belong_together(note, &reason->failed.note) || belong_together(note, &peers));
}

int32_t comm_culprit(const struct comm *group, const struct call_note *note)
{
	const struct rank *context = group->context;
	const struct control_msg *reason = &group->fail.reason;

	if (atomic_load(&group->fail.status) == ESP_OK || reason->about >= context->size)
		return -1;
	if (!is_mismatch(reason) || reason->failed.other >= context->size)
		return (int32_t)reason->about;
	if (!belong_together(note, &reason->failed.note))
		note = &group->fail.notes[reason->failed.note.sequence % NOTES_KEPT];
	bool is_as_ours =
		belong_together(note, &reason->failed.note) && call_note_digest(note) == call_note_digest(&reason->failed.note);
	return (int32_t)(reason->about == context->rank || is_as_ours ? reason->failed.other : reason->about);
}

static void describe_wait(struct comm *group, char *text, size_t size)
{
	const struct exec_wait *wait = &group->fail.wait;
	char who[RANK_TEXT], where[64] = "";

	text[0] = '\0';
	if (!group->fail.waited || wait->peer >= group->context->size)
		return;
	if (wait->chunk != UINT64_MAX)
		snprintf(where, sizeof(where), " (chunk %" PRIu64 ", step %u)", wait->chunk, wait->step);
	snprintf(text, size, "; this rank waited for %s%s", rank_text(group->context, wait->peer, who), where);
}

void comm_explain(struct comm *group, const struct call_note *note, enum esp_status status, struct failure *out)
{
	char call[CALL_TEXT], wait[RANK_TEXT + 96], number[32] = "", which[CALL_TEXT + 40] = "";

	*out = FAILURE_NONE;
	out->status = status;
	out->rank = comm_culprit(group, note);
	out->operation = call_operation(note);
	out->sequence = note->sequence;
	describe_wait(group, wait, sizeof(wait));
	if (group->fail.waited) {
		out->waits_for = group->fail.wait.peer < group->context->size ? (int32_t)group->fail.wait.peer : -1;
		out->chunk = (int64_t)group->fail.wait.chunk;
		out->step = (int32_t)group->fail.wait.step;
	}
	if (out->rank < 0 && status == ESP_ETIMEOUT)
		out->rank = out->waits_for;
	if (note->sequence > 0)
		snprintf(number, sizeof(number), "call %" PRIu64 ", ", note->sequence);
	/* A sentence about this very call says which it is. */
	if (!is_in_reason(&group->fail.reason, note))
		snprintf(which, sizeof(which), "%s%s: ", number, call_describe(note, call));
	clip(out->text, sizeof(out->text), "%s%s%s", which,
	     group->fail.reason.failed.text[0] ? group->fail.reason.failed.text : "failed", wait);
}

/* ---- calls that do not fit ---- */

void comm_remember(struct comm *group, const struct call_note *note)
{
	group->fail.notes[note->sequence % NOTES_KEPT] = *note;
}

/* "rank 3 made allreduce of 5 f32, sum" */
static void describe_made(char *text, size_t size, uint32_t rank, const struct call_note *note, bool with_number)
{
	char call[CALL_TEXT], number[40] = "";

	if (with_number)
		snprintf(number, sizeof(number), "as call %" PRIu64 ", ", note->sequence);
	snprintf(text, size, "%srank %u made %s", number, rank, call_describe(note, call));
}

void comm_mismatch(struct comm *group, uint32_t one, const struct call_note *ones, uint32_t other,
                    const struct call_note *others)
{
	char a[CALL_TEXT + 64], b[CALL_TEXT + 64], why[sizeof(a) + sizeof(b) + 64];
	bool is_cut = ones->shape != others->shape && ones->count == others->count;

	/* One number for both, unless one of them has made another kind of call before. */
	describe_made(a, sizeof(a), one, ones, ones->sequence > 0);
	describe_made(b, sizeof(b), other, others, others->sequence != ones->sequence);
	/* new_reason() clips it */
	snprintf(why, sizeof(why), "calls do not fit: %s, but %s%s", a, b, is_cut ? ", cut in another way" : "");
	struct control_msg reason = new_reason(group, ESP_EMISMATCH, (int32_t)other, why);
	reason.failed.other = one;
	reason.failed.other_sequence = ones->sequence;
	reason.failed.note = *others;
	comm_fail_as(group, &reason, true);
}

bool comm_awaits_verdict(struct comm *group, struct work *work)
{
	struct rank *context = group->context;

	pthread_mutex_lock(&context->lock);
	bool awaits = atomic_load(&group->fail.status) == ESP_OK;
	work->end.awaits_verdict = awaits;
	pthread_mutex_unlock(&context->lock);
	if (awaits)
		rank_watch(context);
	return awaits;
}

void comm_ask(struct comm *group, uint32_t waits_for, uint32_t turn, const struct call_note *note)
{
	if (note->flags & CALL_KEYED) { /* the first rank knows which ranks have made it */
		if (group->rank == 0)
			comm_keyed_asked(group, note->key);
		else
			ask(group, group->ranks[0], note);
		return;
	}
	uint32_t next = group->ranks[(group->rank + 1 + turn % (group->size - 1)) % group->size];

	ask(group, next, note);
	if (waits_for != NO_RANK && waits_for != next)
		ask(group, waits_for, note);
}

static bool has_made(struct comm *group, uint64_t sequence)
{
	return comm_calls(group) >= sequence;
}

void comm_say_absent(struct comm *group, uint32_t absent, const struct call_note *note)
{
	struct control_msg msg = {
		.type = CONTROL_ABSENT,
		.from = group->context->rank,
		.about = absent,
		.channel = group->channel,
		.first = group->ranks[0],
		.absent = {.sequence = note->sequence,
	               .is_keyed = note->flags & CALL_KEYED,
	               .key = note->key,
	               .second = clock_now_ns() / NS_PER_S},
	};

	comm_heard_absent(group->context, &msg);
	if (rank_is_news(group->context, &msg))
		control_send_all(group->context->control, &msg);
}

/* How long it counts that a rank has said so. */
static uint64_t absence_holds_ns(const struct comm *group)
{
	return 3 * rank_patience_ns(group->context);
}

/* The number of the oldest call here that has not ended, of those that have one, up to this one. */
static uint64_t find_oldest(const struct comm *group, uint64_t sequence)
{
	for (const struct work *work = group->context->comms.live; work; work = work->link.live_next) {
		if (work->group == group && work->kind == WORK_CALL && !work->call.keyed && work->note.sequence < sequence)
			sequence = work->note.sequence;
	}
	return sequence;
}

/* Does it tell about a call with this number? Of one that has ended here it tells which rank was late then. */
static bool absence_counts(const struct comm *group, uint64_t sequence)
{
	const struct absence *absent = &group->fail.absent;

	return absent->sequence > 0 && absent->rank != group->context->rank && absent->sequence <= sequence &&
	       absent->sequence >= find_oldest(group, sequence);
}

/* A rank that has not made a call has not made those after it, so the earliest says most. */
static bool is_better_absence(const struct comm *group, const struct control_msg *msg)
{
	const struct absence *absent = &group->fail.absent;

	return !absence_counts(group, msg->absent.sequence) || msg->about == absent->rank ||
	       msg->absent.sequence <= absent->sequence || clock_now_ns() >= absent->heard_ns + absence_holds_ns(group);
}

void comm_heard_absent(struct rank *context, const struct control_msg *msg)
{
	pthread_mutex_lock(&context->lock);
	struct comm *group = comm_find(context, msg->channel, msg->first);
	if (group && comm_has(group, msg->about) && msg->absent.is_keyed) {
		group->keyed.missing = msg->about;
		group->keyed.missing_key = msg->absent.key;
		group->keyed.missing_ns = clock_now_ns();
	} else if (group && comm_has(group, msg->about) && is_better_absence(group, msg))
		group->fail.absent =
			(struct absence){.rank = msg->about, .sequence = msg->absent.sequence, .heard_ns = clock_now_ns()};
	pthread_mutex_unlock(&context->lock);
}

uint32_t comm_absent(const struct comm *group, const struct call_note *note, uint64_t now)
{
	const struct absence *absent = &group->fail.absent;
	const struct keyed *keyed = &group->keyed;
	uint64_t sequence = note->sequence, holds = absence_holds_ns(group);

	if (note->flags & CALL_KEYED)
		return keyed->missing_ns && keyed->missing_key == note->key && now < keyed->missing_ns + holds ? keyed->missing
		                                                                                                    : NO_RANK;
	return absence_counts(group, sequence) && now < absent->heard_ns + holds ? absent->rank : NO_RANK;
}

/*
 * With the lock held: have we made another call of that number? A call that we have not made yet, or long ago, says
 * nothing.
 */
static bool made_another(const struct comm *group, const struct call_note *theirs, struct call_note *out_mine)
{
	*out_mine = group->fail.notes[theirs->sequence % NOTES_KEPT];
	return theirs->sequence > 0 && out_mine->sequence == theirs->sequence &&
	       call_note_digest(out_mine) != call_note_digest(theirs);
}

void comm_heard_last_call(struct comm *group, uint32_t rank, const struct call_note *note)
{
	struct rank *context = group->context;
	struct call_note mine;

	pthread_mutex_lock(&context->lock);
	bool differs = made_another(group, note, &mine) && atomic_load(&group->fail.status) == ESP_OK;
	pthread_mutex_unlock(&context->lock);
	if (differs)
		comm_mismatch(group, context->rank, &mine, rank, note);
}

void comm_asked(struct rank *context, uint32_t from, const struct control_msg *msg)
{
	struct call_note mine = {0};

	pthread_mutex_lock(&context->lock);
	struct comm *group = comm_find(context, msg->channel, msg->first);
	bool differs = group && !(msg->call.note.flags & CALL_KEYED) && made_another(group, &msg->call.note, &mine);
	if (group)
		comm_visit(group);
	pthread_mutex_unlock(&context->lock);
	if (!group)
		return;
	if (msg->call.note.flags & CALL_KEYED)
		comm_keyed_asked(group, msg->call.note.key);
	else if (differs)
		comm_mismatch(group, context->rank, &mine, from, &msg->call.note);
	else if (!has_made(group, msg->call.note.sequence))
		comm_say_absent(group, context->rank, &msg->call.note);
	pthread_mutex_lock(&context->lock);
	comm_depart(group);
	pthread_mutex_unlock(&context->lock);
}
