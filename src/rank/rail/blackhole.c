#include "rank/rail/blackhole.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "rank/comm/comm.h"
#include "rank/rail/failover.h"
#include "transport/path.h"

#define CHECK_EVERY NS_PER_S
#define WORK_AGE (2 * NS_PER_S)    /* of a call for which connections are checked */
#define TIMEOUTS 4u                /* in a row: some three seconds */
#define SMALL_SEGMENT 600u         /* passes everywhere */
#define PROBE_PATIENCE (4 * NS_PER_S)
#define PROBES_MOST 3u
#define SIZE_PROBES 2u             /* lost in a row, each with its retransmissions: no bad luck */
#define SIZE_PROBE_MOST 65536u
#define NO_PEER UINT32_MAX

bool blackhole_has_lasted(uint64_t unanswered_ns, uint64_t now, uint32_t liveness_ms)
{
	return now - unanswered_ns >= liveness_ms * NS_PER_MS;
}

bool blackhole_is_stuck(const struct path_stats *stats)
{
	return stats->has_path && stats->unacked > 0 && stats->timeouts >= TIMEOUTS;
}

bool blackhole_may_be_about_size(const struct path_stats *stats)
{
	return blackhole_is_stuck(stats) && stats->segment_bytes > SMALL_SEGMENT;
}

enum blackhole_size_probe blackhole_size_probe(const struct path_stats *stats)
{
	if (stats->unacked == 0)
		return SIZE_PROBE_ARRIVED;
	return stats->timeouts >= TIMEOUTS ? SIZE_PROBE_LOST : SIZE_PROBE_UNDER_WAY;
}

void blackhole_fini(struct blackhole *blackhole)
{
	if (blackhole->is_probing_size)
		close(blackhole->fd);
	blackhole->is_probing_size = false;
}

/* Reads the statistics of the connection to a peer, with the lane's token; false: there is none. */
static bool read_stats(struct rank *context, uint32_t lane, uint32_t peer, struct path_stats *out)
{
	struct progress *progress = &context->progress.lanes[lane];
	bool known = false;

	if (!progress_has_paths(progress))
		return false;
	progress_acquire(progress);
	known = progress_path(progress, peer, out);
	progress_release(progress);
	return known;
}

static uint32_t find_stuck(struct rank *context, uint32_t lane)
{
	struct progress *progress = &context->progress.lanes[lane];
	struct path_stats stats;
	uint32_t found = NO_PEER;

	if (!progress_has_paths(progress))
		return NO_PEER;
	progress_acquire(progress);
	for (uint32_t i = 0; i < context->size && found == NO_PEER; i++) {
		bool is_ours = context->rails.count < 2 || failover_has_given_up(context, i, lane);

		if (is_ours && progress_path(progress, i, &stats) && blackhole_is_stuck(&stats))
			found = i;
	}
	progress_release(progress);
	return found;
}

static bool has_old_work(struct rank *context, uint64_t now)
{
	bool found = false;

	pthread_mutex_lock(&context->lock);
	for (const struct work *work = context->comms.live; work && !found; work = work->link.live_next)
		found = now > work->time.started_ns && now - work->time.started_ns >= WORK_AGE;
	pthread_mutex_unlock(&context->lock);
	return found;
}

static void check_size_probe(struct rank *context);

void blackhole_check(struct rank *context, uint64_t now)
{
	struct blackhole *blackhole = context->mod.blackhole;

	if (blackhole->is_probing || now < blackhole->checked_ns + CHECK_EVERY ||
	    context->near.local_count == context->size)
		return;
	blackhole->checked_ns = now;
	if (blackhole->is_probing_size) {
		check_size_probe(context);
		return;
	}
	if (!has_old_work(context, now))
		return;
	for (uint32_t lane = 0; lane < context->lanes && !blackhole->is_probing; lane++) {
		uint32_t peer = find_stuck(context, lane);

		if (peer == NO_PEER)
			continue;
		if (peer != blackhole->peer || lane != blackhole->lane)
			blackhole->unanswered = blackhole->lost = 0;
		blackhole->is_probing = true;
		blackhole->peer = peer;
		blackhole->lane = lane;
		control_dial_probe(context->control, peer, lane % context->rails.count, PROBE_PATIENCE);
	}
	if (!blackhole->is_probing)
		blackhole->unanswered = 0;
}

/* With context->lock: a communicator with waiting calls and that rank as a member, visited (comm_visit()). */
static struct comm *waiting_group_with(struct rank *context, uint32_t rank)
{
	for (struct work *work = context->comms.live; work; work = work->link.live_next) {
		if (atomic_load(&work->group->fail.status) == ESP_OK && comm_has(work->group, rank)) {
			comm_visit(work->group);
			return work->group;
		}
	}
	return NULL;
}

void blackhole_fail(struct rank *context, uint32_t rank, const char *why)
{
	struct comm *group;

	log_write(&context->log, LOG_LEVEL_WARN, LOG_NET, "%s", why);
	pthread_mutex_lock(&context->lock);
	while ((group = waiting_group_with(context, rank))) {
		pthread_mutex_unlock(&context->lock);
		comm_fail(group, ESP_ELINK, (int32_t)rank, why, true);
		pthread_mutex_lock(&context->lock);
		comm_depart(group);
	}
	pthread_mutex_unlock(&context->lock);
}

static void on_silence(struct rank *context, const struct error *why)
{
	struct blackhole *blackhole = context->mod.blackhole;
	char who[RANK_TEXT], text[CONTROL_TEXT];
	uint64_t now = clock_now_ns();

	if (blackhole->unanswered++ == 0)
		blackhole->unanswered_ns = now;
	bool gives_up = context->rails.count > 1 && blackhole->unanswered >= PROBES_MOST;
	bool has_lasted = blackhole_has_lasted(blackhole->unanswered_ns, now, context->conf.liveness_ms);

	rank_text(context, blackhole->peer, who);
	snprintf(text, sizeof(text), "nothing gets through to %.60s any more: %.120s", who, why->text);
	if (gives_up)
		blackhole_fail(context, blackhole->peer, text);
	else if (!blackhole->is_logged && has_lasted)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_NET, "%s", text);
	blackhole->is_logged = blackhole->is_logged || gives_up || has_lasted;
}

/* ---- size probes ---- */

/* Sends the most that fits into one packet. False: it was not sent, so nothing is learned. */
static bool send_large(int fd)
{
	static const uint8_t nothing[SIZE_PROBE_MOST];
	struct path_stats stats = {0};

	path_read(fd, &stats);
	size_t n = stats.segment_bytes < sizeof(nothing) ? stats.segment_bytes : sizeof(nothing);
	return n > 0 && send(fd, nothing, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

static void on_lost(struct rank *context, const struct path_stats *stats)
{
	struct blackhole *blackhole = context->mod.blackhole;
	char who[RANK_TEXT], text[CONTROL_TEXT];

	if (++blackhole->lost < SIZE_PROBES)
		return;
	blackhole->lost = 0;
	snprintf(text, sizeof(text),
	         "large packets to %.60s do not arrive, small ones do: is an MTU on the way smaller than %u? Set "
	         "segment_bytes=%u, or the MTU of the interface; espalier doctor finds the largest that passes",
	         rank_text(context, blackhole->peer, who), stats->path_mtu, stats->segment_bytes > 1200 ? 1200u : 500u);
	blackhole_fail(context, blackhole->peer, text);
}

static void check_size_probe(struct rank *context)
{
	struct blackhole *blackhole = context->mod.blackhole;
	struct path_stats stats, probe = {0};
	bool is_stuck = read_stats(context, blackhole->lane, blackhole->peer, &stats) &&
	                blackhole_may_be_about_size(&stats) && stats.acked_bytes == blackhole->acked_bytes;

	path_read(blackhole->fd, &probe);
	enum blackhole_size_probe what = is_stuck ? blackhole_size_probe(&probe) : SIZE_PROBE_ARRIVED;
	if (what == SIZE_PROBE_UNDER_WAY)
		return;
	blackhole_fini(blackhole);
	if (what == SIZE_PROBE_LOST)
		on_lost(context, &stats);
	else
		blackhole->lost = 0;
}

void blackhole_answered(struct rank *context, uint32_t peer, uint32_t rail, int fd, const struct error *why)
{
	struct blackhole *blackhole = context->mod.blackhole;
	struct path_stats stats;

	if (!blackhole->is_probing || peer != blackhole->peer || rail != blackhole->lane % context->rails.count) {
		if (fd >= 0)
			close(fd);
		return;
	}
	blackhole->is_probing = false;
	/* False if it moves again, or is gone. */
	bool is_stuck = read_stats(context, blackhole->lane, peer, &stats) && blackhole_is_stuck(&stats);
	if (is_stuck && why)
		on_silence(context, why);
	if (is_stuck && fd >= 0 && blackhole_may_be_about_size(&stats) && send_large(fd)) {
		if (stats.acked_bytes != blackhole->acked_bytes)
			blackhole->lost = 0;
		blackhole->acked_bytes = stats.acked_bytes;
		blackhole->is_probing_size = true;
		blackhole->fd = fd;
	} else if (fd >= 0) {
		close(fd);
	}
}
