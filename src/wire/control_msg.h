/*
 * control_msg.h - messages on control connections: deaths, failures, mismatched calls, agreement.
 *
 * All messages have one size, so that a length from the network is never trusted; each ends with a checksum.
 * All numbers are little endian. Pure.
 *
 *     0     4     8      12       16     20      24        32    36         84       340   344     352    360
 *     type  from  about  channel  first  status  sequence  peer  note (48)  text     0     number  heard  crc
 *
 * Messages between two ranks are numbered and acknowledge the peer's: messages that were lost with a connection
 * are sent again on the next one, and none is delivered twice (node/control/reliable.h).
 */
#ifndef WIRE_CONTROL_MSG_H
#define WIRE_CONTROL_MSG_H

#include <stdbool.h>
#include <stdint.h>

#define CONTROL_BYTES 364u
#define CONTROL_TEXT 256u /* with its NUL */
#define CALL_NOTE_BYTES 48u

/* Messages about a communicator name it by its channel and first rank. "To all": every rank forwards it. */
enum control_type {
	/*
	 * To all: rank `about` has left in good order. text: PRESENCE_CLUELESS if it gave up joining without knowing
	 * which ranks were missing. sequence and note: the last call of the world that it made; 0: none.
	 */
	CONTROL_LEFT = 1,
	CONTROL_DEAD = 2,   /* to all: rank `about` is gone; text: how that is known */
	CONTROL_FAILED = 3, /* to all: the communicator has failed with `status`, because of rank `about` */
	/* the sender waits for the receiver in call `sequence` of the communicator, which is `note` on the sender */
	CONTROL_ASK = 4,
	/*
	 * To all: rank `about` has not made call `sequence` of the communicator yet. note.count tells repeated
	 * answers apart.
	 */
	CONTROL_ABSENT = 5,
	CONTROL_READY = 6,  /* to the communicator's first rank: the sender has made the keyed call `note` */
	CONTROL_GO = 7,     /* from the first rank: all members have; start it as the next keyed call */
	CONTROL_LETTER = 8, /* point-to-point, to the receiver: there is a message `note` */
	CONTROL_FETCH = 9,  /* to the sender of that message: send it now; or, with another status than ESP_OK, drop it */
	/* Heartbeat, to be echoed. sequence 1: the last one. To a joiner: the sender's liveness interval in nanoseconds. */
	CONTROL_BEAT = 10,
	CONTROL_ECHO = 11,  /* answer to CONTROL_BEAT */
	CONTROL_SILENT = 12, /* to all: rank `from` hears nothing of rank `about` */
	CONTROL_PIECE = 13, /* a piece of a longer message about the communicator: see below */
	/*
	 * To a joiner: come as rank `about` of `first` in epoch `sequence` of the job, to the leader at the address
	 * `text`.
	 */
	CONTROL_INVITE = 14,
	/*
	 * To all: rank `from` tries to connect to rank `about`, which does not answer; suspend the accept limit.
	 * sequence tells attempts apart.
	 */
	CONTROL_DIALS = 15,
	/*
	 * To all: the communicator does not grow by call `sequence` (`about` is its lower half). status and text
	 * say why, `peer` is the rank at fault.
	 */
	CONTROL_OFF = 16,
	CONTROL_HEARD = 17, /* carries `heard` only; it has no number itself */
	CONTROL_DIAL = 18,  /* to the lower of two ranks, which replaces connections: the sender needs lane `sequence` */
	/* to the same: nothing gets through on rail `sequence` between the two, replace its connections */
	CONTROL_MOVE = 19,
	CONTROL_REFUSE = 20, /* to a joiner: it does not fit, or was admitted in vain; text says why */
	CONTROL_RENEW = 21, /* as CONTROL_MOVE: the connection for lane `sequence` was reset, replace it */
};
#define CONTROL_TYPE_LAST CONTROL_RENEW

/*
 * CONTROL_PIECE: sequence is the offset of the piece, note.count the length of the whole message; a piece is as
 * long as fits. Its text is arbitrary bytes. Pieces of a message follow each other on one connection.
 */
#define CONTROL_PIECE_BYTES CONTROL_TEXT

enum call_note_flag {
	CALL_KEYED = 1,
	CALL_LETTER = 2, /* a message from rank `root` of the communicator: key is its tag, sequence its number */
};

#define CALL_MAKES_GROUP 1u

/* The part of a call that must be the same on all ranks. */
struct call_note {
	uint8_t collective; /* enum esp_collective                                        */
	uint8_t type;       /* enum esp_type                                              */
	uint8_t op;         /* enum esp_op                                                */
	uint8_t flags;      /* enum call_note_flag                                        */
	uint32_t root;
	uint64_t count;     /* elements of one block; their sum where blocks are unequal  */
	uint64_t factor;    /* the bits of the double                                     */
	uint64_t key;       /* keyed calls; CALL_MAKES_GROUP in calls that are not        */
	uint64_t sequence;  /* number of the call in its communicator; keyed calls are counted apart */
	uint32_t shape;     /* digest of unequal blocks and of many buffers; 0: neither   */
	uint32_t plan;      /* digest of the name of the requested planner; 0: none */
};
void call_note_encode(const struct call_note *note, uint8_t out[CALL_NOTE_BYTES]);
void call_note_decode(const uint8_t in[CALL_NOTE_BYTES], struct call_note *out);
/* Goes with every message of the call. */
uint32_t call_note_digest(const struct call_note *note);

struct control_msg {
	uint8_t type;      /* enum control_type                                           */
	uint32_t from;     /* the original sender */
	uint32_t about;    /* a rank, or UINT32_MAX                                       */
	uint32_t channel;  /* of the communicator: channel and first rank together name it */
	uint32_t first;
	int32_t status;    /* enum esp_status                                             */
	uint64_t sequence;
	uint32_t peer;     /* a second rank, or UINT32_MAX                                */
	struct call_note note;
	char text[CONTROL_TEXT];
	uint64_t number;   /* from 1 on; 0: not sent again after a reconnect */
	uint64_t heard;    /* the sender has received all of the receiver's messages up to this number */
};

/* Unprintable bytes of the text become '?'. */
void control_encode(const struct control_msg *msg, uint8_t out[CONTROL_BYTES]);
/* False if the bytes are no such message; *out is then untouched. */
bool control_decode(const uint8_t in[CONTROL_BYTES], struct control_msg *out);

#endif
