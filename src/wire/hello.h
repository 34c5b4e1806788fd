/*
 * hello.h - the messages of a handshake, by which two ends of a new connection prove themselves.
 *
 * Three messages of fixed size. This header says where each byte stands; their meaning and their seals are in
 * node/auth/handshake.h. All numbers are little endian.
 *
 *     challenge   listener -> dialer     magic 8   nonce 32
 *     proof       dialer -> listener     magic 8   nonce 32   job 8   hello 80 (hidden)   tag 32
 *     verdict     listener -> dialer     magic 8              hello 80 (hidden)   tag 32
 *
 * The first four bytes and the ranks of a hello stand at the same place in every version to come, so that nodes of two
 * versions can name each other.
 */
#ifndef WIRE_HELLO_H
#define WIRE_HELLO_H

#include <stdbool.h>
#include <stdint.h>

#define HELLO_VERSION 16 /* of everything on the wire */

#define HELLO_MAGIC_BYTES 8u
#define HELLO_NONCE_BYTES 32u
#define HELLO_BYTES 80u
#define HELLO_TAG_BYTES 32u
#define HELLO_JOB_BYTES 16u
#define HELLO_DIGEST_BYTES 32u

#define CHALLENGE_BYTES (HELLO_MAGIC_BYTES + HELLO_NONCE_BYTES)
/* The job's number, by which a listener with many jobs finds the key. */
#define PROOF_JOB_AT (HELLO_MAGIC_BYTES + HELLO_NONCE_BYTES)
#define PROOF_HEAD_BYTES (PROOF_JOB_AT + 8u)
#define PROOF_BYTES (PROOF_HEAD_BYTES + HELLO_BYTES + HELLO_TAG_BYTES)
#define VERDICT_BYTES (HELLO_MAGIC_BYTES + HELLO_BYTES + HELLO_TAG_BYTES)

/* Not printable, so that no text protocol answers it; the last byte is the number of this exchange. */
extern const uint8_t hello_challenge_magic[HELLO_MAGIC_BYTES];
extern const uint8_t hello_proof_magic[HELLO_MAGIC_BYTES];
extern const uint8_t hello_verdict_magic[HELLO_MAGIC_BYTES];

/* The part of a node in a cluster. */
enum node_role {
	NODE_WORKER = 0,    /* has data of a job: a rank       */
	NODE_HUB = 1,       /* sums and optimizes for jobs     */
	NODE_SWITCH = 2,    /* aggregates packets on their way */
	NODE_SCHEDULER = 3, /* orders updates                  */
	NODE_JOINER = 4,    /* is no rank yet                  */
};
#define NODE_ROLES 5
const char *node_role_name(uint8_t role); /* "worker"; "unknown role" */

/* Names a node of a job. */
struct node_id {
	uint64_t job;   /* its number, see handshake_job_number(): readable before the job's key is known */
	uint64_t epoch;
	uint8_t role;   /* enum node_role */
	uint32_t index; /* its row in the job's roster: of a worker its rank, other roles come behind the workers */
};

/* The purpose of a connection. */
enum hello_purpose {
	HELLO_RENDEZVOUS = 1, /* joining                      */
	HELLO_CONTROL = 2, /* heartbeats, failures, agreement */
	HELLO_LANE = 3,    /* data of one lane               */
	HELLO_JOINER = 4,  /* a process that is no rank yet asks to be admitted */
	HELLO_PROBE = 5,   /* measures a rail                */
	HELLO_FDS = 6,     /* descriptors of the ranks of one host */
	HELLO_AGAIN = 7,   /* data of one lane, in place of the connection that it has, if any */
	HELLO_FABRIC = 8,  /* a worker and the scheduler of its updates */
};
#define HELLO_PURPOSE_LAST HELLO_FABRIC

/* The listener's answer to the dialer's hello. */
enum hello_verdict {
	HELLO_WELCOME = 0,
	HELLO_OTHER_VERSION = 1,
	HELLO_OTHER_JOB = 2,
	HELLO_OTHER_EPOCH = 3,
	HELLO_NOT_ME = 4,         /* the dialer wants another rank than the one that listens here */
	HELLO_OTHER_SIZE = 5,
	HELLO_OTHER_SETTINGS = 6,
	HELLO_NOT_YOU = 7,        /* the dialer's rank is not in the group, or not the one expected */
	HELLO_OTHER_PURPOSE = 8,  /* this connection is not wanted here now */
	HELLO_OTHER_LANE = 9,
	HELLO_OTHER_ROLE = 10,    /* the node that listens here, or the dialer, has another role than expected */
};
#define HELLO_VERDICT_COUNT 11

struct hello {
	uint16_t version;
	uint8_t purpose; /* enum hello_purpose                   */
	uint8_t verdict; /* enum hello_verdict; 0 in a proof     */
	uint32_t from;   /* the sender's row in the job's roster: of a worker its rank */
	uint32_t to;     /* the row of the node that the sender talks to               */
	uint8_t role, to_role; /* enum node_role of both         */
	uint32_t size;   /* workers of the job; compared between workers only */
	uint32_t lane;   /* or rail, of HELLO_PROBE; how many there were before, of HELLO_CONTROL; 0 for other purposes */
	uint64_t epoch;  /* how often the group was formed anew  */
	uint8_t job[HELLO_JOB_BYTES];
	uint8_t settings[HELLO_DIGEST_BYTES]; /* of the settings that all ranks share; compared between workers only */
};

void hello_encode(const struct hello *hello, uint8_t out[HELLO_BYTES]);

/*
 * False if the bytes are no hello of this version; *out is then untouched. A hello of
 * another version decodes as far as versions have in common: version, purpose, verdict, ranks.
 */
bool hello_decode(const uint8_t in[HELLO_BYTES], struct hello *out);

#endif
