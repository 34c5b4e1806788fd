/*
 * doctor_job.h - espalier doctor as a job: its ranks join as any other's, try to reach each other, and rank 0 has the findings of all.
 */
#ifndef TOOLS_DOCTOR_DOCTOR_JOB_H
#define TOOLS_DOCTOR_DOCTOR_JOB_H

#include "tools/doctor/doctor_finding.h"

/* Whether somebody has started this process as one of several ranks. */
bool doctor_is_launched(void);

/* True: there is something to print: on rank 0 all findings, on others what kept them from telling theirs. */
bool doctor_run_job(struct doctor_findings *out);

#endif
