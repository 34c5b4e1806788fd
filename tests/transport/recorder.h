/*
 * recorder.h - a transport's user that sends a list of messages and writes down what happens.
 *
 * Message i of a peer is i * stride % most bytes of a pattern; what arrives must be such a
 * message, whole, and in order. It fails when a peer is lost, as a lane does, unless it is
 * told to go on.
 */
#ifndef TESTS_TRANSPORT_RECORDER_H
#define TESTS_TRANSPORT_RECORDER_H

#include "transport/transport.h"
#include "wire/frame.h"

#define RECORDER_PEERS 4u
#define RECORDER_MOST 65536u

struct recorder_peer {
	uint32_t to_send, pulled, sent;    /* messages */
	uint32_t begun, ended, credits;
	uint32_t have;                     /* bytes of the message that arrives */
	struct transport_message arriving;
	uint8_t *room;                     /* RECORDER_MOST bytes */
	uint32_t lost;
	enum esp_status why;
	bool ready;
};

struct recorder {
	bool goes_on;
	bool without_memory;
	uint32_t stride;
	enum esp_status failed;
	bool has_awaited;
	uint32_t awaited; /* what it answers when it is asked whom it waits for */
	uint32_t dials;
	struct recorder_peer peers[RECORDER_PEERS];
};

extern const struct transport_user recorder_user;

void recorder_open(struct recorder *recorder, uint32_t stride);
void recorder_close(struct recorder *recorder);

/* So many more messages for a peer. */
void recorder_send(struct recorder *recorder, uint32_t peer, uint32_t count);

/* The bytes of message i, as a recorder with this stride would send them: returns how many. out: FRAME_BYTES + most, filled up. */
uint32_t recorder_frame(uint32_t stride, uint32_t index, bool checked, uint8_t *out);

/* A dial() that only counts. Its context is the recorder. */
void recorder_dial(void *context, uint32_t peer);

#endif
