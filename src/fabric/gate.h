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

enum gate_state {
	GATE_IDLE,    /* the worker has no update here */
	GATE_SENDING, /* it may send                   */
	GATE_WHOLE,   /* all of it is there            */
};

/* Why an update is not applied. */
enum gate_why {
	GATE_APPLIED = 0,
	GATE_LATE_OFFER, /* too late when it was offered: no byte was sent */
	GATE_LATE,       /* too late when its turn came: it was sent in vain */
	GATE_GONE,       /* its worker was lost while it sent              */
};
#define GATE_WHYS 4

/* An update as its worker offers it. */
struct gate_offer {
	uint32_t worker;
	uint64_t number;        /* of the worker's updates: greater than all before */
	uint64_t computed_from; /* a version, at most the present one              */
	uint64_t epoch, position; /* position 0: no scheduler has ordered it         */
	uint64_t patience_ns;   /* how long it waits for earlier positions once it is whole */
};

struct gate_update {
	struct gate_offer offer;
	uint8_t state;      /* enum gate_state */
	uint64_t whole_ns;  /* since when */
};

struct gate {
	uint32_t workers, bound;
	uint64_t version;
	uint64_t epoch, next;  /* the position whose turn it is */
	uint64_t given_up;     /* bit i: position next + i does not come */
	struct gate_update updates[GATE_WORKERS_MOST];
	uint64_t last[GATE_WORKERS_MOST];      /* number of the worker's latest update; 0: none */
	uint64_t count[GATE_WHYS];
	uint64_t waited, overtaken;            /* applied after a wait; applied after a later position */
};

/* The end of an update. */
struct gate_result {
	uint32_t worker;
	uint64_t number;
	uint8_t why;        /* enum gate_why */
	uint64_t version;   /* now; of an applied one: after it */
	uint64_t delay;     /* of an applied one; of a late one: what it would have had */
};

/* bound: at least 1, as a lone worker's updates have a delay of 1. */
void gate_init(struct gate *gate, uint32_t workers, uint32_t bound);

/*
 * ESP_OK: the worker may send. ESP_ETIMEOUT: too late, *out says so. ESP_ECORRUPT: a number that is not greater than
 * the worker's latest, a version that there is not yet, or the worker's former update is under way.
 */
ESP_CHECKED enum esp_status gate_offer(struct gate *gate, const struct gate_offer *offer, struct gate_result *out);
/* All of the worker's update is there. False: it has none that sends. */
bool gate_whole(struct gate *gate, uint32_t worker, uint64_t now);
/* The worker is lost. True: the update that it was sending is dropped, as *out says; one that is whole stays. */
bool gate_gone(struct gate *gate, uint32_t worker, struct gate_result *out);
/* The next update to apply or to drop, in order. False: none now. */
bool gate_next(struct gate *gate, uint64_t now, struct gate_result *out);
/* When gate_next() has something without anything else happening; UINT64_MAX: at no time. */
uint64_t gate_due(const struct gate *gate);

const char *gate_why_name(uint8_t why); /* "applied", "late" */

#endif
