/*
 * launch_parts.h - what launch.c and launch_leader.c share; for launch*.c only.
 */
#ifndef RANK_JOIN_LAUNCH_PARTS_H
#define RANK_JOIN_LAUNCH_PARTS_H

#include "rank/join/launch.h"

/* In the order in which they are believed. */
enum launch_starter {
	STARTER_ESPALIER,
	STARTER_TORCHRUN,
	STARTER_OPEN_MPI,
	STARTER_MPICH,
	STARTER_SLURM,
	STARTER_KUBERNETES,
	STARTERS,
};

struct launch_finder {
	const struct launch_arguments *arguments;
	const struct launch_surroundings *around;
	struct error *err;
};

/* A variable; NULL if it is not set or empty, which is how scripts unset one. */
const char *launch_ask(const struct launch_finder *finder, const char *name);

/*
 * What a launcher's variables say of the leader, given that it has this rank and size: fills in
 * leader and leader_source, and the job's name where it has none. ESP_PENDING: they do not say, and *err has what to do.
 */
enum esp_status launch_leader_of(enum launch_starter starter, const struct launch_finder *finder, struct launch *launch,
                                 struct error *err);

/* What a launcher calls the job, "" if it does not. */
void launch_job_of(enum launch_starter starter, const struct launch_finder *finder, char job[LAUNCH_JOB]);

#endif
