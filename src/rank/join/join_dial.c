#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ready.h"
#include "node/net/address.h"
#include "node/net/listen.h"
#include "rank/join/join_parts.h"

/*
 * Time to connect and to be proved; a proved leader then has until the deadline. Doubled after an attempt
 * without an answer: a leader with a full backlog may have dropped the connection, or may be slow.
 */
#define ATTEMPT_FIRST_NS (250 * NS_PER_MS)
#define ATTEMPT_MOST_NS (8 * NS_PER_S)
#define RIVAL_NS (1 * NS_PER_S)
#define REFUSALS_MAX 8            /* in a row, over some seconds: then the keys differ */

static_assert(NODE_ADDRESSES <= RESOLVE_MAX, "the addresses of an announcement are tried as those of a name");

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static enum join_outcome dial_again(struct join_dial *dial, const char *what)
{
	dial->is_unreached = errno == ECONNREFUSED;
	error_set(dial->err, ESP_ELINK, "%s: %s", what, strerror(errno));
	return JOIN_AGAIN;
}

static enum join_outcome no_answer(struct join_dial *dial, const char *why)
{
	dial->patience_ns = earlier(2 * dial->patience_ns, ATTEMPT_MOST_NS);
	error_set(dial->err, ESP_ETIMEOUT, "%s", why);
	return JOIN_AGAIN;
}

/* ESP_OK: the descriptor is ready; ESP_ETIMEOUT: until_ns has come; ESP_EPEER: joining is called off. */
static enum esp_status await(struct join_dial *dial, int fd, short events, uint64_t until_ns)
{
	for (;;) {
		uint64_t now = clock_now_ns();
		if (ready_by(fd, events, join_look_until(&dial->config, now, until_ns)))
			return ESP_OK;
		if (join_is_called_off(&dial->config, &dial->culprit, dial->err))
			return ESP_EPEER;
		if (clock_now_ns() >= until_ns)
			return ESP_ETIMEOUT;
	}
}

static enum join_outcome finish_connect(struct join_dial *dial, int fd, uint64_t until_ns)
{
	int why = 0;
	socklen_t length = sizeof(why);
	enum esp_status waited = await(dial, fd, POLLOUT, until_ns);
	if (waited == ESP_EPEER)
		return JOIN_OVER;
	if (waited != ESP_OK)
		return no_answer(dial, "no answer: does a firewall drop it, or is the host down? espalier doctor tells "
		                       "more");
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &length) == 0 && why == 0)
		return JOIN_ARRIVED;
	errno = why ? why : errno;
	return dial_again(dial, "cannot connect");
}

/* Other ranks can reach this rank at the address from which it reaches the leader. */
static void write_arrival(struct join_dial *dial, int fd, uint64_t now_ns)
{
	union resolve_address own = {.any.sa_family = AF_UNSPEC};
	socklen_t length = sizeof(own);
	uint64_t left_ns = dial->config.deadline_ns > now_ns ? dial->config.deadline_ns - now_ns : 0;
	dial->arrival.info = dial->config.info;
	memcpy(dial->arrival.settings, dial->config.settings, sizeof(dial->arrival.settings));
	memcpy(dial->arrival.job, dial->config.launch.job, sizeof(dial->arrival.job));
	dial->arrival.patience_ms = (uint32_t)earlier(left_ns / NS_PER_MS, UINT32_MAX);
	if (getsockname(fd, &own.any, &length) == 0)
		listen_prefer_address(&dial->arrival.info, &own.any);
	rendezvous_arrival_encode(&dial->arrival, dial->arrival_bytes);
}

static void post_arrival(struct join_dial *dial, int fd)
{
	struct session_message message;
	write_arrival(dial, fd, clock_now_ns());
	session_message_init(&message, RENDEZVOUS_ARRIVAL, dial->arrival_bytes, RENDEZVOUS_ARRIVAL_BYTES);
	session_post(&dial->session, &message);
}

/* RENDEZVOUS_AWAY: the leader is of another job, which may be over soon; try again. */
static enum join_outcome read_answer(struct join_dial *dial)
{
	struct rendezvous_failure failure;
	if (dial->session.type == RENDEZVOUS_ROSTER) {
		enum esp_status status = roster_decode(dial->inbox, dial->config.launch.size, dial->roster, dial->err);
		return status == ESP_OK ? JOIN_ARRIVED : JOIN_OVER;
	}
	if (rendezvous_failure_decode(dial->inbox, &failure)) {
		error_set(dial->err, (enum esp_status)failure.status, "%s", failure.text);
		dial->culprit = failure.culprit < dial->config.launch.size ? (int32_t)failure.culprit : -1;
	} else {
		error_set(dial->err, ESP_ECORRUPT, "the leader's reason for failing cannot be read");
	}
	if (dial->session.type != RENDEZVOUS_AWAY) {
		dial->is_told = true;
		return JOIN_OVER;
	}
	dial->away = *dial->err;
	return JOIN_AGAIN;
}

/* The session ended without an answer. */
static enum join_outcome judge_end(struct join_dial *dial, enum esp_status status)
{
	const struct handshake *handshake = &dial->session.handshake;
	if (dial->session.proved && memcmp(handshake->peer.job, handshake->config.hello.job, HELLO_JOB_BYTES) != 0) {
		error_set(dial->err, ESP_EMISMATCH, "the leader there is another job's, and went away");
		return JOIN_AGAIN;
	}
	if (dial->session.proved) {
		dial->culprit = 0;
		error_set(dial->err, ESP_EPEER, "the leader, rank 0, went away while the group was joining");
		return JOIN_OVER;
	}
	if (status == ESP_EMISMATCH) { /* a leader of an earlier job or epoch will be gone soon */
		bool may_go = handshake->verdict == HELLO_OTHER_JOB || handshake->verdict == HELLO_OTHER_EPOCH;
		dial->culprit = (int32_t)dial->config.launch.rank;
		if (may_go)
			dial->away = *dial->err;
		return may_go ? JOIN_AGAIN : JOIN_OVER;
	}
	dial->refusals = handshake->refused ? dial->refusals + 1 : 0;
	if (dial->refusals < REFUSALS_MAX)
		return JOIN_AGAIN;
	char leader[ADDRESS_TEXT];
	dial->culprit = (int32_t)dial->config.launch.rank;
	error_set(dial->err, ESP_EMISMATCH,
	          "the leader at %s refused the proof of rank %u %u times: it has another key, or none; "
	          "all ranks need the same ESP_KEY or ESP_KEY_FILE",
	          address_format(&dial->leader, leader), dial->config.launch.rank, dial->refusals);
	return JOIN_OVER;
}

static enum join_outcome converse(struct join_dial *dial, int fd, uint64_t prove_until_ns)
{
	struct session *session = &dial->session;
	bool posted = false;
	for (;;) {
		enum esp_status status = join_receive(fd, session, dial->err);
		if (status == ESP_OK)
			return read_answer(dial);
		if (status != ESP_PENDING)
			return judge_end(dial, status);
		if (session->proved && !posted) {
			dial->refusals = 0;
			post_arrival(dial, fd);
			posted = true;
			char leader[ADDRESS_TEXT];
			join_tell(&dial->config, "the others; rank 0 at %s knows that this rank is here",
			          address_format(&dial->leader, leader));
		}
		enum esp_status sent = join_send(fd, session, dial->err);
		if (sent < 0 && join_receive(fd, session, dial->err) == ESP_OK)
			return read_answer(dial); /* the answer came before the connection ended */
		if (sent < 0)
			return judge_end(dial, session_closed(session, dial->err));
		uint64_t until = session->proved ? dial->config.deadline_ns : prove_until_ns;
		enum esp_status waited = await(dial, fd, sent == ESP_PENDING ? POLLIN | POLLOUT : POLLIN, until);
		if (waited == ESP_EPEER)
			return JOIN_OVER;
		if (waited != ESP_OK) {
			if (!session->proved)
				return no_answer(dial, "its host answers, and the process there does not");
			error_set(dial->err, ESP_ETIMEOUT,
			          "the leader, rank 0, has this rank's node info and has not sent the roster: is it stopped?");
			return JOIN_AGAIN;
		}
	}
}

static enum join_outcome try_on(struct join_dial *dial, int fd, const struct sockaddr *address, socklen_t length)
{
	struct handshake_config config;
	struct session_inbox inbox = {.body = dial->inbox};
	uint64_t until = earlier(clock_now_ns() + dial->patience_ns, dial->config.deadline_ns);
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, address, length) != 0) {
		if (errno != EINPROGRESS)
			return dial_again(dial, "cannot connect");
		enum join_outcome connected = finish_connect(dial, fd, until);
		if (connected != JOIN_ARRIVED)
			return connected;
	}
	if (address_meets_itself(fd)) {
		errno = ECONNREFUSED;
		return dial_again(dial, "cannot connect");
	}
	inbox.wanted[RENDEZVOUS_ROSTER] = dial->config.launch.size * NODE_INFO_BYTES;
	inbox.wanted[RENDEZVOUS_FAILURE] = inbox.wanted[RENDEZVOUS_AWAY] = RENDEZVOUS_FAILURE_BYTES;
	join_dialer(&dial->config, 0, HELLO_RENDEZVOUS, 0, &config);
	session_init(&dial->session, HANDSHAKE_DIALER, &config, &inbox);
	sodium_memzero(&config, sizeof(config));
	enum join_outcome outcome = converse(dial, fd, until);
	session_fini(&dial->session);
	return outcome;
}

enum join_outcome join_dial_try(struct join_dial *dial, const struct sockaddr *address, socklen_t length)
{
	dial->is_unreached = false;
	dial->culprit = -1;
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return dial_again(dial, "cannot open a socket");
	int segment = (int)dial->config.segment_bytes;
	if (segment > 0) /* announced to the leader, which keeps to it */
		setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment));
	enum join_outcome outcome = try_on(dial, fd, address, length);
	close(fd);
	return outcome;
}

enum join_outcome join_dial_all(struct join_dial *dial, const struct resolved *found)
{
	enum join_outcome outcome = JOIN_AGAIN;
	for (uint32_t i = 0; i < found->count && outcome == JOIN_AGAIN && clock_now_ns() < dial->config.deadline_ns; i++)
		outcome = join_dial_try(dial, &found->addresses[i].any, found->lengths[i]);
	return outcome;
}

struct join_dial *join_dial_new(const struct join_config *config, struct roster *roster, struct error *err)
{
	size_t roster_bytes = (size_t)config->launch.size * NODE_INFO_BYTES;
	struct join_dial *dial = calloc(1, sizeof(*dial));
	if (!dial)
		return NULL;
	*dial = (struct join_dial){
		.config = *config,
		.leader = config->launch.leader,
		.roster = roster,
		.err = err,
		.culprit = -1,
		.patience_ns = ATTEMPT_FIRST_NS,
		.inbox = malloc(roster_bytes > RENDEZVOUS_FAILURE_BYTES ? roster_bytes : RENDEZVOUS_FAILURE_BYTES),
	};
	if (dial->inbox)
		return dial;
	join_dial_free(dial);
	return NULL;
}

void join_dial_free(struct join_dial *dial)
{
	if (!dial)
		return;
	free(dial->inbox);
	sodium_memzero(dial, sizeof(*dial));
	free(dial);
}

/* Other reasons, such as an earlier epoch's failure, do not matter here. */
bool join_ask_rival(const struct join_config *config, const struct resolved *found, struct error *err)
{
	struct roster unused = {0};
	struct error reason;
	struct join_dial *dial = join_dial_new(config, &unused, &reason);
	if (!dial)
		return false;
	dial->config.deadline_ns = earlier(clock_now_ns() + RIVAL_NS, config->deadline_ns);
	bool is_rival = join_dial_all(dial, found) == JOIN_OVER && dial->culprit == 0 && reason.status == ESP_EMISMATCH;
	if (is_rival)
		error_set(err, ESP_EMISMATCH, "%s", reason.text);
	join_dial_free(dial);
	roster_fini(&unused);
	return is_rival;
}

void join_announced_addresses(const struct announcement *announcement, struct resolved *out, struct address *out_first)
{
	*out = (struct resolved){.count = announcement->address_count};
	for (uint32_t i = 0; i < announcement->address_count; i++) {
		struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(announcement->port)};
		struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(announcement->port)};
		bool is_v4 = announcement->addresses[i].family == NODE_IPV4;
		memcpy(&v4.sin_addr, announcement->addresses[i].bytes, sizeof(v4.sin_addr));
		memcpy(&v6.sin6_addr, announcement->addresses[i].bytes, sizeof(v6.sin6_addr));
		out->lengths[i] = is_v4 ? sizeof(v4) : sizeof(v6);
		memcpy(&out->addresses[i].storage, is_v4 ? (const void *)&v4 : (const void *)&v6, out->lengths[i]);
		if (i == 0)
			inet_ntop(is_v4 ? AF_INET : AF_INET6, announcement->addresses[i].bytes, out_first->host,
			          sizeof(out_first->host));
	}
	out_first->port = announcement->port;
}
