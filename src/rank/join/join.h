/*
 * join.h - all ranks of a job find each other: each gives its node info and gets the roster.
 *
 * Rank 0, the leader, listens on the leader's address while ranks join. The others connect to it, repeatedly
 * until the deadline, prove that they have the key (handshake.h) and send their node infos. When all have
 * arrived each gets the roster; when the roster cannot be completed any more, each gets the same reason.
 * docs/joining.md has the picture.
 *
 * If the leader's address is not known beforehand, the leader posts an announcement and the others read it
 * (announce.h).
 *
 * Runs on poll(2) in the caller's thread and blocks; no globals, no thread but for looking up names: any number
 * of ranks can join from one process.
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
	struct node_info info;         /* filled in by join_prepare(), listen_open() and host_info_describe() */
	char settings[CONF_AGREED_TEXT]; /* the settings whose digest is in the node info; join_prepare() */
	uint8_t key[HANDSHAKE_KEY_BYTES];
	/* rank 0 posts its key with its address, and the others take theirs from the announcement */
	bool key_in_announcement;
	uint32_t backlog;         /* listen backlog of the leader; 0: default. For tests */
	/*
	 * rank 0 without an announcement: a non-blocking socket that listens at launch.leader. Taken: -1
	 * afterwards. NULL: none
	 */
	int *listening;
	uint64_t deadline_ns;     /* on clock_now_ns() */
	const struct log *log;    /* borrowed; may be NULL    */
	uint32_t segment_bytes;   /* TCP's maximum segment size, both ways; 0: the interfaces' own */
	/*
	 * May be NULL. Polled several times a second. True: stop waiting for missing ranks; *why has the reason and
	 * *out_culprit the rank at fault, or -1. Ranks below `kin` learn of that by themselves; the leader tells
	 * the others.
	 */
	bool (*is_called_off)(void *context, int32_t *out_culprit, struct error *why);
	void *called_off_context;
	uint32_t kin;
	/* May be NULL. Called by the joining thread when the description of the missing ranks changes. */
	void (*progress)(void *context, const char *words);
	void *progress_context;
	/* output: joining has failed, and the leader has told all ranks that have arrived the same reason */
	bool is_told;
};

/* Starts the node info: rank, size, version and settings digest from config->launch and conf; the rest is zero. */
void join_prepare(struct join_config *config, const struct conf *conf);

/*
 * Joins. ESP_OK: *out has all node infos; the caller calls roster_fini(). Otherwise
 *     ESP_ETIMEOUT   ranks are missing (the leader lists them), or there is no leader
 *     ESP_EMISMATCH  two processes have one rank, or a rank has another size, version, settings or key
 *     ESP_EPEER      a rank, or the leader, died meanwhile
 *     ESP_EINVAL, ESP_ENOMEM, ESP_ELINK (the leader cannot listen)
 * with the reason in *err and the rank at fault in *out_culprit (may be NULL), or -1. Blocks until the
 * deadline, and up to a second longer to tell other ranks. Writes config->key if it comes from an announcement.
 */
ESP_CHECKED enum esp_status join_run(struct join_config *config, struct roster *out, int32_t *out_culprit,
                                     struct error *err);

/* All-gather of `bytes` bytes per rank in the order of ranks, as MPI_Allgather does. Returns ESP_OK or the failure. */
typedef enum esp_status join_gather_fn(void *context, const void *mine, void *all, size_t bytes);

/* Joins through the program's all-gather; opens no socket. Node infos and keys are checked as in join_run(). */
ESP_CHECKED enum esp_status join_by_callback(const struct join_config *config, join_gather_fn *gather, void *context,
                                             struct roster *out, struct error *err);

/* For the log: "joined 8 ranks on 2 hosts; rank 3 listens on port 4711 of 10.0.0.1, 10.1.0.1". Returns text. */
#define JOIN_TEXT 512u
const char *join_describe(const struct join_config *config, const struct roster *roster, char text[JOIN_TEXT]);

/* This rank as an end of handshakes: its hello and the job's key. */
void join_self(const struct join_config *config, struct handshake_config *out);

/* The handshake configuration for a connection to another rank after joining. A dialer names rank, purpose and lane. */
void join_dialer(const struct join_config *config, uint32_t to, enum hello_purpose purpose, uint32_t lane,
                 struct handshake_config *out);

/* The same for a listener: accepted purposes (bits 1u << purpose) and number of lanes. */
void join_listener(const struct join_config *config, uint32_t purposes, uint32_t lanes, struct handshake_config *out);

#endif
