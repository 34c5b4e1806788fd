/*
 * resume.h - a connection takes the place of others, without a byte lost or doubled. Private to tcp.
 *
 * Each direction of the traffic between two lanes is one stream of bytes, whatever connections carry it. When both ends
 * have been given a new connection:
 *
 *     1. An end sends nothing on the old ones any more, lets go of nothing that it keeps, and says so: FRAME_SWITCH.
 *     2. An end that hears that reads the old ones until nothing is there. What the other's kernel had been told to be here,
 *        and has therefore let go of, is here: it was, before it said so. Then it closes them and tells how
 *        many bytes of the stream it has: FRAME_COUNT.
 *     3. An end that hears that sends what it kept from there on, and goes on.
 *
 * After a reset, 2 holds as well: Linux keeps what has arrived for whoever reads, and an end reads before it takes a connection for
 * broken. If ever it did not, the count would be below what the other still has: then the peer is lost, and nothing is made up.
 *
 * Neither waits for the other in 1; both directions are independent. If this connection is replaced in turn, it is read
 * like the others, wherever it has come to.
 */
#ifndef TRANSPORT_TCP_RESUME_H
#define TRANSPORT_TCP_RESUME_H

#include "transport/tcp/tcp_state.h"

/* The connection takes the place of all others of the peer; it is in no list yet. */
void resume_begin(struct tcp *tcp, struct peer *peer, struct conn *conn);
/* What the other end says before its stream goes on. As conn_read(). */
ESP_CHECKED enum esp_status resume_read(struct tcp *tcp, struct conn *conn);
/* After its turn: is it as far as the one before it? */
void resume_note(struct tcp *tcp, struct conn *conn);

#endif
