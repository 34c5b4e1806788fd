#include "rank/comm/p2p.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clip.h"
#include "rank/comm/comm.h"
#include "rank/comm/span.h"
#include "rank/comm/work.h"

/*
 * Chunks of a message that are asked for at a time, and how many pieces at most: all receives take half of what may be
 * in flight.
 */
static uint32_t piece_chunks(const struct comm *group)
{
	return group->context->conf.active_chunks >= 16 ? 4 : 1;
}

static uint32_t pieces_most(const struct comm *group)
{
	uint32_t half = group->context->conf.active_chunks / 2;

	return half < piece_chunks(group) ? 1 : half / piece_chunks(group);
}

static void say(struct comm *group, uint32_t place, enum control_type type, const struct call_note *note,
                enum esp_status status)
{
	struct control_msg msg = {
		.type = (uint8_t)type,
		.from = group->context->rank,
		.about = group->ranks[place],
		.channel = group->channel,
		.first = group->ranks[0],
		.call = {.note = *note, .status = status},
	};

	control_send(group->context->control, group->ranks[place], &msg);
}

/* ---- words ---- */

const char *p2p_describe(const struct work *work, char text[WORK_TEXT])
{
	const struct comm *group = work->group;
	bool is_send = work->kind == WORK_SEND;
	char who[RANK_TEXT] = "any rank";

	if (work->msg.peer < group->size)
		rank_text(group->context, group->ranks[work->msg.peer], who);
	snprintf(text, WORK_TEXT, "%s%" PRIu64 " bytes %s %s with tag %" PRIu64, is_send ? "send of " : "receive of up to ",
	         work->msg.room_bytes, is_send ? "to" : "from", who, work->msg.tag);
	return text;
}

static void set_failure(struct work *work, enum esp_status status, int32_t rank, const char *why)
{
	const struct comm *group = work->group;
	char text[WORK_TEXT];

	rank_failure_set(&work->failure, status, rank, "%s: %s", p2p_describe(work, text), why);
	work->failure.operation = work->kind == WORK_SEND ? "send" : "receive";
	work->failure.waits_for = work->msg.peer < group->size ? (int32_t)group->ranks[work->msg.peer] : -1;
}

void p2p_explain(struct work *work, enum esp_status status)
{
	const char *why = work->group->fail.reason.failed.text;

	set_failure(work, status, comm_culprit(work->group, &work->note), why[0] ? why : "failed");
}

/* ---- lists ---- */

static struct work *work_at(struct tag_queue_node *node)
{
	return node ? list_item(&node->link, struct work, msg.place.link) : NULL;
}

static struct tag_queue_key key_of(uint64_t tag, uint32_t peer)
{
	return (struct tag_queue_key){tag, peer};
}

static void line_append(struct list *queue, struct work *work)
{
	work->msg.line.is_in = true;
	list_append(queue, &work->msg.line.link);
}

static struct work *line_first(const struct list *queue)
{
	return list_item(queue->first, struct work, msg.line.link);
}

/* Nothing, if it is in none. */
static void line_remove(struct list *queue, struct work *work)
{
	if (!work->msg.line.is_in)
		return;
	list_remove(queue, &work->msg.line.link);
	work->msg.line.is_in = false;
}

void p2p_forget(struct p2p *p2p, struct work *work)
{
	bool is_send = work->kind == WORK_SEND;

	comm_tag_queue_take(is_send ? &p2p->sends : &p2p->receives, &work->msg.place);
	line_remove(is_send ? &p2p->asked : &p2p->ready, work);
}

static struct work *find_send(struct p2p *p2p, uint64_t number)
{
	return work_at(comm_tag_queue_find(&p2p->sends, key_of(number, 0)));
}

/* The receive that has waited longest of those that match this message: from its sender, or from any rank. */
static struct work *find_receive(struct p2p *p2p, const struct call_note *note)
{
	struct work *named = work_at(comm_tag_queue_find(&p2p->receives, key_of(note->key, note->root)));
	struct work *any = work_at(comm_tag_queue_find(&p2p->receives, key_of(note->key, UINT32_MAX)));

	return !named || (any && any->msg.age < named->msg.age) ? any : named;
}

/* The first message that came for this receive. */
static struct p2p_msg *find_msg(struct p2p *p2p, const struct work *receive)
{
	bool is_any = receive->msg.peer == UINT32_MAX;
	struct tag_queue_node *node =
		comm_tag_queue_find(is_any ? &p2p->by_tag : &p2p->by_sender, key_of(receive->msg.tag, receive->msg.peer));

	if (!node)
		return NULL;
	return is_any ? list_item(&node->link, struct p2p_msg, by_tag.link)
	              : list_item(&node->link, struct p2p_msg, by_sender.link);
}

/* False: there are too many messages without a receive. */
static bool add_msg(struct p2p *p2p, const struct call_note *note)
{
	struct p2p_msg *msg = p2p->by_tag.count < P2P_MOST ? malloc(sizeof(*msg)) : NULL;

	if (!msg)
		return false;
	*msg = (struct p2p_msg){.note = *note};
	list_prepend(&p2p->msgs, &msg->link);
	comm_tag_queue_put(&p2p->by_sender, &msg->by_sender, key_of(note->key, note->root));
	comm_tag_queue_put(&p2p->by_tag, &msg->by_tag, key_of(note->key, UINT32_MAX));
	return true;
}

static void drop_msg(struct p2p *p2p, struct p2p_msg *msg)
{
	comm_tag_queue_take(&p2p->by_sender, &msg->by_sender);
	comm_tag_queue_take(&p2p->by_tag, &msg->by_tag);
	list_remove(&p2p->msgs, &msg->link);
	free(msg);
}

/* ---- carrying ---- */

/* Bytes of the next piece, the same on both ends. */
static uint64_t next_piece(const struct work *work)
{
	uint64_t left = work->note.count - work->msg.moved_bytes,
	         most = piece_chunks(work->group) * work->group->net.layout.chunk_bytes;

	return left < most ? left : most;
}

/* Gives the work the plan by which its next piece moves: one block, from the sender to the receiver. */
static enum esp_status plan_piece(struct work *work, uint32_t receiver)
{
	struct comm *group = work->group;
	struct failure failure;

	work_clear_parts(work);
	uint64_t *counts = calloc(group->size, sizeof(*counts));
	if (!counts)
		return ESP_ENOMEM;
	work->msg.piece_bytes = counts[receiver] = next_piece(work);
	work->digest =
		comm_digest(work->group, &work->note) + (uint32_t)(work->msg.moved_bytes / work->group->net.layout.chunk_bytes);
	work->call = (struct call){
		.collective = PLAN_SCATTER,
		.type = ESP_BYTES,
		.root = work->note.root,
		.counts = counts, /* the work's own from now on */
		.in = work->msg.data + work->msg.moved_bytes,
		.out = work->msg.data + work->msg.moved_bytes,
		.planner = &planner_exchange,
	};
	enum esp_status status = call_check(&work->call, group->rank, group->size, &failure);
	if (status == ESP_OK)
		status = comm_spans_make(&work->call, group->net.layout.chunk_bytes, false, &work->spans, &work->span_count);
	if (status == ESP_OK)
		status = work_plan_parts(work, NULL, STREAM_MESSAGES, &failure);
	/* p2p.h counts with it. */
	assert(status != ESP_OK || work->spans[0].planned->chunk_bytes == group->net.layout.chunk_bytes);
	return status;
}

/* Steps that are left for when the lock is given back. */
struct outcome {
	struct work *ended, *ended_too;
	enum esp_status status;
};

/* Its end is settled and comes when the lock is given back: no deadline counts any more. */
static struct work *about_to_end(struct work *work)
{
	work->end.is_waiting = false;
	work->time.deadline_ns = UINT64_MAX;
	return work;
}

/* Lets the next piece move, or ends the work if there is nothing to move. */
static void launch(struct work *work, uint32_t receiver, struct outcome *out)
{
	enum esp_status status = plan_piece(work, receiver);

	if (status == ESP_OK && work->part_count > 0) {
		work->end.is_waiting = false;
		work_launch_locked(work, BY_LANE_THREAD);
		return;
	}
	if (status != ESP_OK)
		set_failure(work, status, -1, "no memory");
	if (work->kind == WORK_RECEIVE)
		work->group->p2p.receiving--;
	out->ended = about_to_end(work);
	out->status = status;
}

static void make_ready(struct p2p *p2p, struct work *receive)
{
	receive->end.is_waiting = true;
	line_append(&p2p->ready, receive);
}

/* Asks for pieces, as long as there may be more. Each is started here before it is asked for. */
static void ask_for_pieces(struct comm *group, struct outcome *out)
{
	struct p2p *p2p = &group->p2p;

	while (p2p->ready.first && p2p->receiving < pieces_most(group) && !out->ended) {
		struct work *work = line_first(&p2p->ready);

		line_remove(&p2p->ready, work);
		p2p->receiving++;
		struct call_note note = work->note;
		uint32_t from = note.root;
		launch(work, group->rank, out);
		say(group, from, CONTROL_FETCH, &note, ESP_OK);
	}
}

/*
 * Sends what was asked for, in this order. The first may still be busy with its piece before, which has come, as it was
 * asked for the next: this end has only not noticed yet.
 */
static void send_pieces(struct comm *group, struct outcome *out)
{
	struct p2p *p2p = &group->p2p;

	while (p2p->asked.first && line_first(&p2p->asked)->end.is_waiting && !out->ended) {
		struct work *work = line_first(&p2p->asked);

		line_remove(&p2p->asked, work);
		launch(work, work->msg.peer, out);
	}
}

/* From ourselves to ourselves. */
static void hand_over(struct work *send, struct work *receive, struct outcome *out)
{
	if (send->note.count > 0)
		memmove(receive->msg.data, send->msg.data, send->note.count);
	out->ended = about_to_end(receive);
	out->ended_too = about_to_end(send);
	out->status = ESP_OK;
}

/* A receive and a message that match; the receive is in no list. */
static void match(struct comm *group, struct work *receive, const struct call_note *note, struct outcome *out)
{
	bool is_own = note->root == group->rank;
	struct work *send = is_own ? find_send(&group->p2p, note->sequence) : NULL;
	bool is_too_long = note->count > receive->msg.room_bytes;

	receive->msg.peer = note->root;
	receive->note = *note;
	receive->msg.moved_bytes = 0;
	if (send)
		p2p_forget(&group->p2p, send);
	if (is_too_long) {
		char why[64];

		snprintf(why, sizeof(why), "the message has %" PRIu64 " bytes, and is lost", note->count);
		set_failure(receive, ESP_EMISMATCH, (int32_t)group->ranks[note->root], why);
		out->ended = about_to_end(receive);
		out->status = ESP_EMISMATCH;
		if (send) {
			out->ended_too = about_to_end(send);
		} else if (!is_own) {
			say(group, note->root, CONTROL_FETCH, note, ESP_EMISMATCH);
		}
	} else if (is_own && send) {
		hand_over(send, receive, out);
	} else if (!is_own && note->count == 0) {
		say(group, note->root, CONTROL_FETCH, note, ESP_OK);
		out->ended = about_to_end(receive);
		out->status = ESP_OK;
	} else if (!is_own) {
		make_ready(&group->p2p, receive);
		ask_for_pieces(group, out);
	}
}

static void finish(const struct outcome *outcome)
{
	if (outcome->ended)
		work_end(outcome->ended, outcome->status);
	if (outcome->ended_too)
		work_end(outcome->ended_too, ESP_OK);
}

/* ---- news ---- */

/* With the lock held. False: there are too many messages without a receive. */
static bool announce(struct comm *group, const struct call_note *note, struct outcome *out)
{
	struct p2p *p2p = &group->p2p;

	struct work *receive = find_receive(p2p, note);

	if (!receive)
		return add_msg(p2p, note);
	p2p_forget(p2p, receive);
	match(group, receive, note, out);
	return true;
}

void p2p_announced(struct comm *group, const struct call_note *note)
{
	struct rank *context = group->context;
	struct outcome outcome = {0};

	if (note->root >= group->size || !(note->flags & CALL_LETTER))
		return;
	pthread_mutex_lock(&context->lock);
	bool is_kept = atomic_load(&group->fail.status) != ESP_OK || announce(group, note, &outcome);
	pthread_mutex_unlock(&context->lock);
	finish(&outcome);
	if (!is_kept)
		comm_fail(group, ESP_ELIMIT, (int32_t)context->rank, "too many messages wait for a receive",
		          true);
}

void p2p_fetch(struct comm *group, const struct control_msg *msg)
{
	struct rank *context = group->context;
	struct outcome outcome = {0};

	pthread_mutex_lock(&context->lock);
	struct work *work = find_send(&group->p2p, msg->call.note.sequence);
	if (work && atomic_load(&group->fail.status) == ESP_OK) {
		if (msg->call.status != ESP_OK) { /* it is not wanted, which is not its fault */
			p2p_forget(&group->p2p, work);
			outcome = (struct outcome){.ended = about_to_end(work), .status = ESP_OK};
		} else if (!work->msg.line.is_in) {
			line_append(&group->p2p.asked, work);
			send_pieces(group, &outcome);
		}
	}
	pthread_mutex_unlock(&context->lock);
	finish(&outcome);
}

void p2p_piece_done(struct work *work)
{
	struct comm *group = work->group;
	struct rank *context = work->context;
	struct outcome outcome = {0};

	pthread_mutex_lock(&context->lock);
	enum esp_status failed = (enum esp_status)atomic_load(&group->fail.status);
	bool is_receive = work->kind == WORK_RECEIVE;
	work->msg.moved_bytes += work->msg.piece_bytes;
	if (is_receive)
		group->p2p.receiving--;
	bool is_over = work->msg.moved_bytes == work->note.count || failed != ESP_OK;
	if (is_over)
		about_to_end(work);
	else if (is_receive)
		make_ready(&group->p2p, work);
	else
		work->end.is_waiting = true;
	if (is_receive && failed == ESP_OK)
		ask_for_pieces(group, &outcome);
	else if (failed == ESP_OK)
		send_pieces(group, &outcome);
	pthread_mutex_unlock(&context->lock);
	finish(&outcome);
	if (is_over)
		work_end(work, work->msg.moved_bytes == work->note.count ? ESP_OK : failed);
}

/* ---- starting ---- */

static void start_send(struct work *work, struct outcome *out)
{
	struct comm *group = work->group;
	struct p2p *p2p = &group->p2p;

	work->note = (struct call_note){
		.collective = PLAN_SCATTER,
		.type = ESP_BYTES,
		.flags = CALL_LETTER,
		.root = group->rank,
		.count = work->msg.room_bytes,
		.key = work->msg.tag,
		.sequence = ++p2p->numbers,
	};
	work->msg.moved_bytes = 0;
	comm_tag_queue_put(&p2p->sends, &work->msg.place, key_of(work->note.sequence, 0));
	if (work->msg.peer != group->rank) {
		say(group, work->msg.peer, CONTROL_LETTER, &work->note, ESP_OK);
	} else if (!announce(group, &work->note, out)) {
		p2p_forget(p2p, work);
		set_failure(work, ESP_ELIMIT, (int32_t)group->context->rank,
		            "too many messages wait for this rank to receive them");
		out->ended = about_to_end(work);
		out->status = ESP_ELIMIT;
	}
}

static void start_receive(struct work *work, struct outcome *out)
{
	struct comm *group = work->group;
	struct p2p *p2p = &group->p2p;
	struct p2p_msg *msg = find_msg(p2p, work);

	work->note =
		(struct call_note){.collective = PLAN_SCATTER, .type = ESP_BYTES, .flags = CALL_LETTER, .key = work->msg.tag};
	if (!msg) {
		work->msg.age = ++p2p->ages;
		comm_tag_queue_put(&p2p->receives, &work->msg.place, key_of(work->msg.tag, work->msg.peer));
		return;
	}
	struct call_note note = msg->note;
	drop_msg(p2p, msg);
	match(group, work, &note, out);
}

enum esp_status p2p_start(struct work *work, struct failure *failure)
{
	struct rank *context = work->group->context;
	struct outcome outcome = {0};
	enum esp_status status = comm_check(work->group, NULL, failure);

	if (status != ESP_OK)
		return status;
	pthread_mutex_lock(&context->lock);
	if (atomic_load(&work->group->fail.status) != ESP_OK) { /* just now */
		pthread_mutex_unlock(&context->lock);
		return comm_check(work->group, NULL, failure);
	}
	work_set_out(work);
	work->end.is_waiting = true;
	if (work->kind == WORK_SEND)
		start_send(work, &outcome);
	else
		start_receive(work, &outcome);
	pthread_mutex_unlock(&context->lock);
	rank_watch(context);
	finish(&outcome);
	return ESP_OK;
}

/* ---- giving up ---- */

/* Takes back the announcement of a message to ourselves: false: a receive has taken it. */
static bool take_back(struct p2p *p2p, const struct call_note *note)
{
	struct tag_queue_key key = key_of(note->key, note->root);
	struct tag_queue_node *node = comm_tag_queue_find(&p2p->by_sender, key);

	/* Behind it in its list are those of its key, and a few others. */
	for (struct list_node *link = node ? &node->link : NULL; link; link = link->next) {
		struct p2p_msg *msg = list_item(link, struct p2p_msg, by_sender.link);

		if (msg->note.key == note->key && msg->note.root == note->root &&
		    msg->note.sequence == note->sequence) {
			drop_msg(p2p, msg);
			return true;
		}
	}
	return false;
}

bool p2p_give_up(struct work *work, char why[CONTROL_TEXT])
{
	struct comm *group = work->group;
	struct p2p *p2p = &group->p2p;
	int32_t peer = work->msg.peer < group->size ? (int32_t)group->ranks[work->msg.peer] : -1;
	char text[WORK_TEXT], limit[DEADLINE_TEXT], own[DEADLINE_TEXT + 128];
	const char *what =
		work->kind == WORK_SEND && work->msg.moved_bytes == 0 ? "it was not received" : "it was not complete";
	const char *hint = "";
	bool is_ours = false;

	work_deadline_text(group->context, work->options.deadline_ns, limit);
	if (work->kind == WORK_RECEIVE && work->msg.place.is_in) {
		what = "no message came";
		is_ours = true;
	} else if (work->kind == WORK_SEND && work->msg.peer == group->rank && take_back(p2p, &work->note)) {
		what = "it is to this rank itself, which did not receive it";
		hint = ": start the receive before";
		is_ours = true;
	} else {
		clip(why, CONTROL_TEXT, "the deadline of rank %u (%s) passed in its %s", group->context->rank, limit,
		     p2p_describe(work, text));
	}
	snprintf(own, sizeof(own), "%s within the deadline (%s)%s", what, limit, hint);
	set_failure(work, ESP_ETIMEOUT, peer, own);
	if (is_ours) {
		p2p_forget(p2p, work);
		work->end.is_waiting = false;
	}
	return is_ours;
}

void p2p_fini(struct p2p *p2p)
{
	while (p2p->msgs.first)
		drop_msg(p2p, list_item(p2p->msgs.first, struct p2p_msg, link));
	comm_tag_queue_fini(&p2p->by_sender);
	comm_tag_queue_fini(&p2p->by_tag);
	comm_tag_queue_fini(&p2p->receives);
	comm_tag_queue_fini(&p2p->sends);
}

static bool parts_done(struct work *work, enum esp_status status)
{
	if (status == ESP_OK)
		p2p_piece_done(work);
	return status == ESP_OK;
}

static void forget(struct work *work)
{
	p2p_forget(&work->group->p2p, work);
}

const struct work_ops p2p_ops = {
	.parts_done = parts_done,
	.forget = forget,
	.explain = p2p_explain,
	.describe = p2p_describe,
};
