/*
 * relay.h - a process between two devices of a space that passes frames on, later, twice, broken or not at all.
 *
 * Stands at the near end of a link (commands.h has the picture). Frames from the host come in by the device, those to
 * it by device-r. Settings are read from the lab's memory as they change, counters are written there; what is decided
 * about each frame is fault.h's.
 */
#ifndef TOOLS_LAB_RELAY_H
#define TOOLS_LAB_RELAY_H

#include <sys/types.h>

#include "tools/lab/lab.h"

/*
 * Starts one in the network of net and comes back when it listens at both devices. It ends with the process that
 * called this. ESP_EIO.
 */
ESP_CHECKED enum esp_status relay_start(struct lab *lab, uint32_t link, const char *device, int net, pid_t *out_pid,
                                        struct error *err);

/* Ends it and waits for that. */
void relay_stop(pid_t pid);

#endif
