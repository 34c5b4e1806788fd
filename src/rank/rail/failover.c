#include "rank/rail/failover.h"

#include <assert.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rank/rail/bandwidth.h"
#include "rank/rail/blackhole.h"
#include "rank/state.h"
#include "transport/path.h"

#define PROGRESS 4096u /* acknowledged bytes that count as progress: more than the greeting of a connection */
#define RESETS_MOST 8u /* in a row, without progress, of connections on the only rail */

/* ---- pure ---- */

uint32_t failover_order(const uint32_t *weights, uint32_t rails, uint32_t bad, uint32_t preferred, uint8_t *out)
{
	uint32_t count = 0, good = 0;

	for (uint32_t rail = 0; rail < rails; rail++) {
		uint32_t at = count++;
		uint64_t worth = rail == preferred ? UINT64_MAX >> 1 : weights[rail];

		for (; at > 0; at--) {
			uint32_t other = out[at - 1];
			bool other_is_bad = bad >> other & 1 || weights[other] == 0, is_bad = bad >> rail & 1 || weights[rail] == 0;
			uint64_t other_worth = other == preferred ? UINT64_MAX >> 1 : weights[other];

			if (other_is_bad != is_bad ? !other_is_bad : other_worth >= worth)
				break;
			out[at] = (uint8_t)other;
		}
		out[at] = (uint8_t)rail;
		good += !(bad >> rail & 1) && weights[rail] > 0;
	}
	return good;
}

/* ---- names ---- */

static struct failover_lane *lane_of(const struct rank *context, uint32_t peer, uint32_t lane)
{
	return &context->mod.failover->lanes[(size_t)peer * context->lanes + lane];
}

static const char *rail_name(const struct rank *context, uint32_t rail, char text[INTERFACE_NAME])
{
	const struct interface *interface = NULL;

	if (rail < context->rails.count)
		interface = interfaces_find(&context->listener.interfaces,
		                            rails_address(&context->rails, &context->roster, context->rank, rail));
	snprintf(text, INTERFACE_NAME, "%s", interface ? interface->name : "another way");
	return text;
}

static uint8_t *bits_of(const struct rank *context, uint8_t *by_host, uint32_t peer)
{
	return &by_host[context->roster.host_of[peer]];
}

/* ---- life ---- */

/* The kernel reports every change of an interface. Without that, connections without progress show it, but later. */
static int open_links(void)
{
	struct sockaddr_nl name = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (struct sockaddr *)&name, sizeof(name)) != 0) {
		close(fd);
		return -1;
	}
	return fd;
}

enum esp_status failover_open(struct rank *context, struct failure *failure)
{
	struct failover *failover = context->mod.failover;

	failover->netlink_fd = -1;
	if (!rank_resumes(context))
		return ESP_OK;
	failover->lanes = calloc((size_t)context->size * context->lanes, sizeof(*failover->lanes));
	failover->bad = calloc(context->roster.hosts, 1);
	failover->logged = calloc(context->roster.hosts, 1);
	if (!failover->lanes || !failover->bad || !failover->logged)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for the connections of %u ranks", context->size);
	for (uint32_t i = 0; i < context->size * context->lanes; i++)
		failover->lanes[i].rail = FAILOVER_NONE;
	if (context->rails.count > 1)
		failover->netlink_fd = open_links();
	return ESP_OK;
}

void failover_close(struct rank *context)
{
	struct failover *failover = context->mod.failover;

	if (failover->lanes && failover->netlink_fd >= 0)
		close(failover->netlink_fd);
	free(failover->lanes);
	free(failover->bad);
	free(failover->logged);
	*failover = (struct failover){.netlink_fd = -1};
}

/* ---- leaving a rail ---- */

/* A request to the lower one of two ranks, which makes the connections between them. */
static void send_request(struct rank *context, uint32_t peer, enum control_type type, uint32_t about)
{
	struct control_msg msg = {.type = (uint8_t)type, .from = context->rank, .about = context->rank};

	if (type == CONTROL_MOVE)
		msg.rail.rail = about;
	else
		msg.lane.lane = about;
	control_send(context->control, peer, &msg);
}

static void move_lane(struct rank *context, uint32_t peer, uint32_t lane)
{
	struct failover_lane *at = lane_of(context, peer, lane);

	if (at->moves)
		return;
	at->moves = true;
	if (at->tries < UINT8_MAX)
		at->tries++;
	control_dial_again(context->control, peer, lane, rank_interval_ns(context) / 2);
}

/* Moves all connections to that rank on this rail to others. why: for the log, one line. */
static void leave_rail(struct rank *context, uint32_t peer, uint32_t rail, const char *why)
{
	struct failover *failover = context->mod.failover;
	char who[RANK_TEXT], name[INTERFACE_NAME];
	bool asks = false;

	if (rail >= context->rails.count)
		return;
	if (!(*bits_of(context, failover->bad, peer) >> rail & 1))
		log_write(&context->log, LOG_LEVEL_INFO, LOG_NET, "%s: %s through %s is left", why,
		          rank_text(context, peer, who), rail_name(context, rail, name));
	*bits_of(context, failover->bad, peer) |= (uint8_t)(1u << rail);
	for (uint32_t lane = 0; lane < context->lanes; lane++) {
		if (lane_of(context, peer, lane)->rail != rail || failover_has_given_up(context, peer, lane))
			continue;
		asks = asks || context->rank > peer;
		if (context->rank < peer)
			move_lane(context, peer, lane);
	}
	if (asks)
		send_request(context, peer, CONTROL_MOVE, rail);
	control_leave_rail(context->control, peer, rail);
}

bool failover_has_given_up(const struct rank *context, uint32_t peer, uint32_t lane)
{
	/* Each rail is tried twice. If there is only one, a middlebox may reset several connections with little data. */
	uint32_t most = context->rails.count > 1 ? 2 * context->rails.count : RESETS_MOST;

	return context->mod.failover->lanes && lane_of(context, peer, lane)->tries > most;
}

/* ---- the own interfaces ---- */

static bool has_link(int fd, const char *name)
{
	struct ifreq request = {0};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (ioctl(fd, SIOCGIFFLAGS, &request) != 0)
		return false;
	return (request.ifr_flags & IFF_UP) && (request.ifr_flags & IFF_RUNNING);
}

static void leave_all(struct rank *context, uint32_t rail)
{
	for (uint32_t peer = 0; peer < context->size; peer++) {
		if (peer != context->rank && context->roster.host_of[peer] != context->roster.host_of[context->rank])
			leave_rail(context, peer, rail, "the interface has no link any more");
	}
}

static void check_link(struct rank *context, uint32_t rail)
{
	struct failover *failover = context->mod.failover;
	uint8_t bit = (uint8_t)(1u << rail);
	char name[INTERFACE_NAME];
	bool was_down = failover->down & bit, is_down = !has_link(failover->netlink_fd, rail_name(context, rail, name));

	if (was_down == is_down)
		return;
	failover->down = (uint8_t)(is_down ? failover->down | bit : failover->down & ~bit);
	log_write(&context->log, is_down ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, LOG_NET, "%s has %s link", name,
	          is_down ? "no" : "a");
	if (is_down)
		leave_all(context, rail);
}

void failover_links_changed(void *argument)
{
	struct rank *context = argument;
	char ignored[8192];

	/* The messages only show that an interface has changed; so does ENOBUFS, when there were too many. */
	while (recv(context->mod.failover->netlink_fd, ignored, sizeof(ignored), MSG_DONTWAIT) > 0 || errno == ENOBUFS ||
	       errno == EINTR)
		;
	for (uint32_t rail = 0; rail < context->rails.count; rail++)
		check_link(context, rail);
}

/* ---- checks ---- */

/* Reads the statistics of the lane's connections, with its token. */
static void check_lane(struct rank *context, uint32_t lane, uint64_t now)
{
	struct progress *progress = &context->progress.lanes[lane];

	if (!progress_has_paths(progress))
		return;
	progress_acquire(progress);
	for (uint32_t peer = 0; peer < context->size; peer++) {
		struct failover_lane *at = lane_of(context, peer, lane);
		struct path_stats stats;
		bool known = progress_path(progress, peer, &stats);

		bool has_others = context->rails.count > 1; /* a dead rail is left only if there is another */
		at->is_severed = known && (stats.is_reset || (stats.is_severed && !has_others));
		at->is_stuck =
			known && has_others &&
			(path_waits_in_vain(&at->patience, &stats, now, rank_interval_ns(context) / 4) || stats.is_severed);
		at->has_carried = known && stats.acked_bytes > PROGRESS;
		if (known && !at->is_stuck && !at->is_severed && stats.acked_bytes > PROGRESS)
			at->tries = 0;
	}
	progress_release(progress);
}

static void on_stuck(struct rank *context, uint32_t peer, uint32_t lane, uint64_t now)
{
	struct failover_lane *at = lane_of(context, peer, lane);
	char who[RANK_TEXT], name[INTERFACE_NAME], text[CONTROL_TEXT];

	if (at->stuck_ns == 0)
		at->stuck_ns = now;
	if (now - at->stuck_ns < rank_interval_ns(context) / 2) {
		leave_rail(context, peer, at->rail, "nothing gets through");
		return;
	}
	at->stuck_ns = 0;
	snprintf(text, sizeof(text), "nothing gets through to %.60s any more: neither through %s nor another way",
	         rank_text(context, peer, who), rail_name(context, at->rail, name));
	blackhole_fail(context, peer, text);
}

/* The connection cannot be replaced: the lane loses the peer, which is then handled as without failover. */
static void give_up(struct rank *context, uint32_t peer, uint32_t lane, const char *why)
{
	char who[RANK_TEXT];

	log_write(&context->log, LOG_LEVEL_WARN, LOG_NET, "the connection for data of lane %u to %s was reset, and %s",
	          lane, rank_text(context, peer, who), why);
	progress_send(&context->progress.lanes[lane],
	              &(struct progress_cmd){.kind = PROGRESS_DROP, .peer = peer, .status = ESP_ELINK});
}

/* The connection was reset, or has no route: replaces it. All ranks learn of a dead rank by other means. */
static void on_severed(struct rank *context, uint32_t peer, uint32_t lane, uint64_t now)
{
	struct failover_lane *at = lane_of(context, peer, lane);

	if (context->fates.of[peer] != FATE_HERE || context->member.presence.is_leaving || at->has_given_up)
		return;
	if (at->moves && now < at->stuck_ns + rank_interval_ns(context) / 2)
		return;
	if (!at->moves && at->has_carried) /* any number of resets is fine if data gets through in between */
		at->tries = 0;
	if (failover_has_given_up(context, peer, lane)) {
		at->has_given_up = true;
		give_up(context, peer, lane, "so are those that are made in its place");
		return;
	}
	at->stuck_ns = now;
	at->was_reset = true;
	if (context->rank < peer) {
		move_lane(context, peer, lane);
	} else {
		at->moves = true;
		at->tries = (uint8_t)(at->tries < UINT8_MAX ? at->tries + 1 : UINT8_MAX);
		send_request(context, peer, CONTROL_RENEW, lane);
	}
}

static void on_control_stuck(void *argument, uint32_t peer, uint32_t rail)
{
	struct rank *context = argument;

	if (rail == ROUTE_ANY)
		control_leave_rail(context->control, peer, ROUTE_ANY);
	else
		leave_rail(context, peer, rail, "nothing gets through");
}

uint64_t failover_turn(struct rank *context, uint64_t now)
{
	struct failover *failover = context->mod.failover;
	uint64_t pause = rank_interval_ns(context) / 16;

	if (!failover->lanes)
		return UINT64_MAX;
	if (now < failover->checked_ns + pause)
		return failover->checked_ns + pause;
	failover->checked_ns = now;
	for (uint32_t lane = 0; lane < context->lanes; lane++) {
		check_lane(context, lane, now);
		for (uint32_t peer = 0; peer < context->size; peer++) {
			if (lane_of(context, peer, lane)->is_severed)
				on_severed(context, peer, lane, now);
			else if (lane_of(context, peer, lane)->is_stuck && !failover_has_given_up(context, peer, lane))
				on_stuck(context, peer, lane, now);
			else
				lane_of(context, peer, lane)->stuck_ns = 0;
		}
	}
	if (context->rails.count < 2)
		return now + pause;
	control_find_stuck(context->control, now, rank_interval_ns(context) / 4, on_control_stuck);
	return now + pause;
}

/* ---- the control's events ---- */

uint32_t failover_rail(void *argument, uint32_t peer, uint32_t lane, uint32_t attempt)
{
	struct rank *context = argument;
	static const uint32_t unknown[] = {1, 1, 1, 1, 1, 1, 1, 1}; /* while rails are measured */
	static_assert(sizeof(unknown) / sizeof(unknown[0]) == RAILS_MOST, "a weight for each rail");
	const uint32_t *weights = atomic_load(&context->mod.bandwidth->settled) ? context->mod.bandwidth->weights : unknown;
	uint32_t preferred = lane % context->rails.count;
	uint8_t order[RAILS_MOST];

	if (!context->mod.failover->lanes)
		return (preferred + attempt) % context->rails.count;
	uint32_t bad = *bits_of(context, context->mod.failover->bad, peer) | context->mod.failover->down;
	uint32_t good = failover_order(weights, context->rails.count, bad, preferred, order);
	return order[attempt % (attempt < 2 * good ? good : context->rails.count)];
}

void failover_late(void *argument, uint32_t peer, uint32_t rail)
{
	struct rank *context = argument;

	if (context->mod.failover->lanes && rail < context->rails.count)
		*bits_of(context, context->mod.failover->bad, peer) |= (uint8_t)(1u << rail);
}

bool failover_has_made(const struct rank *context, uint32_t peer, uint32_t lane)
{
	return context->mod.failover->lanes && lane_of(context, peer, lane)->is_made;
}

void failover_connected(struct rank *context, uint32_t peer, uint32_t lane, uint32_t rail, bool again)
{
	struct failover *failover = context->mod.failover;
	char who[RANK_TEXT], from[INTERFACE_NAME], to[INTERFACE_NAME];

	if (!failover->lanes)
		return;
	struct failover_lane *at = lane_of(context, peer, lane);
	uint32_t before = at->rail;
	if (again && at->was_reset)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_NET,
		          "the connection for data of lane %u to %s was reset, although it is there; another one "
		          "has taken its place",
		          lane, rank_text(context, peer, who));
	*at = (struct failover_lane){
		.rail = rail < context->rails.count ? (uint8_t)rail : FAILOVER_NONE,
		.is_made = true,
		.tries = at->tries,
	};
	if (rail < context->rails.count) {
		*bits_of(context, failover->bad, peer) &= (uint8_t)~(1u << rail);
		*bits_of(context, failover->logged, peer) &= (uint8_t)~(1u << rail);
	}
	if (!again || before == rail || before >= context->rails.count)
		return;
	if (!(*bits_of(context, failover->logged, peer) >> before & 1))
		log_write(&context->log, LOG_LEVEL_WARN, LOG_NET,
		          "%s carries nothing to %s any more: what it carried goes through %s",
		          rail_name(context, before, from), rank_text(context, peer, who), rail_name(context, rail, to));
	*bits_of(context, failover->logged, peer) |= (uint8_t)(1u << before);
	leave_rail(context, peer, before, "the other end says so"); /* and its other connections there */
}

void failover_unreachable(struct rank *context, uint32_t peer, uint32_t lane, const struct error *why)
{
	struct failover_lane *at = lane_of(context, peer, lane);
	char who[RANK_TEXT], name[INTERFACE_NAME], text[CONTROL_TEXT];

	at->moves = false;
	if (context->rails.count < 2) {
		if (context->fates.of[peer] == FATE_HERE)
			give_up(context, peer, lane, why->text);
		return;
	}
	snprintf(text, sizeof(text),
	         "nothing gets through to %.60s any more: not through %s, and another way failed: %.100s",
	         rank_text(context, peer, who), rail_name(context, at->rail, name), why->text);
	blackhole_fail(context, peer, text);
}

static void on_message(void *argument, uint32_t peer, const struct control_msg *msg)
{
	struct rank *context = argument;

	/* If the connection is not made here yet, although it is lost at the other end, it is still being dialled. */
	if (context->mod.failover->lanes && context->rank < peer && msg->type == CONTROL_RENEW &&
	    msg->lane.lane < context->lanes && lane_of(context, peer, msg->lane.lane)->is_made &&
	    !failover_has_given_up(context, peer, msg->lane.lane)) {
		lane_of(context, peer, msg->lane.lane)->was_reset = true;
		move_lane(context, peer, msg->lane.lane);
	}
	if (context->mod.failover->lanes && context->rank < peer && msg->type == CONTROL_DIAL &&
	    msg->lane.lane < context->lanes)
		control_dial_lane(context->control, peer, msg->lane.lane);
	if (context->mod.failover->lanes && context->rank < peer && msg->type == CONTROL_MOVE &&
	    msg->rail.rail < context->rails.count)
		leave_rail(context, peer, msg->rail.rail, "the other end says so");
}

void failover_subscribe(struct control_subscribers *out)
{
	control_subscribe(out, CONTROL_DIAL, on_message);
	control_subscribe(out, CONTROL_MOVE, on_message);
	control_subscribe(out, CONTROL_RENEW, on_message);
}

void failover_dial(struct rank *context, uint32_t peer, uint32_t lane)
{
	if (context->mod.failover->lanes && context->rank > peer)
		send_request(context, peer, CONTROL_DIAL, lane);
	else
		control_dial_lane(context->control, peer, lane);
}
