/*
 * resume.h - a connection takes the place of others, without a byte lost or doubled. Private to tcp.
 *
 * Each direction of the traffic between two lanes is one stream of bytes, whatever connections carry it. When both ends
 * have been given a new connection:
 *
 *     1. An end sends nothing on the old ones any more, lets go of nothing that it keeps, and says so: FRAME_SWITCH.
 *     2. An end that receives it reads the old ones until nothing is there. All bytes that the other's kernel had been
 *        told to be here, and has therefore let go of, are here: they were, before it said so. Then it closes them and
 *        tells how many bytes of the stream it has: FRAME_COUNT.
 *     3. An end that receives it sends its kept bytes from there on, and goes on.
 *
 * After a reset, 2 holds as well: Linux keeps bytes that have arrived for the reader, and an end reads before it takes
 * a connection for broken. If ever it did not, the count would be below the first byte that the other still has: then
 * the peer is lost, and nothing is made up.
 *
 * Neither waits for the other in 1; both directions are independent. If this connection is replaced in turn, it is read
 * like the others, wherever it has come to.
 */
#ifndef TRANSPORT_TCP_RESUME_H
#define TRANSPORT_TCP_RESUME_H

#include "transport/tcp/tcp_state.h"

/* The connection takes the place of all others of the peer; it is in no list yet. */
void tcp_resume_begin(struct tcp *tcp, struct peer *peer, struct conn *conn);
/* Reads the frames of the other end before its stream goes on. As tcp_conn_read(). */
ESP_CHECKED enum esp_status tcp_resume_read(struct tcp *tcp, struct conn *conn);
/* After its turn: is it as far as the one before it? */
void tcp_resume_note(struct tcp *tcp, struct conn *conn);

#endif
