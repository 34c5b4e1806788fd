/*
 * launch_parts.h - shared by launch.c and launch_leader.c; for launch*.c only.
 */
#ifndef RANK_JOIN_LAUNCH_PARTS_H
#define RANK_JOIN_LAUNCH_PARTS_H

#include "rank/join/launch.h"

/* In the order of precedence. */
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

/* A variable; NULL if it is unset or empty, which is how scripts unset one. */
const char *launch_ask(const struct launch_finder *finder, const char *name);

/*
 * The leader from a launcher's variables, if that launcher has this rank and size: fills in leader and
 * leader_source, and the job's name where it has none. ESP_PENDING: they do not tell; *err has the remedy.
 */
enum esp_status launch_leader_of(enum launch_starter starter, const struct launch_finder *finder, struct launch *launch,
                                 struct error *err);

/* A launcher's name of the job; "" if it has none. */
void launch_job_of(enum launch_starter starter, const struct launch_finder *finder, char job[LAUNCH_JOB]);

#endif
