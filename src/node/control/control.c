/*
 * control.c - the links of a rank, what other threads ask for, and the thread itself.
 */
#include "node/control/control.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/control/peer_connection.h"

#define TICK (20 * NS_PER_MS)

/* ---- links ---- */

void steward_watch(struct steward *steward, struct link *link, int how)
{
	struct epoll_event event = {.events = EPOLLIN | (link_wants_to_write(link) ? EPOLLOUT : 0u), .data.ptr = link};

	if (how == EPOLL_CTL_MOD && event.events == link->watched)
		return;
	link->watched = event.events;
	(void)epoll_ctl(steward->epoll_fd, how, link->fd, &event);
}

void steward_insert(struct steward *steward, struct link *link)
{
	link->next = steward->links;
	if (link->next)
		link->next->before = link;
	steward->links = link;
}

void steward_remove(struct steward *steward, struct link *link)
{
	if (link->before)
		link->before->next = link->next;
	else
		steward->links = link->next;
	if (link->next)
		link->next->before = link->before;
	steward->guests -= link->is_guest;
	newcomers_gone(steward, link);
	if (link->purpose == HELLO_CONTROL && steward->control[link->peer] == link)
		controls_choose_other(steward, link->peer);
	link_free(link);
}

/* The link is over. */
static void link_ended(struct steward *steward, struct link *link)
{
	if (link->state == LINK_BROKEN && link->dialled && link->handshake.state != HANDSHAKE_DONE) {
		dials_failed(steward, link);
		return;
	}
	bool is_proved = link->handshake.state == HANDSHAKE_DONE;
	if (is_proved && link->purpose == HELLO_CONTROL) {
		controls_ended(steward, link);
		return;
	}
	if (!link->dialled && link->err.status == ESP_EMISMATCH) /* it has the key: no stranger makes lines here */
		log_write(steward->config.join->log, LOG_LEVEL_WARN, LOG_JOIN, "refused a connection: %s", link->err.text);
	/* One that has left what it had only waits: for others, who do not come. */
	bool was_shelf = is_proved && link->purpose == HELLO_SHELF && !(link->has_left && link->err.status == ESP_ETIMEOUT);
	uint32_t peer = link->peer;
	struct error why = link->err;
	steward_remove(steward, link);
	if (was_shelf && why.status != ESP_EPEER) /* of one that has ended others tell how */
		dials_unreachable(steward, peer, HELLO_SHELF, 0, &why);
}

static void opened(struct steward *steward, struct link *link)
{
	const struct steward_events *events = steward->config.events;

	controls_opened(steward, link);
	if (link->dialled && link->lane == 0)
		events->control_connected(steward->config.context, link->peer);
	events->opened(steward->config.context, link->peer, link->dialled);
}

void steward_turn_link(struct steward *steward, struct link *link)
{
	struct handshake_config dialer;

	if (link->state == LINK_CONNECTING) {
		join_dialer(steward->config.join, link->peer, link->purpose, link->lane, &dialer);
		link_connected(link, &dialer);
	}
	while (link->state == LINK_SHAKING && link_shake(link))
		;
	if (link->is_guest && link->handshake.state == HANDSHAKE_DONE)
		ports_proved(steward, link);
	if (link->state == LINK_HANDING)
		handing_turn(steward, link);
	if (link->state == LINK_DOOR)
		newcomers_turn(steward, link);
	if (link->state == LINK_OPEN && !link->is_announced) {
		link->is_announced = true;
		opened(steward, link);
	}
	link_flush(link);
	if (link->state == LINK_OPEN)
		controls_turn(steward, link);
	link_flush(link);
	if (link->state == LINK_DONE && link->purpose == HELLO_SHELF)
		handing_done(steward, link);
	else if (link->state == LINK_DONE && lanes_is_outdated(steward, link))
		steward_remove(steward, link);
	else if (link->state == LINK_DONE)
		lanes_done(steward, link);
	else if (link->state == LINK_BROKEN)
		link_ended(steward, link);
	else
		steward_watch(steward, link, EPOLL_CTL_MOD);
}

/* ---- errands ---- */

/* Many messages leave together: when all ranks leave, each passes on word of each. */
static void flush_all(struct steward *steward)
{
	if (!steward->has_queued)
		return;
	steward->has_queued = false;
	for (struct link *link = steward->links; link; link = link->next) {
		if (link->state == LINK_OPEN && steward->control[link->peer] == link && controls_speak(steward, link))
			steward_watch(steward, link, EPOLL_CTL_MOD);
	}
}

static void run_errand(struct steward *steward, const struct errand *errand)
{
	switch (errand->what) {
	case ERRAND_DIAL_LANE:
		lanes_dial(steward, errand->peer, errand->lane);
		break;
	case ERRAND_DIAL_AGAIN:
		steward_dial(steward, errand->peer, HELLO_AGAIN, errand->lane, errand->patience_ns);
		break;
	case ERRAND_DIAL_PROBE:
		steward_dial(steward, errand->peer, HELLO_PROBE, errand->lane, errand->patience_ns);
		break;
	case ERRAND_DIAL_SHELF:
		steward_dial(steward, errand->peer, HELLO_SHELF, 0, dials_patience_ns(steward, clock_now_ns()));
		break;
	case ERRAND_DIAL_CONTROL:
		steward_dial(steward, errand->peer, HELLO_CONTROL, 0, dials_patience_ns(steward, clock_now_ns()));
		break;
	case ERRAND_LOOK_FOR:
		dials_look_for(steward, errand->peer);
		break;
	case ERRAND_SEND:
		controls_send(steward, errand->peer, &errand->msg);
		break;
	case ERRAND_SEND_ALL:
		for (uint32_t i = 0; i < steward->config.roster->size; i++) {
			if (steward->control[i] && steward->config.events->passes_on(steward->config.context, i))
				controls_send(steward, i, &errand->msg);
		}
		break;
	case ERRAND_RUN:
		errand->function(steward->config.context, errand->argument);
		break;
	}
}

static void run_errands(struct steward *steward)
{
	struct errand *errand;

	steward->has_posted = false;
	while ((errand = errands_take(&steward->errands))) {
		run_errand(steward, errand);
		free(errand);
	}
	flush_all(steward);
}

static void wake(struct steward *steward)
{
	uint64_t one = 1;

	/* Full is as good as written. */
	ssize_t done = write(steward->wake_fd, &one, sizeof(one));
	(void)done;
}

static bool is_own_thread(const struct steward *steward)
{
	return atomic_load(&steward->runs) && pthread_equal(pthread_self(), steward->self);
}

/* False: no memory; whoever waits for it has a deadline. */
static bool post(struct steward *steward, struct errand errand)
{
	bool is_posted = errands_post(&steward->errands, &errand);

	if (is_posted && is_own_thread(steward))
		steward->has_posted = true; /* and does not sleep before it has looked */
	else if (is_posted)
		wake(steward);
	return is_posted;
}

bool steward_run(struct steward *steward, steward_fn *function, void *argument)
{
	return post(steward, (struct errand){.what = ERRAND_RUN, .function = function, .argument = argument});
}

int steward_share_door(struct steward *steward, int *out_free_fd)
{
	pthread_mutex_lock(&steward->lock);
	if (steward->door_free_fd < 0)
		steward->door_free_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int free_fd = steward->door_free_fd < 0 ? -1 : fcntl(steward->door_free_fd, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_unlock(&steward->lock);
	int fd = free_fd < 0 ? -1 : fcntl(steward->config.door_fd >= 0 ? steward->config.door_fd : steward->listen_fds[0], F_DUPFD_CLOEXEC, 0);
	if (fd < 0 && free_fd >= 0) {
		close(free_fd);
		free_fd = -1;
	}
	*out_free_fd = free_fd;
	return fd;
}

bool steward_has_control(const struct steward *steward, uint32_t peer)
{
	return steward->control[peer] != NULL;
}

void steward_dial_lane(struct steward *steward, uint32_t peer, uint32_t lane)
{
	(void)post(steward, (struct errand){.what = ERRAND_DIAL_LANE, .peer = peer, .lane = lane});
}

void steward_dial_again(struct steward *steward, uint32_t peer, uint32_t lane, uint64_t patience_ns)
{
	(void)post(steward, (struct errand){.what = ERRAND_DIAL_AGAIN, .peer = peer, .lane = lane, .patience_ns = patience_ns});
}

void steward_dial_probe(struct steward *steward, uint32_t peer, uint32_t rail, uint64_t patience_ns)
{
	(void)post(steward, (struct errand){.what = ERRAND_DIAL_PROBE, .peer = peer, .lane = rail, .patience_ns = patience_ns});
}

void steward_dial_control(struct steward *steward, uint32_t peer)
{
	(void)post(steward, (struct errand){.what = ERRAND_DIAL_CONTROL, .peer = peer});
}

void steward_look_for(struct steward *steward, uint32_t peer)
{
	(void)post(steward, (struct errand){.what = ERRAND_LOOK_FOR, .peer = peer});
}

void steward_dial_shelf(struct steward *steward)
{
	(void)post(steward, (struct errand){.what = ERRAND_DIAL_SHELF, .peer = steward->config.rank_of[0]});
}

void steward_send(struct steward *steward, uint32_t peer, const struct control_msg *msg)
{
	(void)post(steward, (struct errand){.what = ERRAND_SEND, .peer = peer, .msg = *msg});
}

void steward_send_all(struct steward *steward, const struct control_msg *msg)
{
	(void)post(steward, (struct errand){.what = ERRAND_SEND_ALL, .msg = *msg});
}

void steward_tick(struct steward *steward, bool wanted)
{
	pthread_mutex_lock(&steward->lock);
	bool changed = steward->ticks != wanted;
	steward->ticks = wanted;
	pthread_mutex_unlock(&steward->lock);
	if (changed && wanted)
		wake(steward);
}

/* ---- the thread ---- */

/* Throws out who is too late, dials anew; returns when to look again. */
static uint64_t look_at_clock(struct steward *steward, uint64_t now)
{
	uint64_t next = UINT64_MAX;
	struct link *following;

	for (struct link *link = steward->links; link; link = following) {
		following = link->next;
		if (link_is_unanswered(link, now)) {
			link->is_reported = true;
			steward->config.events->unanswered(steward->config.context, link->peer, link->way, link->state == LINK_SHAKING);
		}
		uint64_t when = link_due(link, &steward->ways);
		if (when <= now && link->state == LINK_WAITING) {
			steward_dial_now(steward, link);
			return now; /* the list may have changed */
		}
		if (when <= now && link->state == LINK_HANDING && when == link->retry_ns) {
			steward_turn_link(steward, link);
			return now;
		}
		if (when <= now && link->state == LINK_DOOR) {
			newcomers_due(steward, link, now);
			steward_turn_link(steward, link);
			return now;
		}
		if (when <= now && link_has_news(link, &steward->ways, now)) {
			steward_turn_link(steward, link);
			return now;
		}
		if (when <= now && check_goes_on(steward, link, now))
			when = link->deadline_ns;
		if (when <= now) {
			link_late(link);
			link_ended(steward, link);
			return now;
		}
		next = when < next ? when : next;
	}
	return next;
}

static int timeout_ms(uint64_t now, uint64_t until)
{
	if (until == UINT64_MAX)
		return -1;
	if (until <= now)
		return 0;
	uint64_t ms = (until - now + NS_PER_MS - 1) / NS_PER_MS;
	return ms > 60000 ? 60000 : (int)ms;
}

static void handle(struct steward *steward, const struct epoll_event *event)
{
	uint64_t drained;

	if (event->data.ptr == &steward->wake_fd) {
		ssize_t got = read(steward->wake_fd, &drained, sizeof(drained));
		(void)got;
		return;
	}
	for (uint32_t i = 0; i < ports_count(steward); i++) {
		if (event->data.ptr == ports_at(steward, i)) {
			(void)ports_accept(steward, *ports_at(steward, i));
			return;
		}
	}
	if (event->data.ptr == &steward->config.local_fd)
		(void)ports_accept(steward, steward->config.local_fd);
	else if (event->data.ptr == &steward->config.door_free_fd)
		ports_open_door(steward);
	else if (event->data.ptr == &steward->config.extra_fd)
		steward->config.events->extra(steward->config.context);
	else if (event->data.ptr == &steward->config.link_fd)
		steward->config.events->links(steward->config.context);
	else
		steward_turn_link(steward, event->data.ptr);
}

/* One event at a time: an event may free the link that a later one of the same batch names. */
static void turn(struct steward *steward, int timeout)
{
	struct epoll_event event;

	if (epoll_wait(steward->epoll_fd, &event, 1, timeout) == 1)
		handle(steward, &event);
}

static bool is_quitting(struct steward *steward, bool *out_ticks)
{
	pthread_mutex_lock(&steward->lock);
	bool quits = steward->quits;
	*out_ticks = steward->ticks;
	pthread_mutex_unlock(&steward->lock);
	return quits;
}

/* What is queued leaves, if the others read. */
static void farewell(struct steward *steward)
{
	uint64_t until = clock_now_ns() + steward->config.interval_ns / 10;
	bool waits = true;

	run_errands(steward);
	while (waits && clock_now_ns() < until) {
		waits = false;
		for (struct link *link = steward->links; link; link = link->next) {
			link_flush(link);
			waits |= link->state == LINK_OPEN && link_wants_to_write(link);
		}
		if (waits)
			usleep(1000);
	}
}

static void *steward_main(void *argument)
{
	struct steward *steward = argument;
	uint64_t next_tick = 0;
	bool ticks;

	pthread_setname_np(pthread_self(), "esp-steward");
	steward->self = pthread_self();
	atomic_store(&steward->runs, true);
	while (!is_quitting(steward, &ticks)) {
		uint64_t now = clock_now_ns();
		uint64_t next = look_at_clock(steward, now), look = ports_look(steward, now);

		next = look < next ? look : next;
		if (ticks && next_tick <= now) {
			steward->config.events->tick(steward->config.context, now);
			next_tick = now + TICK;
		}
		if (ticks && next_tick < next)
			next = next_tick;
		uint64_t wanted = steward->config.events->turn(steward->config.context, now);
		next = wanted < next ? wanted : next;
		turn(steward, steward->has_posted ? 0 : timeout_ms(now, next));
		run_errands(steward);
		handing_serve(steward);
	}
	farewell(steward);
	return NULL;
}

/* ---- life ---- */

static void free_all(struct steward *steward)
{
	while (steward->links) {
		struct link *next = steward->links->next;

		link_free(steward->links);
		steward->links = next;
	}
	errands_fini(&steward->errands);
	int fds[] = {steward->config.local_fd, steward->config.door_fd, steward->config.door_free_fd, steward->epoll_fd, steward->wake_fd};
	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	for (uint32_t i = 0; i < steward->listen_count; i++)
		close(steward->listen_fds[i]);
	if (steward->door_free_fd >= 0) { /* whoever has the door too can open it now */
		(void)eventfd_write(steward->door_free_fd, 1);
		close(steward->door_free_fd);
	}
	for (uint32_t i = 0; steward->talks && i < steward->config.roster->size; i++)
		talk_fini(&steward->talks[i]);
	free(steward->talks);
	free(steward->dialled);
	free(steward->newest);
	free(steward->control);
	shelf_fini(&steward->shelf);
	pthread_mutex_destroy(&steward->lock);
	free(steward);
}

bool steward_watch_own(struct steward *steward, int *fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = fd};

	return *fd < 0 || epoll_ctl(steward->epoll_fd, EPOLL_CTL_ADD, *fd, &event) == 0;
}

/* Signals are the program's. */
static int start_thread(struct steward *steward)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&steward->thread, NULL, steward_main, steward);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

enum esp_status steward_open(const struct steward_config *config, struct steward **out, struct error *err)
{
	struct steward *steward = calloc(1, sizeof(*steward));

	if (!steward) {
		for (uint32_t i = 0; i < config->listener->count; i++)
			close(config->listener->fds[i]);
		if (config->local_fd >= 0)
			close(config->local_fd);
		if (config->door_fd >= 0)
			close(config->door_fd);
		if (config->door_free_fd >= 0)
			close(config->door_free_fd);
		return error_set(err, ESP_ENOMEM, "no memory for the steward");
	}
	steward->config = *config;
	steward->door_free_fd = -1;
	steward->opened_ns = clock_now_ns();
	steward->ways = (struct link_ways){config->rails, config->roster, &config->listener->interfaces, config->join->launch.rank,
	                                   config->segment_bytes, config->interval_ns / 8};
	steward->listen_count = config->listener->count;
	memcpy(steward->listen_fds, config->listener->fds, sizeof(steward->listen_fds));
	pthread_mutex_init(&steward->lock, NULL);
	errands_init(&steward->errands);
	turnstile_init(&steward->turnstile, (uint64_t)config->roster->size * (config->lanes + 2), clock_now_ns());
	rng_init(&steward->rng, clock_now_ns() ^ config->join->card.pid);
	join_listener(config->join, 1u << HELLO_LANE | 1u << HELLO_CONTROL | 1u << HELLO_DOOR | 1u << HELLO_PROBE |
	                                    1u << HELLO_SHELF | 1u << HELLO_AGAIN, config->lanes, &steward->listener);
	steward->control = calloc(config->roster->size, sizeof(struct link *));
	steward->talks = calloc(config->roster->size, sizeof(struct talk));
	steward->dialled = calloc(config->roster->size, sizeof(uint64_t));
	steward->newest = calloc((size_t)config->roster->size * config->lanes, sizeof(uint64_t));
	steward->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	steward->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	bool watched = steward->epoll_fd >= 0 && steward->wake_fd >= 0 && steward_watch_own(steward, &steward->wake_fd) &&
	               ports_watch(steward) &&
	               steward_watch_own(steward, &steward->config.extra_fd) && steward_watch_own(steward, &steward->config.link_fd);
	*out = steward; /* before there is a thread: its events may ask for the steward where the caller keeps it */
	enum esp_status shelf = shelf_init(&steward->shelf, config->local_self, config->local_count, config->descriptors,
	                                   config->descriptor_count);
	if (!steward->control || !steward->talks || !steward->dialled || !steward->newest || !watched || shelf != ESP_OK || start_thread(steward) != 0) {
		*out = NULL;
		free_all(steward);
		return error_set(err, ESP_ELIMIT, "no thread, memory or descriptors for the steward");
	}
	return ESP_OK;
}

void steward_close(struct steward *steward)
{
	if (!steward)
		return;
	pthread_mutex_lock(&steward->lock);
	steward->quits = true;
	pthread_mutex_unlock(&steward->lock);
	wake(steward);
	pthread_join(steward->thread, NULL);
	free_all(steward);
}
