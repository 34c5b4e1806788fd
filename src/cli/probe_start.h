/*
 * probe_start.h - espalier probe starts its own ranks: on this machine, or on other hosts, without those that are not
 * there.
 *
 *     roll call ──▶ espalier run on hosts that answered ──▶ a rank has not joined? again without it ──▶ rank 0 prints
 *
 * A host that cannot be started on, or whose rank does not join, is named with the reason and left out, as long as two
 * are left. Ranks of this machine are started once; one that dies or is stopped while they probe is left out as well.
 */
#ifndef CLI_PROBE_START_H
#define CLI_PROBE_START_H

#include "tools/probe/probe_outcome.h"

/* Exit statuses of ranks that were started so, to decide on the next try: the user sees EXIT_NO in both cases. */
enum probe_exit {
	PROBE_EXIT_FAILED = 74, /* nothing could be found out, or a file not be written: to start again would not help */
	PROBE_EXIT_LONELY = 75, /* this rank was there, and others did not join                                        */
};

/* argv: the command line as it was typed. Returns the exit status. */
int probe_start(const struct probe_options *options, int argc, char **argv);

#endif
