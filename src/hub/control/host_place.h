/*
 * host_place.h - where a process can share memory with others. Reads facts of the host; any thread.
 */
#ifndef HUB_CONTROL_HOST_PLACE_H
#define HUB_CONTROL_HOST_PLACE_H

#include <stdint.h>

/* Equal for processes that can meet: the same kernel, network namespace, host name and user. Never 0. */
uint64_t host_place(void);

#endif
