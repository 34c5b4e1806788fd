#include "group/members.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

#define BEATS 8u /* in an interval */

enum esp_status members_init(struct members *members, uint32_t self, uint32_t size, uint64_t interval_ns,
                             uint64_t now_ns, const struct members_events *events, void *context)
{
	*members = (struct members){
		.self = self,
		.size = size,
		.interval_ns = interval_ns,
		.events = events,
		.context = context,
		.turned_ns = now_ns,
		.due_ns = UINT64_MAX,
	};
	members->all = calloc(size, sizeof(*members->all));
	return members->all ? ESP_OK : ESP_ENOMEM;
}

void members_fini(struct members *members)
{
	free(members->all);
	free(members->accusations);
	*members = (struct members){0};
}

static uint64_t beat_ns(const struct members *members)
{
	return members->interval_ns / BEATS;
}

static uint64_t silence_ns(const struct members *members)
{
	return members->interval_ns - members->interval_ns / BEATS;
}

/* ---- news ---- */

static struct control_msg new_message(const struct members *members, enum control_type type, uint32_t about)
{
	return (struct control_msg){
		.type = (uint8_t)type,
		.from = members->self,
		.about = about,
		.peer = UINT32_MAX,
	};
}

static void send_beat(struct members *members, uint32_t to, enum control_type type, bool is_last)
{
	struct control_msg msg = new_message(members, type, to);

	msg.sequence = is_last;
	members->events->send(members->context, to, &msg);
}

static struct control_msg fate_message(const struct members *members, uint32_t rank)
{
	const struct member *member = &members->all[rank];
	struct control_msg msg = new_message(members, member->fate == FATE_LEFT ? CONTROL_LEFT : CONTROL_DEAD, rank);

	msg.from = member->by;
	msg.status = member->fate == FATE_DEAD ? ESP_EPEER : ESP_OK;
	snprintf(msg.text, sizeof(msg.text), "%s", member->how);
	return msg;
}

static struct control_msg accusation_message(const struct members *members, struct accusation accusation)
{
	struct control_msg msg = new_message(members, CONTROL_SILENT, accusation.about);

	msg.from = accusation.by;
	msg.status = ESP_EPEER;
	/* We do not have what others said of us; they have said it. */
	snprintf(msg.text, sizeof(msg.text), "%s", members->all[accusation.about].how);
	return msg;
}

bool members_is_accused(const struct members *members, uint32_t rank)
{
	for (uint32_t i = 0; i < members->accusation_count; i++) {
		if (members->accusations[i].about == rank)
			return true;
	}
	return false;
}

static bool is_known(const struct members *members, struct accusation accusation)
{
	for (uint32_t i = 0; i < members->accusation_count; i++) {
		if (members->accusations[i].by == accusation.by && members->accusations[i].about == accusation.about)
			return true;
	}
	return false;
}

/* False: no memory for it, or more than anybody needs. */
static bool keep(struct members *members, struct accusation accusation)
{
	if (members->accusation_count == members->accusation_room) {
		uint32_t room = members->accusation_room ? 2 * members->accusation_room : 16;
		struct accusation *all = room > MEMBERS_ACCUSATIONS
		                             ? NULL
		                             : realloc(members->accusations, room * sizeof(*members->accusations));

		if (!all)
			return false;
		members->accusations = all;
		members->accusation_room = room;
	}
	members->accusations[members->accusation_count++] = accusation;
	return true;
}

/* ---- neighbours ---- */

/* Those that are powers of two ahead, or the next that are still there. A ring is among them, so nobody is left alone. */
static void find_neighbours(struct members *members, uint64_t now)
{
	for (uint32_t i = 0; i < members->size; i++) {
		struct member *member = &members->all[i];
		uint32_t ahead = (i + members->size - members->self) % members->size;
		bool is_next = false;

		/* The first at or beyond step that is here: so nobody between step and it is. */
		for (uint64_t step = 1; step <= ahead && member->fate == FATE_HERE && !is_next; step *= 2) {
			bool skipped_all = true;

			for (uint64_t k = step; k < ahead && skipped_all; k++)
				skipped_all = members->all[(members->self + k) % members->size].fate != FATE_HERE;
			is_next = skipped_all;
		}
		if (is_next && !member->is_next) {
			member->is_next = true;
			member->heard_ns = now > member->heard_ns ? now : member->heard_ns;
			member->beaten_ns = 0;
			members->events->dial(members->context, i);
		} else if (!is_next && member->is_next) {
			member->is_next = false;
			if (member->fate == FATE_HERE)
				send_beat(members, i, CONTROL_BEAT, true);
		}
	}
	members->due_ns = now;
}

static void set_fate(struct members *members, uint32_t rank, enum fate fate, uint32_t by, const char *how, uint64_t now)
{
	struct member *member = &members->all[rank];

	if (rank == members->self || member->fate >= fate || member->fate == FATE_LEFT)
		return;
	bool was_here = member->fate == FATE_HERE;
	member->fate = (uint8_t)fate;
	member->by = by;
	snprintf(member->how, sizeof(member->how), "%s", how);
	if (fate != FATE_SILENT) {
		struct control_msg msg = fate_message(members, rank);

		members->events->send_all(members->context, &msg);
	}
	members->events->fate(members->context, rank, fate, by, member->how);
	if (was_here && !members->is_leaving)
		find_neighbours(members, now);
}

static void take_accusation(struct members *members, struct accusation accusation, const char *how, uint64_t now)
{
	if (accusation.about >= members->size || accusation.by >= members->size || accusation.by == accusation.about ||
	    is_known(members, accusation) || !keep(members, accusation))
		return;
	struct control_msg msg = accusation_message(members, accusation);
	snprintf(msg.text, sizeof(msg.text), "%s", how);
	members->events->send_all(members->context, &msg);
	if (accusation.about == members->self) {
		members->is_outcast = true;
		members->events->accused(members->context, accusation.by, how);
	} else {
		set_fate(members, accusation.about, FATE_SILENT, accusation.by, how, now);
	}
	members->events->accusation(members->context, accusation.about, accusation.by);
}

void members_accuse(struct members *members, uint32_t rank, const char *how, uint64_t now)
{
	struct member *member = &members->all[rank];

	if (member->is_accused_by_us || rank == members->self || members_is_gone(members, rank))
		return;
	member->is_accused_by_us = true;
	take_accusation(members, (struct accusation){.by = members->self, .about = rank}, how, now);
}

/* ---- events ---- */

void members_begin(struct members *members, uint64_t now)
{
	members->turned_ns = now;
	find_neighbours(members, now);
}

void members_connected(struct members *members, uint32_t rank, uint64_t now)
{
	members_heard(members, rank, now);
	for (uint32_t i = 0; i < members->size; i++) {
		if (i == rank || !members_is_gone(members, i))
			continue;
		struct control_msg msg = fate_message(members, i);
		members->events->send(members->context, rank, &msg);
	}
	for (uint32_t i = 0; i < members->accusation_count; i++) {
		struct control_msg msg = accusation_message(members, members->accusations[i]);
		members->events->send(members->context, rank, &msg);
	}
}

void members_closed(struct members *members, uint32_t rank, const char *how, uint64_t now)
{
	set_fate(members, rank, FATE_DEAD, members->self, how, now);
}

void members_heard(struct members *members, uint32_t rank, uint64_t now)
{
	struct member *member = &members->all[rank];

	member->heard_ns = now > member->heard_ns ? now : member->heard_ns;
}

static void on_beat(struct members *members, uint32_t from, bool is_last)
{
	struct member *member = &members->all[from];

	member->is_before = !is_last;
	if (!is_last)
		send_beat(members, from, CONTROL_ECHO, false);
	if (members->due_ns > member->heard_ns + silence_ns(members))
		members->due_ns = member->heard_ns + silence_ns(members);
}

bool members_message(struct members *members, uint32_t from, const struct control_msg *msg, uint64_t now)
{
	bool is_about_one = msg->about < members->size;

	members_heard(members, from, now);
	switch (msg->type) {
	case CONTROL_LEFT:
		if (is_about_one)
			set_fate(members, msg->about, FATE_LEFT, msg->about, "", now);
		return true;
	case CONTROL_DEAD:
		if (is_about_one)
			set_fate(members, msg->about, FATE_DEAD, msg->from < members->size ? msg->from : from, msg->text, now);
		return true;
	case CONTROL_SILENT:
		take_accusation(members, (struct accusation){.by = msg->from, .about = msg->about}, msg->text, now);
		return true;
	case CONTROL_BEAT:
		on_beat(members, from, msg->sequence != 0);
		return true;
	case CONTROL_ECHO:
		return true;
	default:
		return false;
	}
}

void members_leave(struct members *members)
{
	struct control_msg msg = new_message(members, CONTROL_LEFT, members->self);

	members->is_leaving = true;
	members->events->send_all(members->context, &msg);
}

/* ---- time ---- */

/* We were not there: stopped, or kept from running. What others did meanwhile we cannot judge. */
static void forgive_all(struct members *members, uint64_t now)
{
	for (uint32_t i = 0; i < members->size; i++)
		members_heard(members, i, now);
}

/* Returns when to look at it next. */
static uint64_t look_at(struct members *members, uint32_t rank, uint64_t now)
{
	struct member *member = &members->all[rank];
	uint64_t next = UINT64_MAX;
	char how[MEMBERS_HOW];

	if (member->fate != FATE_HERE || (!member->is_next && !member->is_before))
		return next;
	uint64_t end_ns = member->heard_ns + silence_ns(members);
	if (now >= end_ns) {
		snprintf(how, sizeof(how), "rank %u has heard nothing of it for %.1f s: it is stopped, or cut off", members->self,
		         (double)(now - member->heard_ns) / (double)NS_PER_S);
		members_accuse(members, rank, how, now);
		return next;
	}
	next = end_ns;
	if (member->is_next) {
		if (member->beaten_ns == 0 || now >= member->beaten_ns + beat_ns(members)) {
			member->beaten_ns = now;
			send_beat(members, rank, CONTROL_BEAT, false);
		}
		next = member->beaten_ns + beat_ns(members) < next ? member->beaten_ns + beat_ns(members) : next;
	}
	return next;
}

uint64_t members_turn(struct members *members, uint64_t now)
{
	if (members->size == 1 || members->is_leaving || members->is_outcast)
		return UINT64_MAX;
	if (now < members->due_ns)
		return members->due_ns;
	/* It was due at most an eighth after the last time: anything beyond that is our own absence. */
	if (now > members->turned_ns + 2 * beat_ns(members))
		forgive_all(members, now);
	members->turned_ns = now;
	members->due_ns = UINT64_MAX;
	uint64_t due = now + beat_ns(members);
	for (uint32_t i = 0; i < members->size; i++) {
		uint64_t next = look_at(members, i, now);

		due = next < due ? next : due;
	}
	/* Neighbours may have changed meanwhile, and are then due at once. */
	members->due_ns = members->due_ns < due ? members->due_ns : due;
	return members->due_ns;
}
