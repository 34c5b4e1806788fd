/*
 * hello.h - the first messages on a new connection.
 *
 * Three messages of fixed size; node/auth/handshake.h says how they are sealed and used, here is the layout
 * only. All numbers are little endian. Pure.
 *
 *     challenge   listener -> dialer     magic 8   nonce 32
 *     proof       dialer -> listener     magic 8   nonce 32   hello 80 (hidden)   tag 32
 *     verdict     listener -> dialer     magic 8              hello 80 (hidden)   tag 32
 *
 * The first four bytes and the ranks of a hello keep their places in all later versions, so that two versions
 * can report each other's version and rank.
 */
#ifndef WIRE_HELLO_H
#define WIRE_HELLO_H

#include <stdbool.h>
#include <stdint.h>

#define HELLO_VERSION 12u /* of the whole protocol */

#define HELLO_MAGIC_BYTES 8u
#define HELLO_NONCE_BYTES 32u
#define HELLO_BYTES 80u
#define HELLO_TAG_BYTES 32u
#define HELLO_JOB_BYTES 16u
#define HELLO_DIGEST_BYTES 32u

#define CHALLENGE_BYTES (HELLO_MAGIC_BYTES + HELLO_NONCE_BYTES)
#define PROOF_BYTES (HELLO_MAGIC_BYTES + HELLO_NONCE_BYTES + HELLO_BYTES + HELLO_TAG_BYTES)
#define VERDICT_BYTES (HELLO_MAGIC_BYTES + HELLO_BYTES + HELLO_TAG_BYTES)

/* Not printable, so that no text protocol answers it; the last byte is the number of this exchange. */
extern const uint8_t hello_challenge_magic[HELLO_MAGIC_BYTES];
extern const uint8_t hello_proof_magic[HELLO_MAGIC_BYTES];
extern const uint8_t hello_verdict_magic[HELLO_MAGIC_BYTES];

/* The use of a connection. */
enum hello_purpose {
	HELLO_RENDEZVOUS = 1,   /* joining                        */
	HELLO_CONTROL = 2, /* heartbeats, failures, agreement */
	HELLO_LANE = 3,    /* data of one lane               */
	HELLO_JOINER = 4,    /* a joiner asks to be admitted */
	HELLO_PROBE = 5,   /* measures the rate of a rail */
	HELLO_FDS = 6,   /* file descriptors between ranks of one host */
	HELLO_AGAIN = 7,   /* data of one lane; replaces the lane's connection, if there is one */
};
#define HELLO_PURPOSE_LAST HELLO_AGAIN

/* The listener's verdict on the dialer's hello. */
enum hello_verdict {
	HELLO_WELCOME = 0,
	HELLO_OTHER_VERSION = 1,
	HELLO_OTHER_JOB = 2,
	HELLO_OTHER_EPOCH = 3,
	HELLO_NOT_ME = 4,         /* the dialer wants another rank */
	HELLO_OTHER_SIZE = 5,
	HELLO_OTHER_SETTINGS = 6,
	HELLO_NOT_YOU = 7,        /* the dialer's rank is not in the job, or not the one expected */
	HELLO_OTHER_PURPOSE = 8,  /* the listener does not take such connections now */
	HELLO_OTHER_LANE = 9,
};
#define HELLO_VERDICT_COUNT 10

struct hello {
	uint16_t version;
	uint8_t purpose; /* enum hello_purpose                   */
	uint8_t verdict; /* enum hello_verdict; 0 in a proof     */
	uint32_t from;   /* the sender's rank                    */
	uint32_t to;     /* the peer's rank */
	uint32_t size;   /* ranks in the job */
	/* lane, or rail of HELLO_PROBE, or number of earlier connections of HELLO_CONTROL; 0 for other purposes */
	uint32_t lane;
	uint64_t epoch;  /* number of restarts of the job */
	uint8_t job[HELLO_JOB_BYTES];
	uint8_t settings[HELLO_DIGEST_BYTES]; /* of the settings that all ranks must share */
};

void hello_encode(const struct hello *hello, uint8_t out[HELLO_BYTES]);

/*
 * False if the bytes are no hello of this version; *out is then untouched. A hello of another version is
 * decoded as far as versions agree: version, purpose, verdict, ranks.
 */
bool hello_decode(const uint8_t in[HELLO_BYTES], struct hello *out);

#endif
