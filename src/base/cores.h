/*
 * cores.h - how many cores this process may use.
 */
#ifndef BASE_CORES_H
#define BASE_CORES_H

#include <stdint.h>

/* At least 1. */
uint32_t cores_allowed(void);

#endif
