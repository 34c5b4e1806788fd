#include "rank/join/joiner.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ready.h"
#include "node/auth/handshake_check.h"
#include "node/net/backoff.h"
#include "rank/join/join_parts.h"

#define LOOKUP_NS (15 * NS_PER_S) /* a name, if there are further addresses: dead name servers take five seconds each */
#define PROOF_NS (5 * NS_PER_S) /* to connect and to be proved */
#define SEND_NS NS_PER_S        /* to send a message while joining: a full socket holds no rank up */

enum esp_status join_addresses_parse(const char *text, struct join_addresses *out, struct error *err)
{
	char one[ADDRESS_TEXT];

	out->count = 0;
	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");

		if (length > 0 && out->count == JOIN_ADDRESSES_MOST)
			return error_set(err, ESP_EINVAL, "ESP_DOOR names more than %u doors", JOIN_ADDRESSES_MOST);
		if (length >= sizeof(one))
			return error_set(err, ESP_EINVAL, "ESP_DOOR has an address that is too long");
		memcpy(one, at, length);
		one[length] = '\0';
		if (length > 0 && address_parse(one, "ESP_DOOR", &out->all[out->count++], err) != ESP_OK)
			return err->status;
		at += length;
		if (*at == '\0')
			break;
	}
	return out->count > 0 ? ESP_OK : error_set(err, ESP_EINVAL,
	                                           "ESP_DOOR names no door: it is host:port, or several with commas "
	                                           "between");
}

bool join_addresses_are_loopback(const struct join_addresses *addresses)
{
	bool all = true;

	for (uint32_t i = 0; i < addresses->count; i++)
		all = all && address_is_loopback(&addresses->all[i]);
	return all;
}

/* ---- one attempt ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * A rank whose host vanishes is given up within half a minute; the kernel's default of two hours is longer than
 * a joiner waits.
 */
static void set_keepalive(int fd)
{
	const int on = 1, idle_s = 10, interval_s = 5, count = 4;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof(count));
}

static enum esp_status connect_to(int fd, const struct sockaddr *address, socklen_t length, uint64_t until,
                                  struct error *err)
{
	int why = 0, on = 1;
	socklen_t size = sizeof(why);

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	set_keepalive(fd);
	if (connect(fd, address, length) == 0)
		return ESP_OK;
	if (errno != EINPROGRESS)
		return error_set(err, ESP_ELINK, "cannot connect: %s", strerror(errno));
	if (!ready_by(fd, POLLOUT, until))
		return error_set(err, ESP_ETIMEOUT, "it does not answer");
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &size) != 0 || why != 0)
		return error_set(err, ESP_ELINK, "cannot connect: %s", strerror(why ? why : errno));
	return ESP_OK;
}

static enum esp_status send_all(int fd, struct handshake *handshake, uint64_t until, struct error *err)
{
	const uint8_t *bytes;
	size_t n;

	for (handshake_output(handshake, &bytes, &n); n > 0; handshake_output(handshake, &bytes, &n)) {
		ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);

		if (sent > 0)
			handshake_sent(handshake, (size_t)sent);
		else if (errno != EAGAIN && errno != EINTR)
			return error_set(err, ESP_ELINK, "the connection broke: %s", strerror(errno));
		else if (!ready_by(fd, POLLOUT, until))
			return error_set(err, ESP_ETIMEOUT, "it does not answer");
	}
	return ESP_OK;
}

static enum esp_status prove(int fd, struct handshake *handshake, uint64_t until, struct error *err)
{
	uint8_t bytes[VERDICT_BYTES];
	size_t used;

	while (handshake->state != HANDSHAKE_DONE) {
		enum esp_status status = send_all(fd, handshake, until, err);
		if (status != ESP_OK)
			return status;
		if (!ready_by(fd, POLLIN, until))
			return error_set(err, ESP_ETIMEOUT, "it does not answer");
		size_t wanted = handshake_wants(handshake);
		ssize_t got = recv(fd, bytes, wanted < sizeof(bytes) ? wanted : sizeof(bytes), 0);
		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got <= 0)
			return handshake_closed(handshake, err);
		status = handshake_input(handshake, bytes, (size_t)got, &used, err);
		if (status < 0)
			return status;
	}
	return ESP_OK;
}

static enum esp_status read_message(int fd, uint64_t until, struct control_msg *out, struct error *err)
{
	uint8_t bytes[CONTROL_BYTES];
	size_t at = 0;

	while (at < sizeof(bytes)) {
		/* this process may have been stopped: read first, then look at the clock */
		ssize_t got = recv(fd, bytes + at, sizeof(bytes) - at, 0);
		if (got > 0)
			at += (size_t)got;
		else if (got == 0 || (errno != EAGAIN && errno != EINTR))
			return error_set(err, ESP_ELINK, "the rank there went away");
		else if (!ready_by(fd, POLLIN, until))
			return error_set(err, ESP_ETIMEOUT, "nothing was heard there");
	}
	return control_decode(bytes, out) ? ESP_OK : error_set(err, ESP_ECORRUPT,
	                                                       "the rank there says what makes no sense");
}

static enum esp_status write_all(int fd, const uint8_t *bytes, size_t count, uint64_t until, struct error *err)
{
	for (size_t at = 0; at < count;) {
		ssize_t sent = send(fd, bytes + at, count - at, MSG_NOSIGNAL);

		if (sent > 0)
			at += (size_t)sent;
		else if (errno != EAGAIN && errno != EINTR)
			return error_set(err, ESP_ELINK, "the rank there went away");
		else if (!ready_by(fd, POLLOUT, until))
			return error_set(err, ESP_ETIMEOUT, "the rank there does not listen any more");
	}
	return ESP_OK;
}

/* Answers the rank that asks whether this joiner is still there. as: its new rank, or UINT32_MAX. */
static enum esp_status send_here(const struct joiner *joiner, uint32_t as, uint64_t until, struct error *err)
{
	struct control_msg msg = {.type = CONTROL_ECHO, .from = UINT32_MAX, .about = as};
	uint8_t bytes[CONTROL_BYTES];

	memcpy(msg.echo.who, joiner->who, sizeof(msg.echo.who));
	control_encode(&msg, bytes);
	return write_all(joiner->fd, bytes, sizeof(bytes), until, err);
}

/* The joiner does not fit: the rank sends the reason, in the words of its log. */
static enum esp_status read_refusal(int fd, const struct join_config *config, uint64_t until, struct error *err)
{
	struct rendezvous_arrival arrival = {.info = config->info};
	uint8_t bytes[RENDEZVOUS_ARRIVAL_BYTES];
	struct control_msg msg = {0};

	memcpy(arrival.settings, config->settings, sizeof(arrival.settings));
	memcpy(arrival.job, config->launch.job, sizeof(arrival.job));
	rendezvous_arrival_encode(&arrival, bytes);
	if (write_all(fd, bytes, sizeof(bytes), until, err) != ESP_OK || read_message(fd, until, &msg, err) != ESP_OK ||
	    msg.type != CONTROL_REFUSE)
		return error_set(err, ESP_EMISMATCH, "it has another job, or other settings: compare ESP_JOB, and what "
		                                     "`espalier conf` prints on both hosts");
	return error_set(err, ESP_EMISMATCH, "%s", msg.refuse.text);
}

/*
 * The rank asks repeatedly whether the joiner is there, and finally invites it. With each question it sends its
 * liveness interval. After two such intervals of silence the rank is stopped or cut off, and the joiner tries
 * another address.
 */
static enum esp_status read_invitation(const struct joiner *joiner, uint64_t deadline_ns, struct launch *launch,
                                       struct error *err)
{
	struct control_msg msg = {.type = CONTROL_BEAT};
	uint64_t until = deadline_ns;
	enum esp_status status = read_message(joiner->fd, until, &msg, err);

	while (status == ESP_OK && msg.type == CONTROL_BEAT) {
		if (msg.beat.silence_ns > 0 && msg.beat.silence_ns < deadline_ns)
			until = earlier(clock_now_ns() + 2 * msg.beat.silence_ns, deadline_ns);
		status = send_here(joiner, UINT32_MAX, until, err);
		if (status == ESP_OK)
			status = read_message(joiner->fd, until, &msg, err);
	}
	if (status == ESP_ETIMEOUT && until == deadline_ns)
		return error_set(err, ESP_ETIMEOUT, "the ranks of the job have not called esp_grow()");
	if (status == ESP_ETIMEOUT)
		return error_set(err, ESP_ETIMEOUT, "the rank there has not been heard of for long: it is stopped, or cut off");
	if (status != ESP_OK)
		return status;
	if (msg.type != CONTROL_INVITE || msg.invite.size == 0 || msg.invite.size > LAUNCH_SIZE_MAX ||
	    msg.about >= msg.invite.size)
		return error_set(err, ESP_ECORRUPT, "the invitation makes no sense");
	if (address_parse(msg.invite.leader, "the invitation", &launch->leader, err) != ESP_OK)
		return err->status;
	launch->rank = msg.about;
	launch->size = msg.invite.size;
	launch->epoch = msg.invite.epoch;
	return ESP_OK;
}

/* The process there is a leader, which takes ranks only. It will be gone, and a rank may listen there next. */
static enum esp_status fail_leader(const struct hello *leader, const uint8_t own_job[HELLO_JOB_BYTES],
                                   struct error *err)
{
	bool is_own = memcmp(own_job, leader->job, HELLO_JOB_BYTES) == 0;

	return error_set(err, ESP_ELINK, "no door is there, but rank %u of %s, whose ranks are joining", leader->from,
	                 is_own ? "this job" : "another job");
}

/* The result of trying an address or a name. */
struct finding {
	bool is_ours;    /* a rank of this joiner's job has answered */
	bool has_waited; /* and has kept this joiner waiting */
};

static enum esp_status try_one(const struct sockaddr *address, socklen_t length, struct join_config *config,
                               struct joiner *out, struct finding *found, struct error *err)
{
	struct handshake_config dialer;
	struct handshake handshake;
	bool is_unfit = false;
	uint64_t until = clock_now_ns() + PROOF_NS;
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return error_set(err, ESP_ELINK, "no socket: %s", strerror(errno));
	until = earlier(until, config->deadline_ns);
	enum esp_status status = connect_to(fd, address, length, until, err);
	if (status == ESP_OK) {
		join_dialer(config, HANDSHAKE_ANY_RANK, HELLO_JOINER, 0, &dialer);
		handshake_init(&handshake, HANDSHAKE_DIALER, &dialer);
		status = prove(fd, &handshake, until, err);
		if (status == ESP_EMISMATCH && handshake.verdict == HELLO_OTHER_PURPOSE)
			status = fail_leader(&handshake.peer, dialer.hello.job, err);
		is_unfit = status == ESP_OK && judge_is_unfit(&dialer.hello, &handshake.peer);
		found->is_ours = status == ESP_OK &&
		                 memcmp(dialer.hello.job, handshake.peer.job, sizeof(dialer.hello.job)) == 0;
		handshake_fini(&handshake);
	}
	if (is_unfit)
		status = read_refusal(fd, config, until, err);
	if (status == ESP_OK && config->log)
		log_write(config->log, LOG_LEVEL_INFO, LOG_JOIN, "waiting to be let in");
	found->has_waited = status == ESP_OK;
	out->fd = fd;
	if (status == ESP_OK)
		status = read_invitation(out, config->deadline_ns, &config->launch, err);
	if (status != ESP_OK) {
		close(fd);
		out->fd = -1;
	}
	return status;
}

/* Tries all addresses of a name in turn. A rank's reason for a refusal says more than addresses without a process. */
static enum esp_status try_name(const struct address *address, uint64_t look_until_ns, struct join_config *config,
                                struct joiner *out, struct finding *found, struct error *err)
{
	struct resolved names;
	struct error unfit = {0};
	bool is_ours = false;
	enum esp_status status = resolve(address, earlier(look_until_ns, config->deadline_ns), &names, err);

	*found = (struct finding){0};
	if (status != ESP_OK)
		return status;
	status = error_set(err, ESP_ELINK, "it has no address");
	for (uint32_t i = 0; i < names.count && (i == 0 || clock_now_ns() < config->deadline_ns); i++) {
		struct finding here = {0};

		status = try_one(&names.addresses[i].any, names.lengths[i], config, out, &here, err);
		found->has_waited = found->has_waited || here.has_waited;
		if (status == ESP_OK)
			return ESP_OK;
		if (status == ESP_EMISMATCH && (unfit.status == ESP_OK || (here.is_ours && !is_ours))) {
			unfit = *err;
			is_ours = here.is_ours;
		}
	}
	found->is_ours = is_ours;
	if (unfit.status == ESP_OK || found->has_waited)
		return status == ESP_EMISMATCH ? error_set(err, ESP_ELINK, "the rank there went away") : status;
	*err = unfit;
	return ESP_EMISMATCH;
}

/* ---- all of ESP_DOOR ---- */

/* The results so far. */
struct round {
	bool is_unfit[JOIN_ADDRESSES_MOST]; /* it has refused this joiner for good: it is not asked again */
	uint32_t unfit;            /* how many have */
	uint32_t told_by;          /* the one of them whose reason is reported */
	bool is_told_by_ours;      /* it is a rank of this joiner's job */
	struct error reason;
	bool has_waited;           /* at an address of this joiner's job */
};

/* If a dead rank's port was taken by another job, that job's reason is not the one to report. */
static void note_unfit(struct round *round, uint32_t index, const struct finding *found, const struct error *why)
{
	if (round->unfit == 0 || (found->is_ours && !round->is_told_by_ours)) {
		round->told_by = index;
		round->is_told_by_ours = found->is_ours;
		round->reason = *why;
	}
	round->is_unfit[index] = true;
	round->unfit++;
}

static enum esp_status tell_unfit(const struct round *round, const struct join_addresses *addresses, struct error *err)
{
	char text[ADDRESS_TEXT];

	address_format(&addresses->all[round->told_by], text);
	return error_set(err, ESP_EMISMATCH, "the job at %s does not let this process in%s: %s", text,
	                 addresses->count > 1 ? ", nor does any other of ESP_DOOR" : "", round->reason.text);
}

/* Time ran out after the address `last`. */
static enum esp_status fail_joiner(const struct round *round, const struct join_addresses *addresses, uint32_t last,
                                   const struct error *why, struct error *err)
{
	char text[ADDRESS_TEXT];

	if (round->unfit > 0 && !round->has_waited)
		return tell_unfit(round, addresses, err);
	return error_set(err, ESP_ETIMEOUT, "no rank has let this process in (ESP_DOOR, join_seconds); the last door was "
	                                    "%s: %s", address_format(&addresses->all[last], text), why->text);
}

/*
 * Tries each address once, but for the refused ones. ESP_PENDING: none admits; *out_last and *why are the last
 * one's.
 */
static enum esp_status try_all(const struct join_addresses *addresses, struct join_config *config, struct round *round,
                               struct joiner *out, uint32_t *out_last, struct error *why)
{
	for (uint32_t i = 0; i < addresses->count && clock_now_ns() < config->deadline_ns; i++) {
		struct finding found;
		uint64_t look_until = addresses->count > 1 ? clock_now_ns() + LOOKUP_NS : UINT64_MAX;

		if (round->is_unfit[i])
			continue;
		*out_last = i;
		enum esp_status status = try_name(&addresses->all[i], look_until, config, out, &found, why);
		if (status == ESP_OK)
			return ESP_OK;
		round->has_waited = round->has_waited || found.has_waited;
		if (status == ESP_EMISMATCH)
			note_unfit(round, i, &found, why);
	}
	return ESP_PENDING;
}

enum esp_status join_addresses_wait(const struct join_addresses *addresses, struct join_config *config,
                                    struct joiner *out, struct error *err)
{
	struct backoff backoff;
	struct error why;
	struct round round = {0};
	uint32_t last = 0;

	*out = (struct joiner){.fd = -1};
	snprintf(out->who, sizeof(out->who), "process %u on %s", config->info.pid, config->info.host_name);
	backoff_init(&backoff, clock_now_ns() ^ (uint64_t)getpid());
	error_set(&why, ESP_ETIMEOUT, "there was no time to try it");
	for (;;) {
		if (try_all(addresses, config, &round, out, &last, &why) == ESP_OK)
			return ESP_OK;
		if (round.unfit == addresses->count)
			return tell_unfit(&round, addresses, err);
		uint64_t now = clock_now_ns(), next = now + backoff_next_ns(&backoff);
		/* No further attempt without time for it: its timeout would say less than the failure before. */
		if (next >= config->deadline_ns)
			return fail_joiner(&round, addresses, last, &why, err);
		usleep((useconds_t)((next - now) / 1000));
	}
}

/* Answers all questions. True: the connection has ended, or the rank has sent in *out_why that it will. */
static bool answer_all(struct joiner *joiner, char out_why[CONTROL_TEXT])
{
	struct control_msg msg;
	struct error unused;

	for (;;) {
		ssize_t got = recv(joiner->fd, joiner->in + joiner->have, sizeof(joiner->in) - joiner->have, MSG_DONTWAIT);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		if (got <= 0)
			return true;
		joiner->have += (size_t)got;
		if (joiner->have < sizeof(joiner->in))
			continue;
		joiner->have = 0;
		if (!control_decode(joiner->in, &msg))
			continue;
		if (msg.type == CONTROL_REFUSE)
			memcpy(out_why, msg.refuse.text, CONTROL_TEXT);
		if (msg.type == CONTROL_REFUSE ||
		    (msg.type == CONTROL_BEAT && send_here(joiner, UINT32_MAX, clock_now_ns() + SEND_NS, &unused) != ESP_OK))
			return true;
	}
}

bool joiner_is_shut(void *argument, int32_t *out_culprit, struct error *why)
{
	char said[CONTROL_TEXT] = "the rank that has let this process in went away, or has given it up, before all had "
	                          "joined";

	*out_culprit = -1;
	if (!answer_all(argument, said))
		return false;
	error_set(why, ESP_EPEER, "%s", said);
	return true;
}

void joiner_leave(struct joiner *joiner, bool has_joined, uint32_t rank, uint64_t deadline_ns)
{
	struct error unused;

	if (has_joined)
		(void)send_here(joiner, rank, deadline_ns, &unused); /* a failure means that the rank is gone, too */
	close(joiner->fd);
	joiner->fd = -1;
}
