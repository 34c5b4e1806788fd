/*
 * nodelist.h - host names as Slurm abbreviates them: "n[1-3,7],m2", "r[1-2]c[08-11]-ib".
 *
 * Pure and without allocation: a name is written when it is asked for, so that a list which
 * says [1-1000000000] costs nothing. Brackets vary from the right, and numbers keep the zeros in
 * front of them, as scontrol show hostnames does it. White space ends nothing and means nothing here: it
 * is refused.
 */
#ifndef NETWORK_TOPO_NODELIST_H
#define NETWORK_TOPO_NODELIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define NODELIST_BRACKETS 8u /* in one name */

/* How many names there are; what names the text in a complaint: "SLURM_JOB_NODELIST". ESP_EINVAL. */
ESP_CHECKED enum esp_status nodelist_count(const char *text, const char *what, uint64_t *out, struct error *err);

/* The name at an index below that count. ESP_EINVAL, ESP_ELIMIT: it does not fit. */
ESP_CHECKED enum esp_status nodelist_name(const char *text, const char *what, uint64_t index, char *out, size_t size,
                                          struct error *err);

/* Whether one of the names is this one, letter by letter; false for a longer one than NODELIST_NAME and for a bad list. */
#define NODELIST_NAME 255u
bool nodelist_has(const char *text, const char *name, size_t length);

#endif
