/*
 * referee.h - plays a trial: starts the ranks, waits for the moment, does the harm, and says how it went.
 */
#ifndef BENCH_FAULTS_REFEREE_H
#define BENCH_FAULTS_REFEREE_H

#include "trial.h"

/* How a trial went. Times are since the signal; those of a rank that saw nothing are 0. */
struct outcome {
	struct trial trial;
	bool has_struck;                 /* the moment came                                               */
	uint64_t error_ns[TRIAL_RANKS];  /* by rank: until it knew that the victim is lost                */
	uint64_t went_on_ns[TRIAL_RANKS];/* and until a sum without it was right                          */
	uint32_t hung;                   /* ranks that were not through in time                           */
	uint32_t wrong;                  /* wrong elements and reports                                    */
	uint32_t misnamed;               /* errors that blame another rank                                */
	uint32_t broken;                 /* ranks that ended in another way than they should              */
	char text[TRIAL_TEXT + 80];      /* about the worst of that                                       */
};

/* False: a rank could not be started, or there is no memory. */
bool referee_play(const struct trial *trial, struct outcome *outcome);

#endif
