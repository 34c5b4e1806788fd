/*
 * accept.c - who is let in where the rank listens.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/control/control_state.h"

#define GUESTS_MOST 256u              /* accepted and not yet proved, at a time, beside the ranks of this host */
#define ACCEPTS 64 /* in one turn */
#define LOCKED_BACKLOG 32 /* who waits while the accept_limit is locked: more than it lets in at a time, or it would seem that nobody waits */
#define FULL_PAUSE_US 10000 /* while there is no descriptor for who knocks */

/* ---- who is let in ---- */

/* There is no room for one more: who has been here longest without proving itself has to go. */
static void throw_one_out(struct control *control)
{
	struct connection *oldest = NULL;

	for (struct connection *connection = control->connections; connection; connection = connection->next) {
		if (connection->is_guest && (!oldest || connection->deadline_ns < oldest->deadline_ns))
			oldest = connection;
	}
	if (oldest)
		control_remove(control, oldest);
}

static bool greet(struct control *control, int fd, bool local)
{
	if (control->accept.guests >= GUESTS_MOST + control->config.local_count)
		throw_one_out(control);
	struct connection *connection = connection_new();
	if (!connection) {
		close(fd);
		return false;
	}
	connection->fd = fd;
	connection->is_guest = true;
	connection->number = ++control->accept.accepted;
	connection->local = local;
	connection->deadline_ns = clock_now_ns() + control->config.interval_ns / 2; /* until it must have proved itself */
	control->accept.guests++;
	control_insert(control, connection);
	connection_greet(connection, &control->listener);
	control_watch(control, connection);
	control_turn_connection(control, connection);
	return true;
}

bool accept_accept(struct control *control, int listen_fd)
{
	bool local = listen_fd == control->config.local_fd;

	for (unsigned i = 0; i < ACCEPTS; i++) {
		uint64_t now = clock_now_ns();

		if (!local && !accept_limit_admits(&control->accept.limit, now))
			return false;
		int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0 && errno == EINTR)
			continue;
		if (fd < 0 && (errno == EMFILE || errno == ENFILE))
			usleep(FULL_PAUSE_US); /* the knock stays, and there is no other way to look away */
		if (fd < 0)
			return true;
		if (!local)
			accept_limit_take(&control->accept.limit, now);
		if (!greet(control, fd, local))
			return false;
	}
	return false;
}

void accept_proved(struct control *control, struct connection *connection)
{
	control->accept.guests--;
	connection->is_guest = false;
	uint64_t now = clock_now_ns();
	/* If it has to be kept waiting. */
	connection->deadline_ns = now + (connection->purpose == HELLO_FDS ? connect_patience_ns(control, now) : control->config.patience_ns);
	if (!connection->local) {
		connection_prepare(connection->fd); /* it may have knocked before its port was prepared */
		accept_limit_proved(&control->accept.limit);
	}
}

/* ---- where the rank listens ---- */

static bool watch_port(struct control *control, int fd)
{
	struct control_own *own = control_watch_own(control, fd, CONTROL_OWN_PORT);

	if (own)
		control->accept.ports[control->accept.port_count++] = own;
	return own != NULL;
}

bool accept_watch(struct control *control)
{
	const struct control_config *config = &control->config;
	bool watched = config->local_fd < 0 || control_watch_own(control, config->local_fd, CONTROL_OWN_PORT) != NULL;

	for (uint32_t i = 0; i < control->accept.listen_count && watched; i++)
		watched = watch_port(control, control->accept.listen_fds[i]);
	/* While another control of this process has the joiners' port, connections that are for it come there too. */
	if (config->join_fd >= 0 && config->join_free_fd < 0 && watched)
		watched = watch_port(control, config->join_fd);
	if (config->join_free_fd >= 0 && watched)
		watched = (control->accept.free = control_watch_own(control, config->join_free_fd, CONTROL_OWN_FREE)) != NULL;
	/* Connections that are accepted from now on inherit this, and an unproved one costs no calls for it. */
	for (uint32_t i = 0; i < control->accept.port_count && watched; i++)
		connection_prepare(control->accept.ports[i]->watched.fd);
	return watched;
}

void accept_open_door(struct control *control)
{
	loop_remove(control->loop, &control->accept.free->watched); /* its file has other descriptors */
	close(control->config.join_free_fd);
	control->config.join_free_fd = -1;
	connection_prepare(control->config.join_fd);
	if (watch_port(control, control->config.join_fd) && control->accept.looks_away)
		loop_change(control->loop, &control->accept.ports[control->accept.port_count - 1]->watched, 0);
}

static void look_away(struct control *control, bool away)
{
	if (control->accept.looks_away == away)
		return;
	control->accept.looks_away = away;
	for (uint32_t i = 0; i < control->accept.port_count; i++) {
		loop_change(control->loop, &control->accept.ports[i]->watched, away ? 0u : EPOLLIN);
		(void)listen(control->accept.ports[i]->watched.fd, away ? LOCKED_BACKLOG : PORT_BACKLOG);
	}
}

uint64_t accept_look(struct control *control, uint64_t now)
{
	uint64_t when = accept_limit_look_ns(&control->accept.limit, now);

	look_away(control, when != UINT64_MAX);
	if (when > now)
		return when;
	bool empty = true;
	uint32_t first = control->accept.first_looked_at++;
	for (uint32_t i = 0; i < control->accept.port_count; i++)
		empty &= accept_accept(control, control->accept.ports[(first + i) % control->accept.port_count]->watched.fd);
	if (empty)
		accept_limit_empty(&control->accept.limit);
	return now; /* the list of connections has changed */
}

void control_expect(struct control *control)
{
	accept_limit_expect(&control->accept.limit, clock_now_ns());
}

void control_settle(struct control *control)
{
	control->has_settled = true;
	accept_limit_settle(&control->accept.limit);
}
