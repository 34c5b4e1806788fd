/*
 * gate.h - in which order a hub applies whole updates, each once, and which it refuses because they are too late.
 *
 * Schedules are intentions, as bandwidth is known late; the gate is what holds. A worker offers an update, with the
 * version that it was computed from, before it sends a byte of it:
 *
 *     offered ── too late already ──> refused
 *        └─────> SENDING ── all bytes are there ──> WHOLE ── its turn has come, in time ──> applied: version + 1
 *                   │                                 └───── its turn has come, too late ──> dropped
 *                   └── its worker is gone ──> dropped
 *
 * An update may also go through an aggregator, another worker, which adds those of several workers to its own and
 * offers the sum. Each member offers its own update all the same, so that a worker speaks only for itself:
 *
 *     offered ──> HELD ── its aggregator offers a sum that has it ──> JOINED ──> applied or dropped with that sum
 *                   └── the aggregator is gone, offers another sum, or patience ends ──> broken: to be offered again
 *
 * A sum may be taken back while it is sent, as a chain of hosts that adds it on the way has lost one of them: it is
 * broken, and its bytes, which still come, are dropped.
 *
 * A sum of k updates raises the version by k, its members one after the other by their positions. Where one member
 * would be too late the whole sum is dropped, and the other members are broken.
 *
 * Delay is the version after applying minus the version computed from; none above the bound is ever applied. An update
 * with a position of a scheduler's order waits for those before it, up to its patience; one without is applied when it
 * is whole. Positions count from 1 in each epoch, which is one life of a scheduler. Pure: no I/O, time is an argument.
 */
#ifndef FABRIC_GATE_H
#define FABRIC_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define GATE_WORKERS_MOST 64u
#define GATE_PATIENCE_MOST UINT64_C(10000000000) /* ns */
#define GATE_ALONE UINT32_MAX /* no aggregator */

enum gate_state {
	GATE_IDLE,    /* the worker has no update here */
	GATE_SENDING, /* it may send                   */
	GATE_WHOLE,   /* all of it is there            */
	GATE_HELD,    /* goes through an aggregator, whose offer is awaited */
	GATE_JOINED,  /* is part of a sum that is offered                    */
	GATE_SETTLED, /* has ended, and gate_next() has not told it yet      */
};

/* Why an update is not applied. */
enum gate_why {
	GATE_APPLIED = 0,
	GATE_LATE_OFFER, /* too late when it was offered: no byte was sent */
	GATE_LATE,       /* too late when its turn came: it was sent in vain */
	GATE_GONE,       /* its worker was lost while it sent              */
	GATE_BROKEN,     /* the sum that had it is dropped: it may be offered again */
};
#define GATE_WHYS 5

/* An update as its worker offers it. */
struct gate_offer {
	uint32_t worker;
	uint64_t number;        /* of the worker's updates: greater than all before */
	uint64_t computed_from; /* a version, at most the present one              */
	uint64_t epoch, position; /* position 0: no scheduler has ordered it         */
	uint64_t patience_ns;   /* how long it waits for earlier positions once it is whole; for its aggregator's offer */
	uint64_t bundle;        /* number of the sum in its epoch; 0: it goes by itself */
	uint32_t aggregator;    /* of a bundle: which worker sends the sum */
	uint64_t members;       /* of the aggregator's offer: the workers whose updates the sum has, as a bit set */
	uint64_t at_ns;         /* now; of a bundle */
};

struct gate_update {
	struct gate_offer offer;
	uint8_t state;      /* enum gate_state */
	uint64_t whole_ns;  /* since when; of a HELD one, when it was offered */
	uint64_t first;     /* the position whose turn it waits for: of a sum, the first of its members */
	bool is_spoiled;    /* it is dropped when it is whole */
	uint8_t why;        /* SETTLED: enum gate_why, with what gate_next() is to tell */
	uint64_t version, delay;
};

struct gate {
	uint32_t workers, bound;
	bool takes_sums;       /* the optimizer is linear: a sum does what its members do one after the other */
	uint64_t version;
	uint64_t epoch, next;  /* the position whose turn it is */
	uint64_t given_up;     /* bit i: position next + i does not come */
	struct gate_update updates[GATE_WORKERS_MOST];
	uint64_t last[GATE_WORKERS_MOST];      /* number of the worker's latest update; 0: none */
	uint64_t count[GATE_WHYS];
	uint64_t waited, overtaken;            /* applied after a wait; applied after a later position */
	uint64_t sums;                         /* applied, of two updates or more */
};

/* The end of an update. */
struct gate_result {
	uint32_t worker;
	uint64_t number;
	uint8_t why;        /* enum gate_why */
	uint64_t version;   /* now; of an applied one: after it */
	uint64_t delay;     /* of an applied one; of a late one: what it would have had */
	uint32_t count;     /* updates that the worker's bytes are the sum of; 0: they were in another worker's sum */
};

/* bound: at least 1, as a lone worker's updates have a delay of 1. */
void gate_init(struct gate *gate, uint32_t workers, uint32_t bound);
/* From here on sums are taken. Without this each offer of one is ESP_ECORRUPT. */
void gate_take_sums(struct gate *gate);

/*
 * ESP_OK: the worker may send, a member to its aggregator. ESP_ETIMEOUT: too late, or a sum that is broken; *out says
 * so. ESP_ECORRUPT: a number that is not greater than the worker's latest, a version that there is not yet, the
 * worker's former update is under way, or a bundle that contradicts itself. gate_next() is to be called in each case.
 */
ESP_CHECKED enum esp_status gate_offer(struct gate *gate, const struct gate_offer *offer, struct gate_result *out);
/* All of the worker's update is there. False: it has none that sends. */
bool gate_whole(struct gate *gate, uint32_t worker, uint64_t now);
/*
 * The update that the worker sends, with a sum or its own, is not what was offered: its members are broken at once, and
 * what comes of it is dropped when it is whole. False: it has none that sends.
 */
bool gate_spoil(struct gate *gate, uint32_t worker);
/* The worker is lost. True: the update that it was sending is dropped, as *out says; one that is whole stays. */
bool gate_gone(struct gate *gate, uint32_t worker, struct gate_result *out);
/* The next update to apply or to drop, in order. False: none now. */
bool gate_next(struct gate *gate, uint64_t now, struct gate_result *out);
/* When gate_next() has something without anything else happening; UINT64_MAX: at no time. */
uint64_t gate_due(const struct gate *gate);

const char *gate_why_name(uint8_t why); /* "applied", "late" */

#endif
