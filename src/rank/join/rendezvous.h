/*
 * rendezvous.h - the leader's list of who has arrived. Pure: no I/O, no clock.
 *
 * Gathers one card per rank and says when the group is complete, or why it never will be.
 * What it waits for ends at the earliest moment at which anybody would give up: the leader's
 * own deadline, or that of a rank that has arrived, so that the reason reaches all in time.
 *
 *     GATHERS --- all cards ----------------------------> COMPLETE
 *        `------- a rank twice, gone, unfit, too late ---> BROKEN
 */
#ifndef RANK_JOIN_RENDEZVOUS_H
#define RANK_JOIN_RENDEZVOUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/rendezvous_msg.h"

enum rendezvous_state {
	RENDEZVOUS_GATHERS,  /* cards are missing                                  */
	RENDEZVOUS_COMPLETE, /* all cards are here; the roster can go out          */
	RENDEZVOUS_BROKEN,   /* error says why; everybody who comes is to be told  */
};

/* Connections that were turned away for one reason, and where they came from. */
#define RENDEZVOUS_ORIGINS 3u
#define RENDEZVOUS_ORIGIN 48u /* bytes of an address or a host's name, with the NUL */
struct rendezvous_refused {
	uint64_t count;
	uint32_t origins;                      /* different ones that are known; more than are named: "..." */
	char origin[RENDEZVOUS_ORIGINS][RENDEZVOUS_ORIGIN];
};

struct rendezvous {
	enum rendezvous_state state;
	struct error error;    /* RENDEZVOUS_BROKEN: the reason */
	int32_t culprit;       /* ... and the rank that it is about; -1: none in particular */
	uint32_t size, present;
	struct node_info *nodes;    /* by rank */
	const char *settings;  /* rank 0's, as text; borrowed */
	uint8_t *seats;        /* by rank: 1 if its card is here */
	uint8_t *elsewhere;    /* by rank, for a list: not on the host that it is about */
	uint64_t begin_ns, deadline_ns;
	struct rendezvous_refused strangers; /* did not prove that they have the job's key   */
	struct rendezvous_refused others;    /* have the key, but are of another job or start */
};

/* own: the leader's card, rank 0; its settings as text are borrowed. ESP_ENOMEM. */
ESP_CHECKED enum esp_status rendezvous_init(struct rendezvous *store, const struct node_info *own, const char *settings,
                                       uint64_t now_ns, uint64_t deadline_ns, struct error *err);

/* A card from a connection that proved to be of this rank. */
void rendezvous_on_arrival(struct rendezvous *store, uint32_t proved_rank, const struct rendezvous_arrival *arrival, uint64_t now_ns);

/* RENDEZVOUS_GATHERS: the connection that brought a rank's card closed, and it is to be found out why: it counts as not here. */
void rendezvous_unseat(struct rendezvous *store, uint32_t rank);
/* It closed before the group was complete, and that is its own fault. */
void rendezvous_on_left(struct rendezvous *store, uint32_t rank);

/* Whoever started the ranks says that one of them has ended, with this status. Matters if it has not come before. */
void rendezvous_on_ended(struct rendezvous *store, uint32_t rank, int32_t status);

/*
 * A handshake proved the peer, which says that it is this rank, but found that it does not fit. False: it is none of
 * this job, or has lost its way, and is only to be turned away.
 */
bool rendezvous_on_mismatch(struct rendezvous *store, enum hello_verdict verdict, uint32_t rank, const struct error *reason);

/* Somebody at this address or host failed to prove itself. True the first time: worth a line in the log. */
bool rendezvous_on_stranger(struct rendezvous *store, const char *origin);

/* Somebody who has the key belongs to another job or start, or has lost its way. True the first time. */
bool rendezvous_on_other(struct rendezvous *store, const char *origin);

/* Nobody is to be waited for any more. culprit: whose fault it is, or -1. */
void rendezvous_on_called_off(struct rendezvous *store, int32_t culprit, const struct error *reason);
/* Somebody else has taken the place of rank 0. */
void rendezvous_on_rival(struct rendezvous *store, const struct error *reason);

/* Time passes. */
void rendezvous_on_tick(struct rendezvous *store, uint64_t now_ns);

/* RENDEZVOUS_COMPLETE: all cards as they go out, size * NODE_INFO_BYTES. */
void rendezvous_write_roster(const struct rendezvous *store, uint8_t *out);

void rendezvous_fini(struct rendezvous *store);

/* Ranks of a list that are not in it: "1, 3-5, 9"; "..." where the text ends. marks[i] != 0: i is there. */
const char *rendezvous_missing_text(const uint8_t *marks, uint32_t size, char *text, size_t text_size);

/* Those who have come, by host: "0-3 on node1, 4 on node2"; "..." where the text ends. Returns text. */
const char *rendezvous_here_text(const struct rendezvous *store, char *text, size_t text_size);

/* RENDEZVOUS_GATHERS: "2 of 8 ranks have not arrived: 3, 5; here: 0-2 on a, 4, 6, 7 on b", and who was refused. Returns text. */
#define RENDEZVOUS_WAIT_TEXT 384u
const char *rendezvous_wait_text(const struct rendezvous *store, char text[RENDEZVOUS_WAIT_TEXT]);

/* Does a rank fit to rank 0? The settings, as text, are for the complaint; NULL: not known. */
ESP_CHECKED enum esp_status rendezvous_check_node(const struct node_info *info, const char *settings, const struct node_info *first,
                                             const char *first_settings, struct error *err);

/*
 * Why a newcomer is not let in at the door of a rank, of which these are the job and the settings: names what differs, and both
 * values. ESP_EMISMATCH.
 */
enum esp_status rendezvous_explain_joiner(const struct rendezvous_arrival *newcomer, uint32_t rank, const char *job, const char *settings,
                                       struct error *err);

/* Whether cards fit together as a roster; the complaint is the same for everybody who sees the same cards. */
ESP_CHECKED enum esp_status rendezvous_check_nodes(const struct node_info *nodes, uint32_t size, struct error *err);

#endif
