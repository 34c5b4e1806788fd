/*
 * run_group.h - what joining needs to be told, in the words of src/rank/join: the key and the leader.
 *
 * The one place that knows of builds without src/rank/join (no libsodium, when compiling for another machine).
 */
#ifndef TOOLS_LAUNCHER_RUN_GROUP_H
#define TOOLS_LAUNCHER_RUN_GROUP_H

#include <stdint.h>

#include "base/error.h"

#define RUN_KEY_TEXT 65u     /* 64 hexadecimal digits and the NUL */
#define RUN_LEADER_TEXT 266u /* host:port */
#define RUN_JOB_TEXT 128u    /* a job's name, with the NUL */

/* The key from ESP_KEY_FILE or ESP_KEY, or else a new one. */
ESP_CHECKED enum esp_status run_group_key(char hex[RUN_KEY_TEXT], struct error *err);

/* Is this host:port, as --leader wants it? */
ESP_CHECKED enum esp_status run_group_check_leader(const char *text, struct error *err);

/*
 * A port of 127.0.0.1 that nobody listens on. wanted 0: one that nobody holds either, above those that Linux gives out by itself if there is such. *out_held,
 * a descriptor, holds it: until that is closed the kernel gives the port to nobody else by itself, nor does another espalier run choose it, and who asks for
 * it by number and with SO_REUSEADDR, as rank 0 does, gets it.
 */
ESP_CHECKED enum esp_status run_group_local_port(uint16_t wanted, uint16_t *out_port, int *out_held, struct error *err);

/* A port to try, here or on another host: above those that Linux gives out by itself (32768 to 60999, unless it is told otherwise). */
uint16_t run_group_high_port(void);

/* host:port, with brackets around an IPv6 address. Returns text. */
const char *run_group_leader(const char *host, uint16_t port, char text[RUN_LEADER_TEXT]);

#endif
