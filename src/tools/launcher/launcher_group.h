/*
 * launcher_group.h - the key and the leader's address for joining ranks, from src/rank/join.
 *
 * The one place that knows of builds without src/rank/join (no libsodium, when compiling for another machine).
 * Opens sockets and reads files; does not block.
 */
#ifndef TOOLS_LAUNCHER_LAUNCHER_GROUP_H
#define TOOLS_LAUNCHER_LAUNCHER_GROUP_H

#include <stdint.h>

#include "base/error.h"

#define RUN_KEY_TEXT 65u     /* 64 hexadecimal digits with the NUL */
#define RUN_LEADER_TEXT 266u /* host:port */
#define RUN_JOB_TEXT 128u    /* a job's name with its NUL */

/* The key from ESP_KEY_FILE or ESP_KEY, or else a new one. */
ESP_CHECKED enum esp_status launcher_group_key(char hex[RUN_KEY_TEXT], struct error *err);

/* ESP_EINVAL unless the text is host:port, as --leader has it. */
ESP_CHECKED enum esp_status launcher_group_check_leader(const char *text, struct error *err);

/*
 * Finds a port of 127.0.0.1 at which no socket listens. wanted 0: one that no socket has, above the ephemeral
 * ports if possible. *out_held, a descriptor, holds it: until it is closed the kernel chooses the port for no
 * other socket and another espalier run does not choose it, while a socket that binds to it by number with
 * SO_REUSEADDR, as rank 0 does, gets it.
 */
ESP_CHECKED enum esp_status launcher_group_local_port(uint16_t wanted, uint16_t *out_port, int *out_held,
                                                      struct error *err);

/* A port to try, here or on another host: above Linux's default range of ephemeral ports (32768 to 60999). */
uint16_t launcher_group_high_port(void);

/* host:port, with brackets around an IPv6 address. Returns text. */
const char *launcher_group_leader(const char *host, uint16_t port, char text[RUN_LEADER_TEXT]);

#endif
