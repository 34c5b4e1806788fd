/*
 * keeper.h - the process that owns a lab.
 *
 * It has the only descriptors of the lab's namespaces; the relays and the background traffic are its children.
 * When it ends, for whatever reason, the kernel removes all of it. The process that starts it holds a
 * connection to it until the lab is settled: if that closes before, the keeper ends.
 *
 *     builds --built--> probation --lab_keeper_settle()--> serves --asked, or SIGTERM--> ends
 *        \__________________\_________ the connection closes ______________________/
 */
#ifndef TOOLS_LAB_KEEPER_H
#define TOOLS_LAB_KEEPER_H

#include <sys/types.h>

#include "tools/lab/lab.h"

struct keeper {
	pid_t pid;
	int hold; /* the keeper reports here; closing it ends a keeper that is not settled */
};

/* Starts a keeper, which builds the lab. ESP_EIO. */
ESP_CHECKED enum esp_status lab_keeper_start(struct keeper *keeper, const struct lab_config *config, struct error *err);

/* When hold is readable: the result of building. */
ESP_CHECKED enum esp_status lab_keeper_result(struct keeper *keeper, struct error *err);

/* From now on the lab stays after the caller has ended. */
void lab_keeper_settle(struct keeper *keeper);

/* Ends the lab; returns when all of it is gone. */
void lab_keeper_abandon(struct keeper *keeper);

#endif
