#include "rank/rank_events.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clip.h"
#include "base/clock.h"
#include "rank/comm/comm.h"
#include "rank/comm/keyed.h"
#include "rank/comm/p2p.h"
#include "rank/comm/switched.h"
#include "rank/comm/work.h"
#include "rank/join/rendezvous.h"
#include "rank/member/grow_parent.h"
#include "rank/member/membership.h"
#include "rank/member/shrink.h"
#include "rank/observe/dump.h"
#include "rank/observe/tracer.h"
#include "rank/rail/bandwidth.h"
#include "rank/rail/blackhole.h"
#include "rank/rail/failover.h"
#include "rank/rank_ends.h"
#include "wire/bytes.h"

/* ---- connections ---- */

static void answered(struct rank *context, uint32_t peer)
{
	pthread_mutex_lock(&context->lock);
	unreachable_forget(&context->opening.unreached, peer);
	pthread_mutex_unlock(&context->lock);
}

static bool crosses_network(const struct rank *context, uint32_t peer)
{
	const struct node_info *own = &context->roster.nodes[context->rank], *other = &context->roster.nodes[peer];

	return memcmp(own->host_id, other->host_id, sizeof(own->host_id)) != 0;
}

static void on_lane_connected(void *argument, uint32_t peer, uint32_t lane, int fd, uint32_t rail, bool again)
{
	struct rank *context = argument;

	tracer_mark(context->mod.tracer, "lane %u connected to rank %u", lane, peer);
	log_write(&context->log, LOG_LEVEL_TRACE, LOG_NET, "lane %u is connected to rank %u", lane, peer);
	answered(context, peer);
	if (context->near.local_of[peer] != NO_RANK) { /* no rank dials within its host */
		close(fd);
		return;
	}
	progress_send(&context->progress.lanes[lane], &(struct progress_cmd){
		.kind = PROGRESS_ADOPT, .peer = peer, .replaces = again && rank_resumes(context),
		.endpoint = {.fd = fd, .checked = crosses_network(context, peer)}});
	failover_connected(context, peer, lane, rail, again);
}

static void on_lane_unreachable(void *argument, uint32_t peer, uint32_t lane, bool again, const struct error *why)
{
	struct rank *context = argument;
	char who[RANK_TEXT];

	if (again && failover_has_made(context, peer, lane)) {
		failover_unreachable(context, peer, lane, why);
		return;
	}

	bool tries_again = !rank_resumes(context) && membership_hears(context, peer);
	log_write(&context->log, LOG_LEVEL_WARN, LOG_NET, "%s cannot be reached: %s%s", rank_text(context, peer, who),
	          why->text, tries_again ? "; but it is there, so it is tried again" : "");
	if (tries_again) {
		control_dial_lane(context->control, peer, lane);
		return;
	}
	progress_send(&context->progress.lanes[lane],
	              &(struct progress_cmd){.kind = PROGRESS_DROP, .peer = peer, .status = ESP_ELINK});
}

static void on_probe_connected(void *argument, uint32_t peer, uint32_t rail, int fd, bool dialled)
{
	struct rank *context = argument;

	if (dialled)
		answered(context, peer);
	if (!dialled || !context->mod.bandwidth->settled) {
		bandwidth_connected(context, rail, fd, dialled);
		return;
	}
	blackhole_answered(context, peer, rail, fd, NULL);
}

static void on_probe_unreachable(void *argument, uint32_t peer, uint32_t rail, const struct error *why)
{
	struct rank *context = argument;

	if (context->mod.bandwidth->settled)
		blackhole_answered(context, peer, rail, -1, why);
	else
		bandwidth_unreachable(context, peer, rail, why);
}

/*
 * Once all have met it says nothing: a rank that cannot be reached then is for the members to judge, and no rank is
 * looked for.
 */
static void opening_failed(struct rank *context, uint32_t peer, const struct error *why)
{
	char who[RANK_TEXT], text[CONTROL_TEXT];

	pthread_mutex_lock(&context->lock);
	if (context->opening.have_all_met) {
		pthread_mutex_unlock(&context->lock);
		return;
	}
	const struct unreachable *unreached = unreachable_find(&context->opening.unreached, peer);
	bool is_first = context->opening.failure.status == ESP_OK;
	if (is_first && unreached && why->status == ESP_ETIMEOUT)
		rank_failure_set(&context->opening.failure, why->status, (int32_t)peer, "%s",
		                 rank_unreached_text(context, unreached, text));
	else if (is_first || (peer == 0 && why->status == ESP_ELINK && rank_doubts_culprit(context)))
		rank_failure_set(&context->opening.failure, why->status, (int32_t)peer, "%s: %s", rank_text(context, peer, who),
		                 why->text);
	if (is_first)
		context->opening.found_ended = why->status == ESP_ELINK;
	bool looks = is_first && rank_doubts_culprit(context);
	rank_changed(context);
	pthread_mutex_unlock(&context->lock);
	if (looks)
		control_look_for(context->control, 0);
}

static void on_neighbour(void *argument, uint32_t peer, const int *fds, uint32_t count)
{
	struct rank *context = argument;
	uint32_t local = context->near.local_of[peer];
	struct segment_view *view = NULL;
	struct error err;

	if (local == NO_RANK || context->near.views[local]) { /* came twice */
		for (uint32_t i = 0; i < count; i++)
			close(fds[i]);
		return;
	}
	enum esp_status status = shm_segment_view_open(context->near.segment, local, fds[0], &view, &err);
	if (status != ESP_OK) {
		for (uint32_t i = 1; i < count; i++)
			close(fds[i]);
		opening_failed(context, peer, &err);
		return;
	}
	/* read by drivers after the message, and by threads that open a small path after `changed` */
	context->near.views[local] = view;
	for (uint32_t i = 0; i < context->lanes; i++)
		progress_send(&context->progress.lanes[i], &(struct progress_cmd){
			.kind = PROGRESS_ADOPT, .peer = peer, .endpoint = {.fd = fds[1 + i], .memory = view}});
	pthread_mutex_lock(&context->lock);
	context->opening.has_met[peer] = true;
	context->opening.neighbours_missing--;
	rank_changed(context);
	pthread_mutex_unlock(&context->lock);
}

static void on_exchanged(void *argument, uint32_t peer)
{
	struct rank *context = argument;

	pthread_mutex_lock(&context->lock);
	context->opening.has_exchanged[peer] = true;
	pthread_mutex_unlock(&context->lock);
}

static void on_control_connected(void *argument, uint32_t peer)
{
	struct rank *context = argument;

	pthread_mutex_lock(&context->lock);
	unreachable_forget(&context->opening.unreached, peer);
	context->opening.has_reached[peer] = true;
	context->opening.controls_missing--; /* perhaps before it was counted: they are compared when all are dialled */
	rank_changed(context);
	pthread_mutex_unlock(&context->lock);
}

static void on_control_unreachable(void *argument, uint32_t peer, const struct error *why)
{
	opening_failed(argument, peer, why);
	membership_unreachable(argument, peer, why);
}

/* Other ranks are connected with it, or with one that is. */
static void on_unanswered(void *argument, uint32_t peer, const char *way, bool by_kernel)
{
	struct rank *context = argument;
	struct control_msg msg = {
		.type = CONTROL_DIALS,
		.from = context->rank,
		.about = peer,
		.first = context->rank,
		.dials.at_ns = clock_now_ns(),
	};

	pthread_mutex_lock(&context->lock);
	unreachable_note(&context->opening.unreached, peer, way, by_kernel);
	bool tells = unreachable_tells(&context->opening.unreached, peer, msg.dials.at_ns);
	pthread_mutex_unlock(&context->lock);
	if (tells && rank_is_news(context, &msg))
		control_send_all(context->control, &msg);
}

/* ---- messages ---- */

static void on_failed(void *argument, uint32_t peer, const struct control_msg *msg)
{
	struct rank *context = argument;

	(void)peer;
	pthread_mutex_lock(&context->lock);
	struct comm *group = comm_find(context, msg->channel, msg->first);
	if (group)
		comm_visit(group);
	pthread_mutex_unlock(&context->lock);
	if (rank_is_news(context, msg))
		control_send_all(context->control, msg);
	if (!group)
		return;
	comm_fail_as(group, msg, false);
	pthread_mutex_lock(&context->lock);
	comm_depart(group);
	pthread_mutex_unlock(&context->lock);
}

/* A message for a group that we are in. */
static void about_group(void *argument, uint32_t peer, const struct control_msg *msg)
{
	struct rank *context = argument;

	pthread_mutex_lock(&context->lock);
	struct comm *group = comm_find(context, msg->channel, msg->first);
	if (group)
		comm_visit(group);
	pthread_mutex_unlock(&context->lock);
	if (!group)
		return;
	if (msg->type == CONTROL_READY)
		comm_keyed_ready(group, peer, &msg->call.note);
	else if (msg->type == CONTROL_GO)
		comm_keyed_go(group, msg->call.note.key);
	else if (msg->type == CONTROL_LETTER)
		p2p_announced(group, &msg->call.note);
	else
		p2p_fetch(group, msg);
	pthread_mutex_lock(&context->lock);
	comm_depart(group);
	pthread_mutex_unlock(&context->lock);
}

static void on_dialled(struct rank *context, uint32_t by)
{
	char who[RANK_TEXT];

	if (by < context->size)
		log_write(&context->log, LOG_LEVEL_INFO, LOG_NET, "%s finds no way in: all are let in for a while",
		          rank_text(context, by, who));
	control_expect(context->control);
}

static void on_called_off(void *argument, uint32_t peer, const struct control_msg *msg)
{
	struct rank *context = argument;

	(void)peer;
	pthread_mutex_lock(&context->lock);
	struct comm *group = comm_find(context, msg->channel, msg->first);
	if (group)
		grow_parent_hear_off(group, msg);
	pthread_mutex_unlock(&context->lock);
	if (rank_is_news(context, msg))
		control_send_all(context->control, msg);
}

static void on_absent(void *argument, uint32_t peer, const struct control_msg *msg)
{
	struct rank *context = argument;

	(void)peer;
	comm_heard_absent(context, msg);
	if (rank_is_news(context, msg))
		control_send_all(context->control, msg);
}

static void on_dials(void *argument, uint32_t peer, const struct control_msg *msg)
{
	struct rank *context = argument;

	(void)peer;
	if (!rank_is_news(context, msg))
		return;
	if (msg->about == context->rank)
		on_dialled(context, msg->from);
	else
		control_send_all(context->control, msg);
}

static void on_asked(void *argument, uint32_t peer, const struct control_msg *msg)
{
	comm_asked(argument, peer, msg);
}

static void on_piece(void *argument, uint32_t peer, const struct control_msg *msg)
{
	shrink_piece(argument, peer, msg);
}

void rank_subscribe(struct control_subscribers *out)
{
	static const uint8_t about_comm[] = {CONTROL_READY, CONTROL_GO, CONTROL_LETTER, CONTROL_FETCH};

	membership_subscribe(out);
	failover_subscribe(out);
	control_subscribe(out, CONTROL_PIECE, on_piece);
	control_subscribe(out, CONTROL_FAILED, on_failed);
	control_subscribe(out, CONTROL_ASK, on_asked);
	control_subscribe(out, CONTROL_ABSENT, on_absent);
	control_subscribe(out, CONTROL_DIALS, on_dials);
	control_subscribe(out, CONTROL_OFF, on_called_off);
	for (unsigned i = 0; i < sizeof(about_comm); i++)
		control_subscribe(out, about_comm[i], about_group);
}

/* ---- time ---- */

/* A time that began after the clock was read has not passed. */
static bool has_passed(uint64_t patience_ns, uint64_t since_ns, uint64_t now)
{
	return now > since_ns && now - since_ns >= patience_ns;
}

/* An action on one piece of work. */
struct concern {
	enum {
		CONCERN_NONE,
		CONCERN_LATE,     /* the group fails, because of rank: text says why   */
		CONCERN_GIVEN_UP, /* the work ends, and nothing else is concerned */
		CONCERN_LEFT,
		CONCERN_ASK,
		CONCERN_MISMATCH, /* rank has made the call other                      */
		CONCERN_VERDICT,
	} what;
	struct comm *group;
	struct work *work;        /* only if no other thread has it any more */
	uint32_t rank, turn;
	struct call_note note, other;
	bool on_lanes;
	char text[CONTROL_TEXT];
};

static bool some_have_left(const struct rank *context, const struct comm *group)
{
	for (uint32_t i = 0; context->fates.gone > 0 && i < group->size; i++) {
		if (context->fates.of[group->ranks[i]] == FATE_LEFT)
			return true;
	}
	return false;
}

/*
 * A rank that the group's calls on lanes wait for, only_left: and that has left; or NO_RANK. A rank that has left is
 * not waited for by calls that only send to it: it had all that it needed. Without the lock: drivers are taken in turn.
 */
static uint32_t find_waited_for(struct rank *context, const struct comm *group, bool only_left)
{
	uint32_t found = NO_RANK;

	for (uint32_t i = 0; i < context->lanes && found == NO_RANK; i++) {
		struct progress *progress = &context->progress.lanes[i];

		progress_acquire(progress);
		for (unsigned stream = 0; stream < STREAMS; stream++) {
			struct exec_wait wait;

			if (lane_waits(progress->lane, (uint16_t)(group->channel + stream), &wait) && wait.peer < context->size &&
			    (!only_left || (!wait.sends && context->fates.of[wait.peer] == FATE_LEFT)))
				found = wait.peer;
		}
		progress_release(progress);
	}
	return found;
}

/* Work that no lane has waits for one rank in particular, or for all. With the lock held. */
static uint32_t find_missing(const struct rank *context, const struct work *work)
{
	const struct comm *group = work->group;

	if (work->kind != WORK_CALL && work->msg.peer < group->size)
		return context->fates.of[group->ranks[work->msg.peer]] == FATE_LEFT ? group->ranks[work->msg.peer] : NO_RANK;
	for (uint32_t i = 0; work->kind == WORK_CALL && i < group->size; i++) {
		if (context->fates.of[group->ranks[i]] == FATE_LEFT)
			return group->ranks[i];
	}
	return NO_RANK;
}

/* With the lock held: a member that we dial and that does not answer. */
static uint32_t find_unreached(const struct comm *group)
{
	const struct unreachable_list *list = &group->context->opening.unreached;

	for (uint32_t i = 0; i < list->count; i++) {
		if (comm_has(group, list->all[i].rank))
			return list->all[i].rank;
	}
	return NO_RANK;
}

/* With the lock held: its deadline has passed. */
static void on_late(struct work *work, uint64_t now, struct concern *concern)
{
	char who[RANK_TEXT], limit[DEADLINE_TEXT], text[CONTROL_TEXT], through[COMM_SWITCHED_TEXT];

	work_deadline_text(work->context, work->options.deadline_ns, limit);
	concern->what = CONCERN_LATE;
	if (work->kind == WORK_CALL)
		concern->rank = comm_absent(work->group, &work->note, now);
	if (concern->rank != NO_RANK) {
		snprintf(concern->text, sizeof(concern->text),
		         "the deadline of rank %u (%s) passed, and %s had not made this call: is it "
		         "computing, or stopped?",
		         work->context->rank, limit, rank_text(work->context, concern->rank, who));
	} else if (work->kind == WORK_CALL && (concern->rank = find_unreached(work->group)) != NO_RANK) {
		clip(concern->text, sizeof(concern->text), "the deadline of rank %u (%s) passed: %s", work->context->rank,
		     limit,
		     rank_unreached_text(work->context, unreachable_find(&work->context->opening.unreached, concern->rank),
		                         text));
	} else if (work->kind == WORK_CALL) {
		clip(concern->text, sizeof(concern->text), "the deadline of rank %u (%s) passed%s", work->context->rank, limit,
		     comm_switched_late(work->group, through));
	} else if (p2p_give_up(work, concern->text)) {
		concern->what = CONCERN_GIVEN_UP;
		concern->work = work;
	} else if (work->msg.peer < work->group->size) {
		concern->rank = work->group->ranks[work->msg.peer];
	}
}

/* With the lock held: does a member stand at the small with another call, while this one is on the lanes? */
static bool has_other_on_small(const struct work *work, struct concern *concern)
{
	const struct comm *group = work->group;
	uint32_t member;

	if (!group->small.shm || work->shm_small_rounds > 0 || work->note.flags != 0 ||
	    !shm_small_other(group->small.shm, &work->note, &member, &concern->other))
		return false;
	concern->rank = group->ranks[member];
	concern->what = CONCERN_MISMATCH;
	return true;
}

/*
 * Members are asked about the oldest call of a group alone: a rank that has not made that has not made those after it
 * either, and hundreds may be under way. Of those with keys the oldest is as good as any. On the small path and on
 * lanes one each: a call on the small path here may be on lanes elsewhere. With the lock held.
 */
static bool is_oldest(const struct work *work)
{
	for (const struct work *other = work->link.live_next; other; other = other->link.live_next) {
		if (other->group == work->group && other->kind == WORK_CALL && other->call.keyed == work->call.keyed &&
		    (other->shm_small_rounds > 0) == (work->shm_small_rounds > 0))
			return false;
	}
	return true;
}

/* With the lock held. */
static struct concern look_at(struct work *work, uint64_t now)
{
	const struct rank *context = work->context;
	struct comm *group = work->group;
	struct concern concern = {
		.group = group, .rank = NO_RANK, .note = work->note, .on_lanes = work->shm_small_rounds == 0};
	uint64_t patience = rank_patience_ns(context);
	bool may_ask =
		(work->note.flags & CALL_LETTER) == 0 && group->size > 1 && has_passed(patience, work->time.asked_ns, now) &&
		has_passed(comm_ask_after(group, work->time.deadline_ns - work->time.started_ns), work->time.started_ns, now);
	bool asks = may_ask && is_oldest(work);

	if (atomic_load(&group->fail.status) != ESP_OK)
		return concern;
	if (group->fail.verdict_ns != 0 && now >= group->fail.verdict_ns) {
		concern.what = CONCERN_VERDICT;
	} else if ((now >= work->time.deadline_ns || asks) && has_other_on_small(work, &concern)) {
		return concern;
	} else if (now >= work->time.deadline_ns) {
		on_late(work, now, &concern);
	} else if (some_have_left(context, group) && rank_is_leave_over(context, now) &&
	           has_passed(patience, work->time.started_ns, now) && has_passed(patience, work->time.looked_ns, now)) {
		work->time.looked_ns = now;
		concern.rank = work->end.is_waiting ? find_missing(context, work) : NO_RANK;
		if (concern.rank != NO_RANK || !work->end.is_waiting)
			concern.what = CONCERN_LEFT;
	}
	if (concern.what == CONCERN_NONE && asks) {
		work->time.asked_ns = now;
		concern.turn = work->time.asks++;
		concern.what = CONCERN_ASK;
	}
	return concern;
}

static void act(struct rank *context, const struct concern *concern)
{
	struct comm *group = concern->group;
	uint32_t rank = concern->rank;

	switch (concern->what) {
	case CONCERN_NONE:
		break;
	case CONCERN_LATE:
		comm_fail(group, ESP_ETIMEOUT, rank == NO_RANK ? -1 : (int32_t)rank, concern->text, true);
		break;
	case CONCERN_GIVEN_UP:
		work_end(concern->work, ESP_ETIMEOUT);
		break;
	case CONCERN_LEFT:
		rank = rank != NO_RANK ? rank : find_waited_for(context, group, true);
		if (rank != NO_RANK)
			comm_fail_by_leave(group, rank);
		break;
	case CONCERN_ASK:
		comm_ask(group, concern->on_lanes ? find_waited_for(context, group, false) : NO_RANK, concern->turn,
		         &concern->note);
		break;
	case CONCERN_MISMATCH:
		comm_mismatch(group, context->rank, &concern->note, rank, &concern->other);
		break;
	case CONCERN_VERDICT:
		comm_pass_verdict(group);
		break;
	}
}

static void on_tick(void *argument, uint64_t now)
{
	struct rank *context = argument;
	struct concern concern = {0};

	blackhole_check(context, now);
	dump_failures(context);
	do {
		pthread_mutex_lock(&context->lock);
		concern.what = CONCERN_NONE;
		for (struct work *work = context->comms.live; work && concern.what == CONCERN_NONE; work = work->link.live_next)
			concern = look_at(work, now);
		if (concern.what != CONCERN_NONE)
			comm_visit(concern.group);
		else if (!context->comms.live) { /* under the lock: the next call asks for it anew */
			atomic_store(&context->member.ticking, false);
			control_tick(context->control, false);
		}
		pthread_mutex_unlock(&context->lock);
		if (concern.what != CONCERN_NONE) {
			act(context, &concern);
			pthread_mutex_lock(&context->lock);
			comm_depart(concern.group);
			pthread_mutex_unlock(&context->lock);
		}
	} while (concern.what != CONCERN_NONE);
}

static uint64_t on_turn(void *argument, uint64_t now)
{
	uint64_t dues[] = {membership_turn(argument, now), shrink_turn(argument, now),
	                   rank_check_grow_parent(argument, now), failover_turn(argument, now)};
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < sizeof(dues) / sizeof(dues[0]); i++)
		next = dues[i] < next ? dues[i] : next;
	return next;
}

static void on_joiner_refused(void *argument, const uint8_t *bytes, struct error *why)
{
	const struct rank *context = argument;
	struct rendezvous_arrival arrival;

	if (rendezvous_arrival_decode(bytes, &arrival))
		rendezvous_explain_joiner(&arrival, context->rank, context->join.launch.job, context->join.settings, why);
	else
		error_set(why, ESP_EMISMATCH, "a joiner of another job, or with other settings, handed in damaged node info");
}

static const struct control_lane_events lane_events = {
	.connected = on_lane_connected,
	.unreachable = on_lane_unreachable,
};

static const struct control_rail_events rail_events = {
	.choose = failover_rail,
	.late = failover_late,
	.probe_connected = on_probe_connected,
	.probe_unreachable = on_probe_unreachable,
	.netlink = failover_links_changed,
};

static const struct control_fd_events fd_events = {
	.neighbour = on_neighbour,
	.left = on_exchanged,
};

static const struct control_peer_events peer_events = {
	.opened = membership_opened,
	.connected = on_control_connected,
	.unreachable = on_control_unreachable,
	.unanswered = on_unanswered,
	.closed = membership_closed,
	.doubts = membership_doubts,
	.forwards_to = membership_passes_on,
};

static const struct control_joiner_events joiner_events = {
	.lost = grow_parent_joiners_lost,
	.explain = on_joiner_refused,
};

static const struct control_turn_events turn_events = {
	.tick = on_tick,
	.turn = on_turn,
};

const struct control_events rank_events = {
	.lanes = &lane_events,
	.rails = &rail_events,
	.fds = &fd_events,
	.peers = &peer_events,
	.joiners = &joiner_events,
	.turns = &turn_events,
};
