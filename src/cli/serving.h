/*
 * serving.h - the hubs and schedulers that the user runs on this machine, found by the names of their status sockets;
 * and the limit on descriptors of a process that serves.
 */
#ifndef CLI_SERVING_H
#define CLI_SERVING_H

#include <stdint.h>

/* Ports of those whose sockets are called espalier/USER/KIND/PORT. */
uint32_t serving_ports(const char *kind, uint16_t *out, uint32_t most);

/* A server has connections of every worker of every job: as many descriptors as the system allows. */
void serving_raise_descriptors(void);

#endif
