/*
 * ledger.h - each worker's update as its scheduler knows it, and counts of how all updates have ended.
 *
 *     none ── the worker announces it ──> READY ──┬── DECIDED ──┬── APPLIED
 *                                          └──────┴─────────────┴── DROPPED, with the reason
 *
 * A worker has one update at a time, so its number names it. Pure.
 */
#ifndef FABRIC_LEDGER_H
#define FABRIC_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define LEDGER_WORKERS_MOST 64u
#define LEDGER_DELAYS 10u /* delays are counted in so many equal parts of the bound */

enum ledger_state {
	LEDGER_NONE,
	LEDGER_READY,   /* waits for a decision    */
	LEDGER_DECIDED, /* may be sent at its time */
};

/* How updates end. */
enum ledger_end {
	LEDGER_APPLIED,
	LEDGER_LATE,          /* dropped at its worker: its deadline has passed             */
	LEDGER_CROWDED,       /* dropped at its worker: too many are due at a time          */
	LEDGER_OVERTAKEN,     /* dropped at its worker: it would hold up its successor      */
	LEDGER_LATE_AT_OFFER, /* dropped by the hub when it was offered, before it was sent */
	LEDGER_LATE_AT_HUB,   /* dropped by the hub when its turn came                      */
	LEDGER_GONE,          /* its worker was lost                                        */
	LEDGER_UNHEARD,       /* decided, and nothing was heard of it for its lease         */
	LEDGER_BROKEN,        /* the sum that had it failed: its worker announces it again  */
};
#define LEDGER_ENDS 9
const char *ledger_end_name(uint8_t end); /* "applied", "late at source" */

struct ledger_update {
	uint8_t state;          /* enum ledger_state */
	uint64_t number, computed_from, bytes;
	double norm;
	uint32_t attempts;      /* to send it within a sum that have failed */
	bool leaves;            /* its worker leaves with it: it is decided first, and goes by itself */
	uint64_t ready_ns;
	uint32_t batches;       /* for which it has waited */
	uint64_t position;      /* DECIDED */
	uint64_t lease_ns;      /* DECIDED: until when it is expected to end */
};

struct ledger {
	uint32_t workers, bound;
	uint64_t version;       /* the newest that a worker that is here has told of */
	uint32_t decided;       /* updates in that state */
	uint64_t announced;
	uint64_t ends[LEDGER_ENDS];
	uint64_t unsent_bytes;  /* of updates that were dropped before they were sent */
	uint64_t delays[LEDGER_DELAYS];
	uint64_t delay_most, delay_sum;
	struct ledger_update updates[LEDGER_WORKERS_MOST];
	uint64_t last[LEDGER_WORKERS_MOST]; /* number of the worker's latest update */
	uint64_t seen[LEDGER_WORKERS_MOST]; /* the newest version that the worker has told of; 0 while it is away */
};

void ledger_init(struct ledger *ledger, uint32_t workers, uint32_t bound);
/*
 * ESP_EINVAL, with what is wrong: an unknown worker, a size of 0, a norm that is negative or no number, a number that
 * is not greater than the former one, or an update while the former one has not ended.
 */
ESP_CHECKED enum esp_status ledger_ready(struct ledger *ledger, uint32_t worker, const struct ledger_update *update,
                                         struct error *err);
void ledger_decide(struct ledger *ledger, uint32_t worker, uint64_t position, uint64_t lease_ns);
/* The worker's update has ended; delay: of an applied one. Nothing if it has none. */
void ledger_end(struct ledger *ledger, uint32_t worker, uint8_t end, uint64_t delay);
/* The worker tells of a version of the model. */
void ledger_see(struct ledger *ledger, uint32_t worker, uint64_t version);
/* The worker is away: its update has ended, and what it alone has told of the version counts no longer. */
void ledger_gone(struct ledger *ledger, uint32_t worker);

#endif
