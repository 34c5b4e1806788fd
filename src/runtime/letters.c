#include "runtime/letters.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/group.h"
#include "runtime/stretch.h"

static void say(struct group *group, uint32_t place, enum control_type type, const struct call_note *note,
                enum esp_status status)
{
	struct control_msg msg = {
		.type = (uint8_t)type,
		.from = group->context->rank,
		.about = group->ranks[place],
		.channel = group->channel,
		.first = group->ranks[0],
		.peer = UINT32_MAX,
		.status = status,
		.note = *note,
	};

	steward_send(group->context->steward, group->ranks[place], &msg);
}

/* ---- lists ---- */

static void forget_in(struct work **list, struct work *work)
{
	for (struct work **at = list; *at; at = &(*at)->wait_next) {
		if (*at == work) {
			*at = work->wait_next;
			return;
		}
	}
}

void letters_forget(struct letters *letters, struct work *work)
{
	forget_in(&letters->sends, work);
	forget_in(&letters->receives, work);
	letters->last_receive = letters->receives;
	while (letters->last_receive && letters->last_receive->wait_next)
		letters->last_receive = letters->last_receive->wait_next;
}

static void append_receive(struct letters *letters, struct work *work)
{
	work->wait_next = NULL;
	if (letters->receives)
		letters->last_receive->wait_next = work;
	else
		letters->receives = work;
	letters->last_receive = work;
}

static bool fits(const struct work *receive, const struct call_note *note)
{
	return receive->tag == note->key && (receive->peer == UINT32_MAX || receive->peer == note->root);
}

/* ---- carrying ---- */

/* Gives the work the plan by which its letter moves: one block, from the sender to the receiver. */
static enum esp_status plan_letter(struct work *work, const struct call_note *note, uint32_t receiver)
{
	struct group *group = work->group;
	uint64_t *counts = calloc(group->size, sizeof(*counts));
	struct failure failure;

	if (!counts)
		return ESP_ENOMEM;
	counts[receiver] = note->count;
	work->note = *note;
	work->digest = call_note_digest(note);
	work->call = (struct call){
		.collective = PLAN_SCATTER,
		.type = ESP_BYTES,
		.root = note->root,
		.counts = counts, /* the work's own from now on */
		.in = work->call.in,
		.out = work->call.out,
		.planner = plan_planner_find("exchange"),
	};
	enum esp_status status = call_check(&work->call, group->rank, group->size, &failure);
	if (status == ESP_OK)
		status = stretches_make(&work->call, group->layout.chunk_bytes, &work->stretches, &work->stretch_count);
	if (status == ESP_OK)
		status = work_plan_parts(work, NULL, STREAM_LETTERS, &failure);
	return status;
}

/* What is to be done once the lock is given back. */
struct outcome {
	struct work *ended, *ended_too;
	enum esp_status status;
};

/* Lets the letter move, or ends the work if there is nothing to move. */
static void launch(struct work *work, const struct call_note *note, uint32_t receiver, struct outcome *out)
{
	enum esp_status status = plan_letter(work, note, receiver);

	work->is_waiting = false;
	if (status == ESP_OK && work->part_count > 0) {
		work_launch_locked(work, false);
		return;
	}
	if (status != ESP_OK)
		failure_set(&work->failure, status, -1, "no memory for a message of %" PRIu64 " bytes", note->count);
	out->ended = work;
	out->status = status;
}

/* From ourselves to ourselves. */
static void hand_over(struct work *send, struct work *receive, struct outcome *out)
{
	if (send->note.count > 0)
		memmove(receive->call.out, send->call.in, send->note.count);
	send->is_waiting = receive->is_waiting = false;
	out->ended = receive;
	out->ended_too = send;
	out->status = ESP_OK;
}

static struct work *find_send(const struct letters *letters, uint64_t number)
{
	struct work *work = letters->sends;

	while (work && work->note.sequence != number)
		work = work->wait_next;
	return work;
}

/* A receive and a letter that belong together; the receive is in no list. */
static void match(struct group *group, struct work *receive, const struct call_note *note, struct outcome *out)
{
	bool is_own = note->root == group->rank;
	struct work *send = is_own ? find_send(&group->letters, note->sequence) : NULL;
	bool is_too_long = note->count > receive->room_bytes;

	receive->peer = note->root;
	receive->note = *note;
	if (send)
		letters_forget(&group->letters, send);
	if (is_too_long) {
		failure_set(&receive->failure, ESP_EMISMATCH, (int32_t)group->ranks[note->root],
		            "the message from rank %u with tag %" PRIu64 " has %" PRIu64 " bytes, the receive has room for %" PRIu64,
		            note->root, note->key, note->count, receive->room_bytes);
		receive->is_waiting = false;
		out->ended = receive;
		out->status = ESP_EMISMATCH;
		if (send) {
			send->is_waiting = false;
			out->ended_too = send;
		} else if (!is_own) {
			say(group, note->root, CONTROL_FETCH, note, ESP_EMISMATCH);
		}
	} else if (is_own) {
		hand_over(send, receive, out);
	} else {
		/* Asked for and started at one time: both ends have the same order. */
		say(group, note->root, CONTROL_FETCH, note, ESP_OK);
		launch(receive, note, group->rank, out);
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

/* With the lock held: false: there are too many letters that nobody wants. */
static bool announce(struct group *group, const struct call_note *note, struct outcome *out)
{
	struct letters *letters = &group->letters;

	for (struct work *work = letters->receives; work; work = work->wait_next) {
		if (fits(work, note)) {
			letters_forget(letters, work);
			match(group, work, note, out);
			return true;
		}
	}
	struct letter *letter = letters->count < LETTERS_MOST ? malloc(sizeof(*letter)) : NULL;
	if (!letter)
		return false;
	*letter = (struct letter){.note = *note};
	if (letters->first)
		letters->last->next = letter;
	else
		letters->first = letter;
	letters->last = letter;
	letters->count++;
	return true;
}

void letters_announced(struct group *group, const struct call_note *note)
{
	struct context *context = group->context;
	struct outcome outcome = {0};

	if (note->root >= group->size || !(note->flags & CALL_LETTER))
		return;
	pthread_mutex_lock(&context->lock);
	bool is_kept = atomic_load(&group->failed) != ESP_OK || announce(group, note, &outcome);
	pthread_mutex_unlock(&context->lock);
	finish(&outcome);
	if (!is_kept)
		group_fail(group, ESP_ELIMIT, (int32_t)context->rank, "too many messages wait for somebody to receive them", true);
}

void letters_fetch(struct group *group, const struct call_note *note, enum esp_status status)
{
	struct context *context = group->context;
	struct outcome outcome = {0};

	pthread_mutex_lock(&context->lock);
	struct work *work = find_send(&group->letters, note->sequence);
	if (work && atomic_load(&group->failed) == ESP_OK) {
		letters_forget(&group->letters, work);
		if (status == ESP_OK) {
			struct call_note own = work->note;

			launch(work, &own, work->peer, &outcome);
		} else {
			work->is_waiting = false;
			outcome = (struct outcome){.ended = work, .status = ESP_OK}; /* it was not wanted, which is not its fault */
		}
	}
	pthread_mutex_unlock(&context->lock);
	finish(&outcome);
}

/* ---- starting ---- */

static void start_send(struct work *work, struct outcome *out)
{
	struct group *group = work->group;
	struct letters *letters = &group->letters;

	work->note = (struct call_note){
		.collective = PLAN_SCATTER,
		.type = ESP_BYTES,
		.flags = CALL_LETTER,
		.root = group->rank,
		.count = work->room_bytes,
		.key = work->tag,
		.sequence = ++letters->numbers,
	};
	work->wait_next = letters->sends;
	letters->sends = work;
	if (work->peer == group->rank)
		(void)announce(group, &work->note, out); /* too many, to ourselves: the deadline will tell */
	else
		say(group, work->peer, CONTROL_LETTER, &work->note, ESP_OK);
}

static void start_receive(struct work *work, struct outcome *out)
{
	struct group *group = work->group;
	struct letters *letters = &group->letters;
	struct letter *before = NULL, *letter = letters->first;

	work->note = (struct call_note){.collective = PLAN_SCATTER, .type = ESP_BYTES, .flags = CALL_LETTER, .key = work->tag};
	while (letter && !fits(work, &letter->note)) {
		before = letter;
		letter = letter->next;
	}
	if (!letter) {
		append_receive(letters, work);
		return;
	}
	if (before)
		before->next = letter->next;
	else
		letters->first = letter->next;
	if (letters->last == letter)
		letters->last = before;
	letters->count--;
	match(group, work, &letter->note, out);
	free(letter);
}

enum esp_status letters_start(struct work *work, struct failure *failure)
{
	struct context *context = work->group->context;
	struct outcome outcome = {0};
	enum esp_status status = group_check(work->group, failure);

	if (status != ESP_OK)
		return status;
	pthread_mutex_lock(&context->lock);
	if (atomic_load(&work->group->failed) != ESP_OK) { /* just now */
		pthread_mutex_unlock(&context->lock);
		return group_check(work->group, failure);
	}
	work_set_out(work);
	work->is_waiting = true;
	if (work->kind == WORK_SEND)
		start_send(work, &outcome);
	else
		start_receive(work, &outcome);
	pthread_mutex_unlock(&context->lock);
	context_watch(context);
	finish(&outcome);
	return ESP_OK;
}

void letters_fini(struct letters *letters)
{
	while (letters->first) {
		struct letter *next = letters->first->next;

		free(letters->first);
		letters->first = next;
	}
}
