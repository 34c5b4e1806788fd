#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "group/backoff.h"
#include "group/join_parts.h"
#include "group/launcher.h"
#include "group/listen.h"
#include "group/resolve.h"

#define ATTEMPT_NS (5 * NS_PER_S) /* to connect and to be proved; then the leader is given until the deadline */
#define REFUSALS_MAX 8            /* in a row, some seconds: then it is no accident but another key */

/* What became of one connection. */
enum outcome {
	ARRIVED, /* the roster is here             */
	AGAIN,   /* try again until the deadline   */
	OVER,    /* no use in trying again         */
};

struct follower {
	const struct join_config *config;
	struct roster *roster;
	struct error *err; /* the reason, if there is one: the last one counts at the deadline */
	uint8_t *inbox;
	unsigned refusals;
	struct session session;
	struct store_arrival arrival;
	uint8_t arrival_bytes[STORE_ARRIVAL_BYTES];
};

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static enum outcome again(struct follower *follower, const char *what)
{
	error_set(follower->err, ESP_ELINK, "%s: %s", what, strerror(errno));
	return AGAIN;
}

/* Waits for what poll(2) can tell; false if until has come first. */
static bool wait_for(int fd, short events, uint64_t until_ns)
{
	for (;;) {
		struct pollfd ready = {fd, events, 0};
		uint64_t now = clock_now_ns();
		if (now >= until_ns)
			return false;
		if (poll(&ready, 1, join_wait_ms(now, until_ns)) > 0)
			return true;
	}
}

static enum outcome finish_connect(struct follower *follower, int fd, uint64_t until_ns)
{
	int why = 0;
	socklen_t length = sizeof(why);
	if (!wait_for(fd, POLLOUT, until_ns)) {
		error_set(follower->err, ESP_ETIMEOUT, "it does not answer");
		return AGAIN;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &length) == 0 && why == 0)
		return ARRIVED;
	errno = why ? why : errno;
	return again(follower, "cannot connect");
}

/* The address from which the leader can be reached is one where others can reach this rank. */
static void write_arrival(struct follower *follower, int fd, uint64_t now_ns)
{
	union resolve_address own = {.any.sa_family = AF_UNSPEC};
	socklen_t length = sizeof(own);
	uint64_t left_ns = follower->config->deadline_ns > now_ns ? follower->config->deadline_ns - now_ns : 0;
	follower->arrival.card = follower->config->card;
	memcpy(follower->arrival.settings, follower->config->settings, sizeof(follower->arrival.settings));
	follower->arrival.patience_ms = (uint32_t)earlier(left_ns / NS_PER_MS, UINT32_MAX);
	if (getsockname(fd, &own.any, &length) == 0)
		group_prefer_address(&follower->arrival.card, &own.any);
	store_arrival_encode(&follower->arrival, follower->arrival_bytes);
}

static void post_arrival(struct follower *follower, int fd)
{
	struct session_message message;
	write_arrival(follower, fd, clock_now_ns());
	session_message_init(&message, STORE_ARRIVAL, follower->arrival_bytes, STORE_ARRIVAL_BYTES);
	session_post(&follower->session, &message);
}

static enum outcome read_answer(struct follower *follower)
{
	struct store_failure failure;
	if (follower->session.type == STORE_ROSTER) {
		enum esp_status status =
			roster_decode(follower->inbox, follower->config->launch.size, follower->roster, follower->err);
		return status == ESP_OK ? ARRIVED : OVER;
	}
	if (store_failure_decode(follower->inbox, &failure))
		error_set(follower->err, (enum esp_status)failure.status, "%s", failure.text);
	else
		error_set(follower->err, ESP_ECORRUPT, "the leader's reason for failing cannot be read");
	return OVER;
}

/* The session ended without an answer. */
static enum outcome judge_end(struct follower *follower, enum esp_status status)
{
	const struct handshake *handshake = &follower->session.handshake;
	if (follower->session.proved) {
		error_set(follower->err, ESP_EPEER, "the leader, rank 0, went away while the group was joining");
		return OVER;
	}
	if (status == ESP_EMISMATCH) /* what an earlier job or start left behind makes way in time */
		return handshake->verdict == HELLO_OTHER_JOB || handshake->verdict == HELLO_OTHER_EPOCH ? AGAIN : OVER;
	follower->refusals = handshake->refused ? follower->refusals + 1 : 0;
	if (follower->refusals < REFUSALS_MAX)
		return AGAIN;
	char leader[ADDRESS_TEXT];
	error_set(follower->err, ESP_EMISMATCH,
	          "the leader at %s refused the proof of rank %u %u times: it has another key, or none; "
	          "all ranks need the same ESP_KEY or ESP_KEY_FILE",
	          address_format(&follower->config->launch.leader, leader), follower->config->launch.rank, follower->refusals);
	return OVER;
}

static enum outcome converse(struct follower *follower, int fd, uint64_t prove_until_ns)
{
	struct session *session = &follower->session;
	bool posted = false;
	for (;;) {
		enum esp_status status = join_receive(fd, session, follower->err);
		if (status == ESP_OK)
			return read_answer(follower);
		if (status != ESP_PENDING)
			return judge_end(follower, status);
		if (session->proved && !posted) {
			follower->refusals = 0;
			post_arrival(follower, fd);
			posted = true;
		}
		enum esp_status sent = join_send(fd, session, follower->err);
		if (sent < 0 && join_receive(fd, session, follower->err) == ESP_OK)
			return read_answer(follower); /* the answer came before the end */
		if (sent < 0)
			return judge_end(follower, session_closed(session, follower->err));
		uint64_t until = session->proved ? follower->config->deadline_ns : prove_until_ns;
		if (!wait_for(fd, sent == ESP_PENDING ? POLLIN | POLLOUT : POLLIN, until)) {
			error_set(follower->err, ESP_ETIMEOUT, session->proved ? "other ranks did not arrive" : "it does not answer");
			return AGAIN;
		}
	}
}

static enum outcome attempt_on(struct follower *follower, int fd, const struct sockaddr *address, socklen_t length)
{
	struct handshake_config config;
	struct session_inbox inbox = {.body = follower->inbox};
	uint64_t until = earlier(clock_now_ns() + ATTEMPT_NS, follower->config->deadline_ns);
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, address, length) != 0) {
		if (errno != EINPROGRESS)
			return again(follower, "cannot connect");
		enum outcome connected = finish_connect(follower, fd, until);
		if (connected != ARRIVED)
			return connected;
	}
	inbox.wanted[STORE_ROSTER] = follower->config->launch.size * CARD_BYTES;
	inbox.wanted[STORE_FAILURE] = STORE_FAILURE_BYTES;
	join_dialer(follower->config, 0, HELLO_STORE, 0, &config);
	session_init(&follower->session, HANDSHAKE_DIALER, &config, &inbox);
	sodium_memzero(&config, sizeof(config));
	enum outcome outcome = converse(follower, fd, until);
	session_fini(&follower->session);
	return outcome;
}

static enum outcome attempt(struct follower *follower, const struct sockaddr *address, socklen_t length)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return again(follower, "cannot open a socket");
	enum outcome outcome = attempt_on(follower, fd, address, length);
	close(fd);
	return outcome;
}

static enum outcome try_all(struct follower *follower)
{
	struct resolved found;
	enum outcome outcome = AGAIN;
	uint64_t deadline = follower->config->deadline_ns;
	if (resolve(&follower->config->launch.leader, deadline, &found, follower->err) != ESP_OK)
		return AGAIN;
	for (uint32_t i = 0; i < found.count && outcome == AGAIN && clock_now_ns() < deadline; i++)
		outcome = attempt(follower, &found.addresses[i].any, found.lengths[i]);
	return outcome;
}

/* Says where and for how long it was tried; the reason itself has been found already. */
static enum esp_status give_up(struct follower *follower, uint64_t begin_ns)
{
	char leader[ADDRESS_TEXT];
	struct error last = *follower->err;
	return error_set(follower->err, ESP_ETIMEOUT, "rank %u could not join at the leader %.80s within %.1f s: %.120s",
	                 follower->config->launch.rank, address_format(&follower->config->launch.leader, leader),
	                 (double)(clock_now_ns() - begin_ns) / (double)NS_PER_S, last.text);
}

/* The others are the leader's business. */
static bool leader_has_ended(struct follower *follower, struct launcher *launcher)
{
	uint8_t answer[ENDED_BYTES];
	if (launcher_turn(launcher, clock_now_ns(), answer, 1) == 0 || ended_get(answer, 0) == ENDED_NOT)
		return false;
	error_set(follower->err, ESP_EPEER, "the leader, rank 0, has ended with status %d before the group had joined",
	          ended_get(answer, 0));
	return true;
}

static enum esp_status follow_with(struct follower *follower, struct launcher *launcher)
{
	struct backoff backoff;
	uint64_t seed, begin = clock_now_ns();
	randombytes_buf(&seed, sizeof(seed));
	backoff_init(&backoff, seed);
	error_set(follower->err, ESP_ETIMEOUT, "the deadline had passed before the first attempt");
	for (;;) {
		enum outcome outcome = clock_now_ns() < follower->config->deadline_ns ? try_all(follower) : AGAIN;
		if (outcome == ARRIVED)
			return ESP_OK;
		if (outcome == OVER)
			return follower->err->status;
		uint64_t now = clock_now_ns();
		if (leader_has_ended(follower, launcher))
			return follower->err->status;
		if (now >= follower->config->deadline_ns)
			return give_up(follower, begin);
		log_write(follower->config->log, LOG_LEVEL_TRACE, "joining: %s; trying again", follower->err->text);
		poll(NULL, 0, join_wait_ms(now, earlier(now + backoff_next_ns(&backoff), follower->config->deadline_ns)));
	}
}

static enum esp_status follow(struct follower *follower)
{
	struct launcher launcher;
	launcher_init(&launcher, follower->config->launch.launcher, clock_now_ns());
	enum esp_status status = follow_with(follower, &launcher);
	launcher_fini(&launcher);
	return status;
}

enum esp_status join_follow(const struct join_config *config, struct roster *out, struct error *err)
{
	struct error reason;
	size_t roster_bytes = (size_t)config->launch.size * CARD_BYTES;
	size_t inbox_bytes = roster_bytes > STORE_FAILURE_BYTES ? roster_bytes : STORE_FAILURE_BYTES;
	struct follower *follower = calloc(1, sizeof(*follower));
	uint8_t *inbox = malloc(inbox_bytes);
	enum esp_status status = ESP_ENOMEM;
	if (follower && inbox) {
		*follower = (struct follower){.config = config, .roster = out, .err = &reason, .inbox = inbox};
		status = follow(follower);
		if (status != ESP_OK)
			error_set(err, status, "%s", reason.text);
	} else {
		error_set(err, ESP_ENOMEM, "no memory for the cards of %u ranks", config->launch.size);
	}
	free(inbox);
	free(follower);
	return status;
}
