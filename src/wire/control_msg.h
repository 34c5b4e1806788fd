/*
 * control_msg.h - the messages on control connections: deaths, failures, calls that do not fit.
 *
 * All have one size, so that no length is believed; each ends with a checksum. All numbers are little endian.
 *
 *     0     4     8      12       16     20           344     352    360
 *     type  from  about  channel  first  body (324)   number  heard  crc
 *
 * A type has a body of its own (struct ctl_x), a member of the union in struct control_msg. Messages between two
 * nodes are numbered, and each end says up to which number it has heard the other: a message that was under way on a
 * connection that broke is sent again on the next, and none is heard twice (node/control/reliable.h).
 */
#ifndef WIRE_CONTROL_MSG_H
#define WIRE_CONTROL_MSG_H

#include <stdbool.h>
#include <stdint.h>

#define CONTROL_BYTES 364u
#define CONTROL_TEXT 256u /* with the NUL */
#define CALL_NOTE_BYTES 48u

/* Messages about a communicator name it by channel and first rank. The body of a type is named behind it. */
enum control_type {
	CONTROL_LEFT = 1,    /* left: rank `about` has left in good order; forwarded to all                             */
	CONTROL_DEAD = 2,    /* loss: rank `about` is gone; forwarded to all                                            */
	CONTROL_FAILED = 3,  /* failed: the communicator has failed because of `about`; forwarded to all                */
	CONTROL_ASK = 4,     /* call: the sender waits for the receiver in this call                                    */
	CONTROL_ABSENT = 5,  /* absent: rank `about` has not made a call yet; forwarded to all                          */
	CONTROL_READY = 6,   /* call: to the first rank of a communicator: the sender has made this keyed call          */
	CONTROL_GO = 7,      /* call: from it: all have; start it as the next keyed call                                */
	CONTROL_LETTER = 8,  /* call: to its receiver: there is a point-to-point message                                */
	CONTROL_FETCH = 9,   /* call: to its sender: send it now, or forget it                                          */
	CONTROL_BEAT = 10,   /* beat: the sender is here, is the receiver?                                              */
	CONTROL_ECHO = 11,   /* echo: yes                                                                               */
	CONTROL_SILENT = 12, /* loss: rank `from` hears nothing of rank `about`; forwarded to all                       */
	CONTROL_PIECE = 13,  /* piece: of a longer message about the communicator                                       */
	CONTROL_INVITE = 14, /* invite: to a joiner: join as rank `about`                                               */
	CONTROL_DIALS = 15,  /* dials: rank `from` tries to connect to rank `about`, which does not answer: admit all
	                      * that come; forwarded to all                                                              */
	CONTROL_OFF = 16,    /* off: the communicator was to grow, and does not; forwarded to all                        */
	CONTROL_HEARD = 17,  /* no body: nothing but `heard`; it has no number itself                                   */
	CONTROL_DIAL = 18,   /* lane: where connections may be replaced, to the lower of two ranks, which makes them: the
	                      * sender needs this lane                                                                   */
	CONTROL_MOVE = 19,   /* rail: to the same: nothing gets through on this rail, replace what goes there            */
	CONTROL_REFUSE = 20, /* refuse: to a joiner: it does not fit, or was invited in vain                             */
	CONTROL_RENEW = 21,  /* lane: to the lower of two ranks: the connection for this lane was reset, make another   */
};
#define CONTROL_TYPE_LAST CONTROL_RENEW
#define CONTROL_TYPES (CONTROL_TYPE_LAST + 1)

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
	uint8_t flags;      /* enum call_note_flag; at most 15                            */
	uint8_t numerics;   /* enum esp_numerics of an allreduce in fixed point; 0: none; at most 15 */
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

/* ---- bodies, by type ---- */

struct ctl_left { /* CONTROL_LEFT */
	struct call_note last;   /* of the world; sequence 0: it has made none */
	char text[CONTROL_TEXT]; /* PRESENCE_CLUELESS, if it gave up joining so */
};

struct ctl_loss { /* CONTROL_DEAD, CONTROL_SILENT */
	char text[CONTROL_TEXT]; /* how that is known */
};

struct ctl_failed { /* CONTROL_FAILED */
	int32_t status;          /* enum esp_status                                                                */
	uint32_t other;          /* calls that do not fit: the second rank; UINT32_MAX: it is not that             */
	uint64_t other_sequence; /* ... the number of its call                                                     */
	struct call_note note;   /* ... the call of `about`                                                        */
	char text[CONTROL_TEXT];
};

struct ctl_call { /* CONTROL_ASK, CONTROL_READY, CONTROL_GO, CONTROL_LETTER, CONTROL_FETCH */
	struct call_note note;
	int32_t status; /* CONTROL_FETCH: ESP_OK: send it now; otherwise forget it */
};

struct ctl_absent { /* CONTROL_ABSENT */
	uint64_t sequence; /* the call that `about` has not made                   */
	bool is_keyed;
	uint64_t key;      /* of a keyed call                                       */
	uint64_t second;   /* tells times of answering apart                        */
};

struct ctl_beat { /* CONTROL_BEAT */
	bool is_last;
	uint64_t silence_ns; /* to a joiner: for how long the sender is silent at the most; 0: to a rank */
};

struct ctl_echo { /* CONTROL_ECHO */
	char who[CONTROL_TEXT]; /* of a joiner: its process and host */
};

#define CONTROL_PIECE_BYTES CONTROL_TEXT
struct ctl_piece { /* CONTROL_PIECE: pieces of a message follow each other on one connection; each is as long as fits */
	uint64_t at, whole; /* where the piece begins, and how long the whole is */
	uint8_t bytes[CONTROL_PIECE_BYTES];
};

struct ctl_invite { /* CONTROL_INVITE */
	uint32_t size;             /* of the job that is being formed */
	uint64_t epoch;
	char leader[CONTROL_TEXT]; /* its address */
};

struct ctl_dials { /* CONTROL_DIALS */
	uint64_t at_ns; /* tells times apart */
};

struct ctl_off { /* CONTROL_OFF */
	uint64_t call;    /* by which the group was to grow; `about` is its lower half */
	int32_t status;   /* why it does not                                           */
	uint32_t culprit; /* UINT32_MAX: none                                          */
	char text[CONTROL_TEXT];
};

struct ctl_lane { /* CONTROL_DIAL, CONTROL_RENEW */
	uint32_t lane;
};

struct ctl_rail { /* CONTROL_MOVE */
	uint32_t rail;
};

struct ctl_refuse { /* CONTROL_REFUSE */
	char text[CONTROL_TEXT];
};

struct control_msg {
	uint8_t type;      /* enum control_type                                           */
	uint32_t from;     /* the rank that said it first                                 */
	uint32_t about;    /* a rank, or UINT32_MAX                                       */
	uint32_t channel;  /* of the communicator; channel and first rank together name it */
	uint32_t first;
	uint64_t number;   /* from 1 on; 0: not to be said again                          */
	uint64_t heard;    /* the sender has heard all of the receiver's up to this       */
	union {
		struct ctl_left left;
		struct ctl_loss loss;
		struct ctl_failed failed;
		struct ctl_call call;
		struct ctl_absent absent;
		struct ctl_beat beat;
		struct ctl_echo echo;
		struct ctl_piece piece;
		struct ctl_invite invite;
		struct ctl_dials dials;
		struct ctl_off off;
		struct ctl_lane lane;
		struct ctl_rail rail;
		struct ctl_refuse refuse;
	};
};

/* Bytes of a text that cannot be printed become '?'. */
void control_encode(const struct control_msg *msg, uint8_t out[CONTROL_BYTES]);
/* False if the bytes are no such message; *out is then untouched. */
bool control_decode(const uint8_t in[CONTROL_BYTES], struct control_msg *out);

#endif
