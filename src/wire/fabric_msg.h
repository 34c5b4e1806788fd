/*
 * fabric_msg.h - messages between a worker and the scheduler of its updates.
 *
 * All have one size, so that no length is believed; each ends with a checksum. All numbers are little endian. Pure.
 *
 *     0     4     5       8          124
 *     magic type  zeros   body (116) crc-32c of all before it
 *
 *     worker                                       scheduler
 *        | -- REGISTER ----------------------------> |
 *        | <-- WELCOME, or REFUSE ------------------ |
 *        | -- READY -------------------------------> |   an update is ready
 *        | <-- DECIDE ------------------------------ |   send it at this time and rate, or drop it
 *        | -- DONE --------------------------------> |   applied, or dropped by the hub
 *        | <-- REFUSE ------------------------------ |   at any time: why the connection closes
 *
 * Times are relative to the message's arrival: clocks of two hosts are never compared.
 */
#ifndef WIRE_FABRIC_MSG_H
#define WIRE_FABRIC_MSG_H

#include <stdbool.h>
#include <stdint.h>

#define FABRIC_MSG_BYTES 128u
#define FABRIC_TEXT 112u     /* with its NUL */
#define FABRIC_JOB_NAME 64u  /* as HUB_JOB_NAME */

enum fabric_msg_type {
	FABRIC_REGISTER = 1,
	FABRIC_WELCOME = 2,
	FABRIC_REFUSE = 3,
	FABRIC_READY = 4,
	FABRIC_DECIDE = 5,
	FABRIC_DONE = 6,
};
#define FABRIC_MSG_TYPES 7

struct fabric_msg_register {
	char name[FABRIC_JOB_NAME]; /* of the job */
	uint32_t worker, workers, delay_bound;
	uint32_t pid;
	uint64_t rate;              /* bytes per second of the worker's link; 0: not known */
};

struct fabric_msg_welcome {
	uint64_t epoch;    /* of this life of the scheduler: positions count in it */
	uint64_t batch_ns;
};

struct fabric_msg_refuse {
	int32_t status;    /* enum esp_status, below 0 */
	char text[FABRIC_TEXT];
};

struct fabric_msg_ready {
	uint64_t number, computed_from, bytes;
	double norm;
};

struct fabric_msg_decide {
	uint64_t number;
	uint8_t end;       /* enum ledger_end (fabric/ledger.h): LEDGER_APPLIED stands for "send it" */
	uint64_t position, start_ns, rate, patience_ns;
	uint64_t delay;
};

struct fabric_msg_done {
	uint64_t number;
	uint8_t end;       /* enum ledger_end */
	uint64_t version, delay, took_ns;
};

struct fabric_msg {
	uint8_t type; /* enum fabric_msg_type */
	union {
		struct fabric_msg_register reg;
		struct fabric_msg_welcome welcome;
		struct fabric_msg_refuse refuse;
		struct fabric_msg_ready ready;
		struct fabric_msg_decide decide;
		struct fabric_msg_done done;
	};
};

/* Texts are cut to their room. */
void fabric_msg_encode(const struct fabric_msg *msg, uint8_t out[FABRIC_MSG_BYTES]);
/* False: these bytes are no message. */
bool fabric_msg_decode(const uint8_t in[FABRIC_MSG_BYTES], struct fabric_msg *out);

#endif
