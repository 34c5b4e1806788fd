/*
 * sweep.h - ends the processes that run in the spaces of a lab.
 */
#ifndef TOOLS_LAB_SWEEP_H
#define TOOLS_LAB_SWEEP_H

#include <stdint.h>

#include "tools/lab/space.h"

/*
 * Sends SIGTERM to every process in one of these networks but this one and its children, and SIGKILL to the
 * remaining ones two seconds later. Returns their number when they are gone.
 */
uint32_t lab_sweep(const struct space *spaces, uint32_t count);

#endif
