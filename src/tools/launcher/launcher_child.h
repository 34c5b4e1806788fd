/*
 * launcher_child.h - one process that espalier run has started, with the processes that it starts itself.
 *
 * Each has a process group of its own: Ctrl-C of the terminal reaches espalier run alone, which forwards it
 * once, and all processes of a rank can be ended together. A process that leaves its group on purpose (setsid)
 * is on its own. The kernel kills the child when espalier run dies.
 *
 *     none --start--> runs --it ends--> left --its group is empty--> gone
 *
 * A group is signalled only while its number is known to be ours: until its leader is reaped, and after that as
 * long as a check every RUN_CHILD_LOOK_NS finds a process in it. The kernel does not reuse the number before
 * the group is empty.
 */
#ifndef TOOLS_LAUNCHER_LAUNCHER_CHILD_H
#define TOOLS_LAUNCHER_LAUNCHER_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/error.h"
#include "tools/launcher/launcher_request.h"

#define RUN_CHILD_CHECK_NS UINT64_C(20000000)

enum run_child_state {
	RUN_CHILD_NONE, /* not started                                             */
	RUN_CHILD_RUNS,
	RUN_CHILD_LEFT, /* has ended, but other processes of its group perhaps have not */
	RUN_CHILD_GONE, /* no process of it is left */
};

struct run_child {
	pid_t pid;     /* also the number of its group */
	uint8_t state; /* enum run_child_state */
	int status;    /* exit status, once it has ended */
	int signal;    /* the signal that killed it; 0: none */
	uint64_t started_ns, ended_ns;
	uint64_t sweep_ns; /* left: when the rest of the group gets the next signal */
	int sweep_signal;  /* left: that signal; 0: it was SIGKILL, there is no further one */
	uint32_t order;    /* once ended: number of ranks that had ended by then, itself included */
	bool was_told;     /* espalier run has sent it a signal while it ran */
	bool was_lost;     /* it has failed, and the job went on without it */
	bool is_stopped;   /* runs: the last check has found a stopped process of its group */
	uint32_t still;    /* number of consecutive checks that have */
};

/* All of it is borrowed. */
struct run_start {
	char *const *argv;             /* ends with NULL; argv[0] is looked up in PATH */
	char *const *words;            /* NAME=VALUE, added to this process's environment; NULL: none */
	const char *cwd;               /* NULL: this process's */
	int in, out, err;              /* become 0, 1 and 2 */
	const struct run_place *place; /* entered first; NULL: the child stays on this host */
	uint32_t rank;                 /* for place */
	const struct rlimit *files;    /* the command's limit of descriptors; NULL: this process's */
};

/*
 * Blocks until the command runs or has failed to. Returns 0, or the exit status for the reason in *err: 127
 * there is no such command, 126 it cannot be run, 1 no process could be made.
 */
int launcher_child_start(struct run_child *child, const struct run_start *start, uint64_t now_ns, struct error *err);

/* Signals the whole group. False if no process is left in it. */
bool launcher_child_signal(const struct run_child *child, int signal_number);

/* Its process was reaped with this wait status. */
void launcher_child_on_end(struct run_child *child, int wait_status, uint64_t now_ns);

/* left: checks whether processes remain and signals them when it is time. May make it gone. */
void launcher_child_check(struct run_child *child, uint64_t now_ns);

/* True if a process that has ended was killed, or returned another status than 0. */
bool launcher_child_failed(const struct run_child *child);

/* The exit status as shells have it: 128 and the signal for a killed process. */
int launcher_child_exit_status(const struct run_child *child);

#endif
