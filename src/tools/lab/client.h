/*
 * client.h - asks the keeper of a lab, from any process of the same user.
 */
#ifndef TOOLS_LAB_CLIENT_H
#define TOOLS_LAB_CLIENT_H

#include "tools/lab/lab.h"
#include "tools/lab/measure.h"

#define CLIENT_DEFAULT "lab" /* the name of a lab that was given none */

/* The lab, to be read; it changes as it does. ESP_ESTATE: there is none of that name. */
ESP_CHECKED enum esp_status client_map(const char *name, const struct lab **out, struct error *err);
void client_unmap(const struct lab *lab);

/* This process becomes one of the space; it should become a command next. */
ESP_CHECKED enum esp_status client_enter(const char *name, const char *space, struct error *err);

/* words: a target and what to set; ends with NULL. */
ESP_CHECKED enum esp_status client_set(const char *name, enum lab_ways_given ways, char *const *words,
                                       struct error *err);

/* Called for each measurement as it is made; count: how many there will be. */
typedef void client_measure_fn(void *context, const struct measure *measure, uint32_t count);

/* stop: a descriptor that ends it when it can be read, with ESP_EABORTED; -1: none. */
ESP_CHECKED enum esp_status client_check(const char *name, bool all, double seconds, int stop,
                                         client_measure_fn *on_measure, void *context, struct error *err);

/* Comes back when the keeper is gone. out_ended: processes that ran in the lab and were ended. */
ESP_CHECKED enum esp_status client_down(const char *name, uint32_t *out_ended, struct error *err);

/* The names of this user's labs, one after the other. ESP_EIO. */
typedef void client_name_fn(void *context, const char *name);
ESP_CHECKED enum esp_status client_list(client_name_fn *on_name, void *context, struct error *err);

#endif
