/*
 * joiner.h - a joiner: a process that is no rank yet and waits to be admitted to a running job.
 *
 * Every rank listens, and admits joiners (ESP_DOOR lists addresses of ranks). A joiner proves that it has the
 * job's key and waits for the invitation: its rank, the size, and the leader's address. Then members and
 * joiners join anew in the next epoch, so that processes of an earlier epoch cannot take part. Blocks the
 * calling thread.
 */
#ifndef RANK_JOIN_JOINER_H
#define RANK_JOIN_JOINER_H

#include "base/log.h"
#include "rank/join/join.h"
#include "wire/control_msg.h"

#define JOIN_ADDRESSES_MOST 16u

struct join_addresses {
	struct address all[JOIN_ADDRESSES_MOST]; /* tried in turn, until one rank admits this process */
	uint32_t count;
};

/* Parses "host:port,host:port"; ignores empty items. ESP_EINVAL: none, too many, or no address. Pure. */
ESP_CHECKED enum esp_status join_addresses_parse(const char *text, struct join_addresses *out, struct error *err);
/* True if all of them are this machine's loopback. */
bool join_addresses_are_loopback(const struct join_addresses *addresses);

/*
 * The connection of an admitted joiner to the rank that admitted it. It stays open until joining has ended: the
 * rank checks over it that the joiner is alive, and does not wait for one that is gone.
 */
struct joiner {
	int fd;
	size_t have; /* bytes of the message being received */
	uint8_t in[CONTROL_BYTES];
	char who[CONTROL_TEXT]; /* "process 71 on node3": names this joiner in other ranks' messages */
};

/*
 * Waits until config->deadline_ns. Reads config->launch.job, config->key and config->info.host_name; writes
 * rank, size, leader and epoch of config->launch. A rank of another job, version or settings is not asked again
 * (both ends name the values): ESP_EMISMATCH at once if all are, or at the deadline if no rank has kept this
 * process waiting. Otherwise ESP_ETIMEOUT; also if the key differs, as ranks do not answer then. A leader whose
 * ranks are still joining is asked again. An address that accepts and sends nothing costs some seconds in each
 * turn.
 */
ESP_CHECKED enum esp_status join_addresses_wait(const struct join_addresses *addresses, struct join_config *config,
                                                struct joiner *out, struct error *err);

/*
 * Answers the admitting rank's questions; to be called several times per liveness interval. True: that rank has
 * given this joiner up, or is gone. For struct join_config.
 */
bool joiner_is_shut(void *joiner, int32_t *out_culprit, struct error *why);

void joiner_leave(struct joiner *joiner, bool has_joined, uint32_t rank, uint64_t deadline_ns);

#endif
