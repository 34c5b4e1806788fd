/* grow.h - a running job lets joiners in (rank/join/joiner.h): all join anew, members and joiners, in a new context. */
#ifndef RANK_MEMBER_GROW_H
#define RANK_MEMBER_GROW_H

#include "rank/comm/comm.h"

#define JOIN_ADDRESS_TEXT ADDRESS_TEXT

/* This rank's join address, as joiners have it in ESP_DOOR. */
ESP_CHECKED enum esp_status rank_join_address(const struct rank *context, char text[JOIN_ADDRESS_TEXT],
                                              struct failure *failure);

struct grow_options {
	uint32_t most;       /* joiners; 0: all */
	int64_t deadline_ns; /* 0: the settings                                    */
	log_sink_fn *log;    /* of the new context; NULL: as that of the old one   */
	void *log_context;
};

/*
 * A collective call on the group: joiners at a join address of its members are let in. *out is a new context: its world
 * has the members in their order, and then the joiners. NULL: no joiner waits.
 */
ESP_CHECKED enum esp_status comm_grow(struct comm *group, const struct grow_options *grow, struct rank **out,
                                       struct failure *failure);

#endif
