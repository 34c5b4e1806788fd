/*
 * check_mail.c - the messages of one chunk, and what a node can know about its own.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "plan/check_run.h"

void plan_mail_clear(struct check_run *run)
{
	run->message_count = 0;
	run->pair_count = 0;
	run->epoch++;
}

static uint64_t pair_hash(uint64_t key)
{
	key *= UINT64_C(0x9e3779b97f4a7c15);
	return key ^ key >> 32;
}

/* The entry of a key, or the free one where it belongs. */
static struct check_pair *pair_find(const struct check_run *run, uint64_t key)
{
	uint32_t mask = run->pair_capacity - 1, at = (uint32_t)pair_hash(key) & mask;

	while (run->pairs[at].epoch == run->epoch && run->pairs[at].key != key)
		at = (at + 1) & mask;
	return &run->pairs[at];
}

static bool pairs_grow(struct check_run *run)
{
	struct check_pair *old = run->pairs;
	uint32_t old_capacity = run->pair_capacity, capacity = old_capacity ? old_capacity * 2 : 1024;
	struct check_pair *pairs = calloc(capacity, sizeof(*pairs));

	if (!pairs)
		return false;
	run->pairs = pairs;
	run->pair_capacity = capacity;
	for (uint32_t i = 0; i < old_capacity; i++) {
		if (old[i].epoch == run->epoch)
			*pair_find(run, old[i].key) = old[i];
	}
	free(old);
	return true;
}

static bool messages_grow(struct check_run *run)
{
	size_t capacity = run->message_capacity;

	if (!vec_reserve(&run->messages, &capacity, (size_t)run->message_count + 1, sizeof(*run->messages)))
		return false;
	/* A search looks at each message once, from the node itself and from the news. */
	void *search = realloc(run->search, (capacity + 2) * sizeof(*run->search));
	if (!search)
		return false;
	run->search = search;
	run->message_capacity = capacity;
	return true;
}

static void pair_append(struct check_run *run, uint64_t key, uint32_t index)
{
	struct check_pair *pair = pair_find(run, key);

	if (pair->epoch != run->epoch) {
		*pair = (struct check_pair){.key = key, .epoch = run->epoch, .first_waiting = index, .last = index, .count = 1};
		run->pair_count++;
		return;
	}
	pair->count++;
	if (pair->first_waiting == PLAN_NONE)
		pair->first_waiting = index;
	else
		run->messages[pair->last].next = index;
	pair->last = index;
}

/*
 * Numbers follow turns. Of the messages of a lap that are not consumed, the one with the lowest turn can then always be
 * sent and consumed: nothing that its two rows wait for before it has a later turn (docs/plans.md).
 */
static enum esp_status check_turn(struct check_run *run, uint32_t from, const struct check_pair *pair, uint32_t turn)
{
	const struct check_node *node = &run->nodes[from];

	if (turn < node->turn)
		return check_fail(run, from, node->step, "has turn %u, but what the row waited for before has turn %u", turn,
		                  node->turn - 1);
	if (pair->epoch == run->epoch && turn < run->messages[pair->last].turn)
		return check_fail(run, from, node->step, "has turn %u, but the message before it turn %u", turn,
		                  run->messages[pair->last].turn);
	return ESP_OK;
}

enum esp_status plan_mail_send(struct check_run *run, uint32_t from, uint32_t to, struct check_place *place)
{
	struct check_node *node = &run->nodes[from];

	if ((run->message_count == run->message_capacity && !messages_grow(run)) ||
	    (run->pair_count * 2 >= run->pair_capacity && !pairs_grow(run)))
		return error_set(run->err, ESP_ENOMEM, "no memory for %u messages", run->message_count);
	uint64_t key = (uint64_t)from << 32 | to;
	const struct check_pair *pair = pair_find(run, key);
	uint32_t turn = plan_turn(run->plan, run->chunk, from, to, pair->epoch == run->epoch ? pair->count : 0);
	enum esp_status status = plan_lap(run->plan) > 1 ? check_turn(run, from, pair, turn) : ESP_OK;
	if (status != ESP_OK)
		return status;
	uint32_t index = run->message_count++;
	run->messages[index] = (struct check_message){
		.from = from,
		.to = to,
		.from_step = node->step,
		.taken_step = PLAN_NONE,
		.set = place->set,
		.round = node->round + 1,
		.turn = turn,
		.next = PLAN_NONE,
		.same_place = place->sent,
		.taken_before = PLAN_NONE,
	};
	place->sent = index;
	if (plan_sets_has(&run->sets, place->set, from))
		node->carriers++;
	pair_append(run, key, index);
	return ESP_OK;
}

uint32_t plan_mail_take(struct check_run *run, uint32_t node, uint32_t from)
{
	struct check_node *state = &run->nodes[node];

	if (run->pair_capacity == 0)
		return PLAN_NONE;
	struct check_pair *pair = pair_find(run, (uint64_t)from << 32 | node);
	if (pair->epoch != run->epoch || pair->first_waiting == PLAN_NONE)
		return PLAN_NONE;
	uint32_t index = pair->first_waiting;
	struct check_message *message = &run->messages[index];
	pair->first_waiting = message->next;
	message->taken_step = state->step;
	message->taken_before = state->last_taken;
	state->last_taken = index;
	if (message->round > state->round)
		state->round = message->round;
	if (message->turn >= state->turn)
		state->turn = message->turn + 1;
	return index;
}

uint32_t plan_mail_left(const struct check_run *run)
{
	for (uint32_t i = 0; i < run->message_count; i++) {
		if (run->messages[i].taken_step == PLAN_NONE)
			return i;
	}
	return PLAN_NONE;
}

uint32_t plan_mail_out_of_turn(const struct check_run *run)
{
	for (uint32_t i = 0; i < run->message_count; i++) {
		uint32_t before = run->messages[i].taken_before;

		if (before != PLAN_NONE && run->messages[before].turn > run->messages[i].turn)
			return i;
	}
	return PLAN_NONE;
}

/* ---- what a node can know ---- */

/* Queues (node, step): everything that node took before this step has happened. */
static uint32_t look(struct check_run *run, uint32_t count, uint32_t node, uint32_t step)
{
	if (run->seen_epoch[node] == run->search_epoch && run->seen[node] >= step)
		return count;
	run->search[count].node = node;
	run->search[count].step = step;
	return count + 1;
}

/*
 * Looks back along the messages for the taking of `message`. Whatever node took before its
 * present step, and whatever the senders of those messages took before sending, and so
 * on, has happened; if `message` is among it, its bytes are no longer being sent.
 */
static bool happened(struct check_run *run, uint32_t node, uint32_t message, uint32_t news)
{
	uint32_t count = 0;

	run->search_epoch++;
	count = look(run, count, node, run->nodes[node].step);
	if (news != PLAN_NONE)
		count = look(run, count, run->messages[news].from, run->messages[news].from_step);
	while (count > 0) {
		uint32_t at = run->search[--count].node, step = run->search[count].step;
		uint32_t seen = run->seen_epoch[at] == run->search_epoch ? run->seen[at] : 0;

		if (seen >= step)
			continue;
		run->seen_epoch[at] = run->search_epoch;
		run->seen[at] = step;
		for (uint32_t m = run->nodes[at].last_taken; m != PLAN_NONE; m = run->messages[m].taken_before) {
			const struct check_message *taken = &run->messages[m];

			if (taken->taken_step >= step || m == news)
				continue;
			if (taken->taken_step < seen)
				break;
			if (m == message)
				return true;
			count = look(run, count, taken->from, taken->from_step);
		}
	}
	return false;
}

bool plan_mail_consumed(struct check_run *run, uint32_t node, uint32_t message, uint32_t news)
{
	const struct check_message *sent = &run->messages[message];

	if (sent->taken_step == PLAN_NONE)
		return false;
	/*
	 * The usual case, without a search: the node's own contribution left it in this message
	 * alone, and the news contains it.
	 */
	if (news != PLAN_NONE && run->nodes[node].carriers == 1 && plan_sets_has(&run->sets, sent->set, node) &&
	    plan_sets_has(&run->sets, run->messages[news].set, node))
		return true;
	return happened(run, node, message, news);
}
