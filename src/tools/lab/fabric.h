/*
 * fabric.h - a lab on this machine: its namespaces, and the changes to them.
 *
 * Owned by one single-threaded process, the keeper. The settings of a link alone decide what a change needs
 * (lab.h); lab_fabric_apply() changes the machine from one settings to others.
 */
#ifndef TOOLS_LAB_FABRIC_H
#define TOOLS_LAB_FABRIC_H

#include "tools/lab/lab.h"
#include "tools/lab/space.h"

struct fabric {
	struct lab *lab; /* borrowed, in shared memory */
	struct space_base base;
	struct space *spaces; /* by number */
	int *nets;            /* descriptors of their network namespaces */
};

/* Polled while the lab is built; true: give up. */
typedef bool fabric_stop_fn(void *context);

/* Builds the lab. On failure its parts disappear with the process. */
ESP_CHECKED enum esp_status lab_fabric_build(struct fabric *fabric, struct lab *lab, fabric_stop_fn *stop,
                                             void *context, struct error *err);

/* Applies settings to a link, and writes them to the lab. */
ESP_CHECKED enum esp_status lab_fabric_apply(struct fabric *fabric, uint32_t link, const struct lab_settings *settings,
                                             struct error *err);

/* A child has ended. True if it was a relay; it is started anew, as a link must not stay cut by accident. */
bool lab_fabric_on_child_end(struct fabric *fabric, int pid);

#endif
