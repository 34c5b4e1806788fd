#include "runtime/stall.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "runtime/group.h"

#define LOOK_EVERY NS_PER_S
#define WORK_AGE (2 * NS_PER_S)    /* of a call that is looked after         */
#define TIMEOUTS 4u                /* in a row: some three seconds           */
#define SMALL_SEGMENT 600u         /* that passes everywhere                 */
#define KNOCK_PATIENCE (4 * NS_PER_S)
#define KNOCKS_MOST 3u
#define NO_PEER UINT32_MAX

bool stall_is_stuck(const struct tcp_stats *stats)
{
	return stats->has_path && stats->unacked > 0 && stats->timeouts >= TIMEOUTS;
}

bool stall_is_about_size(const struct tcp_stats *stats)
{
	return stall_is_stuck(stats) && stats->segment_bytes > SMALL_SEGMENT;
}

/* With the token of the lane: the connection to a peer; false: there is none. */
static bool read_stats(struct context *context, uint32_t lane, uint32_t peer, struct tcp_stats *out)
{
	struct driver *driver = &context->drivers[lane];
	bool known = false;

	if (!driver->tcp)
		return false;
	driver_acquire(driver);
	known = tcp_stats(driver->tcp, peer, out);
	driver_release(driver);
	return known;
}

static uint32_t find_stuck(struct context *context, uint32_t lane)
{
	struct driver *driver = &context->drivers[lane];
	struct tcp_stats stats;
	uint32_t found = NO_PEER;

	if (!driver->tcp)
		return NO_PEER;
	driver_acquire(driver);
	for (uint32_t i = 0; i < context->size && found == NO_PEER; i++) {
		bool is_ours = context->rails.count < 2 || detour_has_given_up(context, i, lane);

		if (is_ours && tcp_stats(driver->tcp, i, &stats) && stall_is_stuck(&stats))
			found = i;
	}
	driver_release(driver);
	return found;
}

static bool has_old_work(struct context *context, uint64_t now)
{
	bool found = false;

	pthread_mutex_lock(&context->lock);
	for (const struct work *work = context->live; work && !found; work = work->live_next)
		found = now > work->started_ns && now - work->started_ns >= WORK_AGE;
	pthread_mutex_unlock(&context->lock);
	return found;
}

void stall_look(struct context *context, uint64_t now)
{
	struct stall *stall = &context->stall;

	if (stall->knocks || now < stall->looked_ns + LOOK_EVERY || context->local_count == context->size)
		return;
	stall->looked_ns = now;
	if (!has_old_work(context, now))
		return;
	for (uint32_t lane = 0; lane < context->lanes && !stall->knocks; lane++) {
		uint32_t peer = find_stuck(context, lane);

		if (peer == NO_PEER)
			continue;
		if (peer != stall->peer || lane != stall->lane)
			stall->unanswered = 0;
		stall->knocks = true;
		stall->peer = peer;
		stall->lane = lane;
		steward_dial_probe(context->steward, peer, lane % context->rails.count, KNOCK_PATIENCE);
	}
	if (!stall->knocks)
		stall->unanswered = 0;
}

/* With the lock held: a group that waits, with that rank as a member. It is visited. */
static struct group *waiting_group_with(struct context *context, uint32_t rank)
{
	for (struct work *work = context->live; work; work = work->live_next) {
		if (atomic_load(&work->group->failed) == ESP_OK && group_has(work->group, rank)) {
			group_visit(work->group);
			return work->group;
		}
	}
	return NULL;
}

void stall_fail(struct context *context, uint32_t rank, const char *why)
{
	struct group *group;

	log_write(&context->log, LOG_LEVEL_WARN, LOG_NET, "%s", why);
	pthread_mutex_lock(&context->lock);
	while ((group = waiting_group_with(context, rank))) {
		pthread_mutex_unlock(&context->lock);
		group_fail(group, ESP_ELINK, (int32_t)rank, why, true);
		pthread_mutex_lock(&context->lock);
		group_depart(group);
	}
	pthread_mutex_unlock(&context->lock);
}

static void on_silence(struct context *context, const struct error *why)
{
	struct stall *stall = &context->stall;
	char who[RANK_TEXT], text[CONTROL_TEXT];
	bool gives_up = context->rails.count > 1 && ++stall->unanswered >= KNOCKS_MOST;

	context_rank_text(context, stall->peer, who);
	snprintf(text, sizeof(text), "nothing gets through to %.60s any more: %.120s", who, why->text);
	if (gives_up)
		stall_fail(context, stall->peer, text);
	else if (!stall->was_told)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_NET, "%s", text);
	stall->was_told = true;
}

void stall_answered(struct context *context, uint32_t peer, uint32_t rail, const struct error *why)
{
	struct stall *stall = &context->stall;
	struct tcp_stats stats;
	char who[RANK_TEXT], text[CONTROL_TEXT];

	if (!stall->knocks || peer != stall->peer || rail != stall->lane % context->rails.count)
		return;
	stall->knocks = false;
	if (!read_stats(context, stall->lane, peer, &stats) || !stall_is_stuck(&stats))
		return; /* it moves again, or is gone */
	if (why) {
		on_silence(context, why);
	} else if (stall_is_about_size(&stats)) {
		snprintf(text, sizeof(text), "large packets to %.60s do not arrive, small ones do: is an MTU on the way smaller than %u? Set "
		         "segment_bytes=%u, or the MTU of the interface; espalier doctor finds the largest that passes",
		         context_rank_text(context, peer, who), stats.path_mtu, stats.segment_bytes > 1200 ? 1200u : 500u);
		stall_fail(context, peer, text);
	}
}
