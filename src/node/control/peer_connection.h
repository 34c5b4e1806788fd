/*
 * peer_connection.h - the control connections to a peer: which of them carries messages, and which replaces another.
 * Control thread only.
 *
 * Two ranks may have several, if both dialled, or if one was replaced because it broke (recheck.c) or because its rail
 * failed (failover.h). Replacements are numbered: hello.lane, 0 for the first connections. A rank that receives a
 * message on one connection closes the older ones; the end that sees them close has the newer one as well, so it draws
 * no conclusion from that.
 */
#ifndef NODE_CONTROL_PEER_CONNECTION_H
#define NODE_CONTROL_PEER_CONNECTION_H

#include "node/control/control_state.h"

/* The connection is open: it may carry the messages from now on. */
void control_peer_connection_opened(struct control *control, struct connection *connection);
/* Receives messages, then sends what is due. */
void control_peer_connection_turn(struct control *control, struct connection *connection);
void control_peer_connection_receive(struct control *control, struct connection *connection);
/* Queues kept messages that this connection was not given, and flushes. False: there were none. */
bool control_peer_connection_speak(struct control *control, struct connection *connection);
/* Queues a message; it is sent after the commands of this turn. Dials the peer if there is no connection. */
void control_peer_connection_send(struct control *control, uint32_t peer, const struct control_msg *msg);
/*
 * The connection has broken; it is removed. If there is no newer one, the peer is dialled again, and closed() is called
 * if that fails.
 */
void control_peer_connection_ended(struct control *control, struct connection *connection);
/* Of a replacement that has failed: true if another connection at least as new is open or being made. */
bool control_peer_connection_is_spare(const struct control *control, const struct connection *connection);
/* The connection that carried messages goes away: chooses another, if there is one. */
void control_peer_connection_choose_other(struct control *control, uint32_t peer);

#endif
