/*
 * rendezvous_msg.h - messages between ranks and the leader, after the handshake.
 *
 *     arrival   rank -> leader     patience 4   node info 304   settings 512   job 128
 *     roster    leader -> rank     all node infos, in order of ranks
 *     failure   leader -> rank     status 4     culprit 4       text 248
 *     away      leader -> rank     the same: the reason concerns this rank alone, which may come again
 *
 * Each has a head of 8 bytes and a tag of 32 (rank/join/session.h). The receiver knows the size of every
 * message beforehand, so that a length from the network is never trusted. All numbers are little endian. Pure.
 */
#ifndef WIRE_RENDEZVOUS_MSG_H
#define WIRE_RENDEZVOUS_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/hello.h"

#define RENDEZVOUS_HEAD_BYTES 8u
#define RENDEZVOUS_TAG_BYTES 32u

enum rendezvous_type {
	RENDEZVOUS_ARRIVAL = 1,
	RENDEZVOUS_ROSTER = 2,
	RENDEZVOUS_FAILURE = 3,
	RENDEZVOUS_AWAY = 4,
};
#define RENDEZVOUS_TYPES 5 /* one more than the last */

struct rendezvous_head {
	uint8_t type;   /* enum rendezvous_type */
	uint32_t bytes; /* of the body, without the tag */
};

void rendezvous_head_encode(const struct rendezvous_head *head, uint8_t out[RENDEZVOUS_HEAD_BYTES]);
bool rendezvous_head_decode(const uint8_t in[RENDEZVOUS_HEAD_BYTES], struct rendezvous_head *out);

#define NODE_INFO_BYTES 312u
#define NODE_ADDRESSES 8u   /* most network interfaces of a node */
#define NODE_INFO_HOST_NAME 64u  /* with its NUL, as in gethostname() */
#define NODE_INFO_HOST_ID_BYTES 16u

enum node_family {
	NODE_IPV4 = 4,
	NODE_IPV6 = 6,
};

#define NODE_NO_INTERFACE 0xffu

struct node_address {
	uint8_t family;    /* enum node_family; 0: none                   */
	uint8_t bytes[16]; /* network order; an IPv4 address uses the first four, the rest is zero */
	uint8_t prefix;    /* bits of its network; 0: unknown */
	uint8_t interface; /* number of the interface, below NODE_ADDRESSES, or NODE_NO_INTERFACE */
};

/* The facts about a node that other nodes need. */
struct node_info {
	uint8_t role;                            /* enum node_role                                         */
	uint32_t rank;                           /* its row in the roster                                  */
	uint32_t size;
	uint32_t pid;
	uint16_t version;
	uint16_t port;                           /* the node listens there, on all its addresses */
	uint8_t host_id[NODE_INFO_HOST_ID_BYTES];     /* equal: same kernel, same network and host name inside it */
	uint8_t settings[HELLO_DIGEST_BYTES];
	char host_name[NODE_INFO_HOST_NAME];          /* printable; for messages only */
	uint32_t cores;                          /* that the rank may use                                  */
	uint64_t core_set;                       /* hash of the set of those cores; 0: unknown */
	uint64_t nonce;                          /* random, of this process: no other user can guess its socket's name */
	uint32_t address_count;
	struct node_address addresses[NODE_ADDRESSES]; /* most useful first */
	bool is_complete; /* not on the wire: the node cannot be reached at other addresses */
};

void node_info_encode(const struct node_info *info, uint8_t out[NODE_INFO_BYTES]);

/* False if the bytes are no node info; *out is then untouched. A decoded node info encodes to the same bytes. */
bool node_info_decode(const uint8_t in[NODE_INFO_BYTES], struct node_info *out);

#define RENDEZVOUS_SETTINGS_TEXT 512u /* with its NUL */
#define RENDEZVOUS_JOB_TEXT 128u      /* with its NUL */
#define RENDEZVOUS_ARRIVAL_INFO 4u    /* offset of the node info */
#define RENDEZVOUS_ARRIVAL_BYTES \
	(RENDEZVOUS_ARRIVAL_INFO + NODE_INFO_BYTES + RENDEZVOUS_SETTINGS_TEXT + RENDEZVOUS_JOB_TEXT)
struct rendezvous_arrival {
	uint32_t patience_ms; /* how long this rank will wait for the others */
	struct node_info info;
	char settings[RENDEZVOUS_SETTINGS_TEXT]; /* the text behind info.settings, to name differences; for messages only */
	char job[RENDEZVOUS_JOB_TEXT];           /* the job's name, for messages only: a hello has its digest */
};

void rendezvous_arrival_encode(const struct rendezvous_arrival *arrival, uint8_t out[RENDEZVOUS_ARRIVAL_BYTES]);
bool rendezvous_arrival_decode(const uint8_t in[RENDEZVOUS_ARRIVAL_BYTES], struct rendezvous_arrival *out);

#define RENDEZVOUS_FAILURE_BYTES 256u
#define RENDEZVOUS_FAILURE_TEXT (RENDEZVOUS_FAILURE_BYTES - 8u)
#define RENDEZVOUS_NOBODY UINT32_MAX
struct rendezvous_failure {
	int32_t status;   /* enum esp_status, negative */
	uint32_t culprit; /* the rank at fault; RENDEZVOUS_NOBODY: none in particular */
	char text[RENDEZVOUS_FAILURE_TEXT];
};

/* Unprintable bytes of the text become '?'. */
void rendezvous_failure_encode(const struct rendezvous_failure *failure, uint8_t out[RENDEZVOUS_FAILURE_BYTES]);
bool rendezvous_failure_decode(const uint8_t in[RENDEZVOUS_FAILURE_BYTES], struct rendezvous_failure *out);

#endif
