/*
 * join.h - all ranks of a job find each other: each gives its card and gets everybody's.
 *
 * Rank 0, the leader, listens on the leader's address for as long as joining lasts; the
 * others connect to it, again and again until the deadline, prove themselves (handshake.h)
 * and hand in their cards. When all are here each gets the roster; if that cannot be any
 * more, each gets the same reason. docs/joining.md has the picture.
 *
 * Where the leader's address is not known beforehand, it posts it in a store first, and the others look
 * there (announce.h). That is all that a store is for.
 *
 * Drivers over poll(2), no globals, no thread but for looking up names: any number of ranks
 * can join from one process.
 */
#ifndef RANK_JOIN_JOIN_H
#define RANK_JOIN_JOIN_H

#include <stddef.h>
#include <stdint.h>

#include "base/conf.h"
#include "base/error.h"
#include "base/log.h"
#include "node/auth/handshake.h"
#include "node/net/roster.h"
#include "rank/join/launch.h"
#include "wire/rendezvous_msg.h"

struct join_config {
	struct launch launch;
	struct node_info info;         /* join_prepare(), then listen_open() and host_info_describe() fill it */
	char settings[CONF_AGREED_TEXT]; /* what the card has the digest of; join_prepare() */
	uint8_t key[HANDSHAKE_KEY_BYTES];
	bool key_in_announcement;       /* rank 0 posts its key with its address, and the others take theirs from there */
	uint32_t backlog;         /* of the leader's sockets; 0: as is usual. For tests */
	int *listening;           /* rank 0 without a store: a socket, non-blocking, that listens where launch.leader says, and is taken: -1 then. NULL: none does */
	uint64_t deadline_ns;     /* as clock_now_ns() counts */
	const struct log *log;    /* borrowed; may be NULL    */
	uint32_t segment_bytes;   /* of TCP, both ways; 0: what the interfaces take */
	/*
	 * Asked some times a second, where it is not NULL: true: nobody is to be waited for any more. *why says so, and
	 * *out_culprit whose fault it is, or -1. All ranks below `kin` hear of that by themselves; the others are told.
	 */
	bool (*is_called_off)(void *context, int32_t *out_culprit, struct error *why);
	void *called_off_context;
	uint32_t kin;
	/* Told whenever it changes, where it is not NULL: whom this rank waits for now. Called by the thread that joins. */
	void (*progress)(void *context, const char *words);
	void *progress_context;
	bool is_told;             /* written: joining has failed, and all ranks that have come have heard the same from the leader */
};

/* The card of config->launch: rank, size, version, and the settings that have to agree. The rest of it is zero. */
void join_prepare(struct join_config *config, const struct conf *conf);

/*
 * Joins. ESP_OK: *out holds all cards; the caller calls roster_fini(). Otherwise
 *     ESP_ETIMEOUT   somebody is missing (the leader's list of ranks), or there is no leader
 *     ESP_EMISMATCH  a rank came twice or has another size, version, settings, key
 *     ESP_EPEER      a rank, or the leader, died meanwhile
 *     ESP_EINVAL, ESP_ENOMEM, ESP_ELINK (the leader cannot listen)
 * and *err says which one, *out_culprit (which may be NULL) the rank that it is about, or -1. Blocks until the deadline at
 * most, and a second more to tell others. config->key is written if it comes from a announcement.
 */
ESP_CHECKED enum esp_status join_run(struct join_config *config, struct roster *out, int32_t *out_culprit,
                                     struct error *err);

/*
 * Gives `bytes` bytes and gets those of all ranks, one behind the other by rank: MPI_Allgather
 * and its like. Returns ESP_OK or what went wrong.
 */
typedef enum esp_status join_gather_fn(void *context, const void *mine, void *all, size_t bytes);

/* The same over somebody else's channel; no socket is opened. Cards and keys are checked all the same. */
ESP_CHECKED enum esp_status join_by_callback(const struct join_config *config, join_gather_fn *gather, void *context,
                                             struct roster *out, struct error *err);

/* For the log: "joined 8 ranks on 2 hosts; rank 3 listens on port 4711 of 10.0.0.1, 10.1.0.1". Returns text. */
#define JOIN_TEXT 512u
const char *join_describe(const struct join_config *config, const struct roster *roster, char text[JOIN_TEXT]);

/* This rank as an end of handshakes: its hello and the job's key. */
void join_self(const struct join_config *config, struct handshake_config *out);

/*
 * The configuration of a handshake with another rank of the group, for connections after
 * joining: a dialer names the rank, purpose and lane.
 */
void join_dialer(const struct join_config *config, uint32_t to, enum hello_purpose purpose, uint32_t lane,
                 struct handshake_config *out);

/* The same for a listener: which purposes (bits 1u << purpose) and how many lanes are welcome. */
void join_listener(const struct join_config *config, uint32_t purposes, uint32_t lanes, struct handshake_config *out);

#endif
