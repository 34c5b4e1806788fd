/*
 * joiner.h - a newcomer: somebody who is no rank yet, and waits at the doors of a job that runs until it is let in.
 *
 * Every rank of a job listens, and so every one is a door. A newcomer proves that it has the job's key, and then waits for the
 * invitation: which rank it will be, of how many, and where the leader is that all of them join through, members and newcomers,
 * as if the job had just begun: in its next start (epoch), so that who is left over from an earlier one cannot get in.
 */
#ifndef RANK_JOIN_JOINER_H
#define RANK_JOIN_JOINER_H

#include "base/log.h"
#include "rank/join/join.h"
#include "wire/control_msg.h"

#define JOIN_ADDRESSES_MOST 16u

struct join_addresses {
	struct address all[JOIN_ADDRESSES_MOST]; /* tried in turn; one that closes, or is not for us, is left for the next */
	uint32_t count;
};

/* "host:port,host:port"; what is empty between commas counts for nothing. ESP_EINVAL: none, too many, or no address. Pure. */
ESP_CHECKED enum esp_status join_addresses_parse(const char *text, struct join_addresses *out, struct error *err);
/* Are all of them this machine's loopback? */
bool join_addresses_are_loopback(const struct join_addresses *doors);

/*
 * The connection at the door, of one who has been let in. It is kept until we have joined, or could not: who has let us in asks there
 * whether we are still there, or sees that we are gone, and does not wait for us.
 */
struct joiner {
	int fd;
	size_t have; /* of a message that is coming */
	uint8_t in[CONTROL_BYTES];
	char who[CONTROL_TEXT]; /* "process 71 on node3", for the others to name us by */
};

/*
 * Waits until config->deadline_ns. config->launch.job, config->key and the host of config->card are set; rank, size, leader and epoch
 * of config->launch are written. A door that answers, and has another job, version or settings (both ends name both), is not asked
 * again: ESP_EMISMATCH if all do, at once; or in the end, if no other one has had us wait. ESP_ETIMEOUT otherwise; with another key too, as
 * nobody answers then. Where ranks of a job are joining there is no door, or none yet: it is asked again. One that accepts and says nothing
 * costs some seconds in each turn.
 */
ESP_CHECKED enum esp_status join_addresses_wait(const struct join_addresses *doors, struct join_config *config, struct joiner *out, struct error *err);

/*
 * Answers who asks there; to be called several times within the liveness interval. True: the rank that has let us in has given us up, or is
 * gone itself. For struct join_config.
 */
bool joiner_is_shut(void *door, int32_t *out_culprit, struct error *why);

void joiner_leave(struct joiner *door, bool has_joined, uint32_t rank, uint64_t deadline_ns);

#endif
