/*
 * relay.h - a process between two devices of a space that forwards frames late, twice, damaged, or not at all.
 *
 * It is at the near end of a link (commands.h has the picture). Frames from the host arrive at the device,
 * frames to it at device-r. The relay reads settings from the lab's memory as they change and writes counters
 * there; fault.h decides about each frame.
 */
#ifndef TOOLS_LAB_RELAY_H
#define TOOLS_LAB_RELAY_H

#include <sys/types.h>

#include "tools/lab/lab.h"

/*
 * Starts a relay in the network of `net` and returns when it listens on both devices. It ends with the calling
 * process. ESP_EIO.
 */
ESP_CHECKED enum esp_status lab_relay_start(struct lab *lab, uint32_t link, const char *device, int net, pid_t *out_pid,
                                            struct error *err);

/* Ends it and waits for its end. */
void lab_relay_stop(pid_t pid);

#endif
