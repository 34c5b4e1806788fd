/*
 * serving.h - the hubs and schedulers that the user runs on this machine, found by the names of their status sockets.
 */
#ifndef CLI_SERVING_H
#define CLI_SERVING_H

#include <stdint.h>

/* Ports of those whose sockets are called espalier/USER/KIND/PORT. */
uint32_t serving_ports(const char *kind, uint16_t *out, uint32_t most);

#endif
