/*
 * control_msg.h - what ranks tell each other beside the data: deaths, failures, calls that do not fit.
 *
 * Messages on control connections, all of one size, so that no length is believed; each ends
 * with a checksum. All numbers are little endian.
 *
 *     0     4     8      12       16     20      24        32    36         84       340   344     352    360
 *     type  from  about  channel  first  status  sequence  peer  note (48)  text     0     number  heard  crc
 *
 * What two ranks tell each other is numbered, and each says up to which number it has heard the other: so what was under way on
 * a connection that broke is said again on the next, and nothing is heard twice (node/control/reliable.h).
 */
#ifndef WIRE_CONTROL_MSG_H
#define WIRE_CONTROL_MSG_H

#include <stdbool.h>
#include <stdint.h>

#define CONTROL_BYTES 364u
#define CONTROL_TEXT 256u /* with the NUL */
#define CALL_NOTE_BYTES 48u

/* Messages about a group name it by channel and first rank. */
enum control_type {
	CONTROL_LEFT = 1,   /* rank `about` has left in good order; passed on to all. text: PRESENCE_CLUELESS, if it gave up joining so.
	                     * sequence and note: the last call of the world that it has made; 0: none */
	CONTROL_DEAD = 2,   /* rank `about` is gone, text says how that is known; passed on to all     */
	CONTROL_FAILED = 3, /* the group has failed with `status`, because of `about`; passed on to all */
	CONTROL_ASK = 4,    /* I wait for you in call `sequence` of the group, which is `note` here    */
	CONTROL_ABSENT = 5, /* rank `about` has not made call `sequence` of the group yet; passed on to all.
	                     * note.count tells times of answering apart                               */
	CONTROL_READY = 6,  /* to a group's first rank: I have made the keyed call `note`              */
	CONTROL_GO = 7,     /* from it: all have; start it as the next keyed call                      */
	CONTROL_LETTER = 8, /* to its receiver: there is a message `note`                              */
	CONTROL_FETCH = 9,  /* to its sender: send it now; or, if status is not ESP_OK, forget it      */
	CONTROL_BEAT = 10,  /* I am here, are you? sequence 1: the last one. To a newcomer: for how long I am silent at the most, in nanoseconds */
	CONTROL_ECHO = 11,  /* yes                                                                     */
	CONTROL_SILENT = 12, /* rank `from` hears nothing of rank `about`; passed on to all             */
	CONTROL_PIECE = 13, /* a piece of a longer message about the group: see below                  */
	CONTROL_INVITE = 14, /* to somebody at the door: come as rank `about` of `first`, in start `sequence` of the
	                      * job, to the leader at the address `text`                               */
	CONTROL_DIALS = 15, /* rank `from` tries to connect to rank `about`, which does not answer: let all in who come; passed on
	                     * to all. sequence tells times apart                                      */
	CONTROL_OFF = 16,   /* the group was to grow, by call `sequence` (of which `about` is the lower half), and does not: status and
	                     * text say why, `peer` whose fault it is; passed on to all                */
	CONTROL_HEARD = 17, /* nothing but `heard`; it has no number itself                            */
	CONTROL_DIAL = 18,  /* where connections may be replaced, to the lower of two ranks, who makes them: I need lane `sequence` */
	CONTROL_MOVE = 19,  /* to the same: nothing gets through on rail `sequence` between us, replace what goes there */
	CONTROL_REFUSE = 20, /* to somebody at the door: you do not fit, or have been let in in vain; text says why */
	CONTROL_RENEW = 21, /* as CONTROL_MOVE: our connection for lane `sequence` was reset, make another */
};
#define CONTROL_TYPE_LAST CONTROL_RENEW

/*
 * CONTROL_PIECE: sequence is where the piece begins, note.count how long the whole is; it is as long as fits. The text is bytes
 * then, any bytes. Pieces of a message follow each other on one connection.
 */
#define CONTROL_PIECE_BYTES CONTROL_TEXT

enum call_note_flag {
	CALL_KEYED = 1,
	CALL_LETTER = 2, /* a message from rank `root` of the group: key is its tag, sequence its number */
};

#define CALL_MAKES_GROUP 1u

/* A call, as far as it must be alike on all ranks. */
struct call_note {
	uint8_t collective; /* enum esp_collective                                        */
	uint8_t type;       /* enum esp_type                                              */
	uint8_t op;         /* enum esp_op                                                */
	uint8_t flags;      /* enum call_note_flag                                        */
	uint32_t root;
	uint64_t count;     /* elements of one block; their sum where blocks are unequal  */
	uint64_t factor;    /* the bits of the double                                     */
	uint64_t key;       /* keyed calls; CALL_MAKES_GROUP in calls that are not        */
	uint64_t sequence;  /* which call of its group; keyed calls are counted apart     */
	uint32_t shape;     /* digest of unequal blocks and of many buffers; 0: neither   */
	uint32_t plan;      /* digest of the planner's name that was asked for; 0: none   */
};
void call_note_encode(const struct call_note *note, uint8_t out[CALL_NOTE_BYTES]);
void call_note_decode(const uint8_t in[CALL_NOTE_BYTES], struct call_note *out);
/* Goes with every message of the call. */
uint32_t call_note_digest(const struct call_note *note);

struct control_msg {
	uint8_t type;      /* enum control_type                                           */
	uint32_t from;     /* who said it first                                           */
	uint32_t about;    /* a rank, or UINT32_MAX                                       */
	uint32_t channel;  /* of the group; channel and first rank together name a group  */
	uint32_t first;
	int32_t status;    /* enum esp_status                                             */
	uint64_t sequence;
	uint32_t peer;     /* a second rank, or UINT32_MAX                                */
	struct call_note note;
	char text[CONTROL_TEXT];
	uint64_t number;   /* from 1 on; 0: not to be said again                          */
	uint64_t heard;    /* the sender has heard all of the receiver's up to this       */
};

/* Bytes of the text that nobody should print become '?'. */
void control_encode(const struct control_msg *msg, uint8_t out[CONTROL_BYTES]);
/* False if the bytes are no such message; *out is then untouched. */
bool control_decode(const uint8_t in[CONTROL_BYTES], struct control_msg *out);

#endif
