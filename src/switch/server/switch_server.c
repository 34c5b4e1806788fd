#include "switch/server/switch_server.h"

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/net/resolve.h"
#include "switch/server/switch_state.h"

#define LINE 512u
#define BATCHES 8u /* received in one turn of the loop */
#define RESOLVE_PATIENCE (10 * NS_PER_S)

#define SERVER_OF(pointer, part) \
	((struct switch_server *)(void *)((char *)(pointer)-offsetof(struct switch_server, part)))

void switch_log(struct switch_server *server, const char *format, ...)
{
	char line[LINE];
	va_list args;

	if (!server->config.log)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	server->config.log(server->config.log_context, line);
}

/* ---- packets ---- */

static void pass(void *context, const struct trains_datagram *datagram)
{
	struct switch_server *server = context;

	switch_path_packet(server, datagram, loop_now(&server->loop));
}

static void arrive(void *context, const struct trains_datagram *datagram)
{
	struct switch_server *server = context;

	if (switch_impair_is_active(&server->impair))
		switch_impair_arrival(&server->impair, datagram, loop_now(&server->loop), pass, server);
	else
		pass(server, datagram);
}

static void wait_for_held(struct switch_server *server)
{
	uint64_t due = switch_impair_due_ns(&server->impair);

	if (due != UINT64_MAX)
		loop_at(&server->loop, &server->held, due);
}

static void on_port(struct loop_fd *watched, uint32_t events)
{
	struct switch_server *server = SERVER_OF(watched, port);

	(void)events;
	for (uint32_t i = 0; i < BATCHES; i++) {
		server->is_crowded = trains_is_crowded(server->udp);
		if (!trains_receive(server->udp, arrive, server))
			break;
		trains_flush(server->udp);
	}
	wait_for_held(server);
}

static void on_held(struct loop_timer *timer, uint64_t now_ns)
{
	struct switch_server *server = SERVER_OF(timer, held);

	switch_impair_release(&server->impair, now_ns, pass, server);
	trains_flush(server->udp);
	wait_for_held(server);
}

static void on_second(struct loop_timer *timer, uint64_t now_ns)
{
	struct switch_server *server = SERVER_OF(timer, seconds);

	switch_table_age(server, now_ns);
	switch_status_tick(server);
	loop_at(&server->loop, timer, now_ns + NS_PER_S);
}

static void on_signal(struct loop_fd *watched, uint32_t events)
{
	struct switch_server *server = SERVER_OF(watched, signals);
	struct signalfd_siginfo info;

	(void)events;
	if (read(watched->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		switch_log(server, "%s: the switch ends, jobs go on without it",
		           info.ssi_signo == SIGINT ? "interrupted" : "told to end (SIGTERM)");
	loop_stop(&server->loop);
}

/* ---- opening ---- */

static enum esp_status watch_signals(struct switch_server *server, struct error *err)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	if (pthread_sigmask(SIG_BLOCK, &ends, &server->former_mask) != 0)
		return error_set(err, ESP_EIO, "cannot block signals");
	server->signals.ready = on_signal;
	int fd = signalfd(-1, &ends, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return error_set(err, ESP_ELIMIT, "no descriptor for signals");
	enum esp_status status = loop_add(&server->loop, &server->signals, fd, EPOLLIN, err);
	if (status != ESP_OK)
		close(fd);
	return status;
}

static void unwatch_signals(struct switch_server *server)
{
	int fd = server->signals.fd;

	if (fd < 0)
		return;
	loop_remove(&server->loop, &server->signals);
	close(fd);
	pthread_sigmask(SIG_SETMASK, &server->former_mask, NULL);
}

static enum esp_status open_port(struct switch_server *server, struct error *err)
{
	struct resolved resolved;
	union trains_address address;
	char text[ADDRESS_TEXT];
	struct error why;
	enum esp_status status = resolve(&server->config.listen, clock_now_ns() + RESOLVE_PATIENCE, &resolved, err);

	if (status != ESP_OK)
		return status;
	memset(&address, 0, sizeof(address));
	memcpy(&address, &resolved.addresses[0], resolved.lengths[0]);
	status = trains_open(&address, &server->udp, &why);
	if (status != ESP_OK)
		return error_set(err, status, "cannot listen at %s: %s", address_format(&server->config.listen, text),
		                 why.text);
	server->port.ready = on_port;
	return loop_add(&server->loop, &server->port, trains_fd(server->udp), EPOLLIN, err);
}

static enum esp_status open_parts(struct switch_server *server, struct error *err)
{
	enum esp_status status = switch_table_open(server, err);

	if (status == ESP_OK)
		status = watch_signals(server, err);
	if (status == ESP_OK)
		status = open_port(server, err);
	if (status == ESP_OK && getrandom(server->secret, sizeof(server->secret), 0) != (ssize_t)sizeof(server->secret))
		status = error_set(err, ESP_EIO, "the kernel gives no random numbers");
	return status == ESP_OK ? switch_status_open(server, err) : status;
}

enum esp_status switch_server_open(const struct switch_config *config, struct switch_server **out, struct error *err)
{
	struct switch_server *server = calloc(1, sizeof(*server));

	if (!server)
		return error_set(err, ESP_ENOMEM, "no memory for a switch");
	server->config = *config;
	server->signals.fd = server->port.fd = -1;
	switch_impair_init(&server->impair, &config->impair);
	enum esp_status status = loop_init(&server->loop, NULL, err);
	if (status != ESP_OK) {
		free(server);
		return status;
	}
	server->began_ns = loop_now(&server->loop);
	server->seconds.due = on_second;
	server->held.due = on_held;
	loop_at(&server->loop, &server->seconds, server->began_ns + NS_PER_S);
	status = open_parts(server, err);
	if (status != ESP_OK) {
		switch_server_close(server);
		return status;
	}
	*out = server;
	return ESP_OK;
}

void switch_server_run(struct switch_server *server)
{
	loop_run(&server->loop);
}

void switch_server_close(struct switch_server *server)
{
	if (!server)
		return;
	switch_status_close(server);
	if (server->port.fd >= 0)
		loop_remove(&server->loop, &server->port);
	trains_close(server->udp);
	unwatch_signals(server);
	loop_fini(&server->loop);
	switch_table_close(server);
	switch_impair_fini(&server->impair);
	explicit_bzero(server->secret, sizeof(server->secret));
	free(server);
}
