/*
 * doctor_job.h - espalier doctor as a job: its ranks join as those of any job, try to reach each other, and
 * rank 0 collects all findings. Blocks the caller.
 */
#ifndef TOOLS_DOCTOR_DOCTOR_JOB_H
#define TOOLS_DOCTOR_DOCTOR_JOB_H

#include "tools/doctor/doctor_finding.h"

/* True if a launcher has started this process as one of several ranks. */
bool doctor_is_launched(void);

/* True if there are findings to print: on rank 0 all of them, elsewhere the reason why they could not be delivered. */
bool doctor_run_job(struct doctor_findings *out);

#endif
