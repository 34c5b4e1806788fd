#include "rank/rail/blackhole.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "rank/comm/comm.h"

#define LOOK_EVERY NS_PER_S
#define WORK_AGE (2 * NS_PER_S)    /* of a call that is looked after         */
#define TIMEOUTS 4u                /* in a row: some three seconds           */
#define SMALL_SEGMENT 600u         /* that passes everywhere                 */
#define KNOCK_PATIENCE (4 * NS_PER_S)
#define KNOCKS_MOST 3u
#define SOUNDINGS 2u               /* lost in a row, each some times over: that is no bad luck */
#define SOUNDING_MOST 65536u
#define NO_PEER UINT32_MAX

bool stall_has_lasted(uint64_t unanswered_ns, uint64_t now, uint32_t liveness_ms)
{
	return now - unanswered_ns >= liveness_ms * NS_PER_MS;
}

bool stall_is_stuck(const struct tcp_stats *stats)
{
	return stats->has_path && stats->unacked > 0 && stats->timeouts >= TIMEOUTS;
}

bool stall_may_be_about_size(const struct tcp_stats *stats)
{
	return stall_is_stuck(stats) && stats->segment_bytes > SMALL_SEGMENT;
}

enum stall_sounding stall_sounding(const struct tcp_stats *stats)
{
	if (stats->unacked == 0)
		return SOUNDING_ARRIVED;
	return stats->timeouts >= TIMEOUTS ? SOUNDING_LOST : SOUNDING_UNDER_WAY;
}

void stall_fini(struct stall *stall)
{
	if (stall->sounds)
		close(stall->fd);
	stall->sounds = false;
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

static void look_at_sounding(struct context *context);

void stall_look(struct context *context, uint64_t now)
{
	struct stall *stall = &context->stall;

	if (stall->knocks || now < stall->looked_ns + LOOK_EVERY || context->local_count == context->size)
		return;
	stall->looked_ns = now;
	if (stall->sounds) {
		look_at_sounding(context);
		return;
	}
	if (!has_old_work(context, now))
		return;
	for (uint32_t lane = 0; lane < context->lanes && !stall->knocks; lane++) {
		uint32_t peer = find_stuck(context, lane);

		if (peer == NO_PEER)
			continue;
		if (peer != stall->peer || lane != stall->lane)
			stall->unanswered = stall->lost = 0;
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
	uint64_t now = clock_now_ns();

	if (stall->unanswered++ == 0)
		stall->unanswered_ns = now;
	bool gives_up = context->rails.count > 1 && stall->unanswered >= KNOCKS_MOST;
	bool has_lasted = stall_has_lasted(stall->unanswered_ns, now, context->conf.liveness_ms);

	context_rank_text(context, stall->peer, who);
	snprintf(text, sizeof(text), "nothing gets through to %.60s any more: %.120s", who, why->text);
	if (gives_up)
		stall_fail(context, stall->peer, text);
	else if (!stall->was_told && has_lasted)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_NET, "%s", text);
	stall->was_told = stall->was_told || gives_up || has_lasted;
}

/* ---- is it the size? ---- */

/* As much as fits into one packet. False: it does not leave, so nothing is learned. */
static bool send_large(int fd)
{
	static const uint8_t nothing[SOUNDING_MOST];
	struct tcp_stats stats = {0};

	tcp_path(fd, &stats);
	size_t n = stats.segment_bytes < sizeof(nothing) ? stats.segment_bytes : sizeof(nothing);
	return n > 0 && send(fd, nothing, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

static void on_lost(struct context *context, const struct tcp_stats *stats)
{
	struct stall *stall = &context->stall;
	char who[RANK_TEXT], text[CONTROL_TEXT];

	if (++stall->lost < SOUNDINGS)
		return;
	stall->lost = 0;
	snprintf(text, sizeof(text), "large packets to %.60s do not arrive, small ones do: is an MTU on the way smaller than %u? Set "
	         "segment_bytes=%u, or the MTU of the interface; espalier doctor finds the largest that passes",
	         context_rank_text(context, stall->peer, who), stats->path_mtu, stats->segment_bytes > 1200 ? 1200u : 500u);
	stall_fail(context, stall->peer, text);
}

static void look_at_sounding(struct context *context)
{
	struct stall *stall = &context->stall;
	struct tcp_stats stats, sounding = {0};
	bool is_stuck = read_stats(context, stall->lane, stall->peer, &stats) && stall_may_be_about_size(&stats) &&
	                stats.acked_bytes == stall->acked_bytes;

	tcp_path(stall->fd, &sounding);
	enum stall_sounding what = is_stuck ? stall_sounding(&sounding) : SOUNDING_ARRIVED;
	if (what == SOUNDING_UNDER_WAY)
		return;
	stall_fini(stall);
	if (what == SOUNDING_LOST)
		on_lost(context, &stats);
	else
		stall->lost = 0;
}

void stall_answered(struct context *context, uint32_t peer, uint32_t rail, int fd, const struct error *why)
{
	struct stall *stall = &context->stall;
	struct tcp_stats stats;

	if (!stall->knocks || peer != stall->peer || rail != stall->lane % context->rails.count) {
		if (fd >= 0)
			close(fd);
		return;
	}
	stall->knocks = false;
	bool is_stuck = read_stats(context, stall->lane, peer, &stats) && stall_is_stuck(&stats); /* or it moves again, or is gone */
	if (is_stuck && why)
		on_silence(context, why);
	if (is_stuck && fd >= 0 && stall_may_be_about_size(&stats) && send_large(fd)) {
		if (stats.acked_bytes != stall->acked_bytes)
			stall->lost = 0;
		stall->acked_bytes = stats.acked_bytes;
		stall->sounds = true;
		stall->fd = fd;
	} else if (fd >= 0) {
		close(fd);
	}
}
