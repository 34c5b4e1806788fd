/*
 * background.h - background traffic: TCP flows that take as much of the links as they can get.
 *
 * One process for all of them. A flow of a host's link goes from that host to another, a flow of an uplink from
 * the hosts of its rack in turn; to another rack if there is one. The seed chooses the other host.
 */
#ifndef TOOLS_LAB_BACKGROUND_H
#define TOOLS_LAB_BACKGROUND_H

#include <sys/types.h>

#include "tools/lab/fabric.h"

struct background_flow {
	uint32_t link; /* that the flow was asked for */
	uint32_t from, to, rail;
};

/* Pure: the flows that the settings ask for. Writes at most `room` of them; returns their number. */
size_t lab_background_flows(const struct lab *lab, struct background_flow *out, size_t room);

/* Starts the process, or does nothing if no flows are asked for (*out_pid 0). It ends with its parent. */
ESP_CHECKED enum esp_status lab_background_start(const struct fabric *fabric, pid_t *out_pid, struct error *err);

void lab_background_stop(pid_t pid);

#endif
