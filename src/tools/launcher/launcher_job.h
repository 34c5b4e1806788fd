/*
 * launcher_job.h - the ranks of a job from their start to their end: one loop over events, in the calling thread.
 *
 *     launcher_launch.c   starts a rank here or through a remote shell
 *     launcher_child.c    its process and its group
 *     launcher_output.c   its output
 *     launcher_input.c    the terminal's input, for rank 0
 *     launcher_control.c  signals and requests to a remote shell
 *     launcher_end.c      when which signal is sent
 *     launcher_stopped.c  which ranks are stopped
 *     launcher_ended.c    which ranks have ended, for ranks that join
 *     launcher_blame.c    which rank the others name as the cause
 *     launcher_report.c   the report afterwards
 */
#ifndef TOOLS_LAUNCHER_LAUNCHER_JOB_H
#define TOOLS_LAUNCHER_LAUNCHER_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/error.h"
#include "tools/launcher/launcher_blame.h"
#include "tools/launcher/launcher_child.h"
#include "tools/launcher/launcher_control.h"
#include "tools/launcher/launcher_end.h"
#include "tools/launcher/launcher_ended.h"
#include "tools/launcher/launcher_input.h"
#include "tools/launcher/launcher_output.h"
#include "tools/launcher/launcher_request.h"

/* One epoll set each, so that a stalled reader of our stdout holds up nothing else. */
enum run_epoll { RUN_EPOLL_OUT, RUN_EPOLL_ERR, RUN_EPOLL_CONTROL, RUN_EPOLLS };

#define RUN_CAUSE_NS (250 * NS_PER_MS) /* a rank that ends at most this long after another may be why that one failed \
	                                    */

struct run_job {
	struct run_request *request;  /* borrowed; the variables of the rank being started are set in it */
	struct run_child *children;   /* by rank */
	pid_t *pids;                  /* by rank, for searches; 0: does not run */
	struct run_control *controls; /* by rank; NULL for a local job */
	struct run_output output;
	struct run_input input;
	struct run_end end;
	struct run_ended ended_ranks;
	struct run_blame blame;
	struct rlimit files;    /* the limit before it was raised */
	int signals;            /* signalfd */
	int epolls[RUN_EPOLLS]; /* of all ranks: output for our stdout, output for our stderr, the controls */
	int nothing;            /* /dev/null */
	uint64_t began_ns, over_ns;

	uint32_t started, ended, gone; /* numbers of ranks; gone: no process of them is left */
	bool stopped;                  /* no more ranks are started */
	bool drained;                  /* all output of the ranks was read */
	bool deaf;                     /* a signal came when there was nothing left to do but print */
	bool broken_pipe;              /* the reader of our output is gone */
	int start_status;              /* exit status if a rank could not be started, or its lab ended; 0: neither */
	bool has_no_place;             /* exec_run_place.gone_fd */

	uint32_t cut_off; /* ranks that did not fail but were ended by the time limit */

	bool failed;           /* a rank has failed, and the following fields are about it */
	uint32_t first_failed; /* that rank; when the job is over: the cause, as far as the ranks' reports tell */
	uint32_t first_seen;   /* when the job is over: the rank that was seen to fail first */
	uint32_t first_order;  /* number of ranks that had ended by then, itself included */
	uint64_t announce_ns;  /* when to say that other ranks have not ended yet; 0: never */
	uint32_t lost;         /* ranks that were allowed to fail, and did */
	uint32_t after_first;  /* ranks that ended after it */
	uint32_t told;         /* number of those that were told to end because of it */

	bool is_done;     /* run_watch.is_done */
	bool is_deserted; /* a rank that was allowed to fail did so when all others were stopped */
	uint64_t look_ns; /* next check whether the ranks that are left are stopped */
	uint32_t still;   /* number of consecutive checks that found more ranks than may be lost, all of them stopped */
	uint64_t last_ns; /* since when no more ranks are left than may be lost; 0: more are */
	bool has_said;    /* the ranks that are waited for were named */
};

/* Starts nothing yet. ESP_ENOMEM, ESP_ELIMIT, ESP_EIO. */
ESP_CHECKED enum esp_status launcher_job_open(struct run_job *job, struct run_request *request, struct error *err);

/* Starts the ranks and returns when no process of them is left. Their results are in *job. */
void launcher_job_run(struct run_job *job);

void launcher_job_close(struct run_job *job);

/* For the loop: the source of an event. */
enum run_event { RUN_EVENT_OUT, RUN_EVENT_ERR, RUN_EVENT_CONTROL };
static inline uint32_t run_event_tag(uint32_t rank, enum run_event event)
{
	return rank << 2 | event;
}

/* launcher_launch.c: starts a rank. Returns 0, or the exit status and the reason. */
int launcher_launch(struct run_job *job, uint32_t rank, uint64_t now_ns, struct error *err);

#endif
