#include "rank/rank_ends.h"

#include <stdio.h>

#include "base/clock.h"
#include "rank/comm/comm.h"
#include "rank/member/membership.h"

/* Dials the ranks that are powers of two ahead: news reaches all in few hops, and each rank has few connections. */
static uint32_t dial_overlay(struct rank *context)
{
	uint32_t dialled = 0;

	for (uint64_t step = 1; step < context->size; step *= 2) {
		uint32_t peer = (uint32_t)((context->rank + step) % context->size);

		control_dial_control(context->control, peer);
		dialled++;
	}
	return dialled;
}

static bool all_met(const struct rank *context)
{
	return context->opening.neighbours_missing == 0 && context->opening.controls_missing == 0;
}

/* With the lock held: the first rank of that fate which may be to blame; NO_RANK: there is none. */
static uint32_t find_fate(const struct rank *context, enum fate fate)
{
	for (uint32_t i = 0; i < context->size; i++) {
		if (context->fates.of[i] == fate && !context->fates.is_clueless[i])
			return i;
	}
	return NO_RANK;
}

/*
 * With the lock held: a rank is gone. The cause is a rank that has died, or one that is not heard of. A rank that has
 * left may have given up for the same reason as we do: if it knew that reason we have heard of it before (presence.h),
 * if it knew none it is not meant.
 */
static enum esp_status name_first_gone(const struct rank *context, struct failure *failure)
{
	char who[RANK_TEXT];
	uint32_t dead = find_fate(context, FATE_DEAD), silent = find_fate(context, FATE_SILENT),
	         left = find_fate(context, FATE_LEFT);
	uint32_t rank = dead != NO_RANK ? dead : silent != NO_RANK ? silent : left;

	if (rank == left)
		return rank_failure_set(failure, ESP_EPEER, (int32_t)rank, "%s gave up while the ranks connected to each other",
		                        rank_text(context, rank, who));
	return rank_failure_set(failure, ESP_EPEER, (int32_t)rank,
	                        "%s died, or cannot be reached, while the ranks connected to each other",
	                        rank_text(context, rank, who));
}

/*
 * With the lock held: this one has not connected to us, nor we to it, although we should be; or we wait for its
 * descriptors.
 */
static bool is_missing(const struct rank *context, uint32_t rank)
{
	uint32_t ahead = (rank + context->size - context->rank) % context->size, behind = context->size - ahead;
	bool is_expected = rank != context->rank && ((ahead & (ahead - 1)) == 0 || (behind & (behind - 1)) == 0);
	bool is_waited_for =
		rank != context->rank && context->near.local_self == 0 && context->near.local_of[rank] != NO_RANK;

	return context->fates.of[rank] == FATE_HERE && ((is_expected && !context->opening.has_met[rank]) ||
	                                                (is_waited_for && !context->opening.has_exchanged[rank]));
}

/*
 * With the lock held: the first missing rank, and how many there are. All ranks that are there connect to each other by
 * themselves, so a rank that has not is to blame if time is over.
 */
static uint32_t find_first_missing(const struct rank *context, uint32_t *out_count)
{
	uint32_t first = NO_RANK;

	*out_count = 0;
	for (uint32_t i = 0; i < context->size; i++) {
		if (is_missing(context, i) && (*out_count)++ == 0)
			first = i;
	}
	return first;
}

/*
 * With the lock held: the first rank that we dial and do not reach; NULL: there is none, or it is not known where it
 * was tried.
 */
static const struct unreachable *find_first_unreached(const struct rank *context)
{
	for (uint64_t step = 1; step < context->size; step *= 2) {
		uint32_t peer = (uint32_t)((context->rank + step) % context->size);

		if (!context->opening.has_reached[peer] && unreachable_find(&context->opening.unreached, peer))
			return unreachable_find(&context->opening.unreached, peer);
	}
	return NULL;
}

static enum esp_status name_first_missing(const struct rank *context, struct failure *failure)
{
	char who[RANK_TEXT], others[32] = "", text[CONTROL_TEXT];
	const struct unreachable *unreached = find_first_unreached(context);
	uint32_t missing, first = find_first_missing(context, &missing);

	if (unreached && !unreached->by_kernel)
		return rank_failure_set(failure, ESP_ETIMEOUT, (int32_t)unreached->rank, "%s",
		                        rank_unreached_text(context, unreached, text));
	/* The first rank of a host, from which the others get all descriptors, would have said which rank it waits for. */
	if (first == NO_RANK && context->opening.neighbours_missing > 0 && context->near.local_self > 0 &&
	    context->fates.of[context->near.rank_of[0]] == FATE_HERE)
		first = context->near.rank_of[0];
	if (first == NO_RANK)
		return rank_failure_set(failure, ESP_ETIMEOUT, -1, "the ranks did not all connect to each other in time");
	if (missing > 1)
		snprintf(others, sizeof(others), " and %u more", missing - 1);
	return rank_failure_set(failure, ESP_ETIMEOUT, (int32_t)first,
	                        "%s%s joined, but did not connect in time: stopped, or cut off",
	                        rank_text(context, first, who), others);
}

/* With the lock held: one does not answer, and not as it is busy or stopped. */
static bool knows_culprit(const struct rank *context)
{
	const struct unreachable *unreached = find_first_unreached(context);

	return unreached && !unreached->by_kernel;
}

static bool somebody_is_missing(const struct rank *context)
{
	uint32_t count;

	return find_first_missing(context, &count) != NO_RANK;
}

/* With the lock held: is there a reason to give up, or all to go on? */
static bool knows_outcome(const struct rank *context)
{
	return all_met(context) || context->opening.failure.status != ESP_OK ||
	       context->fates.gone > context->fates.clueless;
}

/*
 * A rank that knows more than that one is missing gives up a little before the others would, so that they hear of it.
 */
static uint64_t meet_until(uint64_t now, uint64_t deadline)
{
	uint64_t left = deadline > now ? deadline - now : 0;

	return deadline - (left / 4 < NS_PER_S / 2 ? left / 4 : NS_PER_S / 2);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t rank_farewell_ns(const struct rank *context, uint64_t now)
{
	uint64_t deadline = context->join.deadline_ns, left = deadline > now ? deadline - now : 0;

	return least(rank_patience_ns(context), left + rank_word_ns(context));
}

/*
 * With the lock held: until the outcome is known, or time is over. A rank whose time was over first and that did not
 * know which rank it waited for has left to hear that from others: a rank that knows gives up, too, and names it, which
 * all hear.
 */
static void await_outcome(struct rank *context)
{
	uint64_t deadline = context->join.deadline_ns, early = meet_until(clock_now_ns(), deadline);

	while (!knows_outcome(context)) {
		uint64_t now = clock_now_ns(), until = deadline;

		if (context->fates.clueless > 0 && context->fates.gone_ns + rank_word_ns(context) < until)
			until = context->fates.gone_ns + rank_word_ns(context);
		if (now >= until || (context->fates.clueless > 0 && somebody_is_missing(context)) ||
		    (now >= early && knows_culprit(context)))
			return;
		rank_wait(context, now < early && early < until ? early : until);
	}
}

/*
 * With the lock held: do we know whether rank 0 is there? It hands out the node infos of all: a missing rank may wait
 * for those in vain, and is not to blame then.
 */
static bool knows_leader(const struct rank *context)
{
	return context->rank == 0 || context->opening.has_met[0] || context->fates.of[0] != FATE_HERE ||
	       is_missing(context, 0);
}

/*
 * With the lock held: how long to wait for an answer. A rank that could name another, and only is not sure, does so
 * when half of the time is over and none has been named: ranks that know nothing hear it while they still wait.
 */
static uint64_t answer_ns(const struct rank *context)
{
	return somebody_is_missing(context) ? rank_word_ns(context) / 2 : rank_word_ns(context);
}

/*
 * With the lock held, but for a moment: time is over, and we know no culprit, as all descriptors wait for one rank, or
 * we are not sure: others shall tell us. Returns whether they were asked; then there is no way back.
 */
static bool ask_others(struct rank *context)
{
	if (knows_outcome(context) || knows_culprit(context) || (somebody_is_missing(context) && knows_leader(context)))
		return false;
	pthread_mutex_unlock(&context->lock);
	membership_leave(context, PRESENCE_CLUELESS);
	pthread_mutex_lock(&context->lock);
	uint64_t asked = clock_now_ns(), until = asked + answer_ns(context);
	while (context->opening.failure.status == ESP_OK && context->fates.gone == context->fates.clueless &&
	       clock_now_ns() < until) {
		rank_wait(context, until);
		until = asked + answer_ns(context);
	}
	return true;
}

/* With the lock held: one has ended, perhaps as rank 0 had before it handed out the node infos. */
static bool may_blame_leader(const struct rank *context)
{
	return context->opening.found_ended && context->opening.failure.rank > 0 && context->rank != 0 &&
	       !context->opening.has_met[0];
}

bool rank_doubts_culprit(const struct rank *context)
{
	return may_blame_leader(context) && context->fates.of[0] == FATE_HERE;
}

/* With the lock held: no longer than others would be asked. */
static void await_leader(struct rank *context)
{
	uint64_t until = least(clock_now_ns(), context->join.deadline_ns) + rank_word_ns(context);

	while (rank_doubts_culprit(context) && clock_now_ns() < until)
		rank_wait(context, until);
}

enum esp_status rank_meet(struct rank *context, struct failure *failure)
{
	pthread_mutex_lock(&context->lock);
	context->opening.neighbours_missing += context->near.local_count - 1;
	pthread_mutex_unlock(&context->lock);
	if (context->near.local_self > 0)
		control_dial_fds(context->control);
	uint32_t dialled = dial_overlay(context);
	pthread_mutex_lock(&context->lock);
	context->opening.controls_missing += dialled;
	await_outcome(context);
	bool is_met = !ask_others(context) && all_met(context);
	await_leader(context);
	enum esp_status status = context->opening.failure.status;
	bool is_leaders_fault = may_blame_leader(context) && context->fates.of[0] == FATE_DEAD;
	if (status != ESP_OK && !is_leaders_fault)
		*failure = context->opening.failure;
	else if (is_leaders_fault || (!is_met && context->fates.gone > context->fates.clueless))
		status = name_first_gone(context, failure);
	else if (!is_met)
		status = name_first_missing(context, failure);
	context->opening.have_all_met = status == ESP_OK;
	bool tells = status != ESP_OK && knows_culprit(context);
	pthread_mutex_unlock(&context->lock);
	/* a rank that we do not reach may have reached us, and waits: it hears the cause, which it cannot know */
	if (tells)
		comm_fail(context->world, status, failure->rank, failure->text, true);
	return status;
}

void rank_end_work(struct rank *context)
{
	uint64_t until = clock_now_ns() + rank_patience_ns(context);

	pthread_mutex_lock(&context->lock);
	for (struct comm *group = context->comms.list; group; group = group->next) {
		if (group->unfinished == 0)
			continue;
		comm_visit(group);
		pthread_mutex_unlock(&context->lock);
		comm_fail(group, ESP_EABORTED, (int32_t)context->rank, "the context was closed with calls unfinished", false);
		pthread_mutex_lock(&context->lock);
		comm_depart(group);
	}
	while (context->comms.live && clock_now_ns() < until)
		rank_wait(context, until);
	pthread_mutex_unlock(&context->lock);
}

/* The ranks that are still here may not need data that we have sent: most likely they never call esp_fini(). */
static void tell_given_up(struct rank *context, uint32_t missing)
{
	char who[RANK_TEXT], others[32] = "";
	uint32_t rank = 0;

	while (rank + 1 < context->size && (rank == context->rank || context->fates.of[rank] != FATE_HERE))
		rank++;
	if (missing > 1)
		snprintf(others, sizeof(others), " and %u more", missing - 1);
	log_write(&context->log, LOG_LEVEL_WARN, LOG_NET,
	          "esp_fini: %s%s did not leave within linger_seconds (%u), and cannot get anything from "
	          "this rank any more",
	          rank_text(context, rank, who), others, context->conf.linger_seconds);
}

bool rank_is_needed(struct rank *context)
{
	bool found = false;

	pthread_mutex_lock(&context->lock);
	for (const struct comm *group = context->comms.list; group; group = group->next)
		found = found || (group->size > 1 && atomic_load(&group->fail.status) == ESP_OK);
	pthread_mutex_unlock(&context->lock);
	return found;
}

enum esp_status rank_tell_last_calls(struct rank *context, struct failure *failure)
{
	const struct comm *world = context->world;
	struct call_note none = {0};

	pthread_mutex_lock(&context->lock);
	bool is_unheard = atomic_load(&world->fail.status) == ESP_EMISMATCH && !world->fail.is_told;
	if (is_unheard)
		rank_failure_set(failure, ESP_EMISMATCH, comm_culprit(world, &none), "%s", world->fail.reason.failed.text);
	pthread_mutex_unlock(&context->lock);
	return is_unheard ? ESP_EMISMATCH : ESP_OK;
}

void rank_leave(struct rank *context, uint64_t patience_ns)
{
	uint64_t until = clock_now_ns() + patience_ns;

	membership_leave(context, "");
	pthread_mutex_lock(&context->lock);
	while ((context->fates.gone < context->size - 1 || !context->fates.has_left) && clock_now_ns() < until)
		rank_wait(context, until);
	uint32_t missing = context->size - 1 - context->fates.gone;
	/* Not of a job that has failed, nor where no rank is to be waited for. */
	if (missing > 0 && patience_ns > 0 && patience_ns == context->conf.linger_seconds * NS_PER_S)
		tell_given_up(context, missing);
	pthread_mutex_unlock(&context->lock);
}
