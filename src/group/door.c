#include "group/door.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ready.h"
#include "group/backoff.h"
#include "group/join_parts.h"
#include "group/judge.h"

#define PROOF_NS (5 * NS_PER_S) /* to connect and to be proved */
#define WORD_NS NS_PER_S        /* to say a word while we join: nobody is kept waiting for room in a socket */

enum esp_status doors_parse(const char *text, struct doors *out, struct error *err)
{
	char one[ADDRESS_TEXT];

	out->count = 0;
	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");

		if (length > 0 && out->count == DOORS_MOST)
			return error_set(err, ESP_EINVAL, "ESP_DOOR names more than %u doors", DOORS_MOST);
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
	return out->count > 0 ? ESP_OK : error_set(err, ESP_EINVAL, "ESP_DOOR names no door: it is host:port, or several with commas between");
}

bool doors_are_loopback(const struct doors *doors)
{
	bool all = true;

	for (uint32_t i = 0; i < doors->count; i++)
		all = all && address_is_loopback(&doors->all[i]);
	return all;
}

/* ---- one attempt ---- */

static enum esp_status connect_to(int fd, const struct sockaddr *address, socklen_t length, uint64_t until, struct error *err)
{
	int why = 0, on = 1;
	socklen_t size = sizeof(why);

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)); /* a door that vanishes is left, in time */
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
		if (!ready_by(fd, POLLIN, until))
			return error_set(err, ESP_ETIMEOUT, "the ranks of the job have not called esp_grow()");
		ssize_t got = recv(fd, bytes + at, sizeof(bytes) - at, 0);
		if (got > 0)
			at += (size_t)got;
		else if (got == 0 || (errno != EAGAIN && errno != EINTR))
			return error_set(err, ESP_ELINK, "the rank there went away");
	}
	return control_decode(bytes, out) ? ESP_OK : error_set(err, ESP_ECORRUPT, "the rank there says what makes no sense");
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

/* The ranks are about to let us in, if we are there. */
static enum esp_status say_here(const struct door *door, uint32_t as, uint64_t until, struct error *err)
{
	struct control_msg msg = {.type = CONTROL_ECHO, .from = UINT32_MAX, .about = as, .peer = UINT32_MAX};
	uint8_t bytes[CONTROL_BYTES];

	memcpy(msg.text, door->who, sizeof(msg.text));
	control_encode(&msg, bytes);
	return write_all(door->fd, bytes, sizeof(bytes), until, err);
}

/* We do not fit: the rank there says why, in words that it has in its log as well. */
static enum esp_status hear_why_not(int fd, const struct join_config *config, uint64_t until, struct error *err)
{
	struct store_arrival arrival = {.card = config->card};
	uint8_t bytes[STORE_ARRIVAL_BYTES];
	struct control_msg msg = {0};

	memcpy(arrival.settings, config->settings, sizeof(arrival.settings));
	memcpy(arrival.job, config->launch.job, sizeof(arrival.job));
	store_arrival_encode(&arrival, bytes);
	if (write_all(fd, bytes, sizeof(bytes), until, err) != ESP_OK || read_message(fd, until, &msg, err) != ESP_OK ||
	    msg.type != CONTROL_REFUSE)
		return error_set(err, ESP_EMISMATCH, "it has another job, or other settings: compare ESP_JOB, and what `espalier conf` prints on both hosts");
	return error_set(err, ESP_EMISMATCH, "%s", msg.text);
}

/* A newcomer is asked whether it is there, perhaps several times, and is then invited. */
static enum esp_status read_invitation(const struct door *door, uint64_t until, struct launch *launch, struct error *err)
{
	struct control_msg msg = {.type = CONTROL_BEAT};
	enum esp_status status = read_message(door->fd, until, &msg, err);

	while (status == ESP_OK && msg.type == CONTROL_BEAT) {
		status = say_here(door, UINT32_MAX, until, err);
		if (status == ESP_OK)
			status = read_message(door->fd, until, &msg, err);
	}
	if (status != ESP_OK)
		return status;
	if (msg.type != CONTROL_INVITE || msg.first == 0 || msg.first > LAUNCH_SIZE_MAX ||
	    msg.about >= msg.first)
		return error_set(err, ESP_ECORRUPT, "the invitation makes no sense");
	if (address_parse(msg.text, "the invitation", &launch->leader, err) != ESP_OK)
		return err->status;
	launch->rank = msg.about;
	launch->size = msg.first;
	launch->epoch = msg.sequence;
	return ESP_OK;
}

static enum esp_status try_one(const struct sockaddr *address, socklen_t length, struct join_config *config, struct door *out, struct error *err)
{
	struct handshake_config dialer;
	struct handshake handshake;
	bool is_unfit = false;
	uint64_t until = clock_now_ns() + PROOF_NS;
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return error_set(err, ESP_ELINK, "no socket: %s", strerror(errno));
	until = until < config->deadline_ns ? until : config->deadline_ns;
	enum esp_status status = connect_to(fd, address, length, until, err);
	if (status == ESP_OK) {
		join_dialer(config, HANDSHAKE_ANY_RANK, HELLO_DOOR, 0, &dialer);
		handshake_init(&handshake, HANDSHAKE_DIALER, &dialer);
		status = prove(fd, &handshake, until, err);
		is_unfit = status == ESP_OK && judge_is_unfit(&dialer.hello, &handshake.peer);
		handshake_fini(&handshake);
	}
	if (is_unfit)
		status = hear_why_not(fd, config, until, err);
	if (status == ESP_OK && config->log)
		log_write(config->log, LOG_LEVEL_INFO, LOG_JOIN, "waiting to be let in");
	out->fd = fd;
	if (status == ESP_OK)
		status = read_invitation(out, config->deadline_ns, &config->launch, err);
	if (status != ESP_OK)
		close(fd);
	return status;
}

/* All addresses of a door in turn. */
static enum esp_status try_door(const struct address *door, struct join_config *config, struct door *out, struct error *err)
{
	struct resolved found;
	enum esp_status status = resolve(door, config->deadline_ns, &found, err);

	for (uint32_t i = 0; status == ESP_OK && i < found.count; i++) {
		enum esp_status tried = try_one(&found.addresses[i].any, found.lengths[i], config, out, err);

		if (tried == ESP_OK || tried == ESP_EMISMATCH || i + 1 == found.count)
			return tried;
	}
	return status == ESP_OK ? error_set(err, ESP_ELINK, "it has no address") : status;
}

enum esp_status doors_wait(const struct doors *doors, struct join_config *config, struct door *out, struct error *err)
{
	struct backoff backoff;
	struct error why = {0};
	char text[ADDRESS_TEXT];

	*out = (struct door){.fd = -1};
	snprintf(out->who, sizeof(out->who), "process %u on %s", config->card.pid, config->card.host_name);
	backoff_init(&backoff, clock_now_ns() ^ (uint64_t)getpid());
	for (uint32_t i = 0;; i = (i + 1) % doors->count) {
		enum esp_status status = try_door(&doors->all[i], config, out, &why);

		if (status == ESP_OK)
			return ESP_OK;
		if (status == ESP_EMISMATCH)
			return error_set(err, status, "the job at %s does not let this process in: %s", address_format(&doors->all[i], text),
			                 why.text);
		uint64_t now = clock_now_ns();
		if (now < config->deadline_ns && i + 1 < doors->count)
			continue;
		uint64_t next = now + backoff_next_ns(&backoff);
		/* Not another attempt without time for it: that it does not answer then says less than what was wrong before. */
		if (next >= config->deadline_ns)
			return error_set(err, ESP_ETIMEOUT, "nobody has let this process in (ESP_DOOR, join_seconds); the last door was %s: %s",
			                 address_format(&doors->all[i], text), why.text);
		usleep((useconds_t)((next - now) / 1000));
	}
}

/* True: the connection has ended; or we are told why it will, in *out_why. */
static bool answer_all(struct door *door, char out_why[CONTROL_TEXT])
{
	struct control_msg msg;
	struct error unused;

	for (;;) {
		ssize_t got = recv(door->fd, door->in + door->have, sizeof(door->in) - door->have, MSG_DONTWAIT);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		if (got <= 0)
			return true;
		door->have += (size_t)got;
		if (door->have < sizeof(door->in))
			continue;
		door->have = 0;
		if (!control_decode(door->in, &msg))
			continue;
		if (msg.type == CONTROL_REFUSE)
			memcpy(out_why, msg.text, CONTROL_TEXT);
		if (msg.type == CONTROL_REFUSE ||
		    (msg.type == CONTROL_BEAT && say_here(door, UINT32_MAX, clock_now_ns() + WORD_NS, &unused) != ESP_OK))
			return true;
	}
}

bool door_is_shut(void *argument, int32_t *out_culprit, struct error *why)
{
	char said[CONTROL_TEXT] = "the rank that has let this process in went away, or has given it up, before all had joined";

	*out_culprit = -1;
	if (!answer_all(argument, said))
		return false;
	error_set(why, ESP_EPEER, "%s", said);
	return true;
}

void door_leave(struct door *door, bool has_joined, uint32_t rank, uint64_t deadline_ns)
{
	struct error unused;

	if (has_joined)
		(void)say_here(door, rank, deadline_ns, &unused); /* if nobody is there any more, nobody is missed */
	close(door->fd);
	door->fd = -1;
}
