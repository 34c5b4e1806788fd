/*
 * store_msg.h - what ranks and the leader's store say to each other once they have proved themselves.
 *
 *     arrival   rank -> leader     patience 4   card 304   settings 512   job 128
 *     roster    leader -> rank     all cards, in order of ranks
 *     failure   leader -> rank     status 4     culprit 4  text 248
 *     away      leader -> rank     the same: the reason concerns this rank alone, which may come again
 *
 * Each with a head of 8 bytes before it and a tag of 32 behind it (rank/join/session.h). Every
 * message has one size that the receiver knows beforehand, so that no length is believed.
 * All numbers are little endian.
 */
#ifndef WIRE_STORE_MSG_H
#define WIRE_STORE_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/hello.h"

#define STORE_HEAD_BYTES 8u
#define STORE_TAG_BYTES 32u

enum store_type {
	STORE_ARRIVAL = 1,
	STORE_ROSTER = 2,
	STORE_FAILURE = 3,
	STORE_AWAY = 4,
};
#define STORE_TYPES 5 /* one more than the last */

struct store_head {
	uint8_t type;   /* enum store_type */
	uint32_t bytes; /* of the body, without the tag */
};

void store_head_encode(const struct store_head *head, uint8_t out[STORE_HEAD_BYTES]);
bool store_head_decode(const uint8_t in[STORE_HEAD_BYTES], struct store_head *out);

#define CARD_BYTES 304u
#define CARD_ADDRESSES 8u   /* network interfaces that are worth naming */
#define CARD_HOST_NAME 64u  /* with the NUL, as in gethostname()        */
#define CARD_HOST_ID_BYTES 16u

enum card_family {
	CARD_IPV4 = 4,
	CARD_IPV6 = 6,
};

#define CARD_NO_INTERFACE 0xffu

struct card_address {
	uint8_t family;    /* enum card_family; 0: none                   */
	uint8_t bytes[16]; /* network order; an IPv4 address uses the first four, the rest is zero */
	uint8_t prefix;    /* bits of the network that it is in; 0: not known */
	uint8_t interface; /* addresses of one interface have the same number, below CARD_ADDRESSES, or CARD_NO_INTERFACE */
};

/* All that the others have to know about a rank. */
struct card {
	uint32_t rank;
	uint32_t size;
	uint32_t pid;
	uint16_t version;
	uint16_t port;                           /* where the rank listens, on all its addresses           */
	uint8_t host_id[CARD_HOST_ID_BYTES];     /* equal: same kernel, same network and host name inside it */
	uint8_t settings[HELLO_DIGEST_BYTES];
	char host_name[CARD_HOST_NAME];          /* printable; only for people                             */
	uint32_t cores;                          /* that the rank may use                                  */
	uint64_t core_set;                       /* a number for which these are; 0: not known             */
	uint32_t address_count;
	struct card_address addresses[CARD_ADDRESSES]; /* most useful first */
	bool is_complete; /* not on the wire: no other address of this rank can be reached */
};

void card_encode(const struct card *card, uint8_t out[CARD_BYTES]);

/* False if the bytes are no card; *out is then untouched. What decodes encodes to the same bytes. */
bool card_decode(const uint8_t in[CARD_BYTES], struct card *out);

#define STORE_SETTINGS_TEXT 512u /* with the NUL */
#define STORE_JOB_TEXT 128u      /* with the NUL */
#define STORE_ARRIVAL_CARD 4u    /* where the card begins */
#define STORE_ARRIVAL_BYTES (STORE_ARRIVAL_CARD + CARD_BYTES + STORE_SETTINGS_TEXT + STORE_JOB_TEXT)
struct store_arrival {
	uint32_t patience_ms; /* how long this rank will still wait for the others */
	struct card card;
	char settings[STORE_SETTINGS_TEXT]; /* what card.settings is the digest of, to name what differs; only for people */
	char job[STORE_JOB_TEXT];           /* the job's name: only for people, as a hello has its digest */
};

void store_arrival_encode(const struct store_arrival *arrival, uint8_t out[STORE_ARRIVAL_BYTES]);
bool store_arrival_decode(const uint8_t in[STORE_ARRIVAL_BYTES], struct store_arrival *out);

#define STORE_FAILURE_BYTES 256u
#define STORE_FAILURE_TEXT (STORE_FAILURE_BYTES - 8u)
#define STORE_NOBODY UINT32_MAX
struct store_failure {
	int32_t status;   /* enum esp_status, below zero */
	uint32_t culprit; /* the rank that it is about; STORE_NOBODY: none in particular */
	char text[STORE_FAILURE_TEXT];
};

/* Bytes of the text that nobody should print become '?'. */
void store_failure_encode(const struct store_failure *failure, uint8_t out[STORE_FAILURE_BYTES]);
bool store_failure_decode(const uint8_t in[STORE_FAILURE_BYTES], struct store_failure *out);

#endif
