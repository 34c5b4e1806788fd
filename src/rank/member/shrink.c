#include "rank/member/shrink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rank/member/agreement.h"
#include "rank/member/past_verdict.h"

#define WAYS 32u /* in which groups that are after the same channel part */

/* A message whose pieces are coming. */
struct inbox {
	uint8_t *bytes;
	size_t got, whole;
};

struct shrink {
	struct comm *group;
	struct agreement agreement;
	struct comm *prepared; /* opened, and ours until it is decided */
	struct inbox *inboxes;  /* by place                              */
	bool is_noticed;        /* that it is decided                    */
	/* Guarded by context->lock. */
	bool is_decided;
	struct comm *result;   /* NULL: we do not go on                 */
	bool is_taken;          /* the caller has it                     */
	uint32_t waits_for;     /* a rank, or NO_RANK                    */
};

/* ---- sending ---- */

/* All pieces follow each other on one connection. */
static void send_pieces(struct rank *context, uint32_t to, uint32_t channel, uint32_t first, const uint8_t *bytes,
                        size_t n)
{
	for (size_t at = 0; at < n; at += CONTROL_PIECE_BYTES) {
		size_t piece = n - at < CONTROL_PIECE_BYTES ? n - at : CONTROL_PIECE_BYTES;
		struct control_msg msg = {
			.type = CONTROL_PIECE,
			.from = context->rank,
			.about = to,
			.channel = channel,
			.first = first,
			.piece = {.at = at, .whole = n},
		};

		memcpy(msg.piece.bytes, bytes + at, piece);
		control_send(context->control, to, &msg);
	}
}

static void send_message(void *argument, uint32_t place, const uint8_t *bytes, size_t n)
{
	const struct shrink *shrink = argument;
	const struct comm *group = shrink->group;

	send_pieces(group->context, group->ranks[place], group->channel, group->ranks[0], bytes, n);
}

/* ---- preparing ---- */

static void undo(struct shrink *shrink)
{
	if (shrink->prepared)
		comm_retire(shrink->prepared);
	shrink->prepared = NULL;
}

/*
 * Where to look for another channel than one that is taken. Another group of these ranks may be shrunk at the same
 * time, led by another rank, and have taken it, and its leader be refused the same one here: if both went to the next
 * one they would meet there again, and so on. Groups that have a rank in common have different channels, so they go
 * different ways, sooner or later.
 */
static uint32_t beyond(const struct comm *group, uint32_t taken)
{
	uint32_t mixed = (group->channel * 2654435761u ^ taken) * 2246822519u;

	mixed = (mixed ^ mixed >> 15) * 3266489917u;
	return taken < UINT16_MAX ? taken + COMM_CHANNELS * (1 + (mixed >> 16) % WAYS) : 0;
}

static bool prepare(void *argument, const struct verdict_terms *terms, const uint8_t *members, uint32_t *out_channel)
{
	struct shrink *shrink = argument;
	const struct comm *group = shrink->group;
	struct rank *context = group->context;
	uint32_t *ranks = calloc(group->size, sizeof(*ranks)), count = 0;
	struct failure failure;
	bool is_open = false;

	undo(shrink);
	for (uint32_t i = 0; ranks && i < group->size; i++) {
		if (verdict_bit(members, i))
			ranks[count++] = group->ranks[i];
	}
	if (ranks && comm_channel_is_free(context, terms->channel))
		is_open = comm_open(context, (uint16_t)terms->channel, ranks, count, &shrink->prepared, &failure) == ESP_OK;
	free(ranks);
	if (!is_open)
		*out_channel = comm_propose_channel(context, group, beyond(group, terms->channel));
	return is_open;
}

static void accuse(void *argument, uint32_t place)
{
	const struct shrink *shrink = argument;
	struct rank *context = shrink->group->context;
	char how[PRESENCE_HOW];

	snprintf(how, sizeof(how), "rank %u waits for it to shrink a group, and it does not answer", context->rank);
	presence_accuse(&context->member.presence, shrink->group->ranks[place], how, clock_now_ns());
}

static const struct agreement_events events = {.send = send_message, .prepare = prepare, .accuse = accuse};

/* ---- the control's side ---- */

static void release(struct shrink *shrink)
{
	for (uint32_t i = 0; shrink->inboxes && i < shrink->group->size; i++)
		free(shrink->inboxes[i].bytes);
	free(shrink->inboxes);
	agreement_fini(&shrink->agreement);
	free(shrink);
}

/* With the lock held. */
static uint32_t place_of(const struct comm *group, uint32_t rank)
{
	uint32_t place = 0;

	while (place < group->size && group->ranks[place] != rank)
		place++;
	return place;
}

/* Whatever presence knows, the agreement knows; what it knows already is no news to it. */
static void tell_news(struct shrink *shrink)
{
	const struct comm *group = shrink->group;
	const struct presence *presence = &group->context->member.presence;
	uint64_t now = clock_now_ns();

	for (uint32_t i = 0; i < group->size; i++) {
		if (presence_is_gone(presence, group->ranks[i]))
			agreement_gone(&shrink->agreement, i, now);
	}
	for (uint32_t i = 0; i < presence->accusation_count; i++) {
		uint32_t about = place_of(group, presence->accusations[i].about),
		         by = place_of(group, presence->accusations[i].by);

		/* A rank that is not in the group has no say in it, but its accusation may be true: others are asked sooner. */
		if (about < group->size)
			agreement_accused(&shrink->agreement, about, by < group->size ? by : about, now);
	}
}

/* A rank that was away, before or since it began, may have been given up, also if none is left to say so. */
static void note_absence(struct shrink *shrink, uint64_t now)
{
	struct presence *presence = &shrink->group->context->member.presence;

	presence_note_absence(presence, now);
	shrink->agreement.config.was_accused |= presence->was_accused;
}

/* With what is known so far. NULL: no memory. */
static struct shrink *begin(struct comm *group)
{
	struct rank *context = group->context;
	struct shrink *shrink = calloc(1, sizeof(*shrink));
	struct agreement_config config = {
		.self = group->rank,
		.size = group->size,
		.interval_ns = rank_interval_ns(context),
		.quorum = context->conf.quorum,
		.events = &events,
		.context = shrink,
	};

	if (!shrink)
		return NULL;
	shrink->group = group;
	shrink->waits_for = NO_RANK;
	shrink->inboxes = calloc(group->size, sizeof(*shrink->inboxes));
	if (!shrink->inboxes || agreement_init(&shrink->agreement, &config) != ESP_OK) {
		free(shrink->inboxes);
		free(shrink);
		return NULL;
	}
	pthread_mutex_lock(&context->lock);
	group->change.shrink = shrink;
	context->comms.shrinking++;
	pthread_mutex_unlock(&context->lock);
	tell_news(shrink);
	return shrink;
}

/*
 * Ranks that go on are here, and the others are not, whatever was said of them; but a member that has freed the group
 * is not in it, and no less in the job. A new group with one of the others in it fails at once.
 */
static void abide_by(struct shrink *shrink)
{
	const struct comm *group = shrink->group;
	struct presence *presence = &group->context->member.presence;
	uint64_t now = clock_now_ns();
	uint32_t asked = 0; /* of the ranks that are here: some may not be in the group, or have freed it */

	for (uint32_t i = 0; i < group->size; i++) {
		if (agreement_keeps(&shrink->agreement, i))
			presence_pardon(presence, group->ranks[i], now);
		asked += !presence_is_gone(presence, group->ranks[i]) && !agreement_has_left(&shrink->agreement, i);
	}
	bool by_all = asked == presence_count(presence);
	for (uint32_t i = 0; i < group->size; i++) {
		bool has_left = agreement_has_left(&shrink->agreement, i);

		if (agreement_keeps(&shrink->agreement, i))
			continue;
		if (!has_left)
			presence_exclude(presence, group->ranks[i], by_all, now);
		else if (agreement_includes(&shrink->agreement, i) && shrink->prepared)
			comm_fail(shrink->prepared, ESP_EABORTED, (int32_t)group->ranks[i],
			          "a rank has freed the group that was shrunk", false);
	}
}

/* Tells the caller, once. */
static void notice_verdict(struct shrink *shrink)
{
	struct comm *group = shrink->group;
	struct rank *context = group->context;
	const struct agreement *agreement = &shrink->agreement;
	uint32_t waits_for = agreement->is_decided ? UINT32_MAX : agreement_waits_for(agreement);

	bool is_news = agreement->is_decided && !shrink->is_noticed;

	shrink->is_noticed = agreement->is_decided; /* the fates below call back into this module */
	if (is_news && !agreement->goes_on)
		undo(shrink);
	if (is_news && agreement->goes_on)
		abide_by(shrink);
	pthread_mutex_lock(&context->lock);
	shrink->waits_for = waits_for < group->size ? group->ranks[waits_for] : NO_RANK;
	if (is_news) {
		shrink->is_decided = true;
		shrink->result = shrink->prepared;
		shrink->prepared = NULL;
		context->comms.shrinking--;
		rank_changed(context);
	}
	pthread_mutex_unlock(&context->lock);
}

/* The first group behind `group` (NULL: of all) whose members are agreeing, visited; `group` is departed from. */
static struct comm *next_shrinking(struct rank *context, struct comm *group)
{
	pthread_mutex_lock(&context->lock);
	struct comm *next = group ? group->next : context->comms.list;
	while (next && !(next->change.shrink && !next->change.shrink->is_decided))
		next = next->next;
	if (next)
		comm_visit(next);
	if (group)
		comm_depart(group);
	pthread_mutex_unlock(&context->lock);
	return next;
}

void shrink_hear(struct rank *context)
{
	context->member.shrink_has_news = true;
}

uint64_t shrink_turn(struct rank *context, uint64_t now)
{
	uint64_t next = UINT64_MAX;
	bool has_news = context->member.shrink_has_news;

	context->member.shrink_has_news = false;
	if (context->comms.shrinking == 0)
		return next;
	for (struct comm *group = next_shrinking(context, NULL); group; group = next_shrinking(context, group)) {
		note_absence(group->change.shrink, now);
		if (has_news)
			tell_news(group->change.shrink);
		uint64_t due = agreement_turn(&group->change.shrink->agreement, now),
		         reason = comm_look_for_verdict(group, now);

		next = due < next ? due : next;
		next = reason < next ? reason : next;
		notice_verdict(group->change.shrink);
	}
	/* a verdict, or one that does not answer, is news to the others */
	return context->member.shrink_has_news ? now : next;
}

/* ---- messages ---- */

/* True: the last piece has come. */
static bool gather(struct inbox *inbox, uint32_t size, const struct control_msg *msg)
{
	size_t whole = (size_t)msg->piece.whole, at = (size_t)msg->piece.at, most = verdict_msg_most(size);

	if (at == 0)
		inbox->got = 0;
	if (msg->piece.whole > most || whole == 0 || msg->piece.at != inbox->got || at >= whole ||
	    (at > 0 && whole != inbox->whole))
		return false;
	if (!inbox->bytes)
		inbox->bytes = malloc(most);
	if (!inbox->bytes)
		return false;
	size_t piece = whole - at < CONTROL_PIECE_BYTES ? whole - at : CONTROL_PIECE_BYTES;
	memcpy(inbox->bytes + at, msg->piece.bytes, piece);
	inbox->whole = whole;
	inbox->got = at + piece;
	return inbox->got == whole;
}

/*
 * A rank waits for us to agree with it about a group that we do not have: it was freed here. Every group is opened on
 * all its members before any of them can use it, so there is none that we only do not have yet.
 */
static void answer_late(struct rank *context, uint32_t peer, const struct control_msg *msg)
{
	uint8_t *bytes = NULL, left[VERDICT_HEAD_BYTES];
	struct verdict_msg answer = {.type = VERDICT_LEFT};
	uint64_t piece = msg->piece.whole < CONTROL_PIECE_BYTES ? msg->piece.whole : CONTROL_PIECE_BYTES;

	if (msg->piece.at != 0 || !verdict_msg_asks(msg->piece.bytes, (size_t)piece, &answer.size))
		return;
	size_t n = past_verdict_find(context, msg->channel, msg->first, answer.size, &bytes);
	if (n > 0)
		send_pieces(context, peer, msg->channel, msg->first, bytes, n);
	else
		send_pieces(context, peer, msg->channel, msg->first, left, verdict_msg_encode(&answer, left));
	free(bytes);
}

/* We go on in a context that has grown out of the group, and have not begun an agreement about the group. */
static bool has_left_for_another(struct comm *group)
{
	pthread_mutex_lock(&group->context->lock);
	bool has_left = group->change.has_grown && !(group->change.shrink && group->change.shrink->agreement.is_started);
	pthread_mutex_unlock(&group->context->lock);
	return has_left;
}

static void take_piece(struct comm *group, uint32_t peer, const struct control_msg *msg)
{
	uint32_t place = place_of(group, peer);
	struct verdict_msg verdict;

	if (place == group->size)
		return; /* it is not in the group, or means another one of that name */
	if (has_left_for_another(group)) {
		answer_late(group->context, peer, msg);
		return;
	}
	struct shrink *shrink = group->change.shrink ? group->change.shrink : begin(group);
	if (!shrink || !gather(&shrink->inboxes[place], group->size, msg) ||
	    !verdict_msg_decode(shrink->inboxes[place].bytes, shrink->inboxes[place].got, group->size, &verdict))
		return;
	comm_shrinks(group, peer);
	agreement_message(&shrink->agreement, place, shrink->inboxes[place].bytes, shrink->inboxes[place].got,
	                  clock_now_ns());
	notice_verdict(shrink);
}

void shrink_piece(struct rank *context, uint32_t peer, const struct control_msg *msg)
{
	pthread_mutex_lock(&context->lock);
	struct comm *group = comm_find(context, msg->channel, msg->first);
	if (group)
		comm_visit(group);
	pthread_mutex_unlock(&context->lock);
	if (!group) {
		answer_late(context, peer, msg);
		return;
	}
	take_piece(group, peer, msg);
	pthread_mutex_lock(&context->lock);
	comm_depart(group);
	pthread_mutex_unlock(&context->lock);
}

/* ---- the caller's side ---- */

struct start {
	struct comm *group;
	uint64_t everywhere, somewhere;
	uint32_t channel;
};

static void start(void *argument, void *command)
{
	struct rank *context = argument;
	struct start *start = command;
	struct comm *group = start->group;
	struct shrink *shrink = group->change.shrink ? group->change.shrink : begin(group);

	if (shrink) {
		note_absence(shrink, clock_now_ns());
		agreement_start(&shrink->agreement, start->everywhere, start->somewhere, start->channel, clock_now_ns());
		notice_verdict(shrink);
	}
	pthread_mutex_lock(&context->lock);
	group->change.shrink_failed = !shrink;
	comm_depart(group);
	pthread_mutex_unlock(&context->lock);
	free(start);
}

/* Calls that were under way end by themselves, now that the group has failed. */
static enum esp_status await_end_of_calls(struct comm *group, uint64_t until, struct failure *failure)
{
	struct rank *context = group->context;
	uint64_t now;

	while (comm_is_busy(group)) {
		now = clock_now_ns();
		if (now >= until)
			return rank_failure_set(failure, ESP_ESTATE, -1,
			                        "calls of the group have not ended: is another thread in one of them?");
		pthread_mutex_lock(&context->lock);
		rank_wait(context, now + NS_PER_MS < until ? now + NS_PER_MS : until);
		pthread_mutex_unlock(&context->lock);
	}
	return ESP_OK;
}

static bool has_verdict(struct comm *group)
{
	pthread_mutex_lock(&group->context->lock);
	bool is_decided = group->change.shrink && group->change.shrink->is_decided;
	pthread_mutex_unlock(&group->context->lock);
	return is_decided;
}

/*
 * A member without a channel for the new group would refuse each proposal, and all would go on proposing: so it does
 * not take part before it has one.
 */
static enum esp_status begin_agreement(struct comm *group, struct failure *failure)
{
	struct rank *context = group->context;
	uint32_t channel = comm_propose_channel(context, group, 0);

	if (channel == COMM_NO_CHANNEL && !has_verdict(group))
		return rank_failure_set(failure, ESP_ELIMIT, (int32_t)context->rank,
		                        "this rank has %u groups, which is all that there can be: free one, and call "
		                        "again",
		                        context->comms.most);
	struct start *command = calloc(1, sizeof(*command));
	if (!command)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory to shrink a group");
	command->group = group;
	command->channel = channel;
	comm_count_done(group, &command->everywhere, &command->somewhere);
	pthread_mutex_lock(&context->lock);
	comm_visit(group);
	pthread_mutex_unlock(&context->lock);
	if (control_run(context->control, start, command))
		return ESP_OK;
	pthread_mutex_lock(&context->lock);
	comm_depart(group);
	pthread_mutex_unlock(&context->lock);
	free(command);
	return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory to shrink a group");
}

static enum esp_status await_verdict(struct comm *group, uint64_t until, struct failure *failure)
{
	struct rank *context = group->context;
	enum esp_status status = ESP_OK;
	char who[RANK_TEXT];

	pthread_mutex_lock(&context->lock);
	while (!(group->change.shrink && group->change.shrink->is_decided) && !group->change.shrink_failed &&
	       clock_now_ns() < until)
		rank_wait(context, until);
	bool is_decided = group->change.shrink && group->change.shrink->is_decided;
	uint32_t waits_for = group->change.shrink ? group->change.shrink->waits_for : NO_RANK;
	if (group->change.shrink_failed)
		status = rank_failure_set(failure, ESP_ENOMEM, -1, "no memory to shrink a group");
	else if (!is_decided && waits_for == NO_RANK)
		status = rank_failure_set(failure, ESP_ETIMEOUT, -1,
		                          "the members of the group have not agreed on the survivors in time");
	else if (!is_decided)
		status = rank_failure_set(failure, ESP_ETIMEOUT, (int32_t)waits_for,
		                          "%s has not called esp_group_shrink() for this group in time",
		                          rank_text(context, waits_for, who));
	pthread_mutex_unlock(&context->lock);
	return status;
}

/* It is decided: no thread changes the agreement any more, so it can be read by any thread. */
static void fill_report(const struct shrink *shrink, struct shrink_report *report)
{
	const struct agreement *agreement = &shrink->agreement;

	report->completed_everywhere = agreement->accepted.everywhere;
	report->completed_somewhere = agreement->accepted.somewhere;
	report->lost_count = 0;
	for (uint32_t i = 0; i < shrink->group->size; i++) {
		if (agreement_includes(agreement, i))
			continue;
		if (report->lost_count < report->lost_room)
			report->lost[report->lost_count] = i;
		report->lost_count++;
	}
}

/* False: another caller has it. */
static bool take_result(struct shrink *shrink, struct comm **out)
{
	struct rank *context = shrink->group->context;

	pthread_mutex_lock(&context->lock);
	bool is_ours = !shrink->is_taken;
	shrink->is_taken = true;
	if (is_ours)
		*out = shrink->result;
	pthread_mutex_unlock(&context->lock);
	return is_ours;
}

/* as_late: a member that has no channel for another group waits as the others do, and takes no part. */
static enum esp_status agree(struct comm *group, int64_t deadline_ns, bool as_late, struct shrink_report *report,
                             struct failure *failure)
{
	struct rank *context = group->context;
	char who[RANK_TEXT], why[CONTROL_TEXT];
	uint64_t patience = deadline_ns > 0 ? (uint64_t)deadline_ns : context->conf.deadline_seconds * NS_PER_S;
	uint64_t until = clock_now_ns() + patience;

	if (atomic_load(&group->fail.status) == ESP_OK) {
		snprintf(why, sizeof(why), "%s shrinks the group", rank_text(context, context->rank, who));
		comm_fail(group, ESP_EABORTED, (int32_t)context->rank, why, true);
	}
	enum esp_status status = await_end_of_calls(group, until, failure);
	if (status == ESP_OK)
		status = begin_agreement(group, failure);
	bool is_late = as_late && status == ESP_ELIMIT;
	const struct failure lack = is_late ? *failure : FAILURE_NONE;
	if (status == ESP_OK || is_late)
		status = await_verdict(group, until, failure);
	if (status == ESP_ETIMEOUT && is_late)
		return rank_failure_set(failure, status, lack.rank, "%s", lack.text);
	if (status != ESP_OK)
		return status;
	struct shrink *shrink = group->change.shrink;
	fill_report(shrink, report);
	if (shrink->agreement.accepted.flags & VERDICT_NO_QUORUM)
		return rank_failure_set(failure, ESP_EQUORUM, -1, "%u of %u ranks are left, which are too few to go on%s",
		                        group->size - report->lost_count, group->size,
		                        context->conf.quorum ? ": the setting quorum asks for more than half" : "");
	if (!shrink->agreement.goes_on)
		return rank_failure_set(failure, ESP_EEXCLUDED, (int32_t)context->rank,
		                        "the others go on without this rank, of which they had heard nothing for too long");
	return ESP_OK;
}

enum esp_status comm_agree(struct comm *group, int64_t deadline_ns, struct shrink_report *report,
                           struct failure *failure)
{
	return agree(group, deadline_ns, true, report, failure);
}

enum esp_status comm_shrink(struct comm *group, int64_t deadline_ns, struct comm **out, struct shrink_report *report,
                             struct failure *failure)
{
	pthread_mutex_lock(&group->context->lock);
	bool has_grown = group->change.has_grown;
	group->fail.is_told = true; /* the caller that shrinks it knows */
	pthread_mutex_unlock(&group->context->lock);
	if (has_grown)
		return rank_failure_set(failure, ESP_ESTATE, -1,
		                        "this group has grown: shrink the world of the context that it has become");
	enum esp_status status = agree(group, deadline_ns, false, report, failure);
	if (status != ESP_OK)
		return status;
	if (!take_result(group->change.shrink, out))
		return rank_failure_set(failure, ESP_ESTATE, -1, "this group has been shrunk before");
	(void)comm_settle(*out, failure); /* if it fails, so has the new group, and the next call on it tells */
	return ESP_OK;
}

/* ---- the end ---- */

void shrink_fini(struct comm *group, bool is_closing)
{
	struct rank *context = group->context;
	struct shrink *shrink = group->change.shrink;
	char who[RANK_TEXT], why[CONTROL_TEXT];

	if (!shrink)
		return;
	if (is_closing)
		shrink->prepared = shrink->result = NULL;
	/* The verdict comes after the caller has given up, or came: the others shall not wait for us in the new group. */
	if (!shrink->prepared && !shrink->is_taken)
		shrink->prepared = shrink->result;
	if (shrink->prepared) {
		snprintf(why, sizeof(why), "%s has freed the group that was shrunk, and is not in the new one",
		         rank_text(context, context->rank, who));
		comm_fail(shrink->prepared, ESP_EABORTED, (int32_t)context->rank, why, true);
	}
	undo(shrink);
	pthread_mutex_lock(&context->lock);
	context->comms.shrinking -= !shrink->is_decided;
	pthread_mutex_unlock(&context->lock);
	if (shrink->is_decided)
		past_verdict_keep(group, &shrink->agreement);
	release(shrink);
	group->change.shrink = NULL;
}
