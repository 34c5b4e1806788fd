/*
 * doctor_gather.h - rank 0 collects the reports of all ranks, at the leader's port; if the leader is found by
 * announcement, at a port that is announced.
 *
 * Each rank connects, proves itself, delivers its report and stays connected until rank 0 has all of them:
 * until then other ranks may still want to reach it. Blocks the caller up to the deadline.
 */
#ifndef TOOLS_DOCTOR_DOCTOR_GATHER_H
#define TOOLS_DOCTOR_DOCTOR_GATHER_H

#include "rank/join/leader_listen.h"
#include "rank/join/announce.h"
#include "tools/doctor/doctor_pair.h"

/*
 * Rank 0: reads the reports, by rank, and sets out_has[i] for each that came. reports[i].ways is the caller's
 * memory.
 */
void doctor_gather(const struct join_config *join, struct leader_listen *listen, struct doctor_report *reports,
                   bool *out_has, uint64_t deadline_ns);

/*
 * Rank 0, before that: opens the port, and announces it if the job has a place for that; *out_notice is that
 * announcement.
 */
ESP_CHECKED enum esp_status doctor_listen_open(const struct join_config *join, struct leader_listen *listen,
                                               struct announcement *out_announcement, struct error *err);
void doctor_listen_close(const struct join_config *join, struct leader_listen *listen,
                         const struct announcement *announcement);

/* Any other rank. ESP_ETIMEOUT: the report could not be delivered. */
ESP_CHECKED enum esp_status doctor_hand_in(const struct join_config *join, const struct roster *roster,
                                           const struct doctor_report *report, uint64_t deadline_ns, struct error *err);

#endif
