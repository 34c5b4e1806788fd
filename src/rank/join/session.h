/*
 * session.h - one connection between a rank and the leader: a handshake, then one message each way.
 *
 * Pure and without allocation, as the handshake is. The rank sends its arrival, the leader answers with the
 * roster or a failure. Each message has a tag under the session's key, so that it cannot be changed on the way;
 * each end sends one message only, so no sequence number is needed. A session must not be moved while it is in
 * use.
 *
 *     head 8   body   tag 32
 */
#ifndef RANK_JOIN_SESSION_H
#define RANK_JOIN_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/auth/handshake.h"
#include "wire/rendezvous_msg.h"

#define SESSION_DIGEST_BYTES 32u

struct session_message {
	uint8_t type;        /* enum rendezvous_type */
	const uint8_t *body; /* borrowed until it is sent */
	uint32_t bytes;
	uint8_t digest[SESSION_DIGEST_BYTES]; /* of the body; a body for many sessions is hashed once */
};

/* Makes a message of a body. */
void session_message_init(struct session_message *message, enum rendezvous_type type, const uint8_t *body,
                          uint32_t bytes);

/* Where the peer's message is stored, and the length of each type; 0: not expected. */
struct session_inbox {
	uint8_t *body; /* borrowed; room for the longest */
	uint32_t wanted[RENDEZVOUS_TYPES];
};

struct session {
	struct handshake handshake;
	bool proved;  /* the handshake is done                             */
	bool arrived; /* the peer's message is in the inbox */
	uint8_t type; /* ... and is of this type                           */

	struct session_inbox inbox;
	uint8_t in_head[RENDEZVOUS_HEAD_BYTES], in_tag[RENDEZVOUS_TAG_BYTES];
	uint32_t in_at, in_bytes; /* of the whole message; in_bytes is valid once the head is here */
	uint8_t out_head[RENDEZVOUS_HEAD_BYTES], out_tag[RENDEZVOUS_TAG_BYTES];
	const uint8_t *out_body;
	uint32_t out_at, out_bytes; /* of the whole message; out_bytes 0: nothing posted */
};

void session_init(struct session *session, enum handshake_role role, const struct handshake_config *config,
                  const struct session_inbox *inbox);

/* After the proof, once: the message follows the handshake's last bytes. */
void session_post(struct session *session, const struct session_message *message);

/* As handshake_output() and handshake_sent(). */
void session_output(const struct session *session, const uint8_t **out_bytes, size_t *out_n);
void session_sent(struct session *session, size_t n);

/*
 * Takes received bytes: ESP_PENDING, ESP_OK (the message is here), or as handshake_input(). ESP_ECORRUPT also
 * for a message that is not expected, or more than one.
 */
enum esp_status session_input(struct session *session, const uint8_t *bytes, size_t n, struct error *err);

/* The peer closed: ESP_ELINK, unless its message has arrived. */
enum esp_status session_closed(struct session *session, struct error *err);

void session_fini(struct session *session);

#endif
