/*
 * doctor_gather.h - the reports of all ranks come to rank 0, through the leader's port, as cards did; or, where the leader is found through
 * a store, through a port that is posted there.
 *
 * Each rank connects, proves itself, leaves its report and stays until rank 0 has all of them: until then others may
 * still want to reach it.
 */
#ifndef TOOLS_DOCTOR_DOCTOR_GATHER_H
#define TOOLS_DOCTOR_DOCTOR_GATHER_H

#include "rank/join/leader_listen.h"
#include "rank/join/announce.h"
#include "tools/doctor/doctor_pair.h"

/* Rank 0: reports, by rank, into what reports[i].ways points to; out_has[i]: it came. Its own is there already. */
void doctor_gather(const struct join_config *join, struct leader_listen *listen, struct doctor_report *reports, bool *out_has,
                   uint64_t deadline_ns);

/* Rank 0, before that: opens the port. With a store it is posted, as *out_notice, which doctor_listen_close() takes down again. */
ESP_CHECKED enum esp_status doctor_listen_open(const struct join_config *join, struct leader_listen *listen, struct announcement *out_notice,
                                              struct error *err);
void doctor_listen_close(const struct join_config *join, struct leader_listen *listen, const struct announcement *announcement);

/* Any other rank. ESP_ETIMEOUT: it could not be left. */
ESP_CHECKED enum esp_status doctor_hand_in(const struct join_config *join, const struct roster *roster, const struct doctor_report *report,
                                           uint64_t deadline_ns, struct error *err);

#endif
