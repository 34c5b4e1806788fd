/*
 * switched.h - sums of integers that travel through a switch (ESP_SWITCH): docs/switch.md.
 *
 * Such a call has two stages. First a small allreduce by an ordinary plan, in which the members agree: is the switch
 * there for all of them, and can no sum leave its word? Then either the switch's flow (switch/worker) sums, or the
 * lanes do, by the plan that was made for the call anyway. So all members always decide alike, at every call. The next
 * call of the communicator is launched only when the decision is there: both stages keep the order of calls.
 */
#ifndef RANK_COMM_SWITCHED_H
#define RANK_COMM_SWITCHED_H

#include "rank/comm/stages.h"
#include "switch/worker/switch_link.h"

/* Opens the way to the switch of the settings, if there is one, and the flow of the world. Collective. */
ESP_CHECKED enum esp_status comm_switched_begin(struct rank *rank, struct failure *failure);
/* No sum is under way, or it has failed: from here on the link's thread calls nothing of the rank. */
void comm_switched_stop(struct rank *rank);
/* All communicators are gone. */
void comm_switched_close_link(struct rank *rank);

/*
 * Collective, for a communicator that has no call under way yet: its members tell each other their addresses, and open
 * a flow if all have one. It is no error if they do not.
 */
ESP_CHECKED enum esp_status comm_switched_open(struct comm *comm, struct failure *failure);
void comm_switched_close(struct comm *comm);
/* It has failed: sums under way end with this status, soon. */
void comm_switched_fail(struct comm *comm, enum esp_status status);
/* Words about a call that is late: "", or the switch that its sum goes through. */
#define COMM_SWITCHED_TEXT 160u
const char *comm_switched_late(const struct comm *comm, char out[COMM_SWITCHED_TEXT]);
/* The rank leaves: members that lost a result get it until that time. */
void comm_switched_linger(struct rank *rank, uint64_t until_ns);

/* ---- calls that have agreed by themselves (numerics.c) ---- */

/* Does a sum of so many bytes go through the switch, if no member refuses? From facts that all members have alike. */
bool comm_switched_may_sum(const struct comm *comm, uint64_t bytes);
/* Does this member refuse it now? */
bool comm_switched_refuses(const struct comm *comm, uint64_t bytes, uint32_t pieces);
/* For work whose spans lie in memory, and whose ops take its end as if it had one part. */
ESP_CHECKED enum esp_status comm_switched_make_sum(struct work *work, enum atp_kind kind, struct failure *failure);
/* No member has refused: in the order of calls, in place of launching its parts. */
void comm_switched_sum(struct work *work);
/* Its parts are launched. */
void comm_switched_pass_by(struct work *work);

#endif
