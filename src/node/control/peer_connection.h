/*
 * peer_connection.h - the steward's control connections: which of them is spoken on, and which takes another's place.
 *
 * Two ranks may have several, if both dialled, or if one was replaced because it broke (recheck.c) or the network does not carry it any more
 * (failover.h). Those that replace others are counted: hello.lane, 0 for the first ones. Who hears something on one closes those that
 * were made before it; whose end sees that has the newer one as well, so nothing follows from it. For the steward's thread.
 */
#ifndef NODE_CONTROL_PEER_CONNECTION_H
#define NODE_CONTROL_PEER_CONNECTION_H

#include "node/control/control_state.h"

/* It is open: it may be the one to speak on from now on. */
void controls_opened(struct steward *steward, struct link *link);
/* Hears what has come, and says what is to be said. */
void controls_turn(struct steward *steward, struct link *link);
void controls_receive(struct steward *steward, struct link *link);
/* Says what the other end has not heard and this connection was not given. False: there was nothing. */
bool controls_speak(struct steward *steward, struct link *link);
/* It leaves when the errands are done. */
void controls_send(struct steward *steward, uint32_t peer, const struct control_msg *msg);
/* It has broken. If there is no newer one, another one takes its place; only if that is in vain is the other end thought lost. It is removed. */
void controls_ended(struct steward *steward, struct link *link);
/* It is dialled in place of another one and fails: is there one as good, or being made? */
bool controls_is_spare(const struct steward *steward, const struct link *link);
/* The one that was spoken on goes away: which is now? */
void controls_choose_other(struct steward *steward, uint32_t peer);

#endif
