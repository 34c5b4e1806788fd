/*
 * p2p.h - messages between two ranks, matched by sender and tag.
 *
 * A send announces its message to the receiver; when a receive takes it the receiver asks for it, piece by piece, and
 * for each piece both run the same plan of two ranks, with the same executor and transports as any collective: chunks,
 * credits, checksums, memory that is read where it lies. Only the announcements are buffered. Between two ranks pieces
 * move in the order in which they are asked for, so both start their calls alike.
 *
 * No set of messages can deadlock: a receiver starts its side of a piece and then asks for it, so the receiving side is
 * always the older one. Receives take up less than half of the chunks that may be in flight, so a send waits only for
 * chunks of sends that were started before it on its rank, whose receiving sides are older still.
 *
 * Lists are guarded by context->lock.
 */
#ifndef RANK_COMM_P2P_H
#define RANK_COMM_P2P_H

#include "rank/comm/comm_state.h"

/* Of work of kind WORK_SEND and WORK_RECEIVE. */
extern const struct work_ops p2p_ops;

/* Starts a piece of work of kind WORK_SEND or WORK_RECEIVE: peer, tag and room_bytes are set. Without the lock. */
enum esp_status p2p_start(struct work *work, struct failure *failure);

/* CONTROL_LETTER and CONTROL_FETCH. Without the lock; the group is visited. */
void p2p_announced(struct comm *group, const struct call_note *note);
void p2p_fetch(struct comm *group, const struct control_msg *msg);
/* All parts of a piece have ended well. Without the lock. */
void p2p_piece_done(struct work *work);

/*
 * Its deadline has passed. True: it is a receive that matches no message, or a message to ourselves without a receive:
 * no other rank knows of it, it is in no list any more, and is to be ended. False: the group has to fail, with the text
 * in why.
 */
bool p2p_give_up(struct work *work, char why[CONTROL_TEXT]);
/* "send of 8 bytes to rank 1 on node7 with tag 5". Returns text. */
const char *p2p_describe(const struct work *work, char text[WORK_TEXT]);
/* Why it has failed: as its group has. */
void p2p_explain(struct work *work, enum esp_status status);

/* Takes work off every list. */
void p2p_forget(struct p2p *p2p, struct work *work);
void p2p_fini(struct p2p *p2p);

#endif
