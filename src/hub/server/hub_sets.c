#include "hub/server/hub_sets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint32_t hub_sets_pusher(const struct hub_session *session, uint32_t worker)
{
	const struct hub_worker *workers = session->workers;

	if (workers[worker].memory == 0 || session->layout.has_halves || session->job->delay_bound > 0)
		return worker;
	for (uint32_t i = 0; i < worker; i++) {
		if (workers[i].memory == workers[worker].memory)
			return i;
	}
	return worker;
}

uint32_t hub_sets_make(struct hub_session *session)
{
	uint32_t pushers = 0;

	for (uint32_t worker = 0; worker < session->worker_count; worker++) {
		uint32_t pusher = hub_sets_pusher(session, worker);

		pushers += pusher == worker;
		session->sets[pusher] |= UINT64_C(1) << worker;
	}
	return pushers;
}

bool hub_sets_can_read(const struct hub_session *session, uint32_t pusher)
{
	return session->job->hubs == 1 && session->hub->place != 0 &&
	       session->workers[pusher].memory == session->hub->place &&
	       __builtin_popcountll(session->sets[pusher]) > 1;
}

/* ---- memory of sets on this machine ---- */

/* The worker has sent what no worker sends. */
static void blame(struct hub_conn *conn, const char *what)
{
	char text[HUB_WHY_TEXT];

	snprintf(text, sizeof(text), "worker %u %s", conn->worker, what);
	hub_session_end(conn->session, ESP_ECORRUPT, conn->worker, text);
}

/*
 * The file behind a descriptor of another process; -1: none that this process may open. A device or a pipe is not
 * opened: that alone may have effects.
 */
static int open_shared(uint32_t pid, uint32_t fd)
{
	char path[64];
	struct stat info;

	snprintf(path, sizeof(path), "/proc/%u/fd/%u", pid, fd);
	int seen = open(path, O_PATH | O_CLOEXEC), opened = -1;
	if (seen < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", seen);
	if (fstat(seen, &info) == 0 && S_ISREG(info.st_mode))
		opened = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	close(seen);
	return opened;
}

static enum esp_status map_shared(struct hub_session *session, uint32_t pusher, uint32_t fd, struct error *err)
{
	struct host_member member[HOST_MEMBERS_MOST] = {0};
	uint32_t members = 0;

	for (uint64_t set = session->sets[pusher]; set; set &= set - 1)
		member[members++].worker = (uint32_t)__builtin_ctzll(set);
	int file = open_shared(session->workers[pusher].pid, fd);
	if (file < 0)
		return error_set(err, ESP_EUNSUPPORTED,
		                 "the memory of worker %u cannot be opened: %s", pusher, strerror(errno));
	const struct host_owner owner = {session->job->number, session->number};

	return host_memory_map(&owner, &session->layout, member, members, file, &session->shared[pusher], err);
}

void hub_sets_on_share(struct hub_conn *conn, uint32_t fd)
{
	struct hub_session *session = conn->session;
	struct hub_msg answer = {.type = HUB_MSG_SHARE};
	struct host_memory *shared = &session->shared[conn->worker];
	struct error err;

	if (session->state != HUB_SESSION_RUNNING || !hub_sets_can_read(session, conn->worker) || shared->layout) {
		blame(conn, "offered memory that the hub has not asked for");
		return;
	}
	answer.share = map_shared(session, conn->worker, fd, &err) == ESP_OK;
	if (!answer.share)
		hub_log(session->hub, "job %s: gradients come over the loopback: %s", session->job->name, err.text);
	const struct hub_lane_msg share = {.kind = HUB_LANE_SHARE, .worker = conn->worker, .fd = -1,
	                                   .shared = {shared->gradients, shared->weights}};
	if (!answer.share || hub_session_tell_lanes(session, &share))
		hub_conn_send(conn, &answer);
}

void hub_sets_on_why(struct hub_conn *conn, const struct hub_msg_why *why)
{
	struct hub_session *session = conn->session;
	bool is_known =
		why->worker < session->worker_count && session->sets[hub_sets_pusher(session, conn->worker)] >> why->worker & 1;

	if ((is_known && session->state == HUB_SESSION_RUNNING) || session->job->hubs > 1)
		hub_session_end(session, (enum esp_status)why->status, why->worker, why->text);
	else
		blame(conn, "complained of a worker that it does not push with");
}
