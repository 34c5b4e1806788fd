#include "rank/comm/keyed.h"

#include <stdlib.h>

#include "rank/comm/comm.h"
#include "rank/comm/work.h"

static void say(struct comm *group, uint32_t to, enum control_type type, const struct call_note *note)
{
	struct control_msg msg = {
		.type = (uint8_t)type,
		.from = group->context->rank,
		.about = to,
		.channel = group->channel,
		.first = group->ranks[0],
		.call = {.note = *note},
	};

	control_send(group->context->control, to, &msg);
}

static enum esp_status start_keyed(struct work *work, struct failure *failure)
{
	struct comm *group = work->group;
	struct rank *context = group->context;
	enum esp_status status = comm_check(group, &work->call, failure);

	if (status != ESP_OK)
		return status;
	if (work->options.gate)
		return rank_failure_set(failure, ESP_EUNSUPPORTED, -1, "a keyed call cannot have a gate");
	pthread_mutex_lock(&context->lock);
	if (atomic_load(&group->fail.status) != ESP_OK) { /* just now */
		pthread_mutex_unlock(&context->lock);
		return comm_check(group, &work->call, failure);
	}
	for (const struct work *other = group->keyed.waiting; other; other = other->link.wait_next) {
		if (other->call.key == work->call.key)
			status = rank_failure_set(failure, ESP_EINVAL, -1, "a call with this key is waiting already");
	}
	if (status == ESP_OK) {
		call_note(&work->call, group->size, 0, &work->note);
		work_set_out(work);
		work->end.is_waiting = true;
		work->link.wait_next = group->keyed.waiting;
		group->keyed.waiting = work;
	}
	struct call_note note = work->note;
	pthread_mutex_unlock(&context->lock);
	if (status != ESP_OK)
		return status;
	rank_watch(context);
	if (group->rank == 0)
		comm_keyed_ready(group, context->rank, &note);
	else
		say(group, group->ranks[0], CONTROL_READY, &note);
	return ESP_OK;
}

static struct roll_call *find_roll(struct keyed *keyed, uint64_t key)
{
	for (struct roll_call *roll = keyed->rolls; roll; roll = roll->next) {
		if (roll->key == key)
			return roll;
	}
	return NULL;
}

static void drop_roll(struct keyed *keyed, struct roll_call *roll)
{
	struct roll_call **at = &keyed->rolls;

	while (*at != roll)
		at = &(*at)->next;
	*at = roll->next;
	free(roll);
}

static struct roll_call *add_roll(struct comm *group, uint32_t from, const struct call_note *note)
{
	struct roll_call *roll = calloc(1, sizeof(*roll) + group->size * sizeof(roll->has_come[0]));

	if (!roll)
		return NULL; /* the call's deadline will tell */
	roll->next = group->keyed.rolls;
	roll->key = note->key;
	roll->first_rank = from;
	roll->note = *note;
	group->keyed.rolls = roll;
	return roll;
}

/* A rank that says twice that it has made the call counts once. */
static void tick_off(struct roll_call *roll, const struct comm *group, uint32_t rank)
{
	for (uint32_t i = 0; i < group->size; i++) {
		if (group->ranks[i] == rank && !roll->has_come[i]) {
			roll->has_come[i] = true;
			roll->count++;
		}
	}
}

void comm_keyed_forget(struct keyed *keyed, struct work *work)
{
	for (struct work **at = &keyed->waiting; *at; at = &(*at)->link.wait_next) {
		if (*at == work) {
			*at = work->link.wait_next;
			return;
		}
	}
}

static struct work *find_waiting(const struct keyed *keyed, uint64_t key)
{
	struct work *work = keyed->waiting;

	while (work && work->call.key != key)
		work = work->link.wait_next;
	return work;
}

/* Starts the call with this key, and returns it if there is nothing to be done for it. */
static struct work *go(struct comm *group, uint64_t key)
{
	struct work *work = find_waiting(&group->keyed, key);

	if (!work)
		return NULL;
	comm_keyed_forget(&group->keyed, work);
	work->end.is_waiting = false;
	work->note.sequence = ++group->keyed.started;
	work->digest = comm_digest(group, &work->note);
	if (work->part_count == 0)
		return work;
	work_launch_locked(work, BY_LANE_THREAD);
	return NULL;
}

void comm_keyed_ready(struct comm *group, uint32_t from, const struct call_note *note)
{
	struct rank *context = group->context;
	struct call_note other = {0};
	uint32_t other_rank = 0;
	bool differs = false, is_complete = false;

	pthread_mutex_lock(&context->lock);
	struct roll_call *roll = find_roll(&group->keyed, note->key);
	if (!roll)
		roll = add_roll(group, from, note);
	if (roll) {
		tick_off(roll, group, from);
		other = roll->note;
		other_rank = roll->first_rank;
		differs = call_note_digest(&other) != call_note_digest(note);
		is_complete = roll->count == group->size;
		if (is_complete)
			drop_roll(&group->keyed, roll);
	}
	/* Under the lock: all start them in one order. */
	struct work *empty = NULL;
	for (uint32_t i = 1; is_complete && !differs && i < group->size; i++)
		say(group, group->ranks[i], CONTROL_GO, note);
	if (is_complete && !differs)
		empty = go(group, note->key);
	pthread_mutex_unlock(&context->lock);
	if (empty)
		work_end(empty, ESP_OK);
	if (differs)
		comm_mismatch(group, other_rank, &other, from, note);
}

void comm_keyed_go(struct comm *group, uint64_t key)
{
	pthread_mutex_lock(&group->context->lock);
	struct work *empty = go(group, key);
	pthread_mutex_unlock(&group->context->lock);
	if (empty)
		work_end(empty, ESP_OK);
}

void comm_keyed_asked(struct comm *group, uint64_t key)
{
	struct rank *context = group->context;
	uint32_t missing = NO_RANK;

	pthread_mutex_lock(&context->lock);
	const struct roll_call *roll = find_roll(&group->keyed, key);
	for (uint32_t i = 0; roll && i < group->size && missing == NO_RANK; i++) {
		if (!roll->has_come[i])
			missing = group->ranks[i];
	}
	pthread_mutex_unlock(&context->lock);
	if (missing != NO_RANK)
		comm_say_absent(group, missing, &(struct call_note){.flags = CALL_KEYED, .key = key});
}

void comm_keyed_fini(struct keyed *keyed)
{
	while (keyed->rolls)
		drop_roll(keyed, keyed->rolls);
}

const struct work_ops keyed_ops = {.start = start_keyed};
