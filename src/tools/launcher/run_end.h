/*
 * run_end.h - when a job is told to end, and how urgently.
 *
 * Pure: given events and the time, it says which signal the ranks get now. A rank that fails starts
 *
 *     calm --rank failed--> grace --its seconds--> SIGTERM --2 s--> SIGKILL --2 s--> cut
 *
 * as the others should end by themselves: the library tells them. The job's time limit goes
 * straight to SIGTERM; ranks that were told to end before have two seconds from then on. cut is for ranks on
 * other hosts only: whoever did not hear of SIGKILL within two seconds has no connection any more, and its
 * remote shell is ended here.
 *
 * Whoever signals espalier run wants the job to end. The ranks get the same signal and have the same
 * grace: after SIGINT or SIGHUP as above, after SIGTERM until SIGKILL (at least two seconds, as they
 * would have otherwise). A grace that has begun does not begin anew. A second Ctrl-C is SIGKILL at once;
 * SIGINT within RUN_END_AGAIN_NS of the first is still the same one, as timeout(1) sends it both to us and to
 * our process group. What the ranks do of a signal is up to them, and a rank that dies of it has failed.
 */
#ifndef TOOLS_LAUNCHER_RUN_END_H
#define TOOLS_LAUNCHER_RUN_END_H

#include <stdbool.h>
#include <stdint.h>

#define RUN_END_NEVER UINT64_MAX
#define RUN_END_INTERRUPTS 2                 /* so many of Ctrl-C, and nobody waits any more */
#define RUN_END_AGAIN_NS UINT64_C(300000000) /* SIGINT within this time of the first is the same Ctrl-C */
#define RUN_END_STEP_NS UINT64_C(2000000000) /* from SIGTERM to SIGKILL, and for what a rank has left running */

enum run_stage {
	RUN_CALM,  /* all is well                                                               */
	RUN_GRACE, /* a rank has failed or somebody wants the end: the ranks may end themselves */
	RUN_TERM,  /* they were told to                                                         */
	RUN_KILL,  /* they were made to                                                         */
	RUN_CUT,   /* also those that cannot be reached                                         */
};

struct run_end {
	uint64_t grace_ns;
	uint64_t limit_ns; /* when the job must be over; RUN_END_NEVER */
	uint64_t next_ns;  /* when the next stage begins; RUN_END_NEVER */
	uint64_t interrupt_ns; /* when SIGINT was counted last */
	uint8_t stage;         /* enum run_stage */
	uint8_t interrupts;    /* SIGINT, at most RUN_END_INTERRUPTS */
	bool timed_out;
	int asked; /* the first signal that espalier run was sent; 0: none */
};

/* limit_ns: how long the job may take from now on; 0: as long as it likes. */
void run_end_init(struct run_end *end, uint64_t grace_ns, uint64_t limit_ns, uint64_t now_ns);

void run_end_on_failure(struct run_end *end, uint64_t now_ns);

/* SIGINT, SIGTERM or SIGHUP has reached us: the signal that the ranks get; 0: none, they have had it. */
int run_end_on_signal(struct run_end *end, int signal_number, uint64_t now_ns);

/* Nobody reads what the ranks print, or they could not all be started: SIGTERM for all, unless they had it. */
int run_end_on_trouble(struct run_end *end, uint64_t now_ns);

/* All ranks that are left are stopped, and nobody waits for them: SIGKILL for all, as they do not hear of SIGTERM; 0: they had it. */
int run_end_on_standstill(struct run_end *end, uint64_t now_ns);

/* The signal that it is time for; 0: none. */
int run_end_on_time(struct run_end *end, uint64_t now_ns);

/* When run_end_on_time() has something to say; RUN_END_NEVER. */
uint64_t run_end_next_ns(const struct run_end *end);

#endif
