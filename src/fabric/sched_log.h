/*
 * sched_log.h - a line for each decision of a scheduler and each end of an update, live and in virtual time alike.
 *
 *     TIME scheduler EPOCH session S workers W bound B                    a scheduler begins: positions count from 1
 *     TIME decide WORKER NUMBER position P sum S to TO start T rate R WHY  WHY: applied: it is to be sent; else why not
 *     TIME end WORKER NUMBER from F delay D version V WHY
 *     TIME model WORKER tree N from FROM start T rate R
 *
 * Times are ns; TO and FROM are workers or "hub". scripts/check-fabric-log replays a log. Pure, but for the stream.
 */
#ifndef FABRIC_SCHED_LOG_H
#define FABRIC_SCHED_LOG_H

#include <stdio.h>

#include "fabric/sched.h"

struct sched_log_end {
	uint32_t worker;
	uint64_t number, computed_from, delay, version;
	uint8_t end; /* enum ledger_end */
};

/* log: NULL: nothing is written. */
struct sched_log_begin {
	uint64_t epoch;
	uint64_t session; /* of the hub: versions count in it */
	uint32_t workers, bound;
};

void sched_log_begin(FILE *log, uint64_t now, const struct sched_log_begin *begin);
void sched_log_decision(FILE *log, uint64_t now, const struct sched_decision *decision);
void sched_log_end(FILE *log, uint64_t now, const struct sched_log_end *end);
void sched_log_model(FILE *log, uint64_t now, const struct sched_model *model);

#endif
