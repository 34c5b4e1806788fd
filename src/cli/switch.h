/*
 * switch.h - the commands of espalier switch.
 */
#ifndef CLI_SWITCH_H
#define CLI_SWITCH_H

#include "cli/cli.h"

extern const struct cli_command cli_switch_status, cli_switch_drain;

#endif
