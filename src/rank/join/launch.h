/*
 * launch.h - rank, size and leader of this process, from its arguments and environment.
 *
 * Pure: the environment and the system are read through functions. Rank and size are each taken from the first
 * source that has it:
 *     1. arguments of the program,
 *     2. ESP_RANK, ESP_SIZE                                 espalier run, or by hand
 *     3. RANK, WORLD_SIZE                                   torchrun
 *     4. OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE         mpirun of Open MPI
 *     5. PMI_RANK, PMI_SIZE                                 mpirun of MPICH and its relatives
 *     6. SLURM_PROCID, SLURM_STEP_NUM_TASKS                 srun; not in a batch script, which is no rank
 *     7. JOB_COMPLETION_INDEX                               an indexed job of Kubernetes; has no size
 * The leader: the argument, ESP_LEADER, an announcement (ESP_STORE), MASTER_ADDR and MASTER_PORT (which is the
 * port of PyTorch's own store, so the leader listens one above), or what follows from the variables of a
 * launcher that has this rank and size (launch_leader.c). docs/joining.md has the table.
 */
#ifndef RANK_JOIN_LAUNCH_H
#define RANK_JOIN_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/conf.h"
#include "base/error.h"
#include "node/net/address.h"
#include "rank/join/announce_place.h"

#define LAUNCH_SIZE_MAX 65536u /* ranks in a job */
#define LAUNCH_JOB 128u        /* bytes of a job's name with its NUL */
#define LAUNCH_LAUNCHER 64u    /* bytes of a launcher's name with its NUL */
#define LAUNCH_FACT 256u       /* bytes of a fact with its NUL */

/* The range of the leader's port if a launcher provides a number of the job and no port. */
#define LAUNCH_PORT_FIRST 20000u
#define LAUNCH_PORT_COUNT 9000u
#define LAUNCH_PORT_POD 29501u /* a pod's ports are its own */

/* Facts that no variable has. */
enum launch_fact {
	LAUNCH_FACT_MPIRUN,    /* the pid at the other end of PMI_FD (the argument is its value) */
	LAUNCH_FACT_FULL_NAME, /* this host's name with its domain */
};

/* False: unknown. `about` is the argument of the question, if it has one. */
typedef bool launch_fact_fn(enum launch_fact fact, const char *about, char out[LAUNCH_FACT]);

/* From the system (launch_fact.c). May look up a name in the network. */
launch_fact_fn launch_system_fact;

struct launch_surroundings {
	conf_lookup_fn *lookup;
	void *lookup_context;
	launch_fact_fn *fact;                                  /* NULL: no facts are known */
	void (*warn)(void *context, const struct error *text); /* two sources contradict each other; may be NULL */
	void *warn_context;
};

struct launch_arguments {
	int64_t rank, size; /* negative: not given */
	const char *leader; /* host:port; NULL: not given */
	const char *job;    /* NULL: not given */
};
#define LAUNCH_NO_ARGUMENTS ((struct launch_arguments){-1, -1, NULL, NULL})

struct launch {
	uint32_t rank, size;
	struct address leader;     /* port 0 for a job of one rank, which needs none, and with an announcement */
	struct announce_place place; /* where the leader's address is posted, if it is found that way */
	char job[LAUNCH_JOB];      /* "" if the job has no name */
	uint64_t epoch;            /* how many times the job was restarted */
	char launcher[LAUNCH_LAUNCHER]; /* socket of the launcher (launcher.h); "": none */
	const char *rank_source;   /* "ESP_RANK", "the argument rank"; static text */
	const char *size_source;
	const char *leader_source;
};

/* True if any source says that this process is a rank. */
bool launch_is_told(conf_lookup_fn *lookup, void *context);

/* ESP_EINVAL names the variable that is missing or bad and the expected form. */
ESP_CHECKED enum esp_status launch_find(const struct launch_arguments *arguments,
                                        const struct launch_surroundings *surroundings, struct launch *out,
                                        struct error *err);

/* For the log: "rank 3 of 8 (ESP_RANK, ESP_SIZE), leader node7:29501 (MASTER_ADDR, MASTER_PORT + 1)". Returns text. */
#define LAUNCH_TEXT (ANNOUNCE_PLACE_TEXT + 240u)
const char *launch_describe(const struct launch *launch, char text[LAUNCH_TEXT]);

#endif
