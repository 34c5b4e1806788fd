/*
 * sched.h - the scheduler of one job's updates: workers announce updates, and at the end of each batch it decides which
 * are sent when, at which rate and in which order, and which are dropped at their workers.
 *
 * Links: of the hub and of each host, in and out, whose rates are told or follow from what transfers achieve. A
 * transfer that would not begin before the next batch is not booked. Where it pays by the calendar, some workers send
 * their updates to an aggregator, a worker of the same batch, which sends the sum (fabric/sched_sum.c). A decision has
 * a lease: an update of which nothing is heard by then is given up, and its booking is free again.
 *
 * A worker that asks for the model with sched_wants() is told from which worker, or from the hub, it comes
 * (fabric/sched_model.c). Pure: no I/O, time is an argument; news of an earlier time than others before are refused
 * (ESP_EINVAL).
 */
#ifndef FABRIC_SCHED_H
#define FABRIC_SCHED_H

#include "fabric/calendar.h"
#include "fabric/gate.h"
#include "fabric/ledger.h"

#define SCHED_WAITED 3u /* batches after which an update is decided first */
#define SCHED_HUB UINT32_MAX /* as a source or a next hop */
#define SCHED_ALONE UINT32_MAX /* no aggregator */
#define SCHED_ATTEMPTS 2u /* an update whose sums have failed so often goes to the hub by itself */

struct sched_config {
	uint32_t workers, bound;
	uint64_t batch_ns;
	uint64_t hub_rate;    /* bytes per second of the hub's link */
	uint64_t worker_rate; /* of a worker's until it is known    */
	bool aggregates;
	bool chains;           /* of sums: by streaming chains */
	const uint32_t *hosts; /* of each worker, below workers: those of one host share its links; NULL: each has its own.
	                          Not kept */
	uint32_t order_flags;  /* enum order_flag: rules that are left out */
	bool has_no_trees;     /* each host gets its models from the hub   */
	/*
	 * If has_slack: no worker gets the model while it is more than slack updates ahead of the slowest one that is here;
	 * 0: all go in step. After slack_wait_ns it gets it nonetheless, as the slowest one may be stuck.
	 */
	bool has_slack;
	uint32_t slack;
	uint64_t slack_wait_ns;
};

struct sched_decision {
	uint32_t worker;
	uint64_t number;
	uint8_t end;          /* LEDGER_APPLIED: it is to be sent; else why it is dropped (enum ledger_end) */
	uint64_t position;    /* in the order, from 1 */
	uint64_t start_ns;    /* from now on */
	uint64_t rate;        /* bytes per second */
	uint64_t patience_ns; /* how long the hub may hold it for earlier positions */
	uint64_t delay;       /* of a dropped one: what it would have had at least */
	uint64_t bundle;      /* number of the sum that has it; 0: it goes to the hub by itself */
	uint32_t aggregator;  /* of a bundle: the worker that sends the sum; SCHED_ALONE */
	uint64_t members;     /* at the aggregator: workers whose updates it waits for and its own, as a bit set */
	uint64_t wait_ns;     /* at the aggregator, and at each worker of a chain: until then it waits for others */
	/* of a chain, whose last worker is the aggregator; all of it streams at once */
	bool is_chain;
	uint32_t next_hop;    /* the worker that gets its stream; SCHED_HUB */
	uint32_t inputs;      /* streams that it adds to its own update     */
};

/* How the model that a worker has asked for comes to it. */
struct sched_model {
	uint32_t worker;
	uint64_t tree;        /* number: its workers get the same version */
	uint32_t source;      /* the worker that passes it on; SCHED_HUB  */
	uint32_t outputs;     /* workers to which this one passes it on   */
	uint64_t start_ns;    /* from now on */
	uint64_t rate;        /* bytes per second */
};

/* How a worker's update has ended, as the worker tells it. */
struct sched_done {
	uint64_t number;
	uint8_t end;          /* LEDGER_APPLIED, LEDGER_LATE_AT_OFFER, LEDGER_LATE_AT_HUB or LEDGER_BROKEN */
	uint64_t version, delay;
	uint64_t took_ns;     /* of the transfer; 0: nothing was sent */
};

struct sched_link {
	bool is_here;         /* the worker is registered */
	bool is_measured;
	uint64_t rate, rate_in; /* of its host's link out and in, as they are booked */
	uint64_t achieved;    /* by the latest transfer; 0: none */
	uint64_t granted;     /* of the update that is decided */
	uint32_t booking;     /* CALENDAR_NONE: none */
	uint64_t sent;        /* bytes of updates that were sent */
	bool can_aggregate;
	bool can_forward;     /* models to other workers, which can reach it */
	uint32_t aggregator;  /* of the update that is decided; SCHED_ALONE: none */
	uint32_t next_hop;    /* of it in a chain: a worker; else the aggregator */
	uint64_t members;     /* whose updates it is to add to its own, as a bit set with its own; 0: none */
	uint64_t sums;        /* that it was to send */
	uint64_t wants;       /* bytes of the model that it has asked for; 0: none */
	uint64_t wants_ns;    /* since when */
	uint64_t steps;       /* updates that have ended; as many as the slowest one had when it came */
	uint32_t source;      /* of its latest model: a worker, or SCHED_HUB */
	uint64_t models;      /* that it was told to get */
	uint64_t tree, model_bytes, model_rate; /* of the latest; model_bytes 0: it was told how that went */
};

/* A model has come from the hub, as its worker tells it. */
struct sched_got {
	uint64_t tree;
	uint64_t took_ns;
};

struct sched;

/* ESP_EINVAL: a rate, bound or number out of range; ESP_ENOMEM. */
ESP_CHECKED enum esp_status sched_open(const struct sched_config *config, struct sched **out, struct error *err);
void sched_close(struct sched *sched); /* NULL is fine */

/* A worker is here; rate: of its link, 0: not known. Its former update, if any, is given up. ESP_EINVAL. */
ESP_CHECKED enum esp_status sched_join(struct sched *sched, uint32_t worker, uint64_t rate, uint64_t now,
                                       struct error *err);
/* The worker is gone. */
void sched_gone(struct sched *sched, uint32_t worker, uint64_t now);
/* An update is ready. ESP_EINVAL: as of ledger_ready(), or the worker is not here. */
ESP_CHECKED enum esp_status sched_ready(struct sched *sched, uint32_t worker, const struct ledger_update *update,
                                        uint64_t now, struct error *err);
/* ESP_EINVAL: the worker has no such update, or its numbers contradict each other. */
ESP_CHECKED enum esp_status sched_done(struct sched *sched, uint32_t worker, const struct sched_done *done,
                                       uint64_t now, struct error *err);
/* The worker can add the updates of others to its own, and they can reach it. From when it joins it cannot. */
void sched_set_aggregator(struct sched *sched, uint32_t worker, bool can_aggregate);
/* The same of models: it can pass them on. While a worker that asks cannot, each gets the model from the hub. */
void sched_set_forwarder(struct sched *sched, uint32_t worker, bool can_forward);
/* The rate of a worker's link from now on. ESP_EINVAL: 0, or beyond all bounds. */
ESP_CHECKED enum esp_status sched_report(struct sched *sched, uint32_t worker, uint64_t rate, uint64_t now,
                                         struct error *err);
/* The same, of each direction. */
ESP_CHECKED enum esp_status sched_report_ways(struct sched *sched, uint32_t worker, uint64_t in, uint64_t out,
                                              uint64_t now, struct error *err);
/*
 * The worker waits for the model, of so many bytes: until the end of a batch at which the hub's link is free. A model
 * that takes less than half a batch to read is decided at once while that link is free. ESP_EINVAL: no such worker is
 * here, or it has asked already.
 */
ESP_CHECKED enum esp_status sched_wants(struct sched *sched, uint32_t worker, uint64_t bytes, uint64_t now,
                                        struct error *err);

/* ESP_EINVAL: no such worker is here. */
ESP_CHECKED enum esp_status sched_got(struct sched *sched, uint32_t worker, const struct sched_got *got, uint64_t now,
                                      struct error *err);

/* The end of a batch, if it is due. */
void sched_tick(struct sched *sched, uint64_t now);
/* When the next batch ends or a lease does; UINT64_MAX: nothing waits. */
uint64_t sched_due(const struct sched *sched);
/* The next decision that has not been handed out. */
bool sched_next(struct sched *sched, struct sched_decision *out);
/* The same of models. */
bool sched_next_model(struct sched *sched, struct sched_model *out);

const struct ledger *sched_ledger(const struct sched *sched);
const struct sched_link *sched_worker(const struct sched *sched, uint32_t worker);
uint64_t sched_batches(const struct sched *sched);
/* Updates in the latest batch that had any: in it, and of them sent. */
void sched_latest(const struct sched *sched, uint32_t *out_updates, uint32_t *out_sent);
/* Sums that were decided, and updates in them. */
void sched_sums(const struct sched *sched, uint64_t *out_sums, uint64_t *out_updates);
/* Models that were decided, and the trees that they are in. */
void sched_trees(const struct sched *sched, uint64_t *out_trees, uint64_t *out_models);
/* When the hub's link is free, as far as is booked. */
uint64_t sched_hub_booked_until(const struct sched *sched);

#endif
