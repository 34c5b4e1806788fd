/*
 * client.h - sends questions to the keeper of a lab, from any process of the same user. Blocks.
 */
#ifndef TOOLS_LAB_CLIENT_H
#define TOOLS_LAB_CLIENT_H

#include "tools/lab/lab.h"
#include "tools/lab/measure.h"

#define CLIENT_DEFAULT "lab" /* the default name of a lab */

/* Maps the lab read-only; it changes while it is mapped. ESP_ESTATE: there is none of that name. */
ESP_CHECKED enum esp_status lab_client_map(const char *name, const struct lab **out, struct error *err);
void lab_client_unmap(const struct lab *lab);

/* Moves this process into the space; meant to be followed by an exec. */
ESP_CHECKED enum esp_status lab_client_enter(const char *name, const char *space, struct error *err);

/* words: a target, then settings; ends with NULL. */
ESP_CHECKED enum esp_status lab_client_set(const char *name, enum lab_ways_given ways, char *const *words,
                                           struct error *err);

/* Called for each measurement when it is done; count: number of all. */
typedef void client_measure_fn(void *context, const struct measure *measure, uint32_t count);

/* stop: a descriptor that ends the measurements when it is readable, with ESP_EABORTED; -1: none. */
ESP_CHECKED enum esp_status lab_client_check(const char *name, bool all, double seconds, int stop,
                                             client_measure_fn *on_measure, void *context, struct error *err);

/* Returns when the keeper is gone. out_ended: number of processes in the lab that were ended. */
ESP_CHECKED enum esp_status lab_client_down(const char *name, uint32_t *out_ended, struct error *err);

/* Calls on_name for each of this user's labs. ESP_EIO. */
typedef void client_name_fn(void *context, const char *name);
ESP_CHECKED enum esp_status lab_client_list(client_name_fn *on_name, void *context, struct error *err);

#endif
