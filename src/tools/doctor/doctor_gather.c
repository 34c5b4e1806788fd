#include "tools/doctor/doctor_gather.h"

#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/net/backoff.h"
#include "node/net/resolve.h"
#include "rank/join/session.h"
#include "tools/doctor/doctor_reach.h"

#define ONE_PATIENCE (5 * NS_PER_S) /* for one rank to prove itself and to deliver its report */
#define GOODBYE_BYTES 4u
#define ANNOUNCE_SECONDS 600u /* how long a place that expires entries keeps the announcement */
#define SEGMENT_BYTES 500u /* small segments, so that reports arrive where large packets are lost */

/* A session's messages have the types of the rendezvous: here a report is an arrival, and its answer a roster. */
#define REPORT RENDEZVOUS_ARRIVAL
#define GOODBYE RENDEZVOUS_ROSTER

static int left_ms(uint64_t until_ns)
{
	uint64_t now = clock_now_ns();
	return until_ns > now ? (int)((until_ns - now) / NS_PER_MS) + 1 : 0;
}

/* Sends pending bytes as far as the socket takes them. False: the connection has ended. */
static bool send_pending(int fd, struct session *session)
{
	for (;;) {
		const uint8_t *bytes;
		size_t n;
		session_output(session, &bytes, &n);
		if (n == 0)
			return true;
		ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (sent >= 0)
			session_sent(session, (size_t)sent);
		else if (errno == EAGAIN)
			return true;
		else if (errno != EINTR)
			return false;
	}
}

static bool has_output(const struct session *session)
{
	const uint8_t *bytes;
	size_t n;
	session_output(session, &bytes, &n);
	return n > 0;
}

/*
 * Runs until the session is proved, all is sent and, with `awaits`, the peer's message is here. False: failed,
 * or too late.
 */
static bool run_session(int fd, struct session *session, bool awaits, uint64_t until_ns)
{
	struct error err;
	for (;;) {
		uint8_t bytes[4096];
		if (!send_pending(fd, session))
			return false;
		bool sends = has_output(session);
		if (session->proved && !sends && (!awaits || session->arrived))
			return true;
		struct pollfd ready = {fd, (short)(POLLIN | (sends ? POLLOUT : 0)), 0};
		if (clock_now_ns() >= until_ns || poll(&ready, 1, left_ms(until_ns)) < 0)
			return false;
		ssize_t got = ready.revents & (POLLIN | POLLHUP | POLLERR) ? recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) : -1;
		if (got == 0)
			return session->proved && session->arrived && !sends;
		if (got < 0)
			continue; /* nothing yet, or an error that the next send reports */
		enum esp_status status = session_input(session, bytes, (size_t)got, &err);
		if (status != ESP_OK && status != ESP_PENDING)
			return false;
	}
}

/* ---- the leader's address ---- */

static bool has_store(const struct join_config *join)
{
	return join->launch.place.kind != ANNOUNCE_NOWHERE;
}

/* The doctor's own announcement: that of the rendezvous was removed when all ranks had arrived. */
static const char *own_name(const struct join_config *join, char name[ANNOUNCE_NAME])
{
	char job[LAUNCH_JOB + 8];
	snprintf(job, sizeof(job), "%s.doctor", join->launch.job);
	return announce_name(job, join->launch.epoch, name);
}

enum esp_status doctor_listen_open(const struct join_config *join, struct leader_listen *listen,
                                   struct announcement *out_announcement, struct error *err)
{
	const struct leader_listen_options usual = {0};
	char name[ANNOUNCE_NAME];
	*out_announcement = (struct announcement){.at_s = (uint64_t)time(NULL), .pid = join->info.pid,
	                                          .address_count = join->info.address_count};
	if (!has_store(join))
		return leader_listen_open(listen, &join->launch.leader, &usual, join->deadline_ns, err);
	enum esp_status status = leader_listen_open_anywhere(listen, &usual, &out_announcement->port, err);
	if (status != ESP_OK)
		return status;
	randombytes_buf(out_announcement->nonce, sizeof(out_announcement->nonce));
	memcpy(out_announcement->host_name, join->info.host_name, sizeof(out_announcement->host_name));
	memcpy(out_announcement->addresses, join->info.addresses, sizeof(out_announcement->addresses));
	return announce_post(&join->launch.place, own_name(join, name), out_announcement, ANNOUNCE_SECONDS,
	                     join->deadline_ns, err);
}

void doctor_listen_close(const struct join_config *join, struct leader_listen *listen,
                         const struct announcement *announcement)
{
	char name[ANNOUNCE_NAME];
	if (has_store(join) && announcement->port != 0)
		announce_remove(&join->launch.place, own_name(join, name), announcement->nonce, clock_now_ns() + NS_PER_S);
	leader_listen_close(listen);
}

/* ---- rank 0 ---- */

struct reporter {
	int fd;
	struct session session;
};

static void reporter_close(struct reporter *reporter)
{
	session_fini(&reporter->session);
	close(reporter->fd);
	free(reporter);
}

/* Serves one connection: takes a rank's report, or closes it. */
static void take_report(const struct join_config *join, int fd, struct reporter **reporters,
                        struct doctor_report *reports, bool *has, uint8_t *body)
{
	uint32_t size = join->launch.size;
	struct handshake_config config;
	struct session_inbox inbox = {.body = body};
	struct reporter *reporter = malloc(sizeof(*reporter));
	if (!reporter) {
		close(fd);
		return;
	}
	reporter->fd = fd;
	inbox.wanted[REPORT] = doctor_report_bytes(size);
	join_listener(join, 1u << HELLO_RENDEZVOUS, 0, &config);
	session_init(&reporter->session, HANDSHAKE_LISTENER, &config, &inbox);
	sodium_memzero(&config, sizeof(config));
	bool came = run_session(fd, &reporter->session, true, clock_now_ns() + ONE_PATIENCE);
	uint32_t rank = came ? reporter->session.handshake.peer.from : 0;
	if (!came || rank == 0 || rank >= size || has[rank] || !doctor_report_decode(body, size, &reports[rank])) {
		reporter_close(reporter);
		return;
	}
	has[rank] = true;
	reporters[rank] = reporter;
}

static void say_goodbye(struct reporter *reporter)
{
	static const uint8_t nothing[GOODBYE_BYTES];
	struct session_message message;
	session_message_init(&message, GOODBYE, nothing, sizeof(nothing));
	session_post(&reporter->session, &message);
	(void)run_session(reporter->fd, &reporter->session, false, clock_now_ns() + NS_PER_S);
	reporter_close(reporter);
}

static uint32_t count_missing(const bool *has, uint32_t size)
{
	uint32_t missing = 0;
	for (uint32_t i = 1; i < size; i++)
		missing += !has[i];
	return missing;
}

void doctor_gather(const struct join_config *join, struct leader_listen *listen, struct doctor_report *reports,
                   bool *out_has, uint64_t deadline_ns)
{
	uint32_t size = join->launch.size;
	struct reporter **reporters = calloc(size, sizeof(struct reporter *));
	uint8_t *body = malloc(doctor_report_bytes(size));
	while (reporters && body && count_missing(out_has, size) > 0 && clock_now_ns() < deadline_ns) {
		struct pollfd polls[LEADER_LISTEN_SOCKETS];
		for (uint32_t i = 0; i < listen->count; i++)
			polls[i] = (struct pollfd){listen->fds[i], POLLIN, 0};
		if (poll(polls, listen->count, left_ms(deadline_ns)) <= 0)
			continue;
		int fd = leader_listen_accept(listen);
		if (fd >= 0)
			take_report(join, fd, reporters, reports, out_has, body);
	}
	for (uint32_t i = 1; reporters && body && i < size; i++)
		if (reporters[i])
			say_goodbye(reporters[i]);
	free(body);
	free(reporters);
}

/* ---- the other ranks ---- */

static bool deliver_at(const struct join_config *join, const struct sockaddr *name, socklen_t length,
                       const uint8_t *body, uint64_t deadline_ns)
{
	uint8_t goodbye[GOODBYE_BYTES];
	struct handshake_config config;
	struct session_inbox inbox = {.body = goodbye};
	struct session session;
	struct session_message message;
	uint64_t until = clock_now_ns() + ONE_PATIENCE;
	int fd = doctor_connect(name, length, SEGMENT_BYTES, until);
	if (fd < 0)
		return false;
	inbox.wanted[GOODBYE] = GOODBYE_BYTES;
	join_dialer(join, 0, HELLO_RENDEZVOUS, 0, &config);
	session_init(&session, HANDSHAKE_DIALER, &config, &inbox);
	sodium_memzero(&config, sizeof(config));
	/* Rank 0 serves one connection after the other, and may still be trying to reach a rank. */
	bool done = run_session(fd, &session, false, deadline_ns);
	if (done) {
		session_message_init(&message, REPORT, body, doctor_report_bytes(join->launch.size));
		session_post(&session, &message);
		done = run_session(fd, &session, true, deadline_ns);
	}
	session_fini(&session);
	close(fd);
	return done;
}

/* The address at which rank 0 takes reports. False: not known yet. */
static bool find_leader(const struct join_config *join, const struct roster *roster, uint64_t deadline_ns,
                        struct resolved *out)
{
	const struct node_info *first = &roster->nodes[0];
	char name[ANNOUNCE_NAME];
	struct announcement announcement;
	struct error unused;
	*out = (struct resolved){0};
	if (!has_store(join))
		return resolve(&join->launch.leader, deadline_ns, out, &unused) == ESP_OK;
	if (announce_look(&join->launch.place, own_name(join, name), deadline_ns, &announcement, &unused) != ESP_OK ||
	    announcement.port == 0)
		return false;
	for (; out->count < first->address_count && out->count < RESOLVE_MAX; out->count++)
		out->lengths[out->count] =
			node_address_to(&first->addresses[out->count], announcement.port, 0, &out->addresses[out->count].storage);
	return true;
}

enum esp_status doctor_hand_in(const struct join_config *join, const struct roster *roster,
                               const struct doctor_report *report, uint64_t deadline_ns, struct error *err)
{
	uint8_t *body = malloc(doctor_report_bytes(join->launch.size));
	struct backoff backoff;
	bool done = false;
	if (!body)
		return error_set(err, ESP_ENOMEM, "no memory for a report");
	doctor_report_encode(report, join->launch.size, body);
	backoff_init(&backoff, join->launch.rank);
	while (!done && clock_now_ns() < deadline_ns) {
		struct resolved found;
		if (!find_leader(join, roster, deadline_ns, &found))
			found.count = 0;
		for (uint32_t i = 0; i < found.count && !done; i++)
			done = deliver_at(join, &found.addresses[i].any, found.lengths[i], body, deadline_ns);
		if (!done)
			poll(NULL, 0, (int)(backoff_next_ns(&backoff) / NS_PER_MS));
	}
	free(body);
	return done ? ESP_OK : error_set(err, ESP_ETIMEOUT, "rank %u could not leave its report with rank 0",
	                                 join->launch.rank);
}
