#include "fabric/server/sched_server.h"

#include <pthread.h>
#include <sodium.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "fabric/server/sched_server_conn.h"
#include "node/auth/key.h"

#define LINE 512u
#define LOOK_NS (NS_PER_S / 2)

void sched_server_log(struct sched_server *server, const char *format, ...)
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

/* ---- the loop ---- */

static uint64_t on_turn(void *context, uint64_t now_ns)
{
	struct sched_server *server = context;

	sched_server_conn_free_dead(server);
	return sched_server_port_turn(server, now_ns);
}

static void on_look(struct loop_timer *timer, uint64_t now_ns)
{
	struct sched_server *server =
		(struct sched_server *)(void *)((char *)timer - offsetof(struct sched_server, looks));

	sched_server_conn_look_after_all(server, now_ns);
	sched_server_job_look_after_all(server, now_ns);
	loop_at(&server->loop, timer, now_ns + LOOK_NS);
}

static void on_signal(struct loop_fd *watched, uint32_t events)
{
	struct sched_server *server =
		(struct sched_server *)(void *)((char *)watched - offsetof(struct sched_server, signals));
	struct signalfd_siginfo info;

	(void)events;
	if (read(watched->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		sched_server_log(server, "%s: the scheduler ends",
		                 info.ssi_signo == SIGINT ? "interrupted" : "told to end (SIGTERM)");
	loop_stop(&server->loop);
}

/* ---- opening ---- */

static enum esp_status watch_signals(struct sched_server *server, struct error *err)
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

/* Later lives of a scheduler have greater epochs, so far as the clock of its host goes forward. */
static uint64_t first_epoch(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static enum esp_status open_parts(struct sched_server *server, struct error *err)
{
	enum esp_status status = watch_signals(server, err);

	if (status == ESP_OK)
		status = sched_server_port_open(server, err);
	return status == ESP_OK ? sched_server_status_open(server, err) : status;
}

enum esp_status sched_server_open(const struct sched_server_config *config, struct sched_server **out,
                                  struct error *err)
{
	struct sched_server *server = calloc(1, sizeof(*server));

	if (!server)
		return error_set(err, ESP_ENOMEM, "no memory for a scheduler");
	key_hide(server->config.key, sizeof(server->config.key));
	server->config = *config;
	server->signals.fd = -1;
	server->epoch = first_epoch();
	enum esp_status status = loop_init(&server->loop, NULL, err);
	if (status != ESP_OK) {
		free(server);
		return status;
	}
	server->began_ns = loop_now(&server->loop);
	loop_set_hook(&server->loop, on_turn, server);
	server->looks.due = on_look;
	loop_at(&server->loop, &server->looks, server->began_ns + LOOK_NS);
	status = open_parts(server, err);
	if (status != ESP_OK) {
		sched_server_close(server);
		return status;
	}
	*out = server;
	return ESP_OK;
}

void sched_server_run(struct sched_server *server)
{
	loop_run(&server->loop);
}

/* ---- closing ---- */

static void unwatch_signals(struct sched_server *server)
{
	int fd = server->signals.fd;

	if (fd < 0)
		return;
	loop_remove(&server->loop, &server->signals);
	close(fd);
	pthread_sigmask(SIG_SETMASK, &server->former_mask, NULL);
}

void sched_server_close(struct sched_server *server)
{
	if (!server)
		return;
	sched_server_port_close(server);
	sched_server_conn_close_all(server);
	sched_server_job_close_all(server);
	sched_server_status_close(server);
	unwatch_signals(server);
	loop_fini(&server->loop);
	sodium_memzero(server, sizeof(*server));
	free(server);
}
