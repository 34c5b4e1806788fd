/*
 * studies.h - the subcommands of espalier-study, one file each. They reproduce figures and tables of papers and
 * are no part of the product.
 */
#ifndef STUDIES_STUDIES_H
#define STUDIES_STUDIES_H

#include "cli/cli.h"

extern const struct cli_command study_discover, study_money, study_netop, study_table1;

#endif
