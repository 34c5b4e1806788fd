/*
 * commands.h - the batches for ip, tc and nft that make a lab.
 *
 * Pure. Each batch is for one space; a space is named by a descriptor number in the process that reads the
 * batch (nets[space]).
 */
#ifndef TOOLS_LAB_COMMANDS_H
#define TOOLS_LAB_COMMANDS_H

#include <stdint.h>
#include <stdio.h>

#include "tools/lab/lab.h"

/* ip, in the space of a rack: its bridges, and all links to its hosts and to the core. */
void lab_commands_rack(FILE *out, const struct lab *lab, uint32_t rack, const int *nets);

/* ip, in the core: its bridges, and the uplinks that the racks have made. */
/* Of the switch in user space, at the bridge of a rack. */
void lab_commands_bridge_address(FILE *out, const struct lab *lab);
void lab_commands_core(FILE *out, const struct lab *lab);

/* ip, in the space of a host: its interfaces and addresses. */
void lab_commands_host(FILE *out, const struct lab *lab, uint32_t host);

/* tc: the shapers of all devices in a space. */
void lab_commands_shapers(FILE *out, const struct lab *lab, uint32_t space);

/* tc, for one device: another rate. ip: the longest segment that the device is given (gso_max_size). */
void lab_commands_rate(FILE *out, const struct lab *lab, const char *device, uint64_t rate);
void lab_commands_train(FILE *out, const struct lab *lab, const char *device, uint64_t rate);

/* nft: which incoming frames of a device are dropped; loss in millionths. */
void lab_commands_drop(FILE *out, const char *device, uint32_t loss, bool cut);

/*
 * ip, at the near end of a link: a pair of devices, through which the bridge is connected to the link while a
 * relay passes frames between the device and the pair; then the switch to it, and back.
 *
 *     before   device --- bridge        after   device (relay) device-r === device-q --- bridge
 */
void lab_commands_relay_pair(FILE *out, const struct lab *lab, const char *device);
void lab_commands_relay_in(FILE *out, const char *device, uint32_t rail);
void lab_commands_relay_out(FILE *out, const char *device, uint32_t rail);

/* ip, at the near end: carrier up or down. */
void lab_commands_carrier(FILE *out, const char *device, bool down);

/* The hosts file of all spaces. */
void lab_commands_hosts_file(FILE *out, const struct lab *lab);

#endif
