#include "rank/member/presence.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"

#define BEATS 8u /* in an interval */

enum esp_status presence_init(struct presence *presence, uint32_t self, uint32_t size, uint64_t interval_ns,
                             uint64_t now_ns, const struct presence_events *events, void *context)
{
	*presence = (struct presence){
		.self = self,
		.size = size,
		.interval_ns = interval_ns,
		.events = events,
		.context = context,
		.turned_ns = now_ns,
		.due_ns = now_ns, /* also before the job begins: others may do so first */
	};
	presence->all = calloc(size, sizeof(*presence->all));
	return presence->all ? ESP_OK : ESP_ENOMEM;
}

void presence_fini(struct presence *presence)
{
	free(presence->all);
	free(presence->accusations);
	*presence = (struct presence){0};
}

static uint64_t beat_ns(const struct presence *presence)
{
	return presence->interval_ns / BEATS;
}

static uint64_t silence_ns(const struct presence *presence)
{
	return presence->interval_ns - presence->interval_ns / BEATS;
}

/* ---- news ---- */

static struct control_msg new_message(const struct presence *presence, enum control_type type, uint32_t about)
{
	return (struct control_msg){
		.type = (uint8_t)type,
		.from = presence->self,
		.about = about,
	};
}

static void send_beat(struct presence *presence, uint32_t to, enum control_type type, bool is_last, uint64_t now)
{
	struct control_msg msg = new_message(presence, type, to);

	if (type == CONTROL_BEAT)
		msg.beat.is_last = is_last;
	presence->all[to].told_ns = now;
	presence->events->send(presence->context, to, &msg);
}

bool presence_is_neighbour(const struct presence *presence, uint32_t rank)
{
	const struct member *member = &presence->all[rank];
	uint32_t ahead = (rank + presence->size - presence->self) % presence->size, behind = presence->size - ahead;

	if (presence->has_begun)
		return member->is_next || member->is_before || member->lingers;
	return ahead != 0 && ((ahead & (ahead - 1)) == 0 || (behind & (behind - 1)) == 0);
}

uint32_t presence_count(const struct presence *presence)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < presence->size; i++)
		count += !presence_is_gone(presence, i);
	return count;
}

static void tell_neighbours(struct presence *presence, const struct control_msg *msg)
{
	for (uint32_t i = 0; i < presence->size; i++) {
		if (i != presence->self && presence_is_neighbour(presence, i))
			presence->events->send(presence->context, i, msg);
	}
}

static struct control_msg fate_message(const struct presence *presence, uint32_t rank)
{
	const struct member *member = &presence->all[rank];
	struct control_msg msg = new_message(presence, member->fate == FATE_LEFT ? CONTROL_LEFT : CONTROL_DEAD, rank);

	msg.from = member->by;
	if (msg.type == CONTROL_LEFT) {
		msg.left.last = member->last_call;
		snprintf(msg.left.text, sizeof(msg.left.text), "%s", member->how);
	} else {
		snprintf(msg.loss.text, sizeof(msg.loss.text), "%s", member->how);
	}
	return msg;
}

static struct control_msg accusation_message(const struct presence *presence, struct accusation accusation)
{
	struct control_msg msg = new_message(presence, CONTROL_SILENT, accusation.about);

	msg.from = accusation.by;
	/* We do not have what others said of us; they have said it. */
	snprintf(msg.loss.text, sizeof(msg.loss.text), "%s", presence->all[accusation.about].how);
	return msg;
}

static struct control_msg farewell(const struct presence *presence)
{
	struct control_msg msg = new_message(presence, CONTROL_LEFT, presence->self);

	snprintf(msg.left.text, sizeof(msg.left.text), "%s", presence->why);
	msg.left.last = presence->last_call;
	return msg;
}

bool presence_is_accused(const struct presence *presence, uint32_t rank)
{
	for (uint32_t i = 0; i < presence->accusation_count; i++) {
		if (presence->accusations[i].about == rank)
			return true;
	}
	return false;
}

static bool is_known(const struct presence *presence, struct accusation accusation)
{
	for (uint32_t i = 0; i < presence->accusation_count; i++) {
		if (presence->accusations[i].by == accusation.by && presence->accusations[i].about == accusation.about)
			return true;
	}
	return false;
}

/* False: no memory for it, or more accusations than are needed. */
static bool keep(struct presence *presence, struct accusation accusation)
{
	size_t needed = (size_t)presence->accusation_count + 1;

	if (needed > PRESENCE_ACCUSATIONS ||
	    !vec_reserve(&presence->accusations, &presence->accusation_room, needed, sizeof(accusation)))
		return false;
	presence->accusations[presence->accusation_count++] = accusation;
	return true;
}

static void tell_fates(struct presence *presence, uint32_t rank, enum fate fate)
{
	for (uint32_t i = 0; i < presence->size; i++) {
		if (i == rank || presence->all[i].fate != fate)
			continue;
		struct control_msg msg = fate_message(presence, i);
		presence->events->send(presence->context, rank, &msg);
	}
}

static void tell_bad_news(struct presence *presence, uint32_t rank)
{
	tell_fates(presence, rank, FATE_DEAD);
	for (uint32_t i = 0; i < presence->accusation_count; i++) {
		struct control_msg msg = accusation_message(presence, presence->accusations[i]);
		presence->events->send(presence->context, rank, &msg);
	}
}

/* Accusations by a rank that is gone count no more, so the accuser is another rank, or we ourselves, still here. */
static uint32_t find_accuser(const struct presence *presence, uint32_t about)
{
	for (uint32_t i = 0; i < presence->accusation_count; i++) {
		uint32_t by = presence->accusations[i].by;

		if (presence->accusations[i].about == about && !presence_is_gone(presence, by) &&
		    !presence->all[by].is_excluded)
			return by;
	}
	return presence->self;
}

/*
 * One message is enough about each rank that is missed; none about ranks that all agreed to go on without, as there may
 * be many in the end.
 */
static void tell_whom_we_miss(struct presence *presence, uint32_t rank)
{
	for (uint32_t i = 0; i < presence->size; i++) {
		const struct member *member = &presence->all[i];

		if (i == rank || member->is_settled || (member->fate != FATE_DEAD && member->fate != FATE_SILENT))
			continue;
		struct control_msg msg = member->fate == FATE_DEAD
		                             ? fate_message(presence, i)
		                             : accusation_message(presence, (struct accusation){find_accuser(presence, i), i});
		presence->events->send(presence->context, rank, &msg);
	}
}

/*
 * All news that there is, to a rank that may not have heard it. A rank that has left may have done so because of
 * others, so they come first.
 */
static void tell_news(struct presence *presence, uint32_t rank)
{
	tell_bad_news(presence, rank);
	tell_fates(presence, rank, FATE_LEFT);
}

/* ---- neighbours ---- */

/*
 * Ranks that are powers of two ahead, or the next that are still here. A ring is among these links, so no rank is left
 * alone.
 */
static void find_neighbours(struct presence *presence, uint64_t now)
{
	for (uint32_t i = 0; i < presence->size; i++) {
		struct member *member = &presence->all[i];
		uint32_t ahead = (i + presence->size - presence->self) % presence->size;
		bool is_next = false;

		/* The first at or beyond step that is here: so no rank between step and it is. */
		for (uint64_t step = 1; step <= ahead && member->fate == FATE_HERE && !is_next; step *= 2) {
			bool skipped_all = true;

			for (uint64_t k = step; k < ahead && skipped_all; k++)
				skipped_all = presence->all[(presence->self + k) % presence->size].fate != FATE_HERE;
			is_next = skipped_all;
		}
		if (is_next && !member->is_next) {
			member->is_next = true;
			member->heard_ns = now > member->heard_ns ? now : member->heard_ns;
			member->told_ns = 0;
			presence->events->dial(presence->context, i);
			tell_news(presence, i);
		} else if (!is_next && member->is_next) {
			member->is_next = false;
			if (member->fate == FATE_HERE)
				send_beat(presence, i, CONTROL_BEAT, true, now);
		}
	}
	presence->due_ns = now;
}

static void set_fate(struct presence *presence, uint32_t rank, enum fate fate, uint32_t by, const char *how,
                     uint64_t now)
{
	struct member *member = &presence->all[rank];

	if (rank == presence->self || presence_is_gone(presence, rank) || member->fate == fate)
		return;
	bool was_here = member->fate == FATE_HERE;
	/* A rank that leaves waits for the others, and so for news of them. */
	member->lingers = fate == FATE_LEFT && presence_is_neighbour(presence, rank);
	member->fate = (uint8_t)fate;
	member->by = by;
	snprintf(member->how, sizeof(member->how), "%s", how);
	if (fate != FATE_SILENT) {
		struct control_msg msg = fate_message(presence, rank);

		tell_neighbours(presence, &msg);
	}
	presence->events->fate(presence->context, rank, fate, by, member->how);
	if (was_here && presence->has_begun && !presence->is_leaving)
		find_neighbours(presence, now);
}

static void take_accusation(struct presence *presence, struct accusation accusation, const char *how, uint64_t now)
{
	bool is_about_us = accusation.about == presence->self;

	/*
	 * A rank that is gone accuses no other any more; but its accusation of us may be why it went, unless we know why.
	 */
	if (accusation.by < presence->size && presence->all[accusation.by].is_excluded)
		return;
	if (accusation.about >= presence->size || accusation.by >= presence->size || accusation.by == accusation.about ||
	    (presence_is_gone(presence, accusation.by) && !is_about_us) || is_known(presence, accusation) ||
	    !keep(presence, accusation))
		return;
	struct control_msg msg = accusation_message(presence, accusation);
	snprintf(msg.loss.text, sizeof(msg.loss.text), "%s", how);
	tell_neighbours(presence, &msg);
	if (is_about_us) {
		presence->is_outcast = presence->was_accused = true;
		presence->events->accused(presence->context, accusation.by, how);
	} else {
		set_fate(presence, accusation.about, FATE_SILENT, accusation.by, how, now);
	}
	presence->events->accusation(presence->context, accusation.about, accusation.by);
}

void presence_accuse(struct presence *presence, uint32_t rank, const char *how, uint64_t now)
{
	struct member *member = &presence->all[rank];

	if (member->is_accused_by_us || rank == presence->self || presence_is_gone(presence, rank))
		return;
	member->is_accused_by_us = true;
	take_accusation(presence, (struct accusation){.by = presence->self, .about = rank}, how, now);
}

static void forget_accusations(struct presence *presence, uint32_t about)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < presence->accusation_count; i++) {
		if (presence->accusations[i].about != about)
			presence->accusations[kept++] = presence->accusations[i];
	}
	presence->accusation_count = kept;
}

void presence_pardon(struct presence *presence, uint32_t rank, uint64_t now)
{
	struct member *member = &presence->all[rank];

	forget_accusations(presence, rank);
	if (rank == presence->self)
		presence->is_outcast = false;
	if (member->fate != FATE_SILENT)
		return;
	member->fate = FATE_HERE;
	member->is_accused_by_us = false;
	presence_heard(presence, rank, now);
	presence->events->fate(presence->context, rank, FATE_HERE, presence->self, "");
	if (presence->has_begun)
		find_neighbours(presence, now);
}

void presence_exclude(struct presence *presence, uint32_t rank, bool by_all, uint64_t now)
{
	struct member *member = &presence->all[rank];

	member->is_excluded = rank != presence->self;
	member->is_settled = member->is_settled || by_all;
	set_fate(presence, rank, FATE_DEAD, presence->self, PRESENCE_EXCLUDED, now);
}

/* ---- events ---- */

/*
 * Other ranks may have heard nothing for too long from a rank that stands still as long as this, have given it up, and
 * be gone: there may be none left to say so.
 */
void presence_note_absence(struct presence *presence, uint64_t now)
{
	if ((presence->has_begun || presence->is_seen) &&
	    now >= presence->turned_ns + silence_ns(presence) - beat_ns(presence))
		presence->was_accused = true;
}

void presence_begin(struct presence *presence, uint64_t now)
{
	presence_note_absence(presence, now);
	presence->has_begun = true;
	presence->turned_ns = now;
	find_neighbours(presence, now);
}

void presence_connected(struct presence *presence, uint32_t rank, uint64_t now)
{
	presence->is_seen = true;
	presence_heard(presence, rank, now);
	tell_news(presence, rank);
	if (presence->is_leaving) { /* the news went around before, and this connection may end before it comes there */
		struct control_msg msg = farewell(presence);

		presence->events->send(presence->context, rank, &msg);
	}
}

void presence_closed(struct presence *presence, uint32_t rank, const char *how, uint64_t now)
{
	struct member *member = &presence->all[rank];

	presence_note_absence(presence, now);
	member->is_next = member->is_before = member->lingers = false;
	set_fate(presence, rank, FATE_DEAD, presence->self, how, now);
}

void presence_heard(struct presence *presence, uint32_t rank, uint64_t now)
{
	struct member *member = &presence->all[rank];

	member->heard_ns = now > member->heard_ns ? now : member->heard_ns;
}

static void on_beat(struct presence *presence, uint32_t from, bool is_last, uint64_t now)
{
	struct member *member = &presence->all[from];

	if (!is_last && !member->is_before && !member->is_next)
		tell_news(presence, from); /* news did not go this way until now */
	member->is_before = !is_last;
	if (!is_last)
		send_beat(presence, from, CONTROL_ECHO, false, now);
	if (presence->due_ns > member->heard_ns + silence_ns(presence))
		presence->due_ns = member->heard_ns + silence_ns(presence);
}

bool presence_message(struct presence *presence, uint32_t from, const struct control_msg *msg, uint64_t now)
{
	bool is_about_one = msg->about < presence->size;

	presence_heard(presence, from, now);
	switch (msg->type) {
	case CONTROL_LEFT:
		if (is_about_one) {
			if (!presence_is_gone(presence, msg->about)) /* it is passed on */
				presence->all[msg->about].last_call = msg->left.last;
			set_fate(presence, msg->about, FATE_LEFT, msg->about, msg->left.text, now);
		}
		return true;
	case CONTROL_DEAD:
		if (is_about_one)
			set_fate(presence, msg->about, FATE_DEAD, msg->from < presence->size ? msg->from : from, msg->loss.text,
			         now);
		return true;
	case CONTROL_SILENT:
		take_accusation(presence, (struct accusation){.by = msg->from, .about = msg->about}, msg->loss.text, now);
		return true;
	case CONTROL_BEAT:
		on_beat(presence, from, msg->beat.is_last, now);
		return true;
	case CONTROL_ECHO:
		return true;
	default:
		return false;
	}
}

void presence_leave(struct presence *presence, const char *why, const struct call_note *last_call)
{
	if (presence->is_leaving)
		return;
	presence->is_leaving = true;
	presence->last_call = *last_call;
	snprintf(presence->why, sizeof(presence->why), "%s", why);
	struct control_msg msg = farewell(presence);
	tell_neighbours(presence, &msg);
}

void presence_say_goodbye(struct presence *presence, uint32_t rank)
{
	struct control_msg msg = farewell(presence);

	if (rank == presence->self || presence_is_neighbour(presence, rank))
		return;
	/* it goes the way of neighbours, too: it may not be there yet, and may be why we leave */
	tell_whom_we_miss(presence, rank);
	presence->events->send(presence->context, rank, &msg);
}

/* ---- time ---- */

/* We were not running: stopped, or kept from the processor. We cannot tell the silence of others from our own. */
static void forgive_all(struct presence *presence, uint64_t now)
{
	for (uint32_t i = 0; i < presence->size; i++)
		presence_heard(presence, i, now);
}

/* We were late, and with us what we had to ask: others have had as much less time to answer. */
static void forgive_delay(struct presence *presence, uint64_t late_ns, uint64_t now)
{
	for (uint32_t i = 0; i < presence->size; i++) {
		uint64_t heard_ns = presence->all[i].heard_ns + late_ns;

		presence_heard(presence, i, heard_ns < now ? heard_ns : now);
	}
}

/*
 * A rank without a heartbeat for too long: if something else comes from it, it has as much time again. Returns when
 * that is over.
 */
static uint64_t silent_at(struct presence *presence, uint32_t rank, uint64_t now, bool *out_has_signs)
{
	uint64_t heard_ns = presence->all[rank].heard_ns, silence = silence_ns(presence);

	*out_has_signs = false;
	if (now < heard_ns + silence || !presence->events->last_sign)
		return heard_ns + silence;
	uint64_t sign_ns = presence->events->last_sign(presence->context, rank);
	sign_ns = sign_ns < now ? sign_ns : now;
	*out_has_signs = sign_ns > heard_ns;
	if (!*out_has_signs)
		return heard_ns + silence;
	return sign_ns < heard_ns + silence ? sign_ns + silence : heard_ns + 2 * silence;
}

/* Returns when to look at it next. */
static uint64_t look_at(struct presence *presence, uint32_t rank, uint64_t now)
{
	struct member *member = &presence->all[rank];
	uint64_t next = UINT64_MAX;
	char how[PRESENCE_HOW];

	if (member->fate != FATE_HERE || (!member->is_next && !member->is_before))
		return next;
	bool has_signs;
	uint64_t end_ns = silent_at(presence, rank, now, &has_signs);
	if (now >= end_ns) {
		/* something came until the end */
		bool is_not_cut_off = has_signs && end_ns == member->heard_ns + 2 * silence_ns(presence);

		snprintf(how, sizeof(how),
		         "rank %u has heard %s of it for %.1f s: it is stopped, %sor has had no core to run on", presence->self,
		         has_signs ? "no word" : "nothing", (double)(now - member->heard_ns) / (double)NS_PER_S,
		         is_not_cut_off ? "" : "cut off, ");
		presence_accuse(presence, rank, how, now);
		return next;
	}
	/*
	 * Half a beat more for one that beats us: as long as its beats come they are echoed, and there is nothing to be
	 * added.
	 */
	uint64_t pause = member->is_next ? beat_ns(presence) : beat_ns(presence) + beat_ns(presence) / 2;
	if (member->told_ns == 0 || now >= member->told_ns + pause)
		send_beat(presence, rank, member->is_next ? CONTROL_BEAT : CONTROL_ECHO, false, now);
	next = end_ns;
	next = member->told_ns + pause < next ? member->told_ns + pause : next;
	return next;
}

uint64_t presence_turn(struct presence *presence, uint64_t now)
{
	if (presence->size == 1 || presence->is_leaving || presence->is_outcast)
		return UINT64_MAX;
	if (now < presence->due_ns)
		return presence->due_ns;
	presence_note_absence(presence, now);
	/* It was due at most an eighth after the last time: anything beyond that is our own absence. */
	if (now > presence->turned_ns + 2 * beat_ns(presence))
		forgive_all(presence, now);
	else
		forgive_delay(presence, now - presence->due_ns, now);
	presence->turned_ns = now;
	presence->due_ns = UINT64_MAX;
	uint64_t due = now + beat_ns(presence);
	for (uint32_t i = 0; i < presence->size; i++) {
		uint64_t next = look_at(presence, i, now);

		due = next < due ? next : due;
	}
	/* Neighbours may have changed meanwhile, and are then due at once. */
	presence->due_ns = presence->due_ns < due ? presence->due_ns : due;
	return presence->due_ns;
}

const char *presence_verb(enum fate fate, const char *how)
{
	static const char *const ends[] = {"connection was closed", "Connection refused", "Connection reset",
	                                   "Broken pipe"};

	for (size_t i = 0; fate == FATE_DEAD && i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (strstr(how, ends[i]))
			return "has died, or ended without esp_fini()";
	}
	return strcmp(how, PRESENCE_EXCLUDED) == 0 ? "is left behind" : "is given up";
}
