/*
 * accept.c - accepts connections where the node listens, as far as the accept limit lets it. Control thread only.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/control/control_state.h"

#define GUESTS_MOST 256u /* unproved connections at a time, beside one for each rank of this host */
#define ACCEPTS 64       /* of one listening socket in one turn */
/*
 * Backlog of the ports while the accept limit is locked. It must exceed the tokens that grow back in one pause (20):
 * otherwise one batch would drain the queue, and the limit would unlock as if no connection waited.
 */
#define LOCKED_BACKLOG 32
#define FULL_PAUSE_US 10000 /* after accept() has failed for want of a descriptor */

/* ---- accepting ---- */

/* Makes room for one more: removes the unproved connection that has been here longest. */
static void remove_oldest_guest(struct control *control)
{
	struct connection *oldest = NULL;

	for (struct connection *connection = control_first(control); connection; connection = connection_next(connection)) {
		if (connection->is_guest && (!oldest || connection->deadline_ns < oldest->deadline_ns))
			oldest = connection;
	}
	if (oldest)
		control_remove(control, oldest);
}

static bool add_guest(struct control *control, int fd, bool local)
{
	if (control->accept.guests >= GUESTS_MOST + control->config.local_count)
		remove_oldest_guest(control);
	struct connection *connection = connection_new();
	if (!connection) {
		close(fd);
		return false;
	}
	connection->fd = fd;
	connection->is_guest = true;
	connection->number = ++control->accept.accepted;
	connection->local = local;
	connection->deadline_ns = clock_now_ns() + control->config.interval_ns / 2; /* until it must be proved */
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
			usleep(FULL_PAUSE_US); /* the connection stays in the backlog: the loop reports the port again at once */
		if (fd < 0)
			return true;
		if (!local)
			accept_limit_take(&control->accept.limit, now);
		if (!add_guest(control, fd, local))
			return false;
	}
	return false;
}

void accept_proved(struct control *control, struct connection *connection)
{
	control->accept.guests--;
	connection->is_guest = false;
	uint64_t now = clock_now_ns();
	/* Of a proved connection that is kept waiting. */
	connection->deadline_ns =
		now + (connection->purpose == HELLO_FDS ? connect_patience_ns(control, now) : control->config.patience_ns);
	if (!connection->local) {
		connection_prepare(connection->fd); /* it may have entered the backlog before its port was prepared */
		accept_limit_proved(&control->accept.limit);
	}
}

/* ---- listening sockets ---- */

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
	/* While another control of this process has the join address, connections for that one arrive at this socket. */
	if (config->join_fd >= 0 && config->join_free_fd < 0 && watched)
		watched = watch_port(control, config->join_fd);
	if (config->join_free_fd >= 0 && watched)
		watched = (control->accept.free = control_watch_own(control, config->join_free_fd, CONTROL_OWN_FREE)) != NULL;
	/* Accepted sockets inherit the options of their port, so an unproved connection costs no system call for them. */
	for (uint32_t i = 0; i < control->accept.port_count && watched; i++)
		connection_prepare(control->accept.ports[i]->watched.fd);
	return watched;
}

void accept_take_join_port(struct control *control)
{
	loop_remove(control->loop, &control->accept.free->watched); /* other descriptors keep its file open */
	close(control->config.join_free_fd);
	control->config.join_free_fd = -1;
	connection_prepare(control->config.join_fd);
	if (watch_port(control, control->config.join_fd) && control->accept.ports_paused)
		loop_change(control->loop, &control->accept.ports[control->accept.port_count - 1]->watched, 0);
}

static void pause_ports(struct control *control, bool away)
{
	if (control->accept.ports_paused == away)
		return;
	control->accept.ports_paused = away;
	for (uint32_t i = 0; i < control->accept.port_count; i++) {
		loop_change(control->loop, &control->accept.ports[i]->watched, away ? 0u : EPOLLIN);
		(void)listen(control->accept.ports[i]->watched.fd, away ? LOCKED_BACKLOG : PORT_BACKLOG);
	}
}

uint64_t accept_batch(struct control *control, uint64_t now)
{
	uint64_t when = accept_limit_due_ns(&control->accept.limit, now);

	pause_ports(control, when != UINT64_MAX);
	if (when > now)
		return when;
	bool empty = true;
	uint32_t first = control->accept.first_port++;
	for (uint32_t i = 0; i < control->accept.port_count; i++)
		empty &= accept_accept(control, control->accept.ports[(first + i) % control->accept.port_count]->watched.fd);
	if (empty)
		accept_limit_empty(&control->accept.limit);
	return now; /* the list of connections has changed: the timers are checked again */
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
