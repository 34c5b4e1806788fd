/*
 * sched.h - the commands of espalier sched.
 */
#ifndef CLI_SCHED_H
#define CLI_SCHED_H

#include "cli/cli.h"

extern const struct cli_command cli_sched_status;

#endif
