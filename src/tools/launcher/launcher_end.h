/*
 * launcher_end.h - when a job is told to end, and how urgently.
 *
 * Pure: given events and the time, it returns the signal to send to the ranks. A rank that fails starts
 *
 *     calm --rank failed--> grace --its seconds--> SIGTERM --2 s--> SIGKILL --2 s--> cut
 *
 * because the others should end by themselves: the library tells them. The job's time limit goes straight to
 * SIGTERM; ranks that were told to end before have two seconds from then on. cut is for ranks on other hosts
 * only: a rank that has not ended two seconds after SIGKILL has lost its connection, and its remote shell is
 * ended here.
 *
 * A signal to espalier run ends the job. The ranks get the same signal and have the same grace: after SIGINT or
 * SIGHUP as above, after SIGTERM until SIGKILL (at least two seconds, as they would have otherwise). A grace
 * that has begun is not extended. A second Ctrl-C is SIGKILL at once; SIGINT within RUN_END_AGAIN_NS of the
 * first counts as the same one, as timeout(1) sends it both to espalier run and to its process group. The ranks
 * may handle a signal as they like; a rank that dies of it has failed.
 */
#ifndef TOOLS_LAUNCHER_LAUNCHER_END_H
#define TOOLS_LAUNCHER_LAUNCHER_END_H

#include <stdbool.h>
#include <stdint.h>

#define RUN_END_NEVER UINT64_MAX
#define RUN_END_INTERRUPTS 2                 /* at this number of Ctrl-C the ranks get SIGKILL */
#define RUN_END_AGAIN_NS UINT64_C(300000000) /* SIGINT within this time of the first is the same Ctrl-C */
/* from SIGTERM to SIGKILL, and for processes that a rank has left running */
#define RUN_END_STEP_NS UINT64_C(2000000000)

enum run_stage {
	RUN_CALM,  /* no failure */
	RUN_GRACE, /* a rank has failed, or a signal has come: the ranks may end by themselves */
	RUN_TERM,  /* they got SIGTERM */
	RUN_KILL,  /* they got SIGKILL */
	RUN_CUT,   /* remote shells of ranks that cannot be reached were ended */
};

struct run_end {
	uint64_t grace_ns;
	uint64_t limit_ns;     /* end of the job's time; RUN_END_NEVER */
	uint64_t next_ns;      /* begin of the next stage; RUN_END_NEVER */
	uint64_t interrupt_ns; /* time of the last SIGINT that was counted */
	uint8_t stage;         /* enum run_stage */
	uint8_t interrupts;    /* SIGINTs, at most RUN_END_INTERRUPTS */
	bool timed_out;
	int asked; /* first signal that espalier run got; 0: none */
};

/* limit_ns: time for the job from now on; 0: no limit. */
void launcher_end_init(struct run_end *end, uint64_t grace_ns, uint64_t limit_ns, uint64_t now_ns);

void launcher_end_on_failure(struct run_end *end, uint64_t now_ns);

/* espalier run got SIGINT, SIGTERM or SIGHUP. Returns the signal for the ranks; 0: none, they have had it. */
int launcher_end_on_signal(struct run_end *end, int signal_number, uint64_t now_ns);

/* The reader of the output is gone, or a rank could not be started: SIGTERM for all, unless they had it. */
int launcher_end_on_trouble(struct run_end *end, uint64_t now_ns);

/* All remaining ranks are stopped: SIGKILL for all, as a stopped process does not handle SIGTERM; 0: they had it. */
int launcher_end_on_standstill(struct run_end *end, uint64_t now_ns);

/* Returns the signal that is due; 0: none. */
int launcher_end_on_time(struct run_end *end, uint64_t now_ns);

/* When launcher_end_on_time() is due next; RUN_END_NEVER. */
uint64_t launcher_end_next_ns(const struct run_end *end);

#endif
