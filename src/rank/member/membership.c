#include "rank/member/membership.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clip.h"
#include "rank/comm/comm.h"
#include "rank/member/shrink.h"
#include "rank/observe/tracer.h"
#include "transport/path.h"

#define EXIT_PATIENCE (100 * NS_PER_MS)

/* ---- groups ---- */

/*
 * With the lock held: the first group that works and that has this rank, or any other rank but us (NO_RANK); it is
 * visited.
 */
static struct comm *find_working(struct rank *context, uint32_t rank)
{
	for (struct comm *group = context->comms.list; group; group = group->next) {
		if (atomic_load(&group->fail.status) == ESP_OK && (rank == NO_RANK ? group->size > 1 : comm_has(group, rank))) {
			comm_visit(group);
			return group;
		}
	}
	return NULL;
}

static void fail_groups(struct rank *context, uint32_t with, uint32_t culprit, const char *why)
{
	struct comm *group;

	pthread_mutex_lock(&context->lock);
	while ((group = find_working(context, with))) {
		pthread_mutex_unlock(&context->lock);
		comm_fail(group, ESP_EPEER, (int32_t)culprit, why, false);
		pthread_mutex_lock(&context->lock);
		comm_depart(group);
	}
	pthread_mutex_unlock(&context->lock);
}

/* ---- what members tell ---- */

static void send_one(void *argument, uint32_t to, const struct control_msg *msg)
{
	struct rank *context = argument;

	control_send(context->control, to, msg);
}

static void dial(void *argument, uint32_t rank)
{
	struct rank *context = argument;

	if (!control_has_control(context->control, rank))
		control_dial_control(context->control, rank);
}

static void drop(struct rank *context, uint32_t rank)
{
	for (uint32_t i = 0; i < context->lanes; i++)
		progress_send(&context->progress.lanes[i],
		              &(struct progress_cmd){.kind = PROGRESS_DROP, .peer = rank, .status = ESP_EPEER});
}

static void note_fate(struct rank *context, uint32_t rank, enum fate fate, const char *how)
{
	pthread_mutex_lock(&context->lock);
	if (context->fates.of[rank] == FATE_HERE) {
		context->fates.gone++;
		context->fates.gone_ns = context->fates.of_ns[rank] = clock_now_ns();
	}
	context->fates.gone -= fate == FATE_HERE;
	context->fates.of[rank] = (uint8_t)fate;
	if (fate == FATE_LEFT && strcmp(how, PRESENCE_CLUELESS) == 0) {
		context->fates.is_clueless[rank] = true;
		context->fates.clueless++;
	}
	rank_changed(context);
	pthread_mutex_unlock(&context->lock);
}

static void on_fate(void *argument, uint32_t rank, enum fate fate, uint32_t by, const char *how)
{
	struct rank *context = argument;
	char who[RANK_TEXT], why[CONTROL_TEXT];
	bool is_known = context->fates.of[rank] == FATE_SILENT; /* the log has it, and why; this is what has become of it */

	note_fate(context, rank, fate, how);
	control_expect(context->control); /* of those that have to close the gap */
	tracer_mark(context->mod.tracer, "rank %u %s", rank,
	            fate == FATE_HERE   ? "is back"
	            : fate == FATE_LEFT ? "has left"
	                                : "is gone");
	if (fate == FATE_HERE)
		return;
	if (fate == FATE_LEFT) {
		rank_watch(context); /* a call may wait for it in vain */
	} else {
		rank_text(context, rank, who);
		if (by == rank)
			snprintf(why, sizeof(why), "%s exited without esp_fini()", who);
		else
			clip(why, sizeof(why), "%s %s: %s", who, presence_verb(fate, how), how);
		/*
		 * A rank that leaves has no calls any more, and the others go as soon as they have heard of all: a connection
		 * that was made meanwhile may end before that message comes.
		 */
		bool are_we_leaving = context->member.presence.is_leaving;
		log_write(&context->log, are_we_leaving || is_known ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, LOG_NET, "%s", why);
		if (!are_we_leaving)
			fail_groups(context, rank, rank, why);
	}
	if (fate == FATE_DEAD) /* one that is silent may be pardoned */
		drop(context, rank);
	shrink_hear(context);
}

static void on_accused(void *argument, uint32_t by, const char *how)
{
	struct rank *context = argument;
	char who[RANK_TEXT], why[CONTROL_TEXT];

	clip(why, sizeof(why), "the others go on without this rank (told by %s): %s", rank_text(context, by, who), how);
	log_write(&context->log, LOG_LEVEL_WARN, LOG_NET, "%s", why);
	fail_groups(context, NO_RANK, context->rank, why);
}

static void on_accusation(void *argument, uint32_t rank, uint32_t by)
{
	(void)rank, (void)by; /* presence keeps it */
	shrink_hear(argument);
}

/* When data came last from it, on any lane; 0: never, or not over TCP. */
static uint64_t last_data(struct rank *context, uint32_t rank, uint64_t now)
{
	uint64_t latest = 0;

	for (uint32_t i = 0; i < context->lanes; i++) {
		struct progress *progress = &context->progress.lanes[i];
		struct path_stats stats;

		if (!progress_has_paths(progress))
			continue;
		progress_acquire(progress);
		bool is_known = progress_path(progress, rank, &stats) && stats.has_path;
		progress_release(progress);
		uint64_t ago_ns = is_known ? stats.last_data_ms * NS_PER_MS : now;
		if (ago_ns < now && now - ago_ns > latest)
			latest = now - ago_ns;
	}
	return latest;
}

static uint64_t last_sign(void *argument, uint32_t rank)
{
	struct rank *context = argument;
	uint64_t now = clock_now_ns(), word = control_last_sign(context->control, rank, now),
	         data = last_data(context, rank, now);

	return word > data ? word : data;
}

static const struct presence_events events = {
	.send = send_one,
	.dial = dial,
	.fate = on_fate,
	.accused = on_accused,
	.accusation = on_accusation,
	.last_sign = last_sign,
};

/* ---- life ---- */

enum esp_status membership_open(struct rank *context, struct failure *failure)
{
	if (presence_init(&context->member.presence, context->rank, context->size, rank_interval_ns(context),
	                  clock_now_ns(), &events, context) != ESP_OK)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for %u ranks", context->size);
	return ESP_OK;
}

static void begin(void *argument, void *unused)
{
	struct rank *context = argument;

	(void)unused;
	presence_begin(&context->member.presence, clock_now_ns());
	control_settle(context->control);
}

/* Compares the last calls that ranks reported as they left, when ours was perhaps not known yet. */
static void compare_last_calls(struct rank *context)
{
	for (uint32_t i = 0; i < context->size; i++) {
		const struct call_note *note = &context->member.presence.all[i].last_call;

		if (note->sequence > 0)
			comm_heard_last_call(context->world, i, note);
	}
}

static void leave(void *argument, void *why)
{
	struct rank *context = argument;
	struct call_note last = {0};

	if (context->world) {
		comm_last_call(context->world, &last);
		compare_last_calls(context);
	}
	presence_leave(&context->member.presence, why, &last);
	for (uint32_t i = 0; i < context->size; i++) {
		if (control_has_control(context->control, i))
			presence_say_goodbye(&context->member.presence, i);
	}
	pthread_mutex_lock(&context->lock);
	context->fates.has_left = true;
	rank_changed(context);
	pthread_mutex_unlock(&context->lock);
}

enum esp_status membership_begin(struct rank *context, struct failure *failure)
{
	return control_run(context->control, begin, NULL)
	           ? ESP_OK
	           : rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a command");
}

void membership_leave(struct rank *context, const char *why)
{
	if (control_run(context->control, leave, (void *)(uintptr_t)why))
		return;
	pthread_mutex_lock(&context->lock); /* there is no memory: they will see us go */
	context->fates.has_left = true;
	pthread_mutex_unlock(&context->lock);
}

struct blame {
	uint32_t rank;
	char why[PRESENCE_HOW];
};

static void blame(void *argument, void *command)
{
	struct rank *context = argument;
	struct blame *blame = command;

	/* unless more is known of it */
	presence_closed(&context->member.presence, blame->rank, blame->why, clock_now_ns());
	free(blame);
}

void membership_blame(struct rank *context, int32_t rank, const char *why)
{
	struct blame *command = rank >= 0 && (uint32_t)rank != context->rank ? calloc(1, sizeof(*command)) : NULL;

	if (!command)
		return;
	command->rank = (uint32_t)rank;
	clip(command->why, sizeof(command->why), "rank %u gave up: %s", context->rank, why);
	if (!control_run(context->control, blame, command))
		free(command);
}

static void note_said(void *argument, void *unused)
{
	struct rank *context = argument;

	(void)unused;
	atomic_store(&context->member.has_said_exit, true);
}

void membership_exit(struct rank *context)
{
	struct control_msg msg = {
		.type = CONTROL_DEAD,
		.from = context->rank,
		.about = context->rank,
	};

	uint64_t until = clock_now_ns() + EXIT_PATIENCE;

	if (context->size == 1)
		return;
	control_send_all(context->control, &msg);
	if (!control_run(context->control, note_said, NULL))
		return;
	while (!atomic_load(&context->member.has_said_exit) && clock_now_ns() < until)
		usleep(100);
}

/* ---- events ---- */

void membership_opened(void *argument, uint32_t peer, bool dialled)
{
	struct rank *context = argument;

	pthread_mutex_lock(&context->lock);
	if (dialled)
		unreachable_forget(&context->opening.unreached, peer);
	context->opening.has_met[peer] = true;
	pthread_mutex_unlock(&context->lock);
	presence_connected(&context->member.presence, peer, clock_now_ns());
}

bool membership_doubts(void *argument, uint32_t peer)
{
	const struct rank *context = argument;
	const struct presence *presence = &context->member.presence;

	return presence->has_begun && !presence->is_leaving && !presence_is_gone(presence, peer);
}

void membership_closed(void *argument, uint32_t peer, const struct error *why)
{
	struct rank *context = argument;

	presence_closed(&context->member.presence, peer, why->text, clock_now_ns());
}

bool membership_hears(struct rank *context, uint32_t peer)
{
	uint64_t now = clock_now_ns();

	return context->member.presence.all[peer].fate == FATE_HERE &&
	       now < last_sign(context, peer) + rank_interval_ns(context);
}

void membership_unreachable(struct rank *context, uint32_t peer, const struct error *why)
{
	char how[PRESENCE_HOW], who[RANK_TEXT];

	if (!context->member.presence.has_begun) /* then joining fails, for another reason to be told */
		return;
	/*
	 * A network that is so full that no connection comes about in a minute may still carry data: then it is there, and
	 * tried again.
	 */
	if (membership_hears(context, peer)) {
		log_write(&context->log, LOG_LEVEL_INFO, LOG_NET, "%s is there, but cannot be reached anew: %s; trying again",
		          rank_text(context, peer, who), why->text);
		control_dial_control(context->control, peer);
		return;
	}
	clip(how, sizeof(how), "rank %u cannot reach it: %s", context->rank, why->text);
	presence_accuse(&context->member.presence, peer, how, clock_now_ns());
}

static void part(void *argument, void *command)
{
	struct rank *context = argument;
	char how[PRESENCE_HOW];

	snprintf(how, sizeof(how), "the connection for data between it and rank %u broke", context->rank);
	presence_accuse(&context->member.presence, (uint32_t)(uintptr_t)command, how, clock_now_ns());
}

void membership_part(struct rank *context, uint32_t peer)
{
	/* if there is no memory, the next group fails in the same way */
	(void)control_run(context->control, part, (void *)(uintptr_t)peer);
}

static void on_message(void *argument, uint32_t peer, const struct control_msg *msg)
{
	struct rank *context = argument;

	/* Before it counts as gone: a rank that leaves waits for that. */
	if (msg->type == CONTROL_LEFT && msg->left.last.sequence > 0 && msg->about < context->size &&
	    msg->about != context->rank)
		comm_heard_last_call(context->world, msg->about, &msg->left.last);
	(void)presence_message(&context->member.presence, peer, msg, clock_now_ns());
}

void membership_subscribe(struct control_subscribers *out)
{
	static const uint8_t types[] = {CONTROL_LEFT, CONTROL_DEAD, CONTROL_SILENT, CONTROL_BEAT, CONTROL_ECHO};

	for (unsigned i = 0; i < sizeof(types); i++)
		control_subscribe(out, types[i], on_message);
}

bool membership_passes_on(void *argument, uint32_t peer)
{
	const struct rank *context = argument;

	return presence_is_neighbour(&context->member.presence, peer);
}

uint64_t membership_turn(struct rank *context, uint64_t now)
{
	return presence_turn(&context->member.presence, now);
}
