#include "rank/rail/bandwidth.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ready.h"
#include "rank/comm/comm.h"
#include "rank/state.h"
#include "wire/bytes.h"

#define DIAL_PATIENCE (5 * NS_PER_S)
#define PATIENCE (5 * NS_PER_S)    /* for a rail on which nothing moves */
#define BURST (60 * NS_PER_MS)     /* for which a rail is filled */
#define BURSTS 2                   /* the faster one counts: other load on the cores only makes a rail look slower */
#define WARM_UP (20 * NS_PER_MS)   /* of a burst, not counted: windows open, token buckets empty */
#define PIECE (256u << 10)
#define UNSENT_MOST (256u << 10)   /* unsent bytes in the kernel, so that the burst ends in time */
#define RECEIVERS_MOST (2 * RAILS_MOST)
#define SHARE 10080u               /* divisible by most numbers of lanes */

/* ---- lanes ---- */

/* Orders lanes: one of every rail before the second of any; within such a round the fastest rail first. */
static bool comes_before(const struct bandwidth *bandwidth, uint32_t a, uint32_t b, uint32_t rails)
{
	if (a / rails != b / rails)
		return a < b;
	if (bandwidth->weights[a % rails] != bandwidth->weights[b % rails])
		return bandwidth->weights[a % rails] > bandwidth->weights[b % rails];
	return a < b;
}

void bandwidth_order(struct bandwidth *bandwidth, uint32_t lanes, uint32_t rails)
{
	bandwidth->lanes = 0;
	for (uint32_t lane = 0; lane < lanes; lane++) {
		uint32_t at = bandwidth->lanes;

		if (bandwidth->weights[lane % rails] == 0)
			continue;
		while (at > 0 && comes_before(bandwidth, lane, bandwidth->lane_order[at - 1], rails)) {
			bandwidth->lane_order[at] = bandwidth->lane_order[at - 1];
			at--;
		}
		bandwidth->lane_order[at] = (uint8_t)lane;
		bandwidth->lanes++;
	}
	for (uint32_t i = 0; i < bandwidth->lanes; i++) {
		uint32_t rail = bandwidth->lane_order[i] % rails, on_rail = (lanes - rail + rails - 1) / rails;

		bandwidth->lane_weights[i] = (uint64_t)bandwidth->weights[rail] * SHARE / on_rail;
	}
}

void bandwidth_init(struct bandwidth *bandwidth, uint32_t lanes)
{
	memset(bandwidth, 0, sizeof(*bandwidth));
	for (uint32_t i = 0; i < RAILS_MOST; i++) {
		bandwidth->rates[i] = UINT64_MAX;
		bandwidth->fds[i] = -1;
	}
	bandwidth->weights[0] = 1;
	bandwidth_order(bandwidth, lanes, 1);
}

static const char *rail_name(const struct rank *context, uint32_t rail, char text[INTERFACE_NAME])
{
	const struct node_address *own = rails_address(&context->rails, &context->roster, context->rank, rail);
	const struct interface *interface = interfaces_find(&context->listener.interfaces, own);

	snprintf(text, INTERFACE_NAME, "%s", interface ? interface->name : "?");
	return text;
}

static enum esp_status use_weights(struct rank *context, const char *how, struct failure *failure)
{
	struct bandwidth *bandwidth = context->mod.bandwidth;

	bandwidth_order(bandwidth, context->lanes, context->rails.count);
	atomic_store(&bandwidth->settled, true);
	for (uint32_t i = 0; i < context->rails.count; i++) {
		char name[INTERFACE_NAME], address[NODE_ADDRESS_TEXT];

		node_address_text(rails_address(&context->rails, &context->roster, context->rank, i), address);
		log_write(&context->log, LOG_LEVEL_INFO, LOG_NET, "rail %u: %s, %s, weight %u (%s)", i,
		          rail_name(context, i, name), address, bandwidth->weights[i], how);
	}
	if (bandwidth->lanes == 0)
		return rank_failure_set(failure, ESP_ELINK, -1,
		                        "none of the %u interfaces that should be used together works: see espalier doctor, "
		                        "or set rails=1",
		                        context->rails.count);
	context->world->net.layout.lanes = bandwidth->lanes;
	context->world->net.layout.lane_weights = bandwidth->lane_weights;
	return ESP_OK;
}

void bandwidth_settle_alone(struct rank *context)
{
	atomic_store(&context->mod.bandwidth->settled, true);
}

enum esp_status bandwidth_settle(struct rank *context, const uint64_t *rates, struct failure *failure)
{
	rails_weigh(rates, context->rails.count, context->mod.bandwidth->weights);
	return use_weights(context, "as measured", failure);
}

enum esp_status bandwidth_settle_as_set(struct rank *context, struct failure *failure)
{
	struct error err;

	if (rails_parse_weights(context->conf.rail_weights, context->rails.count, context->mod.bandwidth->weights, &err) !=
	    ESP_OK)
		return rank_failure_set(failure, err.status, -1, "%s", err.text);
	return use_weights(context, "as set", failure);
}

/* ---- sending ---- */

/* Fills the rail for BURST, then shuts the connection down for writing. */
static bool send_burst(int fd, const uint8_t *piece)
{
	uint64_t end = clock_now_ns() + BURST, stuck = clock_now_ns() + PATIENCE;
	int unsent = UNSENT_MOST;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
	while (clock_now_ns() < end) {
		ssize_t sent = send(fd, piece, PIECE, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (sent < 0 && !ready_by(fd, POLLOUT, stuck))
			return false;
	}
	return shutdown(fd, SHUT_WR) == 0;
}

/* The rate that the receiver replies with; 0: no reply. */
static uint64_t read_rate(int fd)
{
	uint8_t answer[8];
	uint32_t have = 0;
	uint64_t until = clock_now_ns() + PATIENCE;

	while (have < sizeof(answer)) {
		ssize_t got = recv(fd, answer + have, sizeof(answer) - have, MSG_DONTWAIT);

		if (got > 0)
			have += (uint32_t)got;
		else if (got == 0 || (errno != EAGAIN && errno != EINTR) || !ready_by(fd, POLLIN, until))
			return 0;
	}
	return bytes_get64(answer);
}

static uint64_t measure_over(int fd)
{
	uint8_t *piece = calloc(1, PIECE);
	uint64_t rate = piece && send_burst(fd, piece) ? read_rate(fd) : 0;

	free(piece);
	close(fd);
	return rate;
}

/* ---- receiving ---- */

struct receiver {
	struct rank *context;
	int fd;
};

/* Bytes per second after the warm-up; of the whole burst if it ends before. */
static uint64_t receive_burst(int fd, uint8_t *piece)
{
	uint64_t first = 0, warm = 0, last = 0, counted = 0, all = 0;

	for (;;) {
		ssize_t got = recv(fd, piece, PIECE, MSG_DONTWAIT);
		uint64_t now = clock_now_ns();

		if (got == 0)
			break;
		if (got < 0) {
			if ((errno != EAGAIN && errno != EINTR) || !ready_by(fd, POLLIN, now + PATIENCE))
				return 0;
			continue;
		}
		first = first ? first : now;
		last = now;
		all += (uint64_t)got;
		if (warm)
			counted += (uint64_t)got;
		else if (now - first >= WARM_UP)
			warm = now;
	}
	uint64_t since = counted > 0 ? warm : first, bytes = counted > 0 ? counted : all;
	return last > since ? (uint64_t)((unsigned __int128)bytes * NS_PER_S / (last - since)) : all;
}

static void *receiver_main(void *argument)
{
	struct receiver *receiver = argument;
	struct rank *context = receiver->context;
	uint8_t *piece = malloc(PIECE), answer[8];

	bytes_put64(answer, piece ? receive_burst(receiver->fd, piece) : 0);
	ssize_t sent = send(receiver->fd, answer, sizeof(answer), MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)sent; /* the sender waits for it with a deadline */
	close(receiver->fd);
	free(piece);
	free(receiver);
	pthread_mutex_lock(&context->lock);
	context->mod.bandwidth->receivers--;
	rank_changed(context);
	pthread_mutex_unlock(&context->lock);
	return NULL;
}

static bool start_receiver(struct rank *context, int fd)
{
	struct receiver *receiver = malloc(sizeof(*receiver));
	pthread_t thread;
	sigset_t all, before;

	if (!receiver)
		return false;
	*receiver = (struct receiver){context, fd};
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&thread, NULL, receiver_main, receiver);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error != 0) {
		free(receiver);
		return false;
	}
	pthread_detach(thread);
	return true;
}

/* ---- the control's events ---- */

void bandwidth_connected(struct rank *context, uint32_t rail, int fd, bool dialled)
{
	struct bandwidth *bandwidth = context->mod.bandwidth;

	pthread_mutex_lock(&context->lock);
	if (dialled && rail < RAILS_MOST && bandwidth->fds[rail] < 0) {
		bandwidth->fds[rail] = fd;
		fd = -1;
		rank_changed(context);
	}
	bool receives = !dialled && bandwidth->receivers < RECEIVERS_MOST;
	bandwidth->receivers += receives;
	pthread_mutex_unlock(&context->lock);
	if (receives && start_receiver(context, fd))
		return;
	if (fd >= 0)
		close(fd);
	if (receives) {
		pthread_mutex_lock(&context->lock);
		bandwidth->receivers--;
		pthread_mutex_unlock(&context->lock);
	}
}

void bandwidth_unreachable(struct rank *context, uint32_t peer, uint32_t rail, const struct error *why)
{
	char who[RANK_TEXT];

	log_write(&context->log, LOG_LEVEL_WARN, LOG_NET, "%s cannot be reached: %s", rank_text(context, peer, who),
	          why->text);
	pthread_mutex_lock(&context->lock);
	if (rail < RAILS_MOST)
		context->mod.bandwidth->failed[rail] = true;
	rank_changed(context);
	pthread_mutex_unlock(&context->lock);
}

/* ---- measuring ---- */

/* The first rank of a host. */
static uint32_t first_of(const struct roster *roster, uint32_t host)
{
	uint32_t rank = 0;

	while (roster->host_of[rank] != host)
		rank++;
	return rank;
}

/* Waits for the connection that the control makes; -1: it could not. */
static int take_connection(struct rank *context, uint32_t rail)
{
	struct bandwidth *bandwidth = context->mod.bandwidth;
	uint64_t until = clock_now_ns() + DIAL_PATIENCE + PATIENCE;
	struct timespec at = {(time_t)(until / NS_PER_S), (long)(until % NS_PER_S)};

	pthread_mutex_lock(&context->lock);
	context->sleepers++;
	while (bandwidth->fds[rail] < 0 && !bandwidth->failed[rail] && clock_now_ns() < until)
		pthread_cond_timedwait(&context->changed, &context->lock, &at);
	context->sleepers--;
	int fd = bandwidth->fds[rail];
	bandwidth->fds[rail] = -1;
	pthread_mutex_unlock(&context->lock);
	return fd;
}

/* Measures one burst; rate 0: nothing arrives. False: the peer cannot be reached. */
static bool measure_once(struct rank *context, uint32_t peer, uint32_t rail, uint64_t *out_rate)
{
	control_dial_probe(context->control, peer, rail, DIAL_PATIENCE);
	int fd = take_connection(context, rail);

	*out_rate = fd < 0 ? 0 : measure_over(fd);
	return fd >= 0;
}

void bandwidth_measure(struct rank *context)
{
	const struct roster *roster = &context->roster;
	uint32_t host = roster->host_of[context->rank], next = first_of(roster, (host + 1) % roster->hosts);

	if (first_of(roster, host) != context->rank)
		return;
	for (uint32_t rail = 0; rail < context->rails.count; rail++) {
		char who[RANK_TEXT], name[INTERFACE_NAME];
		uint64_t rate, again = 1;

		/* One rail after the other: a dead one takes seconds, as long as the other end waits for the next. */
		bool is_reached = measure_once(context, next, rail, &rate);
		for (int burst = 1; burst < BURSTS && rate > 0 && again > 0; burst++) {
			(void)measure_once(context, next, rail, &again);
			rate = again > rate ? again : rate;
		}
		context->mod.bandwidth->rates[rail] = rate;
		if (is_reached && rate == 0)
			log_write(&context->log, LOG_LEVEL_WARN, LOG_NET,
			          "%s can be reached through %s, but data does not arrive there: do large "
			          "packets get lost (MTU)? This interface is not used; see espalier doctor",
			          rank_text(context, next, who), rail_name(context, rail, name));
		else
			log_write(&context->log, LOG_LEVEL_TRACE, LOG_NET, "%s through %s: %llu bytes per second",
			          rank_text(context, next, who), rail_name(context, rail, name), (unsigned long long)rate);
	}
}

void bandwidth_fini(struct rank *context)
{
	struct bandwidth *bandwidth = context->mod.bandwidth;

	pthread_mutex_lock(&context->lock);
	context->sleepers++;
	while (bandwidth->receivers > 0) /* each has a deadline */
		pthread_cond_wait(&context->changed, &context->lock);
	context->sleepers--;
	for (uint32_t i = 0; i < RAILS_MOST; i++) {
		if (bandwidth->fds[i] >= 0 && context->rails.count > 0)
			close(bandwidth->fds[i]);
	}
	pthread_mutex_unlock(&context->lock);
}
