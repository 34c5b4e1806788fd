/*
 * letters.h - messages between two ranks, matched by sender and tag.
 *
 * A send tells its receiver that there is a letter; when a receive takes it the receiver asks for it, and
 * then both run the same plan of two ranks, with the same executor and transports as any collective:
 * chunks, credits, checksums, memory that is read where it lies. Nothing is buffered but the news of
 * letters. Between two ranks letters are fetched in the order in which they are asked for, so both
 * start their calls alike.
 *
 * Lists are guarded by context->lock.
 */
#ifndef RUNTIME_LETTERS_H
#define RUNTIME_LETTERS_H

#include "runtime/failure.h"
#include "wire/control_msg.h"

struct work;
struct group;

#define LETTERS_MOST 65536u /* that nobody has received yet, in one group */

struct letter {
	struct letter *next;
	struct call_note note; /* root: the sender's place; key: the tag; count: bytes; sequence: its number */
};

struct letters {
	struct letter *first, *last;  /* announced to us            */
	uint32_t count;
	struct work *receives, *last_receive; /* that wait, in order        */
	struct work *sends;                   /* that were not asked for    */
	uint64_t numbers;                     /* of letters sent from here  */
};

/* Starts a piece of work of kind WORK_SEND or WORK_RECEIVE: peer, tag and room_bytes are set. Without the lock. */
enum esp_status letters_start(struct work *work, struct failure *failure);

/* CONTROL_LETTER and CONTROL_FETCH. Without the lock; the group is visited. */
void letters_announced(struct group *group, const struct call_note *note);
void letters_fetch(struct group *group, const struct call_note *note, enum esp_status status);

void letters_forget(struct letters *letters, struct work *work);
void letters_fini(struct letters *letters);

#endif
