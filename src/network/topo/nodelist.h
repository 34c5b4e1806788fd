/*
 * nodelist.h - host names as Slurm abbreviates them: "n[1-3,7],m2", "r[1-2]c[08-11]-ib".
 *
 * Pure and without allocation: a name is written on demand, so a list with [1-1000000000] costs nothing. The
 * rightmost bracket varies fastest and numbers keep their leading zeros, as in scontrol show hostnames. White
 * space is refused.
 */
#ifndef NETWORK_TOPO_NODELIST_H
#define NETWORK_TOPO_NODELIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define NODELIST_BRACKETS 8u /* of one name */

/* The number of names; `what` names the text in a complaint: "SLURM_JOB_NODELIST". ESP_EINVAL. */
ESP_CHECKED enum esp_status nodelist_count(const char *text, const char *what, uint64_t *out, struct error *err);

/* The name of an index below that number. ESP_EINVAL; ESP_ELIMIT: it does not fit. */
ESP_CHECKED enum esp_status nodelist_name(const char *text, const char *what, uint64_t index, char *out, size_t size,
                                          struct error *err);

/* True if the list has exactly this name; false for a name longer than NODELIST_NAME and for a malformed list. */
#define NODELIST_NAME 255u
bool nodelist_has(const char *text, const char *name, size_t length);

#endif
