/*
 * background.h - traffic of others: TCP flows that take what they can get of the links.
 *
 * One process for all of them. A flow of a host's link goes from that host to some other, one of an uplink from the
 * hosts of its rack in turn; to another rack where there is one. The seed chooses the other host.
 */
#ifndef TOOLS_LAB_BACKGROUND_H
#define TOOLS_LAB_BACKGROUND_H

#include <sys/types.h>

#include "tools/lab/fabric.h"

struct background_flow {
	uint32_t link; /* on whose account */
	uint32_t from, to, rail;
};

/* Pure: the flows that the settings ask for. Writes at most room of them; returns how many there are. */
size_t background_flows(const struct lab *lab, struct background_flow *out, size_t room);

/* Starts the process, or does nothing if no flows are asked for (*out_pid 0). Ends with its parent. */
ESP_CHECKED enum esp_status background_start(const struct fabric *fabric, pid_t *out_pid, struct error *err);

void background_stop(pid_t pid);

#endif
