/*
 * launcher_stopped.h - which processes of this machine are stopped (SIGSTOP and its like). Reads /proc.
 *
 * A process that a debugger holds does not count: it is being worked on.
 */
#ifndef TOOLS_LAUNCHER_LAUNCHER_STOPPED_H
#define TOOLS_LAUNCHER_LAUNCHER_STOPPED_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Parses the text of /proc/PID/stat: true if the process is stopped, and then its group. The name in it may
 * have any bytes.
 */
bool launcher_stopped_parse(const char *text, pid_t *out_group);

/* Calls on_stopped with the group of each stopped process, perhaps more than once for a group. */
void launcher_stopped_each(void (*on_stopped)(void *context, pid_t group), void *context);

#endif
