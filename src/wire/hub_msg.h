/*
 * hub_msg.h - messages on the control connection of a parameter hub: with its operator and with workers of jobs.
 *
 * Each is a head and a body, whose length follows from the type but for tensors. All numbers are little endian. Pure.
 *
 *     0     4     5       8      12         16
 *     magic type  zeros   bytes  crc-32c    body ...
 *                                of the body and of the head before it
 *
 *     operator                                     hub
 *        | -- CREATE ------------------------------> |
 *        | <-- TICKET, or WHY ---------------------- |
 *        | -- REMOVE ------------------------------> |
 *        | <-- OK, or WHY -------------------------- |
 *
 *     worker                                       hub
 *        | -- JOIN --------------------------------> |   a worker of the job
 *        | <-- WELCOME, or WHY --------------------- |   the session that it belongs to
 *        | -- TENSORS ... -------------------------> |   what the model is made of
 *        | <-- READY, or WHY ----------------------- |   once all workers have said the same and there is memory
 *        | -- SHARE -------------------------------> |   the lowest of a set on the hub's machine: its memory
 *        | <-- SHARE ------------------------------- |   will the hub read gradients there?
 *        | -- ASK ---------------------------------> |   which workers does a tensor wait for?
 *        | <-- MISSING ----------------------------- |
 *        | -- LEAVE -------------------------------> |   and closes
 *        | -- OFFER -------------------------------> |   of an asynchronous job: an update is ready
 *        | <-- GRANT, or RESULT: too late ---------- |   it may be sent on the data connections
 *        | <-- RESULT ------------------------------ |   it is applied as a whole, or dropped
 *        | -- SPOIL -------------------------------> |   what was granted is not what was offered: it is to be dropped
 *        | <-- SPOIL ------------------------------- |   it will be: the rest of its bytes may be anything
 *        | <-- WHY --------------------------------- |   at any time: the session has failed, and closes
 *        | -- WHY ---------------------------------> |   a worker that pushes with others: one of them has failed;
 *                                                        of a job with several hubs: it has failed at another hub
 *
 * Either end sends PING when it has heard nothing for a while; the other answers with PONG.
 */
#ifndef WIRE_HUB_MSG_H
#define WIRE_HUB_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HUB_MSG_HEAD_BYTES 16u
#define HUB_MSG_TENSORS_EACH 1024u /* most in one message */
#define HUB_MSG_TENSOR_BYTES 24u
#define HUB_MSG_BODY_MOST (16u + HUB_MSG_TENSORS_EACH * HUB_MSG_TENSOR_BYTES)
#define HUB_MSG_MOST (HUB_MSG_HEAD_BYTES + HUB_MSG_BODY_MOST)

#define HUB_JOB_NAME 64u   /* with its NUL; A-Z, a-z, digits, "-", "_" and "." */
#define HUB_HOST_NAME 64u
#define HUB_WHY_TEXT 256u
#define HUB_KEY_BYTES 32u
#define HUB_OPTIMIZER_BYTES 64u /* of math/optimizer.h */

enum hub_msg_type {
	HUB_MSG_CREATE = 1,
	HUB_MSG_TICKET = 2,
	HUB_MSG_REMOVE = 3,
	HUB_MSG_OK = 4,
	HUB_MSG_WHY = 5,
	HUB_MSG_JOIN = 6,
	HUB_MSG_WELCOME = 7,
	HUB_MSG_TENSORS = 8,
	HUB_MSG_READY = 9,
	HUB_MSG_ASK = 10,
	HUB_MSG_MISSING = 11,
	HUB_MSG_LEAVE = 12,
	HUB_MSG_PING = 13,
	HUB_MSG_PONG = 14,
	HUB_MSG_OFFER = 15,
	HUB_MSG_GRANT = 16,
	HUB_MSG_RESULT = 17,
	HUB_MSG_SHARE = 18,
	HUB_MSG_SPOIL = 19,
};
#define HUB_MSG_TYPES 20

struct hub_msg_create {
	char name[HUB_JOB_NAME];
	uint32_t workers;
	uint32_t chunk_bytes;
	uint32_t weight;   /* of the job's share of lanes; 1 is ordinary */
	uint8_t replaces;  /* a job of this name is removed first: its tickets are void */
	uint16_t delay_bound; /* of an asynchronous job; 0: its workers train in rounds */
	uint64_t job;      /* its number, alike at all hubs of the job; 0: this hub chooses one that it never had */
	uint16_t hubs, own; /* of the job; the number of this one */
	uint8_t optimizer[HUB_OPTIMIZER_BYTES];
};

struct hub_msg_ticket {
	uint64_t job;
	uint8_t key[HUB_KEY_BYTES];
};

struct hub_msg_remove {
	char name[HUB_JOB_NAME];
};

struct hub_msg_why {
	int32_t status;    /* enum esp_status, below 0 */
	uint32_t worker;   /* at fault; UINT32_MAX: none in particular */
	char text[HUB_WHY_TEXT];
};

struct hub_msg_join {
	uint32_t worker, workers;
	uint32_t pid;
	char host[HUB_HOST_NAME];
	uint64_t memory;  /* equal: workers can share memory; 0: with no other */
	uint64_t meeting; /* of the socket at which it waits for such workers */
};

struct hub_msg_welcome {
	uint64_t session;     /* of this job: its data connections name it as their epoch */
	uint32_t lanes;
	uint32_t chunk_bytes;
	uint32_t delay_bound; /* 0: workers train in rounds */
	uint16_t hubs, own;   /* of the job; the number of this one */
	uint8_t optimizer[HUB_OPTIMIZER_BYTES];
};

struct hub_msg_tensor {
	uint64_t name;     /* digest of its name */
	uint64_t elements;
	uint8_t type;      /* enum esp_type */
	uint16_t group;
};

struct hub_msg_tensors {
	uint32_t total; /* of the model */
	uint32_t first; /* of this message */
	uint32_t count;
	const uint8_t *rows; /* encoded: hub_msg_tensor_at(); borrowed from the message's bytes */
};

struct hub_msg_ready {
	uint64_t digest;  /* of the layout */
	uint64_t set;     /* the workers that push together with this one, itself too: the lowest pushes for all */
	uint64_t meeting; /* of the lowest */
	uint8_t reads;    /* the hub runs on the machine of this set: the lowest sends SHARE */
};

struct hub_msg_missing {
	uint32_t tensor;
	uint64_t workers; /* a bit set; 0: no round of the tensor is under way */
	char text[HUB_WHY_TEXT];
};

/* The fields are those of fabric/gate.h. */
struct hub_msg_offer {
	uint64_t number, computed_from;
	uint64_t epoch, position;
	uint64_t patience_ns;
	uint64_t bundle, members;
	uint32_t aggregator;
};

struct hub_msg_result {
	uint64_t number;
	uint64_t version, delay;
	uint64_t took_ns; /* from the grant until all of it was there; 0: it was not granted */
	uint8_t why;
};

struct hub_msg {
	uint8_t type; /* enum hub_msg_type */
	union {
		struct hub_msg_create create;
		struct hub_msg_ticket ticket;
		struct hub_msg_remove remove;
		struct hub_msg_why why;
		struct hub_msg_join join;
		struct hub_msg_welcome welcome;
		struct hub_msg_tensors tensors;
		struct hub_msg_ready ready;
		uint32_t ask; /* a tensor */
		struct hub_msg_missing missing;
		struct hub_msg_offer offer;
		uint64_t grant; /* number of the update */
		uint64_t spoil; /* the same */
		struct hub_msg_result result;
		uint32_t share; /* descriptor of the memory in the worker's process; the answer: 1, the hub reads it, or 0 */
	};
};

/* Puts a row of a TENSORS message; takes one. False: out of the type's range. */
void hub_msg_tensor_put(uint8_t out[HUB_MSG_TENSOR_BYTES], const struct hub_msg_tensor *tensor);
struct hub_msg_tensor hub_msg_tensor_at(const struct hub_msg_tensors *tensors, uint32_t index);

/* Returns the length, at most HUB_MSG_MOST. Texts are cut to their room. */
size_t hub_msg_encode(const struct hub_msg *msg, uint8_t out[HUB_MSG_MOST]);

enum hub_msg_verdict {
	HUB_MSG_SHORT,   /* more bytes are needed */
	HUB_MSG_WHOLE,   /* *out and *out_used are written */
	HUB_MSG_DAMAGED, /* these bytes are no message: the connection is not to be read further */
};
/* Takes one message off the front of n bytes; it borrows from them. Never wants more than HUB_MSG_MOST bytes. */
enum hub_msg_verdict hub_msg_decode(const uint8_t *in, size_t n, struct hub_msg *out, size_t *out_used);

/* May a job be called that? */
bool hub_msg_name_is_good(const char *name);

#endif
