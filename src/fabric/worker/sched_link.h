/*
 * sched_link.h - a worker's connection to the scheduler of its updates.
 *
 * Does I/O and blocks the caller, up to deadlines; one thread at a time. The scheduler is never needed: a worker that
 * cannot reach it, or that it does not answer, sends its update to the hub directly. The link tries again by itself, at
 * once and then ever more seldom, when the next update is ready.
 */
#ifndef FABRIC_WORKER_SCHED_LINK_H
#define FABRIC_WORKER_SCHED_LINK_H

#include "base/error.h"
#include "hub/control/ticket.h"
#include "wire/fabric_msg.h"

struct sched_link;

struct sched_link_config {
	const struct ticket *ticket; /* with a scheduler; borrowed */
	uint32_t worker, delay_bound;
	uint64_t rate;               /* bytes per second of the worker's link; 0: not known */
	uint64_t session;            /* of the job at its hub */
	uint16_t port;               /* for other workers (fabric/worker/peer_port.h); 0: none */
	bool takes_sums;             /* there */
};

/* Connects to nothing yet. ESP_ENOMEM. */
ESP_CHECKED enum esp_status sched_link_open(const struct sched_link_config *config, struct sched_link **out,
                                            struct error *err);
void sched_link_close(struct sched_link *link); /* NULL is fine */

/* As of the scheduler's decision (wire/fabric_msg.h), with the epoch that its position belongs to. */
struct sched_link_decision {
	uint64_t epoch;
	struct fabric_msg_decide decide;
};

/*
 * Announces an update, and waits for the decision, at most until then. ready->number counts up. False: the scheduler
 * cannot be reached or does not answer in time; the worker goes on without it.
 */
bool sched_link_ask(struct sched_link *link, const struct fabric_msg_ready *ready, uint64_t until_ns,
                    struct sched_link_decision *out);
/* As of the scheduler's message (wire/fabric_msg.h). */
struct sched_link_model {
	uint64_t epoch;
	struct fabric_msg_model model;
};

/* Asks from where the model of so many bytes comes, and waits for the answer, at most until then. False as above. */
bool sched_link_want(struct sched_link *link, uint64_t bytes, uint64_t until_ns, struct sched_link_model *out);

/* Tells how long a model took that came from the hub, as the scheduler had said. */
void sched_link_got(struct sched_link *link, const struct fabric_msg_got *got);
/* Tells how an update has ended that the scheduler wanted to be sent. */
void sched_link_done(struct sched_link *link, const struct fabric_msg_done *done);

/* Why the scheduler was not asked last; "" if it was. */
const char *sched_link_complaint(const struct sched_link *link);

#endif
