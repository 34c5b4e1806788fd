/*
 * rendezvous.h - the leader's list of the ranks that have arrived. Pure: no I/O, no clock.
 *
 * Gathers one node info per rank, and tells when the roster is complete, or why it never will be. It ends at
 * the earliest deadline: the leader's own, or that of a rank that has arrived, so that the reason reaches all
 * ranks in time.
 *
 *     GATHERS --- all node infos -----------------------> COMPLETE
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
	RENDEZVOUS_GATHERS,  /* node infos are missing */
	RENDEZVOUS_COMPLETE, /* all node infos are here; the roster can be sent */
	RENDEZVOUS_BROKEN,   /* error has the reason for every rank that comes */
};

/* Connections that were refused for one reason, and their origins. */
#define RENDEZVOUS_ORIGINS 3u
#define RENDEZVOUS_ORIGIN 48u /* bytes of an address or a host's name with its NUL */
struct rendezvous_refused {
	uint64_t count;
	uint32_t origins;                      /* known different ones; if there are more than fit: "..." */
	char origin[RENDEZVOUS_ORIGINS][RENDEZVOUS_ORIGIN];
};

struct rendezvous {
	enum rendezvous_state state;
	struct error error;    /* RENDEZVOUS_BROKEN: the reason */
	int32_t culprit;       /* ... and the rank at fault; -1: none in particular */
	uint32_t size, present;
	struct node_info *nodes;    /* by rank */
	const char *settings;  /* rank 0's, as text; borrowed */
	uint8_t *arrived;        /* by rank: 1 if its node info is here */
	uint8_t *elsewhere;    /* by rank, scratch for lists: 1 if not on the host being listed */
	uint64_t begin_ns, deadline_ns;
	struct rendezvous_refused strangers; /* did not prove that they have the job's key   */
	struct rendezvous_refused others;    /* have the key, but are of another job or epoch */
};

/* own: the leader's node info, rank 0; its settings as text are borrowed. ESP_ENOMEM. */
ESP_CHECKED enum esp_status rendezvous_init(struct rendezvous *rendezvous, const struct node_info *own,
                                            const char *settings, uint64_t now_ns, uint64_t deadline_ns,
                                            struct error *err);

/* Takes a node info from a connection that proved to be of this rank. */
void rendezvous_on_arrival(struct rendezvous *rendezvous, uint32_t proved_rank,
                           const struct rendezvous_arrival *arrival, uint64_t now_ns);

/*
 * RENDEZVOUS_GATHERS: the connection of an arrived rank ended for a reason that is not known yet; counts it as
 * missing.
 */
void rendezvous_withdraw(struct rendezvous *rendezvous, uint32_t rank);
/* The connection of a rank ended before the roster was complete, and the rank is at fault. */
void rendezvous_on_left(struct rendezvous *rendezvous, uint32_t rank);

/* The launcher reports that a rank has ended with this status. Ignored if the rank has arrived. */
void rendezvous_on_ended(struct rendezvous *rendezvous, uint32_t rank, int32_t status);

/*
 * A handshake proved a peer that claims this rank, but does not fit. False: it is of another job or
 * misdirected, and is only refused.
 */
bool rendezvous_on_mismatch(struct rendezvous *rendezvous, enum hello_verdict verdict, uint32_t rank,
                            const struct error *reason);

/* A connection from this address or host failed to prove itself. True the first time: it deserves a line in the log. */
bool rendezvous_on_stranger(struct rendezvous *rendezvous, const char *origin);

/* A process with the key is of another job or epoch, or misdirected. True the first time. */
bool rendezvous_on_other(struct rendezvous *rendezvous, const char *origin);

/* Joining is called off. culprit: the rank at fault, or -1. */
void rendezvous_on_called_off(struct rendezvous *rendezvous, int32_t culprit, const struct error *reason);
/* Another process has taken the place of rank 0. */
void rendezvous_on_rival(struct rendezvous *rendezvous, const struct error *reason);

/* Checks the deadline. */
void rendezvous_on_tick(struct rendezvous *rendezvous, uint64_t now_ns);

/* RENDEZVOUS_COMPLETE: writes all node infos as they are sent, size * NODE_INFO_BYTES. */
void rendezvous_write_roster(const struct rendezvous *rendezvous, uint8_t *out);

void rendezvous_fini(struct rendezvous *rendezvous);

/* Lists the ranks that are not marked: "1, 3-5, 9"; ends with "..." if the text is too short. marks[i] != 0: marked. */
const char *rendezvous_missing_text(const uint8_t *marks, uint32_t size, char *text, size_t text_size);

/* Lists the ranks that have arrived, by host: "0-3 on node1, 4 on node2"; "..." as above. Returns text. */
const char *rendezvous_here_text(const struct rendezvous *rendezvous, char *text, size_t text_size);

/*
 * RENDEZVOUS_GATHERS: "2 of 8 ranks have not arrived: 3, 5; here: 0-2 on a, 4, 6, 7 on b", and the refused
 * connections. Returns text.
 */
#define RENDEZVOUS_WAIT_TEXT 384u
const char *rendezvous_wait_text(const struct rendezvous *rendezvous, char text[RENDEZVOUS_WAIT_TEXT]);

/* Checks a rank against rank 0. The settings as text are for the sentence; NULL: not known. */
ESP_CHECKED enum esp_status rendezvous_check_node(const struct node_info *info, const char *settings,
                                                  const struct node_info *first, const char *first_settings,
                                                  struct error *err);

/*
 * Why a rank of this job and these settings does not admit a joiner: names both values of what differs.
 * ESP_EMISMATCH.
 */
enum esp_status rendezvous_explain_joiner(const struct rendezvous_arrival *joiner, uint32_t rank, const char *job,
                                          const char *settings, struct error *err);

/* Checks that node infos make a roster; all ranks that see the same node infos get the same error. */
ESP_CHECKED enum esp_status rendezvous_check_nodes(const struct node_info *nodes, uint32_t size, struct error *err);

#endif
