/*
 * lab_switch.h - the switch in user space (espalier switch) of a lab: a child of its keeper, in the space of a rack's
 * bridge or of a host, which ends with the lab.
 */
#ifndef TOOLS_LAB_LAB_SWITCH_H
#define TOOLS_LAB_LAB_SWITCH_H

#include <sys/types.h>

#include "tools/lab/fabric.h"

#define LAB_SWITCH_PORT 7800u
#define LAB_SWITCH_TEXT (LAB_ADDRESS_TEXT + 8) /* HOST:PORT */

/* Starts it, and waits until it listens. ESP_OK and *out_pid = 0: the lab has none. ESP_EIO, ESP_ELIMIT. */
ESP_CHECKED enum esp_status lab_switch_start(const struct fabric *fabric, pid_t *out_pid, struct error *err);
void lab_switch_stop(pid_t pid); /* 0: nothing */

/* Where ranks reach it: a value of ESP_SWITCH. Returns text. For a lab that has one. */
const char *lab_switch_address(const struct lab *lab, char text[LAB_SWITCH_TEXT]);

#endif
