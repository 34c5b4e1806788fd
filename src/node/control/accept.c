/*
 * accept.c - who is let in where the rank listens.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/control/control_state.h"

#define GUESTS_MOST 256u              /* accepted and not yet proved, at a time, beside the ranks of this host */
#define ACCEPTS 64 /* in one turn */
#define LOCKED_BACKLOG 32 /* who waits while the turnstile is locked: more than it lets in at a time, or it would seem that nobody waits */
#define FULL_PAUSE_US 10000 /* while there is no descriptor for who knocks */

/* ---- who is let in ---- */

/* There is no room for one more: who has been here longest without proving itself has to go. */
static void throw_one_out(struct steward *steward)
{
	struct link *oldest = NULL;

	for (struct link *link = steward->links; link; link = link->next) {
		if (link->is_guest && (!oldest || link->deadline_ns < oldest->deadline_ns))
			oldest = link;
	}
	if (oldest)
		steward_remove(steward, oldest);
}

static bool greet(struct steward *steward, int fd, bool local)
{
	if (steward->guests >= GUESTS_MOST + steward->config.local_count)
		throw_one_out(steward);
	struct link *link = link_new();
	if (!link) {
		close(fd);
		return false;
	}
	link->fd = fd;
	link->is_guest = true;
	link->number = ++steward->accepted;
	link->local = local;
	link->deadline_ns = clock_now_ns() + steward->config.interval_ns / 2; /* until it must have proved itself */
	steward->guests++;
	steward_insert(steward, link);
	link_greet(link, &steward->listener);
	steward_watch(steward, link, EPOLL_CTL_ADD);
	steward_turn_link(steward, link);
	return true;
}

bool ports_accept(struct steward *steward, int listen_fd)
{
	bool local = listen_fd == steward->config.local_fd;

	for (unsigned i = 0; i < ACCEPTS; i++) {
		uint64_t now = clock_now_ns();

		if (!local && !turnstile_admits(&steward->turnstile, now))
			return false;
		int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && errno == EINTR)
			continue;
		if (fd < 0 && (errno == EMFILE || errno == ENFILE))
			usleep(FULL_PAUSE_US); /* the knock stays, and there is no other way to look away */
		if (fd < 0)
			return true;
		if (!local)
			turnstile_take(&steward->turnstile, now);
		if (!greet(steward, fd, local))
			return false;
	}
	return false;
}

void ports_proved(struct steward *steward, struct link *link)
{
	steward->guests--;
	link->is_guest = false;
	uint64_t now = clock_now_ns();
	/* If it has to be kept waiting. */
	link->deadline_ns = now + (link->purpose == HELLO_SHELF ? dials_patience_ns(steward, now) : steward->config.patience_ns);
	if (!link->local) {
		link_prepare(link->fd); /* it may have knocked before its port was prepared */
		turnstile_proved(&steward->turnstile);
	}
}

/* ---- where the rank listens ---- */

uint32_t ports_count(const struct steward *steward)
{
	return steward->listen_count + (steward->is_door_open ? 1 : 0);
}

int *ports_at(struct steward *steward, uint32_t i)
{
	return i < steward->listen_count ? &steward->listen_fds[i] : &steward->config.door_fd;
}

bool ports_watch(struct steward *steward)
{
	bool watched = steward_watch_own(steward, &steward->config.local_fd);

	for (uint32_t i = 0; i < steward->listen_count; i++)
		watched = watched && steward_watch_own(steward, &steward->listen_fds[i]);
	/* While another steward of this process has the door, connections that are for it come there too. */
	steward->is_door_open = steward->config.door_fd >= 0 && steward->config.door_free_fd < 0;
	if (steward->is_door_open)
		watched = watched && steward_watch_own(steward, &steward->config.door_fd);
	watched = watched && steward_watch_own(steward, &steward->config.door_free_fd);
	/* What is accepted from now on inherits this, and a stranger costs no calls for it. */
	for (uint32_t i = 0; i < ports_count(steward); i++)
		link_prepare(*ports_at(steward, i));
	return watched;
}

void ports_open_door(struct steward *steward)
{
	struct epoll_event event = {.events = steward->looks_away ? 0u : EPOLLIN, .data.ptr = &steward->config.door_fd};

	(void)epoll_ctl(steward->epoll_fd, EPOLL_CTL_DEL, steward->config.door_free_fd, NULL); /* it has other descriptors */
	close(steward->config.door_free_fd);
	steward->config.door_free_fd = -1;
	link_prepare(steward->config.door_fd);
	steward->is_door_open = epoll_ctl(steward->epoll_fd, EPOLL_CTL_ADD, steward->config.door_fd, &event) == 0;
}

static void look_away(struct steward *steward, bool away)
{
	if (steward->looks_away == away)
		return;
	steward->looks_away = away;
	for (uint32_t i = 0; i < ports_count(steward); i++) {
		int *fd = ports_at(steward, i);
		struct epoll_event event = {.events = away ? 0u : EPOLLIN, .data.ptr = fd};

		(void)epoll_ctl(steward->epoll_fd, EPOLL_CTL_MOD, *fd, &event);
		(void)listen(*fd, away ? LOCKED_BACKLOG : PORT_BACKLOG);
	}
}

uint64_t ports_look(struct steward *steward, uint64_t now)
{
	uint64_t when = turnstile_look_ns(&steward->turnstile, now);

	look_away(steward, when != UINT64_MAX);
	if (when > now)
		return when;
	bool empty = true;
	uint32_t first = steward->first_looked_at++;
	for (uint32_t i = 0; i < ports_count(steward); i++)
		empty &= ports_accept(steward, *ports_at(steward, (first + i) % ports_count(steward)));
	if (empty)
		turnstile_empty(&steward->turnstile);
	return now; /* the list of links has changed */
}

void steward_expect(struct steward *steward)
{
	turnstile_expect(&steward->turnstile, clock_now_ns());
}

void steward_settle(struct steward *steward)
{
	steward->has_settled = true;
	turnstile_settle(&steward->turnstile);
}
