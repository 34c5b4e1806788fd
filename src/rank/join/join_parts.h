/*
 * join_parts.h - the two sides of join_run() and their shared parts; for join*.c only.
 */
#ifndef RANK_JOIN_JOIN_PARTS_H
#define RANK_JOIN_JOIN_PARTS_H

#include "node/net/resolve.h"
#include "rank/join/join.h"
#include "rank/join/announce.h"
#include "rank/join/session.h"

/* Rank 0: listens, gathers, answers. */
enum esp_status join_lead(struct join_config *config, struct roster *out, int32_t *out_culprit, struct error *err);

/* Any other rank: connects until it is answered. */
enum esp_status join_follow(struct join_config *config, struct roster *out, int32_t *out_culprit, struct error *err);

/* Decodes `size` node infos into a new roster (roster_read.c). */
enum esp_status roster_decode(const uint8_t *bytes, uint32_t size, struct roster *out, struct error *err);

/* Sends a session's bytes as far as the socket takes them: ESP_OK all, ESP_PENDING not all, ESP_ELINK. */
enum esp_status join_send(int fd, struct session *session, struct error *err);

/* Gives received bytes to a session: as session_input(), and as session_closed() at the end of the stream. */
enum esp_status join_receive(int fd, struct session *session, struct error *err);

/* The time until a moment in ms for poll(2), rounded up; 0 if it has passed. */
int join_wait_ms(uint64_t now_ns, uint64_t until_ns);

/* Formats a line for config->progress; does nothing if that is NULL. */
void join_tell(const struct join_config *config, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ESP_EMISMATCH; the sentence names both jobs. */
enum esp_status join_other_job(uint32_t rank, const char *job, const char *leaders, struct error *err);

/* ---- join_dial.c: one connection to a process that may be the leader ---- */

/* Result of an attempt. */
enum join_outcome {
	JOIN_ARRIVED, /* the roster is here             */
	JOIN_AGAIN,   /* try again until the deadline   */
	JOIN_OVER,    /* no use in trying again */
};

/* True if joining is called off; see struct join_config. */
bool join_is_called_off(const struct join_config *config, int32_t *out_culprit, struct error *why);
/* The latest time of the next such check. */
uint64_t join_look_until(const struct join_config *config, uint64_t now_ns, uint64_t until_ns);

struct join_dial {
	struct join_config config; /* of this rank: its key may come from an announcement */
	struct address leader;     /* for messages: the address tried */
	struct roster *roster;
	struct error *err;         /* the latest reason; reported at the deadline */
	int32_t culprit;
	bool is_told;              /* the leader has told this rank why joining has failed, as all that have arrived */
	bool is_unreached;         /* the last attempt: no process listens at that port */
	/* the reason of a leader with the key that has refused this rank; ESP_OK: there is none */
	struct error away;
	uint8_t *inbox;
	unsigned refusals;
	uint64_t patience_ns;      /* for an answer to the next attempt */
	struct session session;
	struct rendezvous_arrival arrival;
	uint8_t arrival_bytes[RENDEZVOUS_ARRIVAL_BYTES];
};

/* NULL: no memory. Borrows roster and err. */
struct join_dial *join_dial_new(const struct join_config *config, struct roster *roster, struct error *err);
enum join_outcome join_dial_try(struct join_dial *dial, const struct sockaddr *address, socklen_t length);
/* Tries all addresses in turn until one attempt ends in another result than JOIN_AGAIN. */
enum join_outcome join_dial_all(struct join_dial *dial, const struct resolved *found);
void join_dial_free(struct join_dial *dial);

/*
 * For a rank 0 that finds another process at its port: asks that process, for a second at most. True: it is a
 * rank 0 of the same job; both report so, this one in *err, and so do the ranks that have arrived at the other.
 */
bool join_ask_rival(const struct join_config *config, const struct resolved *found, struct error *err);

/* The addresses of an announcement, and the first of them for messages. */
void join_announced_addresses(const struct announcement *announcement, struct resolved *out, struct address *out_first);

/* ---- join_post.c: the leader's announcement ---- */

struct join_post {
	const struct join_config *config;
	char name[ANNOUNCE_NAME];
	struct announcement announcement;
	uint64_t next_ns; /* time of the next check that it is still there; UINT64_MAX: never */
	bool posted;
};

/* Does nothing without a place. ESP_EMISMATCH: another rank 0 is announced and answers; ESP_EIO, ESP_EUNSUPPORTED. */
ESP_CHECKED enum esp_status join_post_open(struct join_post *post, const struct join_config *config, uint16_t port,
                                           struct error *err);
/* Checks, when it is due, that the announcement is still there. False: another process's is; *err has the sentence. */
bool join_post_turn(struct join_post *post, uint64_t now_ns, struct error *err);
/* Removes the announcement when all have joined; with a failure, replaces it by one that says why joining failed. */
void join_post_close(struct join_post *post, const struct error *failure);

#endif
