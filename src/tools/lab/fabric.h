/*
 * fabric.h - a lab on this machine: its namespaces, and the changes to them.
 *
 * Belongs to one process, the keeper; that has to be single-threaded. What a change needs is decided by the settings
 * of the link alone (lab.h); fabric_apply() brings the machine from one settings to others.
 */
#ifndef TOOLS_LAB_FABRIC_H
#define TOOLS_LAB_FABRIC_H

#include "tools/lab/lab.h"
#include "tools/lab/space.h"

struct fabric {
	struct lab *lab; /* borrowed, in shared memory */
	struct space_base base;
	struct space *spaces; /* by number */
	int *nets;            /* descriptors of their networks */
};

/* Asked now and then while it is built; true: give up. */
typedef bool fabric_stop_fn(void *context);

/* Makes all of it. On failure what was made goes with the process. */
ESP_CHECKED enum esp_status fabric_build(struct fabric *fabric, struct lab *lab, fabric_stop_fn *stop, void *context,
                                         struct error *err);

/* Makes a link what settings say, and writes them to the lab. */
ESP_CHECKED enum esp_status fabric_apply(struct fabric *fabric, uint32_t link, const struct lab_settings *settings,
                                         struct error *err);

/* A child has ended. True if it was a relay, which then is started anew: a link must not stay cut by accident. */
bool fabric_on_child_end(struct fabric *fabric, int pid);

#endif
