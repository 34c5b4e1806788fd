/*
 * keeper.h - the process that a lab lives in.
 *
 * It has the only descriptors of the lab's namespaces, and its children are the relays and the background traffic. When
 * it ends, for whatever reason, the kernel takes all of it away. Whoever starts it holds it by a connection
 * until the lab is settled: if that closes before, the keeper ends.
 *
 *     builds --built--> probation --keeper_settle()--> serves --asked, or SIGTERM--> ends
 *        \__________________\_________ the connection closes ______________________/
 */
#ifndef TOOLS_LAB_KEEPER_H
#define TOOLS_LAB_KEEPER_H

#include <sys/types.h>

#include "tools/lab/lab.h"

struct keeper {
	pid_t pid;
	int hold; /* its answer comes here; closing it ends a keeper that is not settled */
};

/* Begins to make a lab. ESP_EIO. */
ESP_CHECKED enum esp_status keeper_start(struct keeper *keeper, const struct lab_config *config, struct error *err);

/* When hold can be read: how the building went. */
ESP_CHECKED enum esp_status keeper_result(struct keeper *keeper, struct error *err);

/* The lab stays from now on, whatever becomes of the caller. */
void keeper_settle(struct keeper *keeper);

/* There will be no lab; comes back when nothing of it is left. */
void keeper_abandon(struct keeper *keeper);

#endif
