/*
 * cores.h - which cores this process may use.
 */
#ifndef BASE_CORES_H
#define BASE_CORES_H

#include <stdint.h>

/* How many: at least 1. */
uint32_t cores_allowed(void);
/* A number for the set of them: processes of one machine with the same number share just these cores. 0: not known. */
uint64_t cores_digest(void);

#endif
