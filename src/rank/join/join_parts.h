/*
 * join_parts.h - the two sides of join_run(), and what they share; for join*.c only.
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

/* Decodes size cards into a new roster (roster_read.c). */
enum esp_status roster_decode(const uint8_t *bytes, uint32_t size, struct roster *out, struct error *err);

/* Sends what a session has to send, as far as the socket takes it: ESP_OK all, ESP_PENDING not all, ESP_ELINK. */
enum esp_status join_send(int fd, struct session *session, struct error *err);

/* Gives a session what has arrived: as session_input(), and session_closed() at the end of the stream. */
enum esp_status join_receive(int fd, struct session *session, struct error *err);

/* The time until a moment as poll(2) wants it, rounded up; 0 if it has passed. */
int join_wait_ms(uint64_t now_ns, uint64_t until_ns);

/* Tells config->progress, if somebody wants to know. */
void join_tell(const struct join_config *config, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Names both jobs: ESP_EMISMATCH. */
enum esp_status join_other_job(uint32_t rank, const char *job, const char *leaders, struct error *err);

/* ---- join_dial.c: one connection to whoever may be the leader ---- */

/* What became of it. */
enum join_outcome {
	JOIN_ARRIVED, /* the roster is here             */
	JOIN_AGAIN,   /* try again until the deadline   */
	JOIN_OVER,    /* no use in trying again         */
};

/* Is nobody to be waited for any more? See struct join_config. */
bool join_is_called_off(const struct join_config *config, int32_t *out_culprit, struct error *why);
/* Until when to wait at the most before one looks again. */
uint64_t join_look_until(const struct join_config *config, uint64_t now_ns, uint64_t until_ns);

struct join_dial {
	struct join_config config; /* of this rank: its key may come from a announcement */
	struct address leader;     /* for complaints: where it is tried */
	struct roster *roster;
	struct error *err;         /* the reason, if there is one: the last one counts at the deadline */
	int32_t culprit;
	bool is_told;              /* the leader has said why joining has failed, to this rank as to all that have come */
	bool nobody_there;         /* the last attempt: nobody listens at that port */
	struct error away;         /* why somebody with the key has turned us away; ESP_OK: nobody has */
	uint8_t *inbox;
	unsigned refusals;
	uint64_t patience_ns;      /* for the next attempt to be answered */
	struct session session;
	struct rendezvous_arrival arrival;
	uint8_t arrival_bytes[RENDEZVOUS_ARRIVAL_BYTES];
};

/* NULL: no memory. Borrows roster and err. */
struct join_dial *join_dial_new(const struct join_config *config, struct roster *roster, struct error *err);
enum join_outcome join_dial_try(struct join_dial *dial, const struct sockaddr *address, socklen_t length);
/* All addresses in turn, until one of them does not say "again". */
enum join_outcome join_dial_all(struct join_dial *dial, const struct resolved *found);
void join_dial_free(struct join_dial *dial);

/*
 * For a rank 0 that finds another process in its place: asks who is there, for a second at most. True: a rank 0 of the
 * same job, which says so in *err, as do all ranks that have come to it.
 */
bool join_ask_rival(const struct join_config *config, const struct resolved *found, struct error *err);

/* The addresses of a announcement, and the first of them for complaints. */
void join_announced_addresses(const struct announcement *announcement, struct resolved *out, struct address *out_first);

/* ---- join_post.c: the leader's address in a store ---- */

struct join_post {
	const struct join_config *config;
	char name[ANNOUNCE_NAME];
	struct announcement announcement;
	uint64_t next_ns; /* when to look next whether it is still there; UINT64_MAX: never */
	bool posted;
};

/* Does nothing if the job has no store. ESP_EMISMATCH: another rank 0 is there and answers; ESP_EIO, ESP_EUNSUPPORTED. */
ESP_CHECKED enum esp_status join_post_open(struct join_post *post, const struct join_config *config, uint16_t port,
                                           struct error *err);
/* If it is time: looks whether the announcement is still there. False: somebody else's is, as *err says. */
bool join_post_turn(struct join_post *post, uint64_t now_ns, struct error *err);
/* All have come, so the announcement is taken down; or (failure is not NULL) it says why they never will. */
void join_post_close(struct join_post *post, const struct error *failure);

#endif
