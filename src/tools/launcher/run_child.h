/*
 * run_child.h - one process that espalier run has started, with all that it starts itself.
 *
 * Each has a process group of its own: a Ctrl-C of the terminal reaches espalier run alone, which
 * forwards it once, and what a rank has started can be ended with it. A process that leaves its
 * group on purpose (setsid) is on its own. The kernel kills the child when espalier run dies.
 *
 *     none --start--> runs --it ends--> left --its group is empty--> gone
 *
 * A group is signalled only while it is known to be ours: while its leader has not been reaped, and
 * after that for as long as a look every RUN_CHILD_LOOK_NS finds somebody in it. Its number is not
 * given to another process before it is empty.
 */
#ifndef TOOLS_LAUNCHER_RUN_CHILD_H
#define TOOLS_LAUNCHER_RUN_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/error.h"
#include "tools/launcher/run_request.h"

#define RUN_CHILD_LOOK_NS UINT64_C(20000000)

enum run_child_state {
	RUN_CHILD_NONE, /* not started                                             */
	RUN_CHILD_RUNS,
	RUN_CHILD_LEFT, /* has ended, but others in its group perhaps have not */
	RUN_CHILD_GONE, /* nothing of it is left                               */
};

struct run_child {
	pid_t pid;     /* also the number of its group */
	uint8_t state; /* enum run_child_state */
	int status;    /* what it returned, when it has ended */
	int signal;    /* what killed it; 0: nothing */
	uint64_t started_ns, ended_ns;
	uint64_t sweep_ns; /* left: when the rest of the group is told to end */
	int sweep_signal;  /* left: how; 0: it has been killed, and there is nothing more to do */
	uint32_t order;    /* when it has ended: how many had by then, itself included */
	bool was_told;     /* we have sent it a signal while it ran */
	bool was_lost;     /* it has failed, and the job went on without it */
	bool is_stopped;   /* runs: the last look has found one of its group stopped */
	uint32_t still;    /* how many looks in a row have */
};

/* All of it is borrowed. */
struct run_start {
	char *const *argv;  /* ends with NULL; argv[0] is looked for along PATH */
	char *const *words; /* NAME=VALUE, set on top of our environment; NULL: that alone */
	const char *cwd;    /* NULL: ours */
	int in, out, err;   /* become 0, 1 and 2 */
	const struct run_place *place; /* where it goes first; NULL: it stays here */
	uint32_t rank;                 /* for place */
	const struct rlimit *files; /* how many descriptors the command may have; NULL: as many as we */
};

/*
 * Waits until the command runs or could not be run. Returns 0, or the exit status that says so with the
 * reason in *err: 127 there is no such command, 126 it cannot be run, 1 no process could be made.
 */
int run_child_start(struct run_child *child, const struct run_start *start, uint64_t now_ns, struct error *err);

/* To the whole group. False if there is nobody any more. */
bool run_child_signal(const struct run_child *child, int signal_number);

/* Its process has been reaped with this wait status. */
void run_child_on_end(struct run_child *child, int wait_status, uint64_t now_ns);

/* left: is anybody still there, and is it time to do something about it? May make it gone. */
void run_child_look(struct run_child *child, uint64_t now_ns);

/* Did it end as it should? Only for those that have ended. */
bool run_child_failed(const struct run_child *child);

/* The exit status of a command whose child has ended so: 128 and the signal, as shells have it. */
int run_child_exit_status(const struct run_child *child);

#endif
