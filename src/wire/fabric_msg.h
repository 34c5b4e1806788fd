/*
 * fabric_msg.h - messages between a worker and the scheduler of its updates, and between two workers: an update on its
 * way to its aggregator, a model on its way down a tree.
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
 *        | -- WANT --------------------------------> |   the model is wanted
 *        | <-- MODEL ------------------------------- |   from where it comes, and when
 *        | -- GOT ---------------------------------> |   it has come from the hub: how long that took
 *        | <-- WAIT -------------------------------- |   each half second, while DECIDE or MODEL is awaited
 *        | <-- REFUSE ------------------------------ |   at any time: why the connection closes
 *
 *     member of a sum                              aggregator
 *        | -- GIVE --------------------------------> |   then its update, tensor by tensor, float32
 *        | <-- TAKEN ------------------------------- |   all of it is there, and its checksum is right
 *
 *     member of a chain                            the next one
 *        | -- GIVE, with members ------------------> |   then their sum, while it comes; GIVEN with its checksum
 *        | <-- TAKEN ------------------------------- |
 *
 *     worker that wants the model                  worker that has it, or is getting it
 *        | -- FETCH -------------------------------> |
 *        | <-- the model, tensor by tensor; FETCHED  |   with its version, which is known when all of it is there
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
	FABRIC_GIVE = 7,
	FABRIC_TAKEN = 8,
	FABRIC_WANT = 9,
	FABRIC_MODEL = 10,
	FABRIC_WAIT = 11,
	FABRIC_FETCH = 12,
	FABRIC_FETCHED = 13,
	FABRIC_GIVEN = 14,
	FABRIC_GOT = 15,
};
#define FABRIC_MSG_TYPES 16
#define FABRIC_FROM_HUB UINT32_MAX /* as the source of a model */
#define FABRIC_TO_HUB UINT32_MAX   /* as the next hop of a sum */
#define FABRIC_HOST 16u /* bytes of an IPv6 address; an IPv4 address stands in it as ::ffff:a.b.c.d */

struct fabric_msg_register {
	char name[FABRIC_JOB_NAME]; /* of the job */
	uint32_t worker, workers, delay_bound;
	uint32_t pid;
	uint64_t rate;              /* bytes per second of the worker's link; 0: not known */
	uint64_t session;           /* of the job at its hub: versions count in it */
	uint16_t port;              /* where it gives the model to others, and takes their updates; 0: nowhere */
	bool takes_sums;            /* it takes updates of others there, as an aggregator */
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
	uint32_t attempts; /* to send it within a sum that have failed */
	uint64_t leaves_ns; /* from now on the worker leaves within so long, and this is its last update; 0: it stays */
};

struct fabric_msg_decide {
	uint64_t number;
	uint8_t end;       /* enum ledger_end (fabric/ledger.h): LEDGER_APPLIED stands for "send it" */
	uint64_t position, start_ns, rate, patience_ns;
	uint64_t delay;
	/* Of a sum; as in struct sched_decision (fabric/sched.h). bundle 0: it goes to the hub by itself. */
	uint64_t bundle, members, wait_ns;
	uint32_t aggregator;
	uint8_t host[FABRIC_HOST]; /* of the aggregator, or of the next hop of a chain, with its port */
	uint16_t port;
	bool is_chain;
	uint8_t inputs;
	uint32_t next_hop;         /* or FABRIC_TO_HUB */
};

struct fabric_msg_done {
	uint64_t number;
	uint8_t end;       /* enum ledger_end */
	uint64_t version, delay, took_ns;
};

struct fabric_msg_give {
	uint64_t epoch, bundle; /* of the sum that it is for */
	uint64_t bytes;
	uint32_t crc;           /* crc-32c of them; of a chain: 0, as GIVEN has it */
	uint64_t members;       /* of a chain: whose updates the sum has, as a bit set; else 0 */
};

struct fabric_msg_given {
	uint64_t epoch, bundle;
	uint32_t crc;
};

struct fabric_msg_taken {
	uint64_t epoch, bundle;
};

struct fabric_msg_want {
	uint64_t bytes;    /* of the model */
};

struct fabric_msg_model {
	uint64_t tree;     /* number: its workers get the same version */
	uint64_t start_ns, rate;
	uint32_t source;   /* the worker that passes it on, or FABRIC_FROM_HUB */
	uint32_t outputs;  /* workers to which this one passes it on */
	uint8_t host[FABRIC_HOST]; /* of the source, with its port */
	uint16_t port;
};

struct fabric_msg_got {
	uint64_t tree, took_ns;
};

struct fabric_msg_fetch {
	uint64_t epoch, tree;
	uint64_t bytes, rate; /* rate 0: any */
};

struct fabric_msg_fetched {
	uint64_t epoch, tree;
	uint64_t version;  /* each chunk of the model has at least this one */
	uint32_t crc;      /* crc-32c of the model */
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
		struct fabric_msg_give give;
		struct fabric_msg_taken taken;
		struct fabric_msg_given given;
		struct fabric_msg_want want;
		struct fabric_msg_model model;
		struct fabric_msg_got got;
		struct fabric_msg_fetch fetch;
		struct fabric_msg_fetched fetched;
	};
};

/* Texts are cut to their room. */
void fabric_msg_encode(const struct fabric_msg *msg, uint8_t out[FABRIC_MSG_BYTES]);
/* False: these bytes are no message. */
bool fabric_msg_decode(const uint8_t in[FABRIC_MSG_BYTES], struct fabric_msg *out);

#endif
