/*
 * handshake.h - two ends of a connection prove to each other that they belong to the job.
 *
 * A state machine for one end of one connection; used for every connection of a job. It
 * does no I/O, reads no clock and allocates nothing: bytes that arrived go in, bytes to be
 * sent come out, and until the proof a stranger has cost this struct and learnt a nonce.
 *
 *     listener                                             dialer
 *        | -- challenge: nonce L ----------------------------> |
 *        | <------------ proof: nonce D, hidden hello, tag --- |    listener knows the dialer
 *        | -- verdict: hidden hello with the verdict, tag ---> |    dialer knows the listener
 *
 * Tags are keyed hashes (BLAKE2b) over all messages so far under keys that are derived from
 * the job's key, both nonces and the sender's role. So what was recorded, reflected, cut
 * from another job, epoch, rank or lane, or changed in one bit does not pass. Hellos are
 * hidden by a one-time key: somebody who poses as the leader learns nothing either.
 *
 * A mismatch (version, size, settings ...) is told only to an end that has proved itself, and
 * then to both ends, in the same words.
 */
#ifndef NODE_AUTH_HANDSHAKE_H
#define NODE_AUTH_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/hello.h"

#define HANDSHAKE_KEY_BYTES 32u
#define HANDSHAKE_ANY_RANK UINT32_MAX

enum handshake_role {
	HANDSHAKE_DIALER,
	HANDSHAKE_LISTENER,
};

struct handshake_config {
	uint8_t key[HANDSHAKE_KEY_BYTES]; /* the job's */
	/*
	 * What this end says of itself. `to` is the rank at the other end; a listener may say
	 * HANDSHAKE_ANY_RANK. A listener leaves purpose and lane 0: they are the dialer's choice,
	 * within what is allowed below. version 0: HELLO_VERSION.
	 */
	struct hello hello;
	uint32_t purposes; /* listener: bit 1u << purpose of each that is welcome */
	uint32_t lanes;    /* listener: lanes that are welcome, 0 .. lanes-1      */
};

enum handshake_state {
	HANDSHAKE_WAITS_CHALLENGE, /* dialer: nothing said yet                           */
	HANDSHAKE_WAITS_PROOF,     /* listener: the challenge is out                     */
	HANDSHAKE_WAITS_VERDICT,   /* dialer: the proof is out                           */
	HANDSHAKE_DONE,            /* the other end is who it says it is, and is welcome */
	HANDSHAKE_FAILED,
};

/* The caller's storage; fields are private but for those named. */
struct handshake {
	struct hello peer;                    /* once proved: what the other end said of itself   */
	uint8_t verdict;                      /* once proved: enum hello_verdict                  */
	uint8_t session[HANDSHAKE_KEY_BYTES]; /* once done: a key that only these two ends know   */
	uint8_t role;                         /* enum handshake_role                              */
	bool refused;                         /* dialer: the other end closed when it saw the proof */

	uint8_t state; /* enum handshake_state */
	enum esp_status status;
	struct handshake_config config;
	uint8_t nonce[HELLO_NONCE_BYTES];
	uint32_t in_bytes; /* of the message that arrives now */
	uint32_t out_at, out_bytes;
	uint8_t *out;
	/* The messages as they were on the wire, which is also where they are received and sent. */
	uint8_t challenge[CHALLENGE_BYTES], proof[PROOF_BYTES], final[VERDICT_BYTES];
};

/* With a fresh random nonce. Copies the configuration. */
void handshake_init(struct handshake *hs, enum handshake_role role, const struct handshake_config *config);

/* With a nonce that the caller chose; for tests and simulation: a nonce that comes twice proves nothing. */
void handshake_init_with(struct handshake *hs, enum handshake_role role, const struct handshake_config *config,
                         const uint8_t nonce[HELLO_NONCE_BYTES]);

/* What is to be sent now; *out_n is 0 if nothing is. Valid until the next call. */
void handshake_output(const struct handshake *hs, const uint8_t **out_bytes, size_t *out_n);

/* So many of these bytes have left. */
void handshake_sent(struct handshake *hs, size_t n);

/*
 * Bytes that arrived. *out_used says how many belong to the handshake; the rest is what follows.
 *     ESP_PENDING    go on
 *     ESP_OK         the other end is proved and welcome; send what handshake_output() still has
 *     ESP_ECORRUPT   no proof: a stranger, another key, or changed on the way; close at once
 *     ESP_EMISMATCH  proved, but does not fit; send what handshake_output() still has, then close
 * The status stays, and no more bytes are used, once it is not ESP_PENDING.
 */
enum esp_status handshake_input(struct handshake *hs, const uint8_t *bytes, size_t n, size_t *out_used,
                                struct error *err);

/* How many more bytes the message that is awaited has: whoever reads no more than that leaves what follows alone. */
size_t handshake_wants(struct handshake *hs);

/* The connection was closed by the other end: ESP_ELINK with what that means, or the status that there was. */
enum esp_status handshake_closed(struct handshake *hs, struct error *err);

/* Wipes the keys. Accepts a zeroed struct. */
void handshake_fini(struct handshake *hs);

/* What a verdict means for people: "rank 3 was started for 8 ranks, rank 0 for 4". */
enum esp_status handshake_explain(enum hello_verdict verdict, const struct hello *dialer, const struct hello *listener,
                                  struct error *err);

#endif
