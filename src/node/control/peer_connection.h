/*
 * peer_connection.h - the control's control connections: which of them is spoken on, and which takes another's place.
 *
 * Two ranks may have several, if both dialled, or if one was replaced because it broke (recheck.c) or the network does not carry it any more
 * (failover.h). Those that replace others are counted: hello.lane, 0 for the first ones. Who hears something on one closes those that
 * were made before it; whose end sees that has the newer one as well, so nothing follows from it. For the control's thread.
 */
#ifndef NODE_CONTROL_PEER_CONNECTION_H
#define NODE_CONTROL_PEER_CONNECTION_H

#include "node/control/control_state.h"

/* It is open: it may be the one to speak on from now on. */
void peer_connection_opened(struct control *control, struct connection *connection);
/* Hears what has come, and says what is to be said. */
void peer_connection_turn(struct control *control, struct connection *connection);
void peer_connection_receive(struct control *control, struct connection *connection);
/* Says what the other end has not heard and this connection was not given. False: there was nothing. */
bool peer_connection_speak(struct control *control, struct connection *connection);
/* It leaves when the cmdq are done. */
void peer_connection_send(struct control *control, uint32_t peer, const struct control_msg *msg);
/* It has broken. If there is no newer one, another one takes its place; only if that is in vain is the other end thought lost. It is removed. */
void peer_connection_ended(struct control *control, struct connection *connection);
/* It is dialled in place of another one and fails: is there one as good, or being made? */
bool peer_connection_is_spare(const struct control *control, const struct connection *connection);
/* The one that was spoken on goes away: which is now? */
void peer_connection_choose_other(struct control *control, uint32_t peer);

#endif
