/*
 * control.c - the list of connections, commands of other threads, timers, and the control thread.
 */
#include "node/control/control.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/control/peer_connection.h"

#define TICK (20 * NS_PER_MS)

/* ---- connections ---- */

static void on_ready(struct loop_fd *fd, uint32_t events)
{
	struct connection *connection = (struct connection *)((char *)fd - offsetof(struct connection, watched));

	(void)events;
	control_turn_connection(connection->owner, connection);
}

void control_watch(struct control *control, struct connection *connection)
{
	uint32_t events = EPOLLIN | (connection_wants_to_write(connection) ? EPOLLOUT : 0u);
	struct error err;

	connection->owner = control;
	connection->watched.ready = on_ready;
	if (connection->watched.fd >= 0)
		loop_change(control->loop, &connection->watched, events);
	else if (loop_add(control->loop, &connection->watched, connection->fd, events, &err) != ESP_OK)
		connection_broke(connection, &err); /* removed at its deadline */
}

void control_unwatch(struct control *control, struct connection *connection)
{
	loop_remove(control->loop, &connection->watched);
}

void control_insert(struct control *control, struct connection *connection)
{
	list_prepend(&control->connections, &connection->link);
}

void control_remove(struct control *control, struct connection *connection)
{
	list_remove(&control->connections, &connection->link);
	control_unwatch(control, connection);
	control->accept.guests -= connection->is_guest;
	joiner_queue_gone(control, connection);
	if (connection->purpose == HELLO_CONTROL && control->control[connection->peer] == connection)
		control_peer_connection_choose_other(control, connection->peer);
	connection_free(connection);
}

/* A connection in state BROKEN or past its deadline: retries, replaces or removes it. */
static void connection_ended(struct control *control, struct connection *connection)
{
	if (connection->state == CONNECTION_BROKEN && connection->dialled &&
	    connection->handshake.state != HANDSHAKE_DONE) {
		connect_failed(control, connection);
		return;
	}
	bool is_proved = connection->handshake.state == HANDSHAKE_DONE;
	if (is_proved && connection->purpose == HELLO_CONTROL) {
		control_peer_connection_ended(control, connection);
		return;
	}
	/* A mismatch shows that the peer has the key: no stranger can fill the log. */
	if (!connection->dialled && connection->err.status == ESP_EMISMATCH)
		log_write(control->config.log, LOG_LEVEL_WARN, LOG_JOIN, "refused a connection: %s", connection->err.text);
	/* A rank that has sent its descriptors only waits for other ranks: its timeout says nothing about this peer. */
	bool was_fds = is_proved && connection->purpose == HELLO_FDS &&
	               !(connection->fds.has_left && connection->err.status == ESP_ETIMEOUT);
	uint32_t peer = connection->peer;
	struct error why = connection->err;
	control_remove(control, connection);
	if (was_fds && why.status != ESP_EPEER) /* the end of a peer is reported by its control connection */
		connect_unreachable(control, peer, HELLO_FDS, 0, &why);
}

static void opened(struct control *control, struct connection *connection)
{
	const struct control_peer_events *events = control->config.events->peers;

	control_peer_connection_opened(control, connection);
	if (connection->dialled && connection->lane == 0)
		events->connected(control->config.context, connection->peer);
	events->opened(control->config.context, connection->peer, connection->dialled);
}

/* The handshake of a connection that is dialled. */
static void make_dialer(const struct control *control, const struct connection *connection,
                        struct handshake_config *out)
{
	*out = control->config.self;
	out->find = NULL;
	out->hello.to = connection->peer;
	out->hello.to_role = control->config.roster->nodes[connection->peer].role;
	out->hello.purpose = connection->purpose;
	out->hello.lane = connection->lane;
}

/* The handshake of accepted connections: a purpose without an owner is refused. */
static void make_listener(const struct control_config *config, struct handshake_config *out)
{
	*out = config->self;
	out->hello.to = HANDSHAKE_ANY_RANK;
	out->lanes = config->lanes;
	out->purposes = 1u << HELLO_CONTROL | (config->events->lanes ? 1u << HELLO_LANE | 1u << HELLO_AGAIN : 0) |
	                (config->events->rails ? 1u << HELLO_PROBE : 0) | (config->events->fds ? 1u << HELLO_FDS : 0) |
	                (config->events->joiners ? 1u << HELLO_JOINER : 0);
}

void control_turn_connection(struct control *control, struct connection *connection)
{
	struct handshake_config dialer;

	if (connection->state == CONNECTION_CONNECTING) {
		make_dialer(control, connection, &dialer);
		connection_connected(connection, &dialer);
	}
	while (connection->state == CONNECTION_SHAKING && connection_shake(connection))
		;
	if (connection->is_guest && connection->handshake.state == HANDSHAKE_DONE)
		accept_proved(control, connection);
	if (connection->state == CONNECTION_HANDING)
		control_fd_handover_turn(control, connection);
	if (connection->state == CONNECTION_JOINER)
		joiner_queue_turn(control, connection);
	if (connection->state == CONNECTION_OPEN && !connection->is_announced) {
		connection->is_announced = true;
		opened(control, connection);
	}
	connection_flush(connection);
	if (connection->state == CONNECTION_OPEN)
		control_peer_connection_turn(control, connection);
	connection_flush(connection);
	if (connection->state == CONNECTION_DONE && connection->purpose == HELLO_FDS)
		control_fd_handover_done(control, connection);
	else if (connection->state == CONNECTION_DONE && data_connection_is_outdated(control, connection))
		control_remove(control, connection);
	else if (connection->state == CONNECTION_DONE)
		data_connection_done(control, connection);
	else if (connection->state == CONNECTION_BROKEN)
		connection_ended(control, connection);
	else
		control_watch(control, connection);
}

/* ---- commands ---- */

/* Sends queued messages together: when all ranks leave, each forwards a message about each. */
static void flush_all(struct control *control)
{
	if (!control->has_queued)
		return;
	control->has_queued = false;
	for (struct connection *connection = control_first(control); connection; connection = connection_next(connection)) {
		if (connection->state == CONNECTION_OPEN && control->control[connection->peer] == connection &&
		    control_peer_connection_speak(control, connection))
			control_watch(control, connection);
	}
}

/* Only connections that are proved to be the peer's, or that were dialled to it. */
static void forget(struct control *control, uint32_t peer)
{
	struct connection *following;

	for (struct connection *connection = control_first(control); connection; connection = following) {
		following = connection_next(connection);
		if (connection->peer == peer && !connection->is_guest && connection->purpose != HELLO_JOINER)
			control_remove(control, connection);
	}
	assert(!control->control[peer]);
	control_reliable_fini(&control->reliable[peer]);
	control->dialled[peer] = 0;
	for (uint32_t lane = 0; lane < control->config.lanes; lane++)
		control->newest[(size_t)peer * control->config.lanes + lane] = 0;
}

static void run_cmd(struct control *control, const struct control_cmd *cmd)
{
	switch (cmd->what) {
	case CMD_DIAL_LANE:
		data_connection_dial(control, cmd->peer, cmd->lane);
		break;
	case CMD_DIAL_AGAIN:
		control_dial(control, cmd->peer, HELLO_AGAIN, cmd->lane, cmd->patience_ns);
		break;
	case CMD_DIAL_PROBE:
		control_dial(control, cmd->peer, HELLO_PROBE, cmd->lane, cmd->patience_ns);
		break;
	case CMD_DIAL_FDS:
		control_dial(control, cmd->peer, HELLO_FDS, 0, connect_patience_ns(control, clock_now_ns()));
		break;
	case CMD_DIAL_CONTROL:
		control_dial(control, cmd->peer, HELLO_CONTROL, 0, connect_patience_ns(control, clock_now_ns()));
		break;
	case CMD_LOOK_FOR:
		connect_look_for(control, cmd->peer);
		break;
	case CMD_SEND:
		control_peer_connection_send(control, cmd->peer, &cmd->msg);
		break;
	case CMD_SEND_ALL:
		for (uint32_t i = 0; i < control->config.roster->size; i++) {
			if (control->control[i] && control->config.events->peers->forwards_to(control->config.context, i))
				control_peer_connection_send(control, i, &cmd->msg);
		}
		break;
	case CMD_FORGET:
		forget(control, cmd->peer);
		break;
	case CMD_RUN:
		cmd->function(control->config.context, cmd->argument);
		break;
	}
}

static void run_cmds(struct control *control)
{
	struct control_cmd *cmd;

	while ((cmd = control_cmdq_take(&control->cmdq))) {
		run_cmd(control, cmd);
		free(cmd);
	}
	flush_all(control);
}

/* False: no memory; a caller that waits for the effect has a deadline. */
static bool post(struct control *control, struct control_cmd cmd)
{
	bool is_posted = control_cmdq_post(&control->cmdq, &cmd);

	if (is_posted)
		loop_post(control->loop, &control->cmds);
	return is_posted;
}

bool control_run(struct control *control, control_fn *function, void *argument)
{
	return post(control, (struct control_cmd){.what = CMD_RUN, .function = function, .argument = argument});
}

int control_share_join_port(struct control *control, int *out_free_fd)
{
	pthread_mutex_lock(&control->lock);
	if (control->join_free_fd < 0)
		control->join_free_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int free_fd = control->join_free_fd < 0 ? -1 : fcntl(control->join_free_fd, F_DUPFD_CLOEXEC, 0);
	pthread_mutex_unlock(&control->lock);
	int fd = free_fd < 0 ? -1
	                     : fcntl(control->config.join_fd >= 0 ? control->config.join_fd : control->accept.listen_fds[0],
	                             F_DUPFD_CLOEXEC, 0);
	if (fd < 0 && free_fd >= 0) {
		close(free_fd);
		free_fd = -1;
	}
	*out_free_fd = free_fd;
	return fd;
}

bool control_has_control(const struct control *control, uint32_t peer)
{
	return control->control[peer] != NULL;
}

void control_dial_lane(struct control *control, uint32_t peer, uint32_t lane)
{
	(void)post(control, (struct control_cmd){.what = CMD_DIAL_LANE, .peer = peer, .lane = lane});
}

void control_dial_again(struct control *control, uint32_t peer, uint32_t lane, uint64_t patience_ns)
{
	(void)post(control,
	           (struct control_cmd){.what = CMD_DIAL_AGAIN, .peer = peer, .lane = lane, .patience_ns = patience_ns});
}

void control_dial_probe(struct control *control, uint32_t peer, uint32_t rail, uint64_t patience_ns)
{
	(void)post(control,
	           (struct control_cmd){.what = CMD_DIAL_PROBE, .peer = peer, .lane = rail, .patience_ns = patience_ns});
}

void control_dial_control(struct control *control, uint32_t peer)
{
	(void)post(control, (struct control_cmd){.what = CMD_DIAL_CONTROL, .peer = peer});
}

void control_look_for(struct control *control, uint32_t peer)
{
	(void)post(control, (struct control_cmd){.what = CMD_LOOK_FOR, .peer = peer});
}

void control_dial_fds(struct control *control)
{
	(void)post(control, (struct control_cmd){.what = CMD_DIAL_FDS, .peer = control->config.rank_of[0]});
}

void control_send(struct control *control, uint32_t peer, const struct control_msg *msg)
{
	(void)post(control, (struct control_cmd){.what = CMD_SEND, .peer = peer, .msg = *msg});
}

void control_send_all(struct control *control, const struct control_msg *msg)
{
	(void)post(control, (struct control_cmd){.what = CMD_SEND_ALL, .msg = *msg});
}

void control_forget(struct control *control, uint32_t peer)
{
	assert(peer < control->config.roster->size);
	(void)post(control, (struct control_cmd){.what = CMD_FORGET, .peer = peer});
}

void control_tick(struct control *control, bool wanted)
{
	pthread_mutex_lock(&control->lock);
	bool changed = control->ticks != wanted;
	control->ticks = wanted;
	pthread_mutex_unlock(&control->lock);
	if (changed && wanted)
		loop_post(control->loop, &control->cmds); /* the hook reads `ticks` */
}

/* ---- timers ---- */

/* Removes connections past their deadline, dials those that are due; returns the time of the next check. */
static uint64_t run_timers(struct control *control, uint64_t now)
{
	uint64_t next = UINT64_MAX;
	struct connection *following;

	for (struct connection *connection = control_first(control); connection; connection = following) {
		following = connection_next(connection);
		if (connection_is_unanswered(connection, now)) {
			connection->dial.is_reported = true;
			control->config.events->peers->unanswered(control->config.context, connection->peer, connection->dial.way,
			                                          connection->state == CONNECTION_SHAKING);
		}
		uint64_t when = connection_due(connection, &control->ways);
		if (when <= now && connection->state == CONNECTION_WAITING) {
			control_dial_now(control, connection);
			return now; /* the list may have changed: check again at once */
		}
		if (when <= now && connection->state == CONNECTION_HANDING && when == connection->retry_ns) {
			control_turn_connection(control, connection);
			return now;
		}
		if (when <= now && connection->state == CONNECTION_JOINER) {
			joiner_queue_due(control, connection, now);
			control_turn_connection(control, connection);
			return now;
		}
		if (when <= now && connection_was_answered(connection, &control->ways, now)) {
			control_turn_connection(control, connection);
			return now;
		}
		if (when <= now && recheck_goes_on(control, connection, now))
			when = connection->deadline_ns;
		if (when <= now) {
			connection_late(connection);
			connection_ended(control, connection);
			return now;
		}
		next = when < next ? when : next;
	}
	return next;
}

/* ---- the node's own descriptors ---- */

static void on_own(struct loop_fd *fd, uint32_t events)
{
	struct control_own *own = (struct control_own *)(void *)fd; /* its first member */
	struct control *control = own->control;

	(void)events;
	switch (own->kind) {
	case CONTROL_OWN_PORT:
		(void)accept_accept(control, fd->fd);
		break;
	case CONTROL_OWN_FREE:
		accept_take_join_port(control);
		break;
	case CONTROL_OWN_NETLINK:
		control->config.events->rails->netlink(control->config.context);
		break;
	}
}

struct control_own *control_watch_own(struct control *control, int fd, enum control_own_kind kind)
{
	struct control_own *own = &control->accept.own[control->accept.own_count];
	struct error err;

	assert(fd >= 0 && control->accept.own_count < CONTROL_OWN_MOST);
	*own = (struct control_own){.watched = {.ready = on_own, .fd = -1}, .control = control, .kind = kind};
	if (loop_add(control->loop, &own->watched, fd, EPOLLIN, &err) != ESP_OK)
		return NULL;
	control->accept.own_count++;
	return own;
}

/* ---- the thread ---- */

static bool does_tick(struct control *control)
{
	pthread_mutex_lock(&control->lock);
	bool ticks = control->ticks;
	pthread_mutex_unlock(&control->lock);
	return ticks;
}

static void on_cmds(struct loop_task *task)
{
	(void)task; /* the hook runs the commands in their order before the loop sleeps */
}

/* Called before every sleep of the loop. Returns the time of the next call at the latest. */
static uint64_t hook(void *argument, uint64_t now)
{
	struct control *control = argument;
	const struct control_turn_events *turns = control->config.events->turns;

	run_cmds(control);
	control_fd_handover_serve(control);
	uint64_t next = run_timers(control, now), batch = accept_batch(control, now);
	bool ticks = turns && does_tick(control);
	next = batch < next ? batch : next;
	if (ticks && control->next_tick_ns <= now) {
		turns->tick(control->config.context, now);
		control->next_tick_ns = now + TICK;
	}
	if (ticks && control->next_tick_ns < next)
		next = control->next_tick_ns;
	uint64_t wanted = turns ? turns->turn(control->config.context, now) : UINT64_MAX;
	next = wanted < next ? wanted : next;
	if (control->has_posted || control->has_queued) {
		control->has_posted = false;
		loop_again(control->loop);
	}
	return next;
}

/* Sends queued messages to peers that read them. */
static void flush_before_close(struct control *control)
{
	uint64_t until = clock_now_ns() + control->config.interval_ns / 10;
	bool waits = true;

	run_cmds(control);
	while (waits && clock_now_ns() < until) {
		waits = false;
		for (struct connection *connection = control_first(control); connection;
		     connection = connection_next(connection)) {
			connection_flush(connection);
			waits |= connection->state == CONNECTION_OPEN && connection_wants_to_write(connection);
		}
		if (waits)
			usleep(1000);
	}
}

static void *control_main(void *argument)
{
	struct control *control = argument;

	pthread_setname_np(pthread_self(), "esp-control");
	loop_run(control->loop);
	return NULL;
}

/* ---- life ---- */

static void free_all(struct control *control)
{
	struct list_node *node;

	while ((node = list_take(&control->connections)))
		connection_free(list_item(node, struct connection, link));
	control_cmdq_fini(&control->cmdq);
	int fds[] = {control->config.local_fd, control->config.join_fd, control->config.join_free_fd};
	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	for (uint32_t i = 0; i < control->accept.listen_count; i++)
		close(control->accept.listen_fds[i]);
	if (control->join_free_fd >= 0) { /* the control that shares the port may accept there now */
		(void)eventfd_write(control->join_free_fd, 1);
		close(control->join_free_fd);
	}
	for (uint32_t i = 0; control->reliable && i < control->config.roster->size; i++)
		control_reliable_fini(&control->reliable[i]);
	free(control->reliable);
	free(control->dialled);
	free(control->newest);
	free(control->control);
	control_fd_exchange_fini(&control->fd_exchange);
	if (control->loop == &control->own_loop)
		loop_fini(&control->own_loop);
	pthread_mutex_destroy(&control->lock);
	free(control);
}

/* With all signals blocked: they are for the program's threads. */
static int start_thread(struct control *control)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	loop_expect(control->loop, true);
	int error = pthread_create(&control->thread, NULL, control_main, control);
	if (error != 0)
		loop_expect(control->loop, false);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

enum esp_status control_open(const struct control_config *config, struct control **out, struct error *err)
{
	struct control *control = calloc(1, sizeof(*control));

	if (!control) {
		for (uint32_t i = 0; i < config->listener->count; i++)
			close(config->listener->fds[i]);
		if (config->local_fd >= 0)
			close(config->local_fd);
		if (config->join_fd >= 0)
			close(config->join_fd);
		if (config->join_free_fd >= 0)
			close(config->join_free_fd);
		return error_set(err, ESP_ENOMEM, "no memory for the control");
	}
	control->config = *config;
	control->join_free_fd = -1;
	control->opened_ns = clock_now_ns();
	control->ways =
		(struct connection_ways){config->rails,           config->roster,        &config->listener->interfaces,
	                             config->self.hello.from, config->segment_bytes, config->interval_ns / 8};
	control->accept.listen_count = config->listener->count;
	memcpy(control->accept.listen_fds, config->listener->fds, sizeof(control->accept.listen_fds));
	pthread_mutex_init(&control->lock, NULL);
	control_cmdq_init(&control->cmdq);
	accept_limit_init(&control->accept.limit, (uint64_t)config->roster->size * (config->lanes + 2), clock_now_ns());
	rng_init(&control->rng, clock_now_ns() ^ (uint64_t)getpid() << 32);
	make_listener(config, &control->listener);
	control->control = calloc(config->roster->size, sizeof(struct connection *));
	control->reliable = calloc(config->roster->size, sizeof(struct reliable));
	control->dialled = calloc(config->roster->size, sizeof(uint64_t));
	control->newest = calloc((size_t)config->roster->size * config->lanes, sizeof(uint64_t));
	control->cmds.run = on_cmds;
	control->loop = config->loop ? config->loop : &control->own_loop;
	bool has_loop = config->loop || loop_init(&control->own_loop, NULL, err) == ESP_OK;
	bool watched = has_loop && accept_watch(control) &&
	               (config->netlink_fd < 0 || control_watch_own(control, config->netlink_fd, CONTROL_OWN_NETLINK));
	if (has_loop)
		loop_set_hook(control->loop, hook, control);
	*out = control; /* before the thread starts: its events may use the control where the caller keeps it */
	enum esp_status exchanged = control_fd_exchange_init(&control->fd_exchange, config->local_self, config->local_count,
	                                                     config->descriptors, config->descriptor_count);
	if (!control->control || !control->reliable || !control->dialled || !control->newest || !watched ||
	    exchanged != ESP_OK || (!config->loop && start_thread(control) != 0)) {
		*out = NULL;
		if (!has_loop)
			control->loop = NULL;
		free_all(control);
		return error_set(err, ESP_ELIMIT, "no thread, memory or descriptors for the control");
	}
	return ESP_OK;
}

struct loop *control_loop(const struct control *control)
{
	return control->loop;
}

static void end(void *argument)
{
	struct control *control = argument;

	flush_before_close(control);
	for (struct connection *connection = control_first(control); connection; connection = connection_next(connection))
		control_unwatch(control, connection);
	for (uint32_t i = 0; i < control->accept.own_count; i++)
		loop_remove(control->loop, &control->accept.own[i].watched);
	loop_set_hook(control->loop, NULL, NULL);
}

void control_close(struct control *control)
{
	if (!control)
		return;
	loop_call(control->loop, end, control);
	if (!control->config.loop) {
		loop_stop(control->loop);
		pthread_join(control->thread, NULL);
	}
	free_all(control);
}
