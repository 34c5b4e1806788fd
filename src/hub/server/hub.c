#include "hub/server/hub.h"

#include <assert.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "hub/control/host_place.h"
#include "hub/control/hub_dial.h"
#include "hub/server/hub_conn.h"
#include "hub/server/hub_dispatch.h"
#include "hub/server/hub_jobs.h"
#include "hub/server/hub_port.h"
#include "hub/server/hub_session.h"
#include "hub/server/hub_status.h"
#include "node/auth/key.h"

/* ---- the loop ---- */

/* After everything that has happened in a turn. */
static uint64_t on_turn(void *context, uint64_t now_ns)
{
	struct hub *hub = context;

	hub_conn_free_dead(hub);
	hub_session_free_dead(hub);
	hub_session_fill_all(hub);
	return hub_port_turn(hub, now_ns);
}

static void on_second(struct loop_timer *timer, uint64_t now_ns)
{
	struct hub *hub = (struct hub *)(void *)((char *)timer - offsetof(struct hub, seconds));

	hub_conn_look_after_all(hub);
	hub_jobs_look_after(hub, now_ns);
	hub_status_count(hub, now_ns);
	loop_at(&hub->loop, timer, now_ns + NS_PER_S);
}

static void on_signal(struct loop_fd *watched, uint32_t events)
{
	struct hub *hub = (struct hub *)(void *)((char *)watched - offsetof(struct hub, signals));
	struct signalfd_siginfo info;

	(void)events;
	if (read(watched->fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		hub_log(hub, "%s: the hub ends", info.ssi_signo == SIGINT ? "interrupted" : "told to end (SIGTERM)");
	loop_stop(&hub->loop);
}

static void on_lane_msg(void *context, const struct hub_lane_msg *msg)
{
	(void)context;
	hub_session_on_lane_msg(msg);
}

/* ---- opening ---- */

static enum esp_status watch_signals(struct hub *hub, struct error *err)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	if (pthread_sigmask(SIG_BLOCK, &ends, &hub->former_mask) != 0)
		return error_set(err, ESP_EIO, "cannot block signals");
	hub->signals.ready = on_signal;
	int fd = signalfd(-1, &ends, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd < 0)
		return error_set(err, ESP_ELIMIT, "no descriptor for signals");
	enum esp_status status = loop_add(&hub->loop, &hub->signals, fd, EPOLLIN, err);
	if (status != ESP_OK)
		close(fd);
	return status;
}

static enum esp_status start_lanes(struct hub *hub, struct error *err)
{
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; status == ESP_OK && i < hub->config.lanes; i++)
		status = hub_lane_start(i, hub->config.pins, &hub->loop, on_lane_msg, hub, &hub->lanes[i], err);
	return status;
}

static enum esp_status open_parts(struct hub *hub, struct error *err)
{
	enum esp_status status = watch_signals(hub, err);

	if (status == ESP_OK)
		status = start_lanes(hub, err);
	if (status == ESP_OK)
		status = hub_port_open(hub, err);
	return status == ESP_OK ? hub_status_open(hub, err) : status;
}

enum esp_status hub_open(const struct hub_config *config, struct hub **out, struct error *err)
{
	struct hub *hub = calloc(1, sizeof(*hub));

	assert(config->lanes >= 1 && config->lanes <= LAYOUT_LANES_MOST);
	if (!hub)
		return error_set(err, ESP_ENOMEM, "no memory for a hub");
	key_hide(hub->config.key, sizeof(hub->config.key));
	hub->config = *config;
	hub->own_job = hub_dial_own_job(config->key);
	hub->place = config->is_apart ? 0 : host_place();
	if (hub->config.silence_ns < SILENCE_LEAST)
		hub->config.silence_ns = SILENCE_MOST;
	hub->events = &hub_dispatch;
	hub->signals.fd = -1;
	enum esp_status status = loop_init(&hub->loop, NULL, err);
	if (status != ESP_OK) {
		free(hub);
		return status;
	}
	hub->began_ns = loop_now(&hub->loop);
	loop_set_hook(&hub->loop, on_turn, hub);
	hub->seconds.due = on_second;
	loop_at(&hub->loop, &hub->seconds, hub->began_ns + NS_PER_S);
	status = open_parts(hub, err);
	if (status != ESP_OK) {
		hub_close(hub);
		return status;
	}
	*out = hub;
	return ESP_OK;
}

void hub_run(struct hub *hub)
{
	loop_run(&hub->loop);
}

void hub_stop(struct hub *hub)
{
	loop_stop(&hub->loop);
}

/* ---- closing ---- */

/* Lanes give parts back through the loop. */
static bool has_sessions(const struct hub *hub)
{
	for (const struct hub_job *job = hub->jobs; job; job = job->next) {
		if (job->session)
			return true;
	}
	return hub->orphans > 0;
}

static void end_sessions(struct hub *hub)
{
	for (struct hub_job *job = hub->jobs; job; job = job->next) {
		if (job->session)
			hub_session_end(job->session, ESP_EJOB, UINT32_MAX, "the hub was stopped by its operator");
	}
	while (has_sessions(hub))
		loop_turn(&hub->loop, UINT64_MAX);
}

static void unwatch_signals(struct hub *hub)
{
	int fd = hub->signals.fd;

	if (fd < 0)
		return;
	loop_remove(&hub->loop, &hub->signals);
	close(fd);
	pthread_sigmask(SIG_SETMASK, &hub->former_mask, NULL);
}

void hub_close(struct hub *hub)
{
	if (!hub)
		return;
	hub_port_close(hub);
	end_sessions(hub);
	hub_session_free_dead(hub);
	while (hub->jobs)
		hub_jobs_remove(hub->jobs, "the hub was stopped by its operator");
	hub_conn_close_all(hub);
	for (uint32_t i = 0; i < hub->config.lanes; i++)
		hub_lane_stop(hub->lanes[i]);
	hub_status_close(hub);
	unwatch_signals(hub);
	loop_fini(&hub->loop);
	sodium_memzero(hub, sizeof(*hub));
	free(hub);
}
