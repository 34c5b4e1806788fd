/*
 * tcp_state.h - the peers of a lane and their connections: what the files of this folder share. Private to tcp.
 */
#ifndef TRANSPORT_TCP_TCP_STATE_H
#define TRANSPORT_TCP_TCP_STATE_H

#include "transport/poller.h"
#include "transport/tcp/conn.h"
#include "transport/tcp/tcp.h"

struct peer {
	struct conn *conns;   /* messages leave on the first      */
	struct conn *from;    /* the one on which they come, or NULL; it has the reader */
	struct conn *retired; /* replaced and not yet read to the end, the oldest first */
	bool dialled;         /* it has messages to send, and no connection was brought yet */
	bool lost;
};

struct tcp {
	struct tcp_config config;
	const struct transport_user *user;
	void *context;
	struct poller *poller;
	struct poller own_poller; /* unless it was given one */
	bool ended;     /* the user has failed: nothing is done any more */
	unsigned moved; /* in this call of tcp_poll() */
	unsigned unlooked; /* calls of tcp_poll() since events were last looked for */
	unsigned guesses;  /* reads from the awaited peer, since then */
	unsigned resuming; /* connections that have is_resuming */
	struct conn *work_first, *work_last;
	struct conn *closed; /* to be freed when nothing points to them any more */
	struct peer peers[];
};

/* Has the user failed? Then all is closed. */
bool tcp_has_ended(struct tcp *tcp);
/* Reads the bytes that lie ready on a connection: as tcp_conn_read(), but nothing is taken from a second one. */
ESP_CHECKED enum esp_status tcp_receive(struct tcp *tcp, struct conn *conn);
/* Its memory is kept until nothing points to it. It is in no list any more. */
void tcp_close_conn(struct tcp *tcp, struct conn *conn);

#endif
