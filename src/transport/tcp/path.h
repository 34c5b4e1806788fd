/*
 * path.h - what the kernel knows of the path of a connection. Private to tcp.
 */
#ifndef TRANSPORT_TCP_PATH_H
#define TRANSPORT_TCP_PATH_H

#include "transport/tcp/tcp.h"

/* Fills the fields of the path, if the socket is one of TCP. */
void path_read(int fd, struct tcp_stats *out);

#endif
