#include "fabric/worker/sched_link.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/ready.h"
#include "hub/control/hub_dial.h"

#define DIAL_PATIENCE (250 * NS_PER_MS)
#define PROOF_PATIENCE (500 * NS_PER_MS)
#define ANSWER_PATIENCE (1 * NS_PER_S)
#define ANSWER_BATCHES 10u /* and so many batches more */
#define PAUSE_LEAST (200 * NS_PER_MS)
#define PAUSE_MOST (10 * NS_PER_S)

struct sched_link {
	struct sched_link_config config;
	int fd;                /* -1: none */
	uint64_t epoch, batch_ns;
	uint64_t dial_at_ns;   /* not before */
	uint64_t pause_ns;     /* after the next failure */
	char complaint[sizeof(((struct error *)NULL)->text)];
};

enum esp_status sched_link_open(const struct sched_link_config *config, struct sched_link **out, struct error *err)
{
	struct sched_link *link = calloc(1, sizeof(*link));

	assert(config->ticket->has_scheduler && config->worker < config->ticket->workers);
	if (!link)
		return error_set(err, ESP_ENOMEM, "no memory for a link to the scheduler");
	link->config = *config;
	link->fd = -1;
	link->pause_ns = PAUSE_LEAST;
	*out = link;
	return ESP_OK;
}

void sched_link_close(struct sched_link *link)
{
	if (!link)
		return;
	if (link->fd >= 0)
		close(link->fd);
	free(link);
}

const char *sched_link_complaint(const struct sched_link *link)
{
	return link->complaint;
}

/* The scheduler is done without for a while. */
static bool give_up(struct sched_link *link, const char *why)
{
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
	link->dial_at_ns = clock_now_ns() + link->pause_ns;
	link->pause_ns = 2 * link->pause_ns < PAUSE_MOST ? 2 * link->pause_ns : PAUSE_MOST;
	snprintf(link->complaint, sizeof(link->complaint), "%s", why);
	return false;
}

/* ---- messages ---- */

static bool put(struct sched_link *link, const struct fabric_msg *msg, uint64_t until_ns)
{
	uint8_t bytes[FABRIC_MSG_BYTES];
	size_t at = 0;

	fabric_msg_encode(msg, bytes);
	while (at < sizeof(bytes)) {
		ssize_t sent = send(link->fd, bytes + at, sizeof(bytes) - at, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent > 0)
			at += (size_t)sent;
		else if (errno != EINTR && (errno != EAGAIN || !ready_by(link->fd, POLLOUT, until_ns)))
			return give_up(link, "the scheduler takes no messages");
	}
	return true;
}

static bool take(struct sched_link *link, uint64_t until_ns, struct fabric_msg *out)
{
	uint8_t bytes[FABRIC_MSG_BYTES];
	size_t at = 0;

	while (at < sizeof(bytes)) {
		ssize_t got = recv(link->fd, bytes + at, sizeof(bytes) - at, MSG_DONTWAIT);

		if (got > 0)
			at += (size_t)got;
		else if (got == 0 || (errno != EAGAIN && errno != EINTR))
			return give_up(link, "the scheduler has closed the connection");
		else if (errno == EAGAIN && !ready_by(link->fd, POLLIN, until_ns))
			return give_up(link, "the scheduler does not answer");
	}
	if (!fabric_msg_decode(bytes, out))
		return give_up(link, "the scheduler sent bytes that are no message");
	if (out->type == FABRIC_REFUSE)
		return give_up(link, out->refuse.text);
	return true;
}

/* ---- connecting ---- */

static bool dial(struct sched_link *link)
{
	const struct ticket *ticket = link->config.ticket;
	const struct hub_dial dial = {
		.hub = &ticket->scheduler,
		.key = ticket->key,
		.job = ticket->job,
		.worker = link->config.worker,
		.workers = ticket->workers,
		.purpose = HELLO_FABRIC,
		.is_scheduler = true,
		.until_ns = clock_now_ns() + DIAL_PATIENCE,
		.proof_ns = PROOF_PATIENCE,
	};
	uint8_t session[HANDSHAKE_KEY_BYTES];
	struct error err;

	if (hub_dial(&dial, &link->fd, session, &err) == ESP_OK) {
		explicit_bzero(session, sizeof(session));
		return true;
	}
	link->fd = -1;
	return give_up(link, err.text);
}

static bool join(struct sched_link *link)
{
	uint64_t until = clock_now_ns() + ANSWER_PATIENCE;
	struct fabric_msg msg = {.type = FABRIC_REGISTER,
	                         .reg = {.worker = link->config.worker,
	                                 .workers = link->config.ticket->workers,
	                                 .delay_bound = link->config.delay_bound,
	                                 .pid = (uint32_t)getpid(),
	                                 .rate = link->config.rate,
	                                 .session = link->config.session,
	                                 .port = link->config.port,
	                                 .takes_sums = link->config.takes_sums}};

	snprintf(msg.reg.name, sizeof(msg.reg.name), "%s", link->config.ticket->name);
	if (!put(link, &msg, until) || !take(link, until, &msg))
		return false;
	if (msg.type != FABRIC_WELCOME)
		return give_up(link, "the scheduler sent a message that does not belong here");
	link->epoch = msg.welcome.epoch;
	link->batch_ns = msg.welcome.batch_ns;
	link->pause_ns = PAUSE_LEAST;
	link->complaint[0] = '\0';
	return true;
}

/* A connection that has ended shows it: nothing is to come here while no update is announced. */
static bool is_alive(const struct sched_link *link)
{
	uint8_t byte;

	return recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR);
}

static bool connect_if_due(struct sched_link *link)
{
	if (link->fd >= 0 && is_alive(link))
		return true;
	if (link->fd >= 0)
		(void)give_up(link, "the scheduler has closed the connection");
	else if (clock_now_ns() < link->dial_at_ns)
		return false;
	return dial(link) && join(link);
}

/* While the scheduler says that it lives it has more time, up to until_ns. */
static bool await_answer(struct sched_link *link, uint8_t type, uint64_t until_ns, struct fabric_msg *out)
{
	do {
		uint64_t soon = clock_now_ns() + ANSWER_PATIENCE + ANSWER_BATCHES * link->batch_ns;

		if (!take(link, soon < until_ns ? soon : until_ns, out))
			return false;
	} while (out->type == FABRIC_WAIT);
	return out->type == type || give_up(link, "the scheduler sent a message that does not belong here");
}

bool sched_link_ask(struct sched_link *link, const struct fabric_msg_ready *ready, uint64_t until_ns,
                    struct sched_link_decision *out)
{
	const struct fabric_msg announce = {.type = FABRIC_READY, .ready = *ready};
	struct fabric_msg msg;

	if (!connect_if_due(link))
		return false;
	if (!put(link, &announce, clock_now_ns() + ANSWER_PATIENCE) || !await_answer(link, FABRIC_DECIDE, until_ns, &msg))
		return false;
	if (msg.decide.number != ready->number)
		return give_up(link, "the scheduler decided on an update that was not announced");
	*out = (struct sched_link_decision){.epoch = link->epoch, .decide = msg.decide};
	return true;
}

bool sched_link_want(struct sched_link *link, uint64_t bytes, uint64_t until_ns, struct sched_link_model *out)
{
	const struct fabric_msg want = {.type = FABRIC_WANT, .want = {bytes}};
	struct fabric_msg msg;

	if (!connect_if_due(link) || !put(link, &want, clock_now_ns() + ANSWER_PATIENCE) ||
	    !await_answer(link, FABRIC_MODEL, until_ns, &msg))
		return false;
	*out = (struct sched_link_model){.epoch = link->epoch, .model = msg.model};
	return true;
}

void sched_link_got(struct sched_link *link, const struct fabric_msg_got *got)
{
	const struct fabric_msg msg = {.type = FABRIC_GOT, .got = *got};

	if (link->fd >= 0)
		(void)put(link, &msg, clock_now_ns() + ANSWER_PATIENCE);
}

void sched_link_done(struct sched_link *link, const struct fabric_msg_done *done)
{
	const struct fabric_msg msg = {.type = FABRIC_DONE, .done = *done};

	if (link->fd >= 0)
		(void)put(link, &msg, clock_now_ns() + ANSWER_PATIENCE);
}
