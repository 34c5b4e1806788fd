/*
 * sweep.h - ends the processes that run in the spaces of a lab.
 */
#ifndef TOOLS_LAB_SWEEP_H
#define TOOLS_LAB_SWEEP_H

#include <stdint.h>

#include "tools/lab/space.h"

/*
 * SIGTERM to every process in one of these networks but this one and its children, SIGKILL to those that are still there
 * two seconds later. Comes back when they are gone; returns how many there were.
 */
uint32_t sweep(const struct space *spaces, uint32_t count);

#endif
