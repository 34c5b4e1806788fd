/*
 * run_job.h - the ranks of a job from their start to their end: one loop over events.
 *
 *     run_launch.c   starts a rank here or through a remote shell
 *     run_child.c    its process and its group
 *     run_output.c   what it prints
 *     run_input.c    what is typed, for rank 0
 *     run_control.c  what a remote shell is told
 *     run_end.c      when which signal is sent
 *     run_stopped.c  who is stopped
 *     run_ended.c    who has ended, for ranks that join
 *     run_blame.c    whom the ranks name as the cause
 *     run_report.c   what is said about it afterwards
 */
#ifndef TOOLS_LAUNCHER_RUN_JOB_H
#define TOOLS_LAUNCHER_RUN_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/error.h"
#include "tools/launcher/run_blame.h"
#include "tools/launcher/run_child.h"
#include "tools/launcher/run_control.h"
#include "tools/launcher/run_end.h"
#include "tools/launcher/run_ended.h"
#include "tools/launcher/run_input.h"
#include "tools/launcher/run_output.h"
#include "tools/launcher/run_request.h"

/* Three, so that a reader of our stdout who stands still holds up nothing else. */
enum run_epoll { RUN_EPOLL_OUT, RUN_EPOLL_ERR, RUN_EPOLL_CONTROL, RUN_EPOLLS };

#define RUN_CAUSE_NS (250 * NS_PER_MS) /* who ends so long after another may be why that one failed */

struct run_job {
	struct run_request *request;  /* borrowed; the variables of the rank at hand are set in it */
	struct run_child *children;   /* by rank */
	pid_t *pids;                  /* by rank, once more: they are searched often; 0: does not run */
	struct run_control *controls; /* by rank; NULL for a local job */
	struct run_output output;
	struct run_input input;
	struct run_end end;
	struct run_ended ended_ranks;
	struct run_blame blame;
	struct rlimit files;    /* as it was before we raised it */
	int signals;            /* signalfd */
	int epolls[RUN_EPOLLS]; /* of all ranks: what goes to our stdout, what goes to our stderr, the controls */
	int nothing;            /* /dev/null */
	uint64_t began_ns, over_ns;

	uint32_t started, ended, gone; /* ranks; gone: nothing of them is left */
	bool stopped;                  /* no more ranks are started */
	bool drained;                  /* all that the ranks have printed was read */
	bool deaf;                     /* somebody wants us to end, and there was nothing left to do but print */
	bool broken_pipe;              /* nobody reads what we print */
	int start_status;              /* exit status if a rank could not be started, or had no place any more; 0: neither */
	bool has_no_place;             /* run_place.gone_fd */

	uint32_t cut_off; /* ranks that did not fail but were ended by the time limit */

	bool failed;           /* a rank has, and the rest is about it */
	uint32_t first_failed; /* the rank; when the job is over: the one that is the cause, as far as the ranks tell */
	uint32_t first_seen;   /* when the job is over: the one that was seen to fail first */
	uint32_t first_order;  /* how many had ended by then, itself included */
	uint64_t announce_ns;    /* when it is said that others have not ended yet; 0: it was, or there is no reason to */
	uint32_t lost;         /* ranks that failed, and were allowed to */
	uint32_t after_first;  /* ranks that ended after it */
	uint32_t told;         /* how many of those had to be told to end because of it */

	bool is_done;      /* run_watch.is_done */
	bool is_deserted;  /* a rank that was allowed to fail did so when all others were stopped */
	uint64_t look_ns;  /* when it is looked next whether those who are left are stopped */
	uint32_t still;    /* how many looks in a row have found more stopped than may be lost, and nobody else left */
	uint64_t last_ns;  /* since when no more are left than may be lost; 0: more are */
	bool has_said;     /* then: who is waited for */
};

/* Nothing is started yet. ESP_ENOMEM, ESP_ELIMIT, ESP_EIO. */
ESP_CHECKED enum esp_status run_job_open(struct run_job *job, struct run_request *request, struct error *err);

/* Starts the ranks and comes back when nothing of them is left. What they did stands in *job. */
void run_job_run(struct run_job *job);

void run_job_close(struct run_job *job);

/* For the loop: what an event is about. */
enum run_event { RUN_EVENT_OUT, RUN_EVENT_ERR, RUN_EVENT_CONTROL };
static inline uint32_t run_event_tag(uint32_t rank, enum run_event event)
{
	return rank << 2 | event;
}

/* run_launch.c: starts a rank. Returns 0, or the exit status and the reason. */
int run_launch(struct run_job *job, uint32_t rank, uint64_t now_ns, struct error *err);

#endif
