/*
 * launcher_report.h - the result of a job: for people, for programs, and as an exit status.
 */
#ifndef TOOLS_LAUNCHER_LAUNCHER_REPORT_H
#define TOOLS_LAUNCHER_LAUNCHER_REPORT_H

#include "tools/launcher/launcher_job.h"

#define RUN_EXIT_TIMEOUT 124 /* as timeout(1) has it */

/* 0 if all ranks returned 0; otherwise the status of the first that failed, or of what kept them from running. */
int launcher_report_exit_status(const struct run_job *job);

/* Writes "was killed by signal 9 (Killed)" for a rank that has ended. Returns text. */
#define RUN_HOW_TEXT 512
const char *launcher_report_how(const struct run_job *job, uint32_t rank, char text[RUN_HOW_TEXT]);

/* On stderr: which rank failed first and how. Nothing if all went well. */
void launcher_report_summary(const struct run_job *job);

/* On stdout. */
ESP_CHECKED enum esp_status launcher_report_json(const struct run_job *job);

#endif
