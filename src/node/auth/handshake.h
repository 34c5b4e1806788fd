/*
 * handshake.h - both ends of a connection prove to each other that they have the job's key.
 *
 * A state machine for one end of one connection; every connection of a job passes it. No I/O, no clock, no
 * allocation: received bytes go in, bytes to send come out. A process without the key costs this struct and
 * learns a nonce.
 *
 *     listener                                             dialer
 *        | -- challenge: nonce L ----------------------------> |
 *        | <------------ proof: nonce D, hidden hello, tag --- |    listener knows the dialer
 *        | -- verdict: hidden hello with the verdict, tag ---> |    dialer knows the listener
 *
 * Tags are keyed hashes (BLAKE2b) over all messages so far, under keys derived from the job's key, both nonces
 * and the sender's role. Messages that are replayed, reflected, taken from another job, epoch, rank or lane, or
 * changed in one bit do not pass. Hellos are encrypted with a one-time key: a process that poses as the leader
 * learns nothing either.
 *
 * A mismatch (version, size, settings ...) is reported to a peer that has proved itself only, and to both ends
 * in the same words.
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

/*
 * A listener with many jobs: the key of the job that a proof names, and this end's hello in it. False: there is no
 * such job. Reads nothing but memory; the number is not to be trusted until the proof has been checked.
 */
typedef bool handshake_find_fn(void *context, uint64_t job, uint8_t out_key[HANDSHAKE_KEY_BYTES],
                               struct hello *out_own);

struct handshake_config {
	uint8_t key[HANDSHAKE_KEY_BYTES]; /* the job's key; a listener with `find` leaves it zero */
	uint64_t job;                     /* its number, which a dialer sends; 0: handshake_job_number() */
	handshake_find_fn *find;          /* NULL: one job */
	void *find_context;
	/*
	 * This end. `to` is the row of the other end, or HANDSHAKE_ANY_RANK for a listener, which takes any role then. A
	 * listener leaves purpose and lane 0: the dialer chooses them within the bounds below. version 0: HELLO_VERSION.
	 */
	struct hello hello;
	uint32_t purposes; /* listener: bit 1u << purpose of each purpose it accepts */
	uint32_t lanes;    /* listener: lanes it accepts, 0 .. lanes-1 */
};

enum handshake_state {
	HANDSHAKE_WAITS_CHALLENGE, /* dialer: nothing sent yet */
	HANDSHAKE_WAITS_PROOF,     /* listener: the challenge is sent */
	HANDSHAKE_WAITS_VERDICT,   /* dialer: the proof is sent */
	HANDSHAKE_DONE,            /* the peer is proved and accepted */
	HANDSHAKE_FAILED,
};

/* The caller's storage. Fields up to `refused` are for the caller, the rest is private. */
struct handshake {
	struct hello peer;                    /* once proved: the peer's hello */
	uint8_t verdict;                      /* once proved: enum hello_verdict */
	uint8_t session[HANDSHAKE_KEY_BYTES]; /* once done: a key that only these two ends have */
	uint8_t role;                         /* enum handshake_role                              */
	bool refused;                         /* dialer: the listener closed when it saw the proof */

	uint8_t state; /* enum handshake_state */
	enum esp_status status;
	struct handshake_config config;
	uint8_t nonce[HELLO_NONCE_BYTES];
	uint32_t in_bytes; /* of the message that arrives now */
	uint32_t out_at, out_bytes;
	uint8_t *out;
	/* The messages as on the wire; they are received and sent from here. */
	uint8_t challenge[CHALLENGE_BYTES], proof[PROOF_BYTES], final[VERDICT_BYTES];
};

/*
 * The number of a job, from its key and the digest of its name: alike on all its nodes, and of no use without the
 * key. Never 0.
 */
uint64_t handshake_job_number(const uint8_t key[HANDSHAKE_KEY_BYTES], const uint8_t job[HELLO_JOB_BYTES]);

/* With a fresh random nonce. Copies the configuration. */
void handshake_init(struct handshake *hs, enum handshake_role role, const struct handshake_config *config);

/* With a nonce of the caller's; for tests and simulation. A nonce that is used twice proves nothing. */
void handshake_init_with(struct handshake *hs, enum handshake_role role, const struct handshake_config *config,
                         const uint8_t nonce[HELLO_NONCE_BYTES]);

/* Returns the bytes to send now; *out_n is 0 if there are none. Valid until the next call. */
void handshake_output(const struct handshake *hs, const uint8_t **out_bytes, size_t *out_n);

/* Tells that n of these bytes were sent. */
void handshake_sent(struct handshake *hs, size_t n);

/*
 * Takes received bytes. *out_used: how many belong to the handshake; the rest follows it.
 *     ESP_PENDING    go on
 *     ESP_OK         the peer is proved and accepted; send the rest of handshake_output()
 *     ESP_ECORRUPT   no proof: a foreign process, another key, or changed on the way; close at once
 *     ESP_EMISMATCH  proved, but does not fit; send the rest of handshake_output(), then close
 * Once the status is not ESP_PENDING it stays, and no more bytes are used.
 */
enum esp_status handshake_input(struct handshake *hs, const uint8_t *bytes, size_t n, size_t *out_used,
                                struct error *err);

/*
 * Bytes missing of the awaited message. A caller that reads no more leaves the bytes after the handshake in the
 * socket.
 */
size_t handshake_wants(struct handshake *hs);

/* The peer closed the connection. Returns ESP_ELINK with the meaning, or the status that the handshake had. */
enum esp_status handshake_closed(struct handshake *hs, struct error *err);

/* Wipes the keys. Accepts a zeroed struct. */
void handshake_fini(struct handshake *hs);

/* Puts a verdict into a sentence: "rank 3 was started for 8 ranks, rank 0 for 4". Returns ESP_EMISMATCH, or ESP_OK. */
enum esp_status handshake_explain(enum hello_verdict verdict, const struct hello *dialer, const struct hello *listener,
                                  struct error *err);

#endif
